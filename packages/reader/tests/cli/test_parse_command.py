"""The commands on handwriting: train, evaluate, parse, compare and reproduce, as their users call them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from aggrevated.cli import main, run_jobs
from aggrevated.config.resolver import resolve_config
from aggrevated.engines import IN_PROCESS
from aggrevated.parsing.pages.handwriting import write_page
from aggrevated.storage import JsonDict
from aggrevated.tasks import FigureRow, Preset, algebra
from aggrevated.training.run_folder import Run
from aggrevated.training.trainer import run_to_end
from aggrevated.updates import TO_THE_END
from aggrevated_experiments.parsing import table1
from helpers.handwriting import crohme_like, inkml

SCORES = {"uas_micro", "uas_macro", "exact_match", "pages", "symbols", "by_symbol", "by_arc_length"}
TINY = [
    "--generated-pages",
    "20",
    "--augmented-copies",
    "0",
    "--iterations",
    "2",
    "--trajectories",
    "2",
    "--validate-every",
    "1",
]
TINY += ["--hidden", "8", "--update", "regular", "--start-steps", "2", "--demonstrations", "3"]
Said = Callable[..., str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of algebra that has ended."""
    given = {
        "generated_pages": 20,
        "augmented_copies": 0,
        "iterations": 2,
        "trajectories": 2,
        "hidden": (8,),
        "validate_every": 1,
    }
    config = resolve_config("algebra", "aggrevated", update="regular", start_steps=20, demonstrations=50, **given)
    made = Run.create(tmp_path_factory.mktemp("runs") / "algebra", config)
    run_to_end(made)
    return made.folder


