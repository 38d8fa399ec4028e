"""A world of another kind than ours, structured prediction by somebody else, is used like a shipped one, and learns."""

import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import aggrevated
from aggrevated.cli import main
from aggrevated.training.run_folder import Run
from aggrevated.validation import evaluate_mean_return

NAME = "tagger_package"
SRC = Path(aggrevated.__file__).parent


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The package, which lies where one stands, and which nobody has installed."""
    shutil.copy(Path(__file__).with_name(f"{NAME}.py"), tmp_path)
    monkeypatch.delitem(sys.modules, NAME, raising=False)  # it is there again after the test
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module(NAME)
    sys.modules.pop(NAME, None)


@pytest.fixture
def offered(package: ModuleType, tmp_path: Path) -> ModuleType:
    """The same with an entry point."""
    about = tmp_path / f"{NAME}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tagger-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("".join(f"[{group}]\n{point}\n" for group, point in package.POINTS.items()))
    importlib.invalidate_caches()
    return package


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    capsys.readouterr()
    main([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_nothing_in_src_knows_of_it() -> None:
    assert not [path for path in SRC.rglob("*.py") if NAME in path.read_text() or "TaggerWorld" in path.read_text()]


def test_it_learns_to_tag_better_than_by_the_most_frequent_tags(package: ModuleType) -> None:
    run = aggrevated.train(f"{NAME}:TASK", out="run")
    assert run.config.update.name == "exponentiated" and run.result().initial_return < 0.2
    found = package.OtherSentences(sentences=300).measure(run.config.problem, run.policy)
    assert found["words"] > 3000 and found["expert_return"] == 1.0
    assert found["test_return"] > found["most_frequent"] + 0.025 > 0.9
    assert run.metrics()[-1].more["test_accuracy"] > found["most_frequent"]
    assert Run.open("run", trust_code=True).config == run.config


def test_it_is_found_by_its_entry_point(offered: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--sentences", "60", "--features", "128", "--iterations", "2", "--trajectories", "10"]
    result = said(capsys, "train", "tagger", *few)
    assert result["task"] == "tagger" and result["iterations"] == 2 and result["words"] > 50
    folder = str(result["run_folder"])
    assert json.loads((Path(folder) / "config.json").read_text())["problem"] == {
        "name": "tagger", "sentences": 60, "features": 128, "data_seed": 0,
    }  # fmt: skip
    assert said(capsys, "evaluate", folder, "--sentences", "5")["words"] < 5 * offered.LONGEST
    assert said(capsys, "resume", folder, "--iterations", "3")["iterations"] == 3


def test_what_gold_says_of_a_tag_is_what_it_costs(package: ModuleType) -> None:
    tagging = package.Tagging(package.corpus(8, 0, 16), np.arange(8))
    gold = package.Gold(tagging.corpus)
    state = tagging.reset(np.arange(8, dtype=np.uint64))
    for action in range(len(package.TAGS)):
        following, cost, done = tagging.step(state, np.full(len(state), action))
        total = cost.copy()
        for lane in np.flatnonzero(~done):
            rest = following[lane : lane + 1]
            ended = False
            while not ended:
                rest, more, (ended,) = tagging.step(rest, gold.act(rest, 0))
                total[lane] += more.item()
        assert (total == gold.q(state)[:, action]).all()


def test_accuracy_is_the_share_of_words_with_their_tag(package: ModuleType) -> None:
    class Nouns:
        name = "nouns"

        def act(self, states: np.ndarray, t: int) -> np.ndarray:
            return np.full(len(states), package.TAGS.index("NOUN"))

    tagging = package.TaggerWorld(sentences=50, features=16).part(8, 9)
    share = np.mean([tag == package.TAGS.index("NOUN") for _, tag in package.tagged_words(tagging)])
    assert 0.1 < share < 0.4 and package.Accuracy(tagging)(Nouns()) == pytest.approx(share)
    assert package.Accuracy(tagging)(package.Gold(tagging.corpus)) == 1.0
    wrong = evaluate_mean_return(Nouns(), tagging, np.arange(10, dtype=np.uint64))
    assert wrong == pytest.approx((share - 1) * tagging.words / 10)


FEW = ("--sentences", "60", "--features", "128", "--iterations", "2", "--trajectories", "10")


@pytest.mark.usefixtures("package")
def test_whose_code_is_not_trusted_is_told_how_to_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "train", f"{NAME}:TASK", *FEW, "--out", "run")["words"] > 50
    for command in (["evaluate", "run"], ["resume", "run"], ["train", "--config", "run/config.json"]):
        with pytest.raises(SystemExit) as caught:
            main(command)
        sentence = capsys.readouterr().err
        assert caught.value.code == 65 and f"{NAME}:TASK is Python code" in sentence and "say --trust-code" in sentence
    assert said(capsys, "evaluate", "run", "--trust-code", "--sentences", "5")["task"] == f"{NAME}:TASK"
    assert said(capsys, "resume", "run", "--trust-code", "--iterations", "3")["iterations"] == 3
    main(["export", "run", "--trust-code", "--model-card", "card.md"])
    assert f"aggrevated train {NAME}:TASK --iterations 3" in Path("card.md").read_text()


@pytest.mark.usefixtures("package")
def test_its_trials_run_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    result = said(capsys, "train", f"{NAME}:TASK", *FEW, "--trials", "2", "--out", "runs")
    assert [trial["seed"] for trial in result["trials"]] == [0, 1]  # type: ignore[attr-defined]
