"""Measured numbers in README and docs are marked and equal those of the JSON in docs/results."""

import importlib.util
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
HISTORY = ROOT / "docs/decisions"  # numbers of the day of a decision, as docs/decisions/README.md says

NOT_MEASURED = re.compile(
    r"""\b\d+\.\d+\.\d+\S* | \b(?:19|20)\d\d\b | \bSHA-256 | \b\d+\ ×\ \d+
    |\b(?:Python|torch|NumPy|SciPy|MuJoCo|Gymnasium|aggrevated|Opset)\ \d[\d.]*
    |\b(?:Eqs?\.|Section|Theorem|Table|Figure|Algorithm|decision|lines?|seeds?|depth|issue)\ \d[\d.]*
        (?:(?:,|\ and|\ to)\ \d+)*
    |[\w*}|²]\s?[=≤≥<>]\s?[-−]?\d[\d.,/^]*
    |[\w.]*(?:\^|[₀-₉²³])\S*""",
    re.IGNORECASE | re.VERBOSE,
)
MEASURED = re.compile(
    r"""[-−+]?\d*\.\d+ | [-−+]?\d{1,3}(?:,\d{3})+ | \b\d+\ of\ (?:the\ )?\d+ | (?<![\w.,-])[-−+]\d+ | \b[1-9]\d{2,}\b
    | \b\d+\ ?(?:%|×|(?:k|ms|s|kB|MB|GB|seconds?|minutes?|hours?|times|points?)\b)""",
    re.VERBOSE,
)

GIVEN_PART = re.compile(
    r"[^¤;:|(,]*(?:,\d[^¤;:|(,]*)*¶"
)  # the text that a mark covers: from the last separator to the mark


@cache
def mark_pattern() -> re.Pattern[str]:
    """Return the pattern of a mark."""
    found: re.Pattern[str] = load_make_numbers().MARK
    return found


def load_make_numbers() -> ModuleType:
    """Return docs/make_numbers.py as a module."""
    spec = importlib.util.spec_from_file_location("make_numbers", ROOT / "docs/make_numbers.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


PAGES = [page for page in load_make_numbers().pages() if HISTORY not in page.parents]


def split_into_sentences(text: str) -> list[str]:
    """Return the sentences and table rows of a page, without code, pictures and addresses.

    A marked number becomes ¤; the mark of a given number becomes ¶.
    """
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
    text = mark_pattern().sub(lambda mark: mark["number"] + "¶" if mark["source"] == "given" else "¤", text)
    text = re.sub(r"`[^`]*`", "…", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)|<[^>]+>", "", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"^(?=\||#|[-*] |\d+\. )", "\n", text, flags=re.MULTILINE)
    parts = []
    for part in re.split(r"\n\s*\n", text):
        part = " ".join(part.split())
        parts += [part] if part.startswith("|") else re.split(r"(?<=[.!?])(?<!Eq\.)[)*”\"]*\s+(?=[^a-z])", part)
    return [sentence for sentence in parts if sentence]


def find_unmarked_numbers(sentence: str) -> list[str]:
    """Return the numbers of a sentence that look measured and have no mark."""
    return MEASURED.findall(NOT_MEASURED.sub(" ", GIVEN_PART.sub(" ", sentence)))


def test_marked_number_equals_json_and_has_its_interval() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/make_numbers.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, f"run 'python docs/make_numbers.py'\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_measured_number_has_a_mark(page: Path) -> None:
    wrong = [
        (found, sentence)
        for sentence in split_into_sentences(page.read_text())
        if (found := find_unmarked_numbers(sentence))
    ]
    report = "\n".join(f"{', '.join(found)} in: {sentence}" for found, sentence in wrong)
    assert not wrong, f"these measured numbers have no mark (see CONTRIBUTING.md):\n{report}"


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("AggreVaTeD is better than DAgger: 0.91 and .88.", ["0.91", ".88"]),
        ("It ends 3 % above its expert, after 12,000 steps.", ["3 %", "12,000"]),
        ("The window is 1.7 times as fast.", ["1.7"]),
        ("It takes 40 ms instead of 120 s.", ["40 ms", "120"]),
        ("The expert fell from −83 to −90.", ["−83", "−90"]),
        ("It passed its expert in 8 of 10 trials.", ["8 of 10"]),
        ("| natural | 1.35 |", ["1.35"]),
        ("It has 221, 225 and 99 of 100.", ["221", "225", "99 of 100"]),
        ("It learns faster from 1.07<!--hopper:ratio--> on, and slower from 1.03.", ["1.03"]),
        ("The paper's is above 0.92<!--given-->, and ours above 0.95.", ["0.95"]),
        ("Ours has 0.95, above the paper's 0.92<!--given-->.", ["0.95"]),
    ],
)
def test_unmarked_number_is_found(sentence: str, found: list[str]) -> None:
    assert find_unmarked_numbers(split_into_sentences(sentence)[-1]) == found