@pytest.fixture
def said(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    """What a command prints on standard output, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def of(*arguments: object) -> str:
        capsys.readouterr()
        main([str(argument) for argument in arguments])
        return capsys.readouterr().out

    return of


@pytest.fixture
def failure(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The one sentence of a command that must end with that exit code."""
    monkeypatch.chdir(tmp_path)

    def of(code: int, *arguments: object) -> str:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert caught.value.code == code, captured.err
        assert captured.out == "" and "Traceback" not in captured.err
        assert captured.err.startswith("aggrevated: ") and captured.err.count("\n") == 1
        return captured.err

    return of


def picture_of(lines: list[str], path: Path) -> Path:
    """A page in a generated hand, as a scan."""
    page = write_page(lines, writer=3, seed=1)
    width, height = (2 * page.boxes[:, 2:].max(axis=0) + 150).astype(int).tolist()
    picture = Image.new("L", (width, height), 255)
    for stroke in (stroke for strokes in page.ink for stroke in strokes):
        ImageDraw.Draw(picture).line([(2 * x + 50, 2 * y + 50) for x, y in stroke.tolist()], 20, 6, joint="curve")
    picture.save(path)
    return path


def test_train_says_what_it_measured(said: Said, tmp_path: Path) -> None:
    result = json.loads(said("train", "algebra", *TINY, "--policy", "lstm", "--json"))
    assert result["run"] == "runs/algebra-aggrevated-regular" and 0 <= result["uas_micro"] <= 1
    config = json.loads((tmp_path / result["run"] / "config.json").read_text())
    assert (config["policy"]["name"], config["policy"]["use_geometry"]) == ("lstm", False)
    assert (config["problem"]["generated_pages"], config["update"]["anneal_iterations"]) == (20, 2)
    again = json.loads(said("resume", result["run"], "--json"))
    assert again["weights_sha256"] == result["weights_sha256"]


def test_train_on_real_ink_needs_its_folder_wherever_it_is_called(said: Said, tmp_path: Path) -> None:
    crohme_like(tmp_path / "ink")
    real = TINY[2:]  # without --generated-pages, which would have no effect
    result = json.loads(said("train", "algebra", "--crohme", "ink", *real, "--out", "run", "--json"))
    assert (result["pages"], result["symbols"]) == (3, 14)
    assert json.loads((tmp_path / "run/config.json").read_text())["problem"]["crohme"] == str(tmp_path / "ink")


def test_evaluate_tells_uas_in_all_its_forms(run: Path, said: Said) -> None:
    found = json.loads(said("evaluate", run, "--json"))
    result = json.loads((run / "result.json").read_text())
    assert set(found) >= SCORES and found["uas_micro"] == result["uas_micro"]
    assert all(set(kind) == {"uas", "symbols"} for kind in found["by_symbol"].values())
    assert set(found["by_arc_length"]) <= {"ROOT", "1", "2", "3-4", "5-8", "9+"}
    text = said("evaluate", run)
    assert "uas micro" in text and "by symbol" in text and "by arc length" in text
    equals = found["by_symbol"]["="]
    assert f"= {equals['uas']:.2f} ({equals['symbols']})" in text


def test_evaluate_on_real_ink(run: Path, said: Said, tmp_path: Path) -> None:
    crohme_like(tmp_path / "ink")
    found = json.loads(said("evaluate", run, "--crohme", "ink", "--json"))
    assert (found["pages"], found["symbols"]) == (3, 14) and set(found) >= SCORES
    alone = json.loads(said("evaluate", run, "--crohme", "ink/train", "--json"))
    assert alone["pages"] == 12


def heads_in(found: JsonDict) -> list[int]:
    return [symbol["head"] for symbol in found["symbols"]]


def test_parse_a_picture_with_a_policy_of_the_papers(run: Path, said: Said, tmp_path: Path) -> None:
    """It knows neither names nor how sure it is, and says nothing of these."""
    picture_of(["x=3+a", "a=2"], tmp_path / "page.png")
    found = json.loads(said("parse", "page.png", "--policy", run, "--json"))
    assert len(found["symbols"]) == 8 and {symbol["label"] for symbol in found["symbols"]} == {"?"}
    assert all(0 <= head <= 8 for head in heads_in(found)) and "expected_loss" not in found
    assert {"box", "line", "number"} < set(found["symbols"][0]) and "svg" not in found
    assert "arc_confidence" not in found["symbols"][0] and not list(tmp_path.glob("*-tree*"))
    again = said("parse", "page.png", "--policy", run, "--out", "there.svg", "--show-growth")
    assert (tmp_path / "there.svg").is_file() and (tmp_path / "there-growth.png").is_file()
    assert np.asarray(Image.open(tmp_path / "there.png").convert("L")).min() < 100  # there is ink
    lines = again.splitlines()
    assert [int(line.split("<-")[1].split()[0]) for line in lines[:8]] == heads_in(found)
    assert lines[-1] == "drawings: there.svg, there.png, there-growth.svg"


def test_parse_ink(run: Path, said: Said, tmp_path: Path) -> None:
    (tmp_path / "line.inkml").write_text(inkml("a(b+c)=d", 4))
    found = json.loads(said("parse", "line.inkml", "--policy", run, "--json", "--draw"))
    assert [symbol["label"] for symbol in found["symbols"]] == list("a(b+c)=d") and len(heads_in(found)) == 8
    assert (found["svg"], found["png"]) == ("line-tree.svg", "line-tree.png")
    strokes = [stroke for symbol in found["symbols"] for stroke in symbol["strokes"]]
    assert len({*strokes}) == len(strokes) == (tmp_path / "line.inkml").read_text().count("<trace ")
    assert b"<svg" in (tmp_path / "line-tree.svg").read_bytes()
    lines = said("parse", "line.inkml", "--policy", run).splitlines()
    arcs = [line for line in lines if "<-" in line]
    assert arcs[0].split()[:2] == ["1", "a"] and arcs[7].split()[:2] == ["8", "d"]


# ---- the reader that comes with the package


def test_a_picture_is_read_after_installation(said: Said, tmp_path: Path) -> None:
    picture_of(["x+3=5", "x=2"], tmp_path / "page.png")
    lines = said("parse", "page.png").splitlines()
    assert lines[:2] == ["x+3=5", "x=2"] and lines[2] == "LaTeX: x+3=5 \\\\ x=2"
    assert lines[3].split()[:4] == ["1", "x", "<-", "2"] and lines[3].endswith("%")
    found = json.loads(said("parse", "page.png", "--json"))
    assert found["text"] == "x+3=5\nx=2" and found["doubts"] == [] and 0 <= found["expected_loss"] < 2
    first = found["symbols"][0]
    last = found["symbols"][-1]
    assert (first["label"], first["line"], last["label"], last["line"]) == ("x", 1, "2", 2)
    left, top, right, bottom = first["box"]
    with Image.open(tmp_path / "page.png") as picture:
        assert 0 <= left < right <= picture.width and 0 <= top < bottom <= picture.height


def test_folders_are_read_and_what_cannot_be_is_counted(
    said: Said, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "homework/more").mkdir(parents=True)
    picture_of(["x=3+a"], tmp_path / "homework/page.png")
    (tmp_path / "homework/more/line.inkml").write_text(inkml("a+b=c", 4))
    (tmp_path / "homework/broken.png").write_bytes(b"no picture")
    (tmp_path / "homework/notes.txt").write_text("not read at all")
    found = [json.loads(line) for line in said("parse", "homework", "--json").splitlines()]
    assert [Path(one["file"]).name for one in found] == ["line.inkml", "page.png"]
    main(["parse", "homework", "--verbose"])
    heard = capsys.readouterr().err
    assert "left out 1 of 3 files" in heard and "left out homework/broken.png" in heard
    with pytest.raises(SystemExit) as caught:
        main(["parse", "homework", "--strict"])
    assert caught.value.code == 65


def test_what_is_no_algebra_is_said_to_be_so(
    said: Said, tmp_path: Path, capsys: pytest.CaptureFixture[str], failure: Callable[..., str]
) -> None:
    """Lines of scribble, as close as those of a text."""
    generator = np.random.default_rng(0)
    picture = Image.new("L", (900, 700), 255)
    draw = ImageDraw.Draw(picture)
    for line in range(14):
        for word in range(12):
            points = np.cumsum(generator.normal(0, 7, (14, 2)), axis=0) * (1, 0.5) + (60 + 68 * word, 40 + 46 * line)
            draw.line([tuple(point) for point in points], 20, 3)
    picture.save(tmp_path / "text.png")
    main(["parse", "text.png", "--json"])
    captured = capsys.readouterr()
    assert json.loads(captured.out)["doubts"] and "may be no page of algebra" in captured.err
    with pytest.raises(SystemExit) as caught:
        main(["parse", "text.png", "--strict"])
    assert caught.value.code == 65


def test_three_lines_of_python(tmp_path: Path) -> None:
    picture_of(["2x=8"], tmp_path / "page.png")
    reader = aggrevated_reader.load_reader()
    parsed = reader.parse(tmp_path / "page.png")
    assert parsed.text == "2x=8" and parsed.latex == "2x=8" and parsed.heads == [2, 3, 0, 3]
    assert (
        reader.metadata["command"].startswith("aggrevated train reader")
        and "--crohme" not in reader.metadata["command"]
    )


def test_compare_parsers(run: Path, said: Said, tmp_path: Path) -> None:
    rows = json.loads(said("compare", run, "--out", "both", "--json"))
    assert rows[0]["label"].endswith("AggreVaTeD, regular, contextual") and (tmp_path / "both.png").is_file()
    assert rows[0]["test_return"] == json.loads((run / "result.json").read_text())["uas_micro"]


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of another world, not begun."""
    return Run.create(tmp_path_factory.mktemp("runs") / "cartpole", resolve_config("cartpole", "aggrevated")).folder


def test_what_a_parser_cannot_do_has_a_sentence(run: Path, failure: Callable[..., str], tmp_path: Path) -> None:
    assert "which is not of control and does not move" in failure(2, "watch", run)
    assert "--episodes has no effect on a run of algebra; leave it out" in failure(2, "evaluate", run, "--episodes", 5)
    assert "--seed has no effect on a run of algebra" in failure(2, "evaluate", run, "--seed", 5)
    assert "cannot use absent.png" in failure(74, "parse", "absent.png", "--policy", run)
    Image.new("L", (200, 100), 255).save(tmp_path / "blank.png")
    assert "blank.png" in failure(65, "parse", "blank.png", "--policy", run)
    assert "absent" in failure(74, "evaluate", run, "--crohme", "absent")
    assert "has fallen to 0 after 2 iterations" in failure(2, "resume", run, "--iterations", 4)
    assert {path.name for path in tmp_path.iterdir()} == {"blank.png"}


def test_what_another_run_cannot_do_has_a_sentence(cartpole: Path, failure: Callable[..., str], tmp_path: Path) -> None:
    assert "--crohme has no effect on a run of cartpole" in failure(2, "evaluate", cartpole, "--crohme", "ink")
    (tmp_path / "line.inkml").write_text(inkml("a=b", 4))
    sentence = failure(2, "parse", "line.inkml", "--policy", cartpole)
    assert "is a run of cartpole; give one of 'aggrevated train reader'" in sentence
    assert not list(tmp_path.glob("*-tree.*"))


def test_real_ink_is_reproduced_from_a_folder_only(failure: Callable[..., str]) -> None:
    for command in (["real-ink"], ["table1", "--crohme", "ink"], ["cartpole", "--crohme", "ink"]):
        assert "--crohme is for 'aggrevated reproduce real-ink', which needs it" in failure(2, "reproduce", *command)
    assert "absent has no train/ and dev/" in failure(2, "reproduce", "real-ink", "--crohme", "absent")


@pytest.fixture
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of two rows, runs of two iterations, one after the other in this process."""
    usual = {
        "generated_pages": 20,
        "validate_every": 1,
        "checkpoint_every": 2,
        "anneal_iterations": TO_THE_END,
        "dropout": 0.3,
    }
    tuned = (
        Preset(usual | {"iterations": 2, "trajectories": 2, "hidden": (8,)}),
        Preset({"start_steps": 2, "demonstrations": 3}, start="supervised"),
        Preset({"start": "supervised", "update": "regular", "entropy": 0.4}, method="aggrevated"),
        Preset({"update": "regular"}, method="sl"),
        Preset({"update": "regular"}, method="dagger"),
    )
    tiny = replace(algebra.TASK, presets=tuned)
    rows = (
        FigureRow("aggrevated", "regular", "lstm", settings={"iterations": 2}, paper_value=0.924),
        FigureRow("sl", "regular", "contextual"),
        FigureRow("dagger", "regular", "lstm", start="supervised"),
    )
    monkeypatch.setattr(algebra, "TASK", tiny)
    monkeypatch.setattr(table1, "TASK", tiny)
    monkeypatch.setattr(table1, "TABLE1", rows)
    monkeypatch.setattr(table1, "CURVES", rows[:1])
    monkeypatch.setattr(table1, "TUNING", ((rows[0], ({}, {"learning_rate": 0.3})),))
    monkeypatch.setattr(table1, "REAL_INK", rows[::2])
    monkeypatch.setattr(table1, "FIGURES", tuple(replace(figure, task=tiny, trials=2) for figure in table1.FIGURES))
    monkeypatch.setattr(
        run_jobs, "run_all", lambda runs, where=None: [run_jobs.run_with_progress(run, IN_PROCESS) for run in runs]
    )


@pytest.mark.usefixtures("small_tables")
def test_reproduce_table1_and_its_curves(said: Said, tmp_path: Path) -> None:
    table = json.loads(said("reproduce", "table1", "--json"))
    folder = tmp_path / "runs" / "reproduce-table1"
    assert [row["label"] for row in table] == [
        "AggreVaTeD, regular, lstm",
        "SL, regular, contextual, from scratch",
        "DAgger, regular, lstm",
        "always the next head",
        "random transitions",
    ]
    first, *_, chance = table
    assert (first["trials"], first["paper"], first["iterations"], chance["paper"]) == (2, 0.924, 2, 0.15)
    results = [
        json.loads((folder / f"aggrevated-regular-lstm/trial-0{trial}/result.json").read_text()) for trial in (0, 1)
    ]
    scores = [result["uas_micro"] for result in results]
    assert first["uas_micro"] == pytest.approx(sum(scores) / 2) and first["pages"] == 3 + 2 * 2
    assert min(scores) <= first["uas_micro_low"] <= first["uas_micro"] <= first["uas_micro_high"] <= max(scores)
    assert table[3]["uas_micro"] == pytest.approx(sum(result["uas_next_head"] for result in results) / 2)
    trials = [Run.open(folder / f"aggrevated-regular-lstm/trial-0{trial}").config for trial in (0, 1)]
    assert [(one.settings["seed"], one.settings["data_seed"]) for one in trials] == [(0, 0), (1, 1)]

    page = (folder / "table1.md").read_text()
    assert "are not public: its numbers are of other pages than ours, and the two columns are not comparable" in page
    assert f"| AggreVaTeD, regular, lstm | **{first['uas_micro']:.3f}** |" in page and "| 0.924 |" in page
    assert "`aggrevated reproduce table1`" in page
    assert (folder / "table1.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / "table1.svg").read_bytes()
    facts = json.loads((folder / "table1.json").read_text())
    assert facts["table"] == table and facts["seeds"] == [0, 1] and len(facts["trials"]) == 6
    assert facts["settings"]["DAgger, regular, lstm"]["policy"]["name"] == "lstm"
    (compared,) = facts["comparisons"]  # the other is another policy from another start
    rival = [one["uas_micro"] for one in facts["trials"] if one["label"] == "DAgger, regular, lstm"]
    assert compared["each"] == pytest.approx([a - b for a, b in zip(scores, rival, strict=True)])
    assert (compared["label"], compared["against"]) == ("AggreVaTeD, regular, lstm", "DAgger, regular, lstm")
    assert compared["above"] == sum(one > 0 for one in compared["each"]) and "Of 1 comparisons" in page
    assert [len(one["test_uas"]) for one in facts["curves"]] == [2, 2, 2]
    (tuned,) = facts["tuning"]
    assert tuned["label"] == first["label"] and tuned["seeds"] == [100, 101]
    assert [one["settings"].get("learning_rate") for one in tuned["tried"]] == [None, 0.3]
    runs = [Run.open(folder / f"tuning/aggrevated-regular-lstm-1/trial-{seed}") for seed in (100, 101)]
    assert [(one.config.settings["seed"], one.config.settings["data_seed"]) for one in runs] == [(100, 100), (101, 101)]
    kept = [json.loads((run.folder / "result.json").read_text()) for run in runs]
    assert tuned["tried"][1]["validation_uas"] == [one["best_return"] for one in kept] and kept[0]["iterations"] == 1
    means = [sum(one["validation_uas"]) for one in tuned["tried"]]
    chosen = tuned["tried"][means.index(max(means))]["settings"]
    assert tuned["chosen"] == chosen and "under `tuning`" in page
    assert chosen.items() <= trials[0].settings.items()  # and it is what the trials have
    assert str(tmp_path) not in (folder / "table1.json").read_text()  # it is for publishing

    ended = {path: path.stat().st_mtime_ns for path in folder.glob("*/*/result.json")}
    curves = json.loads(said("reproduce", "parsing-curves", "--json", "--report", "report"))
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/*/result.json")} == ended  # none is run again
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["reproduce-table1"]
    assert [curve["label"] for curve in curves] == ["AggreVaTeD, regular, lstm"]
    metrics = [Run.open(folder / f"aggrevated-regular-lstm/trial-0{trial}").metrics() for trial in (0, 1)]
    assert curves[0]["pages"] == [5, 7]  # three of the start, two in each iteration
    assert curves[0]["test_uas"] == [[line.more["test_uas"] for line in trial] for trial in metrics]
    assert curves[0]["validation_uas"] == [[line.current_return for line in trial] for trial in metrics]
    for ending in ("json", "png", "svg"):
        assert (tmp_path / f"report/parsing-curves.{ending}").is_file()
    assert "AggreVaTeD" in said("reproduce", "table1")  # for people


@pytest.mark.usefixtures("small_tables")
def test_reproduce_real_ink(said: Said, tmp_path: Path) -> None:
    crohme_like(tmp_path / "crohme")
    table = json.loads(said("reproduce", "real-ink", "--crohme", "crohme", "--trials", "2", "--json", "--out", "out"))
    real = "AggreVaTeD, regular, lstm, real ink"
    dagger = "DAgger, regular, lstm, real ink"
    never = "AggreVaTeD, regular, lstm"
    assert [row["label"] for row in table[:3]] == [real, dagger, never]
    text = (tmp_path / "out/real-ink.json").read_text()
    page = (tmp_path / "out/real-ink.md").read_text()
    assert str(tmp_path) not in text and "no part of this repository" in page
    facts = json.loads(text)
    assert facts["settings"][real]["problem"]["crohme"] == "crohme"
    assert [(one["label"], one["against"]) for one in facts["comparisons"]] == [(real, dagger)]  # on the same ink only
    assert f"| {real} | {dagger} |" in page
    runs = [f"out/aggrevated-regular-lstm-iterations/trial-0{trial}" for trial in (0, 1)]
    scores = [json.loads(said("evaluate", run, "--crohme", "crohme", "--json")) for run in runs]
    assert table[2]["uas_micro"] == pytest.approx(np.mean([score["uas_micro"] for score in scores]))  # on real pages
    assert scores[0]["pages"] == 3
