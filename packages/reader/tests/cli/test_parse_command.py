"""The command parse, as users call it."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

import aggrevated_reader
from aggrevated.cli import main
from aggrevated.config.resolver import resolve_config
from aggrevated.parsing.pages.handwriting import write_page
from aggrevated.storage import JsonDict
from aggrevated.training.run_folder import Run
from helpers.algebra_runs import create_trained_run
from helpers.command_runner import CommandRunner
from helpers.handwriting import inkml


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of algebra."""
    return create_trained_run(tmp_path_factory.mktemp("runs") / "algebra")


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    """Commands in an empty folder."""
    return CommandRunner(tmp_path, capsys, monkeypatch)


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of another task, not started."""
    return Run.create(tmp_path_factory.mktemp("runs") / "cartpole", resolve_config("cartpole", "aggrevated")).folder


def draw_picture(lines: list[str], path: Path) -> Path:
    """Draw a page in a generated hand, as a scan."""
    page = write_page(lines, writer=3, seed=1)
    width, height = (2 * page.boxes[:, 2:].max(axis=0) + 150).astype(int).tolist()
    picture = Image.new("L", (width, height), 255)
    for stroke in (stroke for strokes in page.ink for stroke in strokes):
        ImageDraw.Draw(picture).line([(2 * x + 50, 2 * y + 50) for x, y in stroke.tolist()], 20, 6, joint="curve")
    picture.save(path)
    return path


def list_heads(found: JsonDict) -> list[int]:
    return [symbol["head"] for symbol in found["symbols"]]


def test_parse_command_reads_a_picture_with_a_run_of_algebra(run: Path, command: CommandRunner, tmp_path: Path) -> None:
    """A run of algebra has neither labels nor confidences, and the output does not mention them."""
    draw_picture(["x=3+a", "a=2"], tmp_path / "page.png")
    found = json.loads(command.stdout("parse", "page.png", "--policy", run, "--json"))
    assert len(found["symbols"]) == 8 and {symbol["label"] for symbol in found["symbols"]} == {"?"}
    assert all(0 <= head <= 8 for head in list_heads(found)) and "expected_loss" not in found
    assert {"box", "line", "number"} < set(found["symbols"][0]) and "svg" not in found
    assert "arc_confidence" not in found["symbols"][0] and not list(tmp_path.glob("*-tree*"))
    again = command.stdout("parse", "page.png", "--policy", run, "--out", "there.svg", "--show-growth")
    assert (tmp_path / "there.svg").is_file() and (tmp_path / "there-growth.png").is_file()
    assert np.asarray(Image.open(tmp_path / "there.png").convert("L")).min() < 100  # there is ink
    lines = again.splitlines()
    assert [int(line.split("<-")[1].split()[0]) for line in lines[:8]] == list_heads(found)
    assert lines[-1] == "drawings: there.svg, there.png, there-growth.svg"


def test_parse_command_reads_inkml_and_draws_its_tree(run: Path, command: CommandRunner, tmp_path: Path) -> None:
    (tmp_path / "line.inkml").write_text(inkml("a(b+c)=d", 4))
    found = json.loads(command.stdout("parse", "line.inkml", "--policy", run, "--json", "--draw"))
    assert [symbol["label"] for symbol in found["symbols"]] == list("a(b+c)=d") and len(list_heads(found)) == 8
    assert (found["svg"], found["png"]) == ("line-tree.svg", "line-tree.png")
    strokes = [stroke for symbol in found["symbols"] for stroke in symbol["strokes"]]
    assert len({*strokes}) == len(strokes) == (tmp_path / "line.inkml").read_text().count("<trace ")
    assert b"<svg" in (tmp_path / "line-tree.svg").read_bytes()
    lines = command.stdout("parse", "line.inkml", "--policy", run).splitlines()
    arcs = [line for line in lines if "<-" in line]
    assert arcs[0].split()[:2] == ["1", "a"] and arcs[7].split()[:2] == ["8", "d"]


def test_parse_command_reads_a_picture_with_the_builtin_reader(command: CommandRunner, tmp_path: Path) -> None:
    draw_picture(["x+3=5", "x=2"], tmp_path / "page.png")
    lines = command.stdout("parse", "page.png").splitlines()
    assert lines[:2] == ["x+3=5", "x=2"] and lines[2] == "LaTeX: x+3=5 \\\\ x=2"
    assert lines[3].split()[:4] == ["1", "x", "<-", "2"] and lines[3].endswith("%")
    found = json.loads(command.stdout("parse", "page.png", "--json"))
    assert found["text"] == "x+3=5\nx=2" and found["doubts"] == [] and 0 <= found["expected_loss"] < 2
    first = found["symbols"][0]
    last = found["symbols"][-1]
    assert (first["label"], first["line"], last["label"], last["line"]) == ("x", 1, "2", 2)
    left, top, right, bottom = first["box"]
    with Image.open(tmp_path / "page.png") as picture:
        assert 0 <= left < right <= picture.width and 0 <= top < bottom <= picture.height


def test_parse_command_reads_folders_and_counts_unreadable_files(
    command: CommandRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "homework/more").mkdir(parents=True)
    draw_picture(["x=3+a"], tmp_path / "homework/page.png")
    (tmp_path / "homework/more/line.inkml").write_text(inkml("a+b=c", 4))
    (tmp_path / "homework/broken.png").write_bytes(b"no picture")
    (tmp_path / "homework/notes.txt").write_text("not read at all")
    found = [json.loads(line) for line in command.stdout("parse", "homework", "--json").splitlines()]
    assert [Path(one["file"]).name for one in found] == ["line.inkml", "page.png"]
    main(["parse", "homework", "--verbose"])
    heard = capsys.readouterr().err
    assert "left out 1 of 3 files" in heard and "left out homework/broken.png" in heard
    with pytest.raises(SystemExit) as caught:
        main(["parse", "homework", "--strict"])
    assert caught.value.code == 65


def test_parse_command_warns_of_pictures_without_algebra(
    command: CommandRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines of scribble, as close together as those of a text."""
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
    assert json.loads(captured.out)["doubts"] and "may not be a page of algebra" in captured.err
    with pytest.raises(SystemExit) as caught:
        main(["parse", "text.png", "--strict"])
    assert caught.value.code == 65