@pytest.mark.parametrize(
    "sentence",
    [
        "Adam has a rate of 0.01<!--given--> and 50 trajectories.",
        "It is faster than before with K = 50, H = 100 and λ = 0.2, as Eq. 11 and Section 6.2 say.",
        "It is faster with Python 3.11 and torch 2.13.0 than in 2017, on seeds 100 to 103.",
        "It is 1.07<!--hopper:ratio--> of the expert, the paper's 0.97<!--given-->.",
        "`--learning-rate 0.01` is better than `0.1`.",
        "![0.92 is better than 0.81](images/a.png)",
        "```\n0.92 is better than 0.81\n```",
        "A crop of 40 × 40 is larger than a symbol.",
    ],
)
def test_settings_code_and_marked_numbers_need_no_mark(sentence: str) -> None:
    assert not any(map(find_unmarked_numbers, split_into_sentences(sentence)))


def test_page_is_split_into_sentences_items_and_rows() -> None:
    page = "# A head\n\nOne is\nshort. Eq. 7 holds (so it is). 40 pages follow.\n- an item\n- [two](b.md)\n\n"
    page += "| a | b |\n|---|---|\n| 1 | 2 |\n"
    expected = ["# A head", "One is short.", "Eq. 7 holds (so it is).", "40 pages follow.", "- an item", "- [two]"]
    assert split_into_sentences(page) == [*expected, "| a | b |", "|---|---|", "| 1 | 2 |"]


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return docs/make_numbers.py with a temporary root and JSON files."""
    made = load_make_numbers()
    results = tmp_path / "docs/results"
    (results / "peers").mkdir(parents=True)
    rows = [
        {"label": "ours, natural", "ratio": 1.0704, "ratio_low": 1.061, "ratio_high": 1.078, "steps": 740_775},
        {"label": "theirs", "ratio": 0.92, "steps": 1200, "returns": [-3.0, -4.0], "said": "12.5 [3, 1,200] steps"},
    ]
    seldom = {"label": "seldom", "expert": 30_208, "expert_low": 18_432, "expert_high": None}
    (results / "hopper.json").write_text(json.dumps({"table": rows, "reach": [seldom]}))
    (results / "peers/ppo.json").write_text(json.dumps([{"case": "a", "workers": 2, "s": 0.5}, {"case": "a", "s": 2}]))
    monkeypatch.setattr(made, "ROOT", tmp_path)
    return made


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("0.00<!--hopper:table[ours, natural].ratio-->", "1.07<!--hopper:table[ours, natural].ratio-->"),
        (".000<!--hopper:table[theirs].ratio-->", ".920<!--hopper:table[theirs].ratio-->"),
        ("1<!--hopper:table[theirs].ratio * 100--> %", "92<!--hopper:table[theirs].ratio * 100--> %"),
        ("9<!--hopper:table[theirs].steps-->", "1,200<!--hopper:table[theirs].steps-->"),
        ("9<!--hopper:table[ours, natural].steps ~2-->", "740,000<!--hopper:table[ours, natural].steps ~2-->"),
        ("1.0<!--hopper:table[theirs].returns.mean-->", "−3.5<!--hopper:table[theirs].returns.mean-->"),
        ("1.0<!--hopper:table[theirs].returns.half-->", "6.4<!--hopper:table[theirs].returns.half-->"),
        ("-1<!--hopper:table[theirs].returns[1]-->", "-4<!--hopper:table[theirs].returns[1]-->"),
        ("1<!--hopper:table[theirs].said[2]-->", "1,200<!--hopper:table[theirs].said[2]-->"),
        ("1<!--hopper:table[*].steps.sum-->", "741,975<!--hopper:table[*].steps.sum-->"),
        ("1.0<!--peers/ppo:[a & workers=2].s-->", "0.5<!--peers/ppo:[a & workers=2].s-->"),
        ("+0.0<!--hopper:table[theirs].ratio - peers/ppo:[*].s.min-->",
         "+0.4<!--hopper:table[theirs].ratio - peers/ppo:[*].s.min-->"),
        ("7<!--given--> and 8 <!-- a note -->", "7<!--given--> and 8 <!-- a note -->"),
    ],
)  # fmt: skip
def test_marked_number_is_written_from_json_in_its_old_format(numbers: ModuleType, text: str, new: str) -> None:
    assert numbers.filled_in(text) == (new, [])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("hopper:table[nobody].ratio", "0 items are [nobody]"),
        ("peers/ppo:[a].s", "2 items are [a]"),
        ("walker:ratio", "no docs/results/walker.json"),
        ("hopper:table[theirs].uas", "no 'uas' among label, ratio"),
        ("hopper:table[theirs]", "not a number"),
        ("hopper:table[theirs].returns[7]", "out of range"),
        ("hopper:table[theirs].ratio percent", "expected at ' percent'"),
        ("nonsense", "neither FILE:PATH nor a number"),
    ],
)
def test_unresolvable_mark_is_reported_with_the_reason(numbers: ModuleType, source: str, reason: str) -> None:
    text, (wrong,) = numbers.filled_in(f"1<!--{source}-->")
    assert text == f"1<!--{source}-->" and reason in wrong
    assert "no number stands before it" in numbers.filled_in("word<!--hopper:table[theirs].ratio-->")[1][0]


def test_number_with_an_interval_must_be_followed_by_it(numbers: ModuleType) -> None:
    path = "hopper:table[ours, natural].ratio"
    alone = f"1.1<!--{path}-->"
    with_interval = f"1.1<!--{path}--> (1.0<!--{path}_low--> to 1.2<!--{path}_high-->)"
    assert "ratio_low and ratio_high must be the next" in next(numbers.without_interval(alone))
    assert [*numbers.without_interval(with_interval)] == []
    assert [*numbers.without_interval("0.9<!--hopper:table[theirs].ratio-->")] == []


def test_interval_end_that_was_never_reached_is_a_word(numbers: ModuleType) -> None:
    path = "hopper:reach[seldom].expert"
    alone = f"30,208<!--{path}--> (18,432 to never)"
    assert "expert_low must be the next" in next(numbers.without_interval(alone))
    assert [*numbers.without_interval(f"30,208<!--{path}--> (18,432<!--{path}_low--> to never)")] == []


def test_make_numbers_writes_and_check_only_reports(
    numbers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (f"It has {number}<!--hopper:table[theirs].ratio-->.\n" for number in ("0.10", "0.92"))
    pages = [tmp_path / "README.md", tmp_path / "docs/a.md", tmp_path / "docs/results/README.md"]
    made = tmp_path / "docs/results/hopper.md"
    for page in (*pages, made):
        page.write_text(old)
    monkeypatch.setattr(sys, "argv", ["make_numbers.py", "--check"])
    assert numbers.main() == 1 and {page.read_text() for page in pages} == {old}
    assert "docs/a.md: 0.10 is 0.92 by hopper:table[theirs].ratio" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["make_numbers.py"])
    assert numbers.main() == 0 and {page.read_text() for page in pages} == {new} and made.read_text() == old
    monkeypatch.setattr(sys, "argv", ["make_numbers.py", "--check"])
    assert numbers.main() == 0
