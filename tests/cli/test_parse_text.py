"""`aggrevated parse` of text, as its users call it: files and pipes of any length, good and bad."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import aggrevated
from aggrevated.cli import main, sentences
from aggrevated.config.resolving import resolve
from aggrevated.reports import sentences as reported
from aggrevated.reports.sentences import sentences_of
from aggrevated.runs.executing import execute
from aggrevated.runs.run import Run
from aggrevated.text.conllu import MOST_WORDS, ConlluReader, TextReader
from aggrevated.text.generated import generated

TEXT = "She saw the dog .\n\nNaïve élèves in Łódź sleep\n"
CONLLU = """# sent_id = 7
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\tP\tX=y\t_\t_\t_\tA=1
2\tle\tle\tDET\tD\t_\t_\t_\t_\t_
2.1\t-\t_\t_\t_\t_\t_\t_\t0:x\t_
3\tchien\t_\tNOUN\tN\t_\t1\tdet\t_\tSpaceAfter=No

1\tOui\t_\tINTJ\t_\t_\t_\t_\t_\t_

"""
Parse = Callable[..., tuple[str, str]]
Failure = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of text that has ended."""
    config = resolve("text", sentences=60, iterations=2, trajectories=4, hidden=(8,), validate_every=1)
    made = Run.create(tmp_path_factory.mktemp("runs") / "text", config)
    execute(made)
    return made.folder


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One stands in a folder with a file of each kind."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(TEXT)
    Path("b.conllu").write_text(CONLLU)


@pytest.fixture
def parse(run: Path, capsys: pytest.CaptureFixture[str]) -> Parse:
    """(what is printed, what is said on standard error)."""

    def of(*arguments: object) -> tuple[str, str]:
        capsys.readouterr()
        main(["parse", *map(str, arguments), "--policy", str(run)])
        return capsys.readouterr()

    return of