def test_load_reader_parses_a_picture_in_three_lines(tmp_path: Path) -> None:
    draw_picture(["2x=8"], tmp_path / "page.png")
    reader = aggrevated_reader.load_reader()
    parsed = reader.parse(tmp_path / "page.png")
    assert parsed.text == "2x=8" and parsed.latex == "2x=8" and parsed.heads == [2, 3, 0, 3]
    assert (
        reader.metadata["command"].startswith("aggrevated train reader")
        and "--crohme" not in reader.metadata["command"]
    )


def test_parse_command_rejects_absent_and_blank_files(run: Path, command: CommandRunner, tmp_path: Path) -> None:
    assert "cannot use absent.png" in command.error(74, "parse", "absent.png", "--policy", run)
    Image.new("L", (200, 100), 255).save(tmp_path / "blank.png")
    assert "blank.png" in command.error(65, "parse", "blank.png", "--policy", run)
    assert {path.name for path in tmp_path.iterdir()} == {"blank.png"}


def test_parse_command_rejects_a_run_of_another_task(cartpole: Path, command: CommandRunner, tmp_path: Path) -> None:
    (tmp_path / "line.inkml").write_text(inkml("a=b", 4))
    sentence = command.error(2, "parse", "line.inkml", "--policy", cartpole)
    assert "is a run of cartpole; give a run of 'aggrevated train reader'" in sentence
    assert not list(tmp_path.glob("*-tree.*"))
