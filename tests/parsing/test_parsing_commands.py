"""The commands train, evaluate and compare on runs of the task algebra."""

import json
from pathlib import Path

import pytest

from aggrevated.config.resolver import resolve_config
from aggrevated.training.run_folder import Run
from helpers.algebra_runs import create_trained_run
from helpers.command_runner import CommandRunner
from helpers.handwriting import crohme_like

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


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run of algebra."""
    return create_trained_run(tmp_path_factory.mktemp("runs") / "algebra")


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    """Return a runner of commands in an empty folder."""
    return CommandRunner(tmp_path, capsys, monkeypatch)


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of another task, not begun."""
    return Run.create(tmp_path_factory.mktemp("runs") / "cartpole", resolve_config("cartpole", "aggrevated")).folder


def test_train_algebra_prints_its_scores(command: CommandRunner, tmp_path: Path) -> None:
    result = json.loads(command.stdout("train", "algebra", *TINY, "--policy", "lstm", "--json"))
    assert result["run_folder"] == "runs/algebra-aggrevated-regular" and 0 <= result["uas_micro"] <= 1
    config = json.loads((tmp_path / result["run_folder"] / "config.json").read_text())
    assert (config["policy"]["name"], config["policy"]["use_geometry"]) == ("lstm", False)
    assert (config["problem"]["generated_pages"], config["update"]["anneal_iterations"]) == (20, 2)
    resumed = json.loads(command.stdout("resume", result["run_folder"], "--json"))
    assert resumed["weights_sha256"] == result["weights_sha256"]


def test_train_algebra_on_real_ink_saves_absolute_folder(command: CommandRunner, tmp_path: Path) -> None:
    crohme_like(tmp_path / "ink")
    real = TINY[2:]  # without --generated-pages, which would have no effect
    result = json.loads(command.stdout("train", "algebra", "--crohme", "ink", *real, "--out", "run", "--json"))
    assert (result["pages"], result["symbols"]) == (3, 14)
    assert json.loads((tmp_path / "run/config.json").read_text())["problem"]["crohme"] == str(tmp_path / "ink")


def test_evaluate_algebra_prints_all_uas_scores(run: Path, command: CommandRunner) -> None:
    actual = json.loads(command.stdout("evaluate", run, "--json"))
    result = json.loads((run / "result.json").read_text())
    assert set(actual) >= SCORES and actual["uas_micro"] == result["uas_micro"]
    assert all(set(kind) == {"uas", "symbols"} for kind in actual["by_symbol"].values())
    assert set(actual["by_arc_length"]) <= {"ROOT", "1", "2", "3-4", "5-8", "9+"}
    text = command.stdout("evaluate", run)
    assert "uas micro" in text and "by symbol" in text and "by arc length" in text
    equals = actual["by_symbol"]["="]
    assert f"= {equals['uas']:.2f} ({equals['symbols']})" in text


def test_evaluate_algebra_on_real_ink_uses_the_right_pages(run: Path, command: CommandRunner, tmp_path: Path) -> None:
    crohme_like(tmp_path / "ink")
    actual = json.loads(command.stdout("evaluate", run, "--crohme", "ink", "--json"))
    assert (actual["pages"], actual["symbols"]) == (3, 14) and set(actual) >= SCORES
    alone = json.loads(command.stdout("evaluate", run, "--crohme", "ink/train", "--json"))
    assert alone["pages"] == 12


def test_compare_algebra_runs_prints_row_and_draws_figure(run: Path, command: CommandRunner, tmp_path: Path) -> None:
    rows = json.loads(command.stdout("compare", run, "--out", "both", "--json"))
    assert rows[0]["label"].endswith("AggreVaTeD, regular, contextual") and (tmp_path / "both.png").is_file()
    assert rows[0]["test_return"] == json.loads((run / "result.json").read_text())["uas_micro"]


def test_commands_reject_options_of_other_tasks_for_algebra_runs(
    run: Path, command: CommandRunner, tmp_path: Path
) -> None:
    assert "which is not a control task and cannot be animated" in command.error(2, "watch", run)
    assert "--episodes has no effect on a run of algebra; leave it out" in command.error(
        2, "evaluate", run, "--episodes", 5
    )
    assert "--seed has no effect on a run of algebra" in command.error(2, "evaluate", run, "--seed", 5)
    assert "absent" in command.error(74, "evaluate", run, "--crohme", "absent")
    assert "has fallen to 0 after 2 iterations" in command.error(2, "resume", run, "--iterations", 4)
    assert not list(tmp_path.iterdir())


def test_evaluate_rejects_crohme_for_cartpole_runs(cartpole: Path, command: CommandRunner) -> None:
    assert "--crohme has no effect on a run of cartpole" in command.error(2, "evaluate", cartpole, "--crohme", "ink")