@pytest.fixture
def failure(capsys: pytest.CaptureFixture[str]) -> Failure:
    """(what is printed, the last sentence) of a command that must end with that exit code."""

    def of(code: int, *arguments: object) -> tuple[str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(["parse", *map(str, arguments)])
        captured = capsys.readouterr()
        assert caught.value.code == code and "Traceback" not in captured.err
        sentence = captured.err.splitlines()[-1]
        assert sentence.startswith("aggrevated: ") and "; " in sentence
        return captured.out, sentence

    return of


def given(text: str | bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """As standard input."""
    data = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def words_in(conllu: str) -> list[tuple[str, ...]]:
    """Of each sentence, all of which must be trees."""
    reader = ConlluReader(conllu.encode().splitlines(keepends=True), trees=True)
    found = [sentence.words for sentence in reader]
    assert not reader.notice and not reader.counts.keys() - {"ranges of words", "empty nodes"}
    return found


def test_text_becomes_conllu(parse: Parse) -> None:
    out, heard = parse("a.txt")
    assert words_in(out) == [("She", "saw", "the", "dog", "."), ("Naïve", "élèves", "in", "Łódź", "sleep")]
    lines = out.splitlines()
    assert lines[0] == "# text = She saw the dog ." and lines[1].startswith("# expected_loss = ")
    assert lines[3].split("\t")[9].startswith("ExpectedLoss=0.") and lines[3].split("\t")[3] != "_"
    assert "sentences of" not in heard  # that is for long files


def test_conllu_keeps_all_but_heads_and_relations(parse: Parse) -> None:
    out, heard = parse("b.conllu")
    assert words_in(out) == [("de", "le", "chien"), ("Oui",)]
    assert out.startswith("# sent_id = 7\n# expected_loss = ")
    kept = [line.split("\t")[:6] for line in CONLLU.splitlines() if "\t" in line]
    assert [line.split("\t")[:6] for line in out.splitlines() if "\t" in line] == kept
    assert "\tA=1|ExpectedLoss=0." in out and "2.1\t-\t" in out and "1-2\tdu\t" in out
    assert "b.conllu: passed over ranges of words (1), empty nodes (1)" in heard
    Path("b.conll").write_text(CONLLU)
    assert parse("b.conll")[0] == out


@pytest.mark.parametrize("before", ["", "\n", "\n \n\n", "\ufeff"])
def test_standard_input_is_what_it_looks_like(before: str, parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, file in ((TEXT, "a.txt"), (CONLLU, "b.conllu"), (CONLLU.partition("\n\n")[2], None)):
        given(before + text, monkeypatch)
        out, _ = parse("-")
        assert out == parse(file)[0] if file else words_in(out) == [("Oui",)]


def test_lines_of_standard_input_have_their_numbers() -> None:
    assert [type(sentences_of(io.BytesIO(data))) for data in (b"", b"\n\n", b"1 a\n", b" # a", b"1\ta")] == [
        *[TextReader] * 4,
        ConlluReader,
    ]
    with pytest.raises(aggrevated.DataError, match="standard input: line 4 has 3 columns"):
        list(sentences_of(io.BytesIO(b"\n\n# a\n1\ta\tb\n")))
    with pytest.raises(aggrevated.DataError, match="line 1 has over"):
        list(sentences_of(io.BytesIO(b"#" + 200_000 * b"a")))
    long_line = sentences_of(io.BytesIO(b"ab " * 100_000))
    assert sum(map(len, long_line)) == 100_000 and long_line.counts.total() == 1


def test_json_has_a_line_for_each_sentence(parse: Parse) -> None:
    found = [json.loads(line) for line in parse("a.txt", "b.conllu", "--json")[0].splitlines()]
    assert [one["file"] for one in found] == ["a.txt", "a.txt", "b.conllu", "b.conllu"]
    assert found[1]["text"] == "Naïve élèves in Łódź sleep" and 0 < found[1]["expected_loss"] < 5
    word = found[2]["words"][1]
    assert word["word"] == "le" and 0 <= word["head"] <= 3 and 0 < word["arc_confidence"] <= word["head_confidence"] < 1
    assert all(sum(word["head"] == 0 for word in one["words"]) == 1 for one in found)
    assert parse("a.txt", "b.conllu")[0] == parse("a.txt")[0] + parse("b.conllu")[0]


def test_a_file_that_ends_in_the_middle_is_read_up_to_there(parse: Parse, run: Path, failure: Failure) -> None:
    Path("cut.conllu").write_text(CONLLU + "1\tJa\t_\t_\t_\t_\t_\t_\t_\t_\n2\tne")
    out, heard = parse("cut.conllu")
    assert words_in(out)[2] == ("Ja",) and "cut.conllu ends without a newline in line 11" in heard
    assert "doubts about cut.conllu" in failure(65, "cut.conllu", "--strict", "--policy", run)[1]
    Path("cut.txt").write_bytes("sie schläft größ".encode()[:-1])
    out, heard = parse("cut.txt")
    assert words_in(out) == [("sie", "schläft")] and "ends in the middle of a letter" in heard


def test_lines_that_are_too_long_are_read_in_pieces(parse: Parse) -> None:
    Path("long.txt").write_text("a " * (MOST_WORDS + 3))
    out, heard = parse("long.txt")
    assert list(map(len, words_in(out))) == [MOST_WORDS, 3] and "read in pieces (1)" in heard


def test_before_a_bad_line_everything_is_parsed(run: Path, parse: Parse, failure: Failure) -> None:
    Path("bad.conllu").write_text(CONLLU + "1\ta\tb\n\n" + CONLLU)
    out, sentence = failure(65, "bad.conllu", "a.txt", "--policy", run)
    assert out == parse("b.conllu")[0] and "bad.conllu: line 10 has 3 columns and not 10" in sentence
    Path("bad.txt").write_bytes(TEXT.encode() + b"a \xff\n")
    out, sentence = failure(65, "bad.txt", "--policy", run)
    assert out == parse("a.txt")[0] and "bad.txt: line 4 is not UTF-8" in sentence


def test_what_cannot_be_parsed_has_a_sentence(run: Path, failure: Failure) -> None:
    assert "no parser of text comes with the package; train one" in failure(2, "a.txt")[1]
    assert "--growth is for pages and has no effect on text" in failure(2, "a.txt", "--growth", "--policy", run)[1]
    assert "--verbose is for pages" in failure(2, "a.txt", "--verbose", "--policy", run)[1]
    Image.new("L", (200, 100), 255).save("page.png")
    assert "page.png is no file of sentences" in failure(2, "a.txt", "page.png", "--policy", run)[1]
    absent = failure(74, "a.txt", "absent.txt", "--policy", run)
    assert absent[0] == "" and "cannot use absent.txt" in absent[1]
    assert "nowhere is not a run" in failure(65, "a.txt", "--policy", "nowhere")[1]
    Path("folder.txt").mkdir()
    assert "is not a regular file" in failure(65, "folder.txt", "--policy", run)[1]
    Path("a.conllx").write_text(CONLLU)
    assert "or text (.txt, .conllu)" in failure(65, "a.conllx", "--policy", run)[1]


def test_runs_of_other_tasks_are_refused(run: Path, failure: Failure) -> None:
    other = Run.create(Path("cartpole"), resolve("cartpole", "aggrevated"))
    sentence = failure(2, "a.txt", "--policy", other.folder)[1]
    assert "cartpole is a run of cartpole; give one of 'aggrevated train text'" in sentence
    page = Path(__file__).parents[2] / "docs/images/page.png"
    assert "is a run of text; give one of 'aggrevated train reader'" in failure(2, page, "--policy", run)[1]


def test_strict_is_for_doubts(
    run: Path, parse: Parse, failure: Failure, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, heard = parse("a.txt")
    assert heard == "a.txt: over 40% of the words are expected to be wrong in 2 of 2 sentences\n"  # it has not learned
    out, sentence = failure(65, "a.txt", "b.conllu", "--strict", "--policy", run)
    assert len(words_in(out)) == 4 and "there are doubts about a.txt, b.conllu; look" in sentence
    monkeypatch.setattr(reported, "LOST", 1.0)
    assert words_in(parse("b.conllu", "--strict")[0])  # what is passed over is no doubt
    Path("empty.txt").write_text("\n\n")
    assert parse("empty.txt") == ("", "empty.txt: there are no sentences in it\n")
    assert "doubts about empty.txt" in failure(65, "empty.txt", "--strict", "--policy", run)[1]


def test_drawings(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    out, heard = parse("a.txt", "--draw", "--json")
    first, second = map(json.loads, out.splitlines())
    assert (first["svg"], second["png"]) == ("a-tree.svg", "a-tree-2.png")
    assert "drawings of all sentences, from a-tree.svg on" in heard
    assert all(Path(one[ending]).stat().st_size for one in (first, second) for ending in ("svg", "png"))
    monkeypatch.setattr(sentences, "MOST_DRAWN", 3)
    out, heard = parse("a.txt", "b.conllu", "--out", "pictures")
    assert len(words_in(out)) == 4 and "drawings of the first 3 of 4 sentences, from pictures/a.txt-tree.svg" in heard
    drawn = {f"{name}.{end}" for name in ("a.txt-tree", "a.txt-tree-2", "b.conllu-tree") for end in ("png", "svg")}
    assert {path.name for path in Path("pictures").iterdir()} == drawn
    given("Yes .\n", monkeypatch)
    parse("-", "--draw")
    parse("a.txt", "--out", "there.png")
    assert all(Path(name).is_file() for name in ("standard-input-tree.svg", "there.png", "there-2.svg"))


def test_three_lines_of_python(run: Path) -> None:
    reader = aggrevated.load_sentence_reader(run)
    (parsed,) = reader.parse_text("She saw it .")
    assert parsed.sentence.words == ("She", "saw", "it", ".") and len(parsed.heads) == 4
    assert isinstance(reader, aggrevated.SentenceReader) and isinstance(parsed, aggrevated.ParsedSentence)
    assert [one.sentence.words for one in reader.parse(ConlluReader(Path("b.conllu"), trees=False))][1] == ("Oui",)


# ---- as processes

PROGRAM = f"{sys.executable} -m aggrevated parse"


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = os.environ | environment
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=300, check=False, env=own)


def test_who_has_read_enough_ends_what_has_no_end(run: Path) -> None:
    done = shell(f"yes 'She saw it .' | {PROGRAM} - --policy {run} | head -5; exit ${{PIPESTATUS[1]}}")
    assert done.returncode == 0 and done.stdout.startswith("# text = She saw it .\n")
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_what_is_printed_is_utf_8_whatever_the_terminal_is(run: Path) -> None:
    done = shell(f"{PROGRAM} a.txt --policy {run}", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "Łódź" in done.stdout
    assert shell(f"{PROGRAM} a.txt --policy {run} >/dev/full").returncode == 74


PEAK = """
import resource, sys
from aggrevated.cli import main
main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


def test_memory_does_not_grow_with_the_file(run: Path) -> None:
    lines = [" ".join(sentence.words) for sentence in generated(400, 1)]
    peaks = []
    for times in (1, 10):
        Path("much.txt").write_text("\n".join(lines * times))
        command = [sys.executable, "-c", PEAK, "parse", "much.txt", "--policy", str(run)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
        assert done.stdout.count("# text = ") == 400 * times
        peaks.append(int(done.stderr.splitlines()[-1]))
    assert len(" ".join(lines).split()) > 5000 and "sentences of much.txt: 1000, " in done.stderr
    assert peaks[1] - peaks[0] < 150  # megabytes
