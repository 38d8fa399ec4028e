"""A third-party task of structured prediction is used like a builtin one, and its policy learns."""

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
    """Yield the package, which is in the working folder and not installed."""
    shutil.copy(Path(__file__).with_name(f"{NAME}.py"), tmp_path)
    monkeypatch.delitem(sys.modules, NAME, raising=False)  # restored after the test
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module(NAME)
    sys.modules.pop(NAME, None)


@pytest.fixture
def installed_package(package: ModuleType, tmp_path: Path) -> ModuleType:
    """Return the package after it was installed with its entry point."""
    metadata = tmp_path / f"{NAME}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tagger-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "".join(f"[{group}]\n{point}\n" for group, point in package.POINTS.items())
    )
    importlib.invalidate_caches()
    return package


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    capsys.readouterr()
    main([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_library_sources_do_not_mention_the_tagger_package() -> None:
    assert not [
        path for path in SRC.rglob("*.py") if NAME in path.read_text() or "TaggerProblemSettings" in path.read_text()
    ]


def test_tagger_task_learns_to_beat_the_most_frequent_tag_baseline(package: ModuleType) -> None:
    run = aggrevated.train(f"{NAME}:TASK", out="run")
    assert run.config.update.name == "exponentiated" and run.result().initial_return < 0.2
    found = package.TaggerEvaluationSettings(sentences=300).measure(run.config.problem, run.policy)
    assert found["words"] > 3000 and found["expert_return"] == 1.0
    assert found["test_return"] > found["most_frequent"] + 0.025 > 0.9
    assert run.metrics()[-1].more["test_accuracy"] > found["most_frequent"]
    assert Run.open("run", trust_code=True).config == run.config


def test_tagger_task_is_found_by_its_entry_point(
    installed_package: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--sentences", "60", "--features", "128", "--iterations", "2", "--trajectories", "10"]
    result = run_command(capsys, "train", "tagger", *few)
    assert result["task"] == "tagger" and result["iterations"] == 2 and result["words"] > 50
    folder = str(result["run_folder"])
    assert json.loads((Path(folder) / "config.json").read_text())["problem"] == {
        "name": "tagger", "sentences": 60, "features": 128, "data_seed": 0,
    }  # fmt: skip
    assert run_command(capsys, "evaluate", folder, "--sentences", "5")["words"] < 5 * installed_package.LONGEST
    assert run_command(capsys, "resume", folder, "--iterations", "3")["iterations"] == 3


def test_tagger_expert_q_equals_the_cost_of_following_it(package: ModuleType) -> None:
    tagging = package.Tagging(package.make_corpus(8, 0, 16), np.arange(8))
    gold = package.GoldExpert(tagging.corpus)
    state = tagging.reset(np.arange(8, dtype=np.uint64))
    for action in range(len(package.TAGS)):
        following, cost, done = tagging.step(state, np.full(len(state), action))
        total = cost.copy()
        for k in np.flatnonzero(~done):
            current = following[k : k + 1]
            ended = False
            while not ended:
                current, more, (ended,) = tagging.step(current, gold.act(current, 0))
                total[k] += more.item()
        assert (total == gold.q(state)[:, action]).all()


def test_tagger_accuracy_is_the_share_of_words_with_their_gold_tag(package: ModuleType) -> None:
    class Nouns:
        name = "nouns"

        def act(self, states: np.ndarray, t: int) -> np.ndarray:
            return np.full(len(states), package.TAGS.index("NOUN"))

    tagging = package.TaggerProblemSettings(sentences=50, features=16).select_tenths(8, 9)
    share = np.mean([tag == package.TAGS.index("NOUN") for _, tag in package.tagged_words(tagging)])
    assert 0.1 < share < 0.4 and package.Accuracy(tagging)(Nouns()).value == pytest.approx(share)
    assert package.Accuracy(tagging)(package.GoldExpert(tagging.corpus)).value == 1.0
    wrong = evaluate_mean_return(Nouns(), tagging, np.arange(10, dtype=np.uint64))
    assert wrong == pytest.approx((share - 1) * tagging.words / 10)


FEW = ("--sentences", "60", "--features", "128", "--iterations", "2", "--trajectories", "10")


@pytest.mark.usefixtures("package")
def test_commands_refuse_untrusted_task_code_and_name_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(capsys, "train", f"{NAME}:TASK", *FEW, "--out", "run")["words"] > 50
    for command in (["evaluate", "run"], ["resume", "run"], ["train", "--config", "run/config.json"]):
        with pytest.raises(SystemExit) as caught:
            main(command)
        message = capsys.readouterr().err
        assert caught.value.code == 65 and f"{NAME}:TASK is Python code" in message and "pass --trust-code" in message
    assert run_command(capsys, "evaluate", "run", "--trust-code", "--sentences", "5")["task"] == f"{NAME}:TASK"
    assert run_command(capsys, "resume", "run", "--trust-code", "--iterations", "3")["iterations"] == 3
    main(["export", "run", "--trust-code", "--model-card", "card.md"])
    assert f"aggrevated train {NAME}:TASK --iterations 3" in Path("card.md").read_text()


@pytest.mark.usefixtures("package")
def test_tagger_task_runs_trials_in_parallel(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_command(capsys, "train", f"{NAME}:TASK", *FEW, "--trials", "2", "--out", "runs")
    assert [trial["seed"] for trial in result["trials"]] == [0, 1]  # type: ignore[attr-defined]
