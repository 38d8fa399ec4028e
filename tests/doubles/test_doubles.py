"""Third-party components are used like builtin ones, by name and through the command line."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

import pytest
from gymnasium.spaces import MultiDiscrete

import aggrevated
from aggrevated.cli import main
from aggrevated.config.resolver import HEAD_REGISTRY, REGISTRIES, resolve_config, select_head
from aggrevated.core.errors import UsageError
from aggrevated.training.run_folder import Run

SRC = Path(aggrevated.__file__).parent


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    main(list(arguments))
    return capsys.readouterr().out


def test_library_sources_do_not_mention_the_corridor_package() -> None:
    names = ("corridor", "SignedSettings", "SteppedSettings", "stroll", "EagerStartSettings")
    for path in SRC.rglob("*.py"):
        assert not any(name in path.read_text() for name in names), path


def test_installed_task_trains_with_its_own_components_by_name(
    install_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [
        "--update",
        "signed",
        "--step-size",
        "0.2",
        "--oracle",
        "stepped",
        "--weight",
        "2",
        "--length",
        "4",
    ]
    result = json.loads(run_command(capsys, "train", "corridor", *options, "--json"))
    assert result["task"] == "corridor" and result["update"] == "signed"
    assert result["initial_return"] < -8 and -5 < result["test_return"] <= -4 and result["episodes"] == 20
    config = json.loads((Path(result["run_folder"]) / "config.json").read_text())
    assert config["update"] == {"name": "signed", "step_size": 0.2}
    assert config["oracle"] == {"name": "stepped", "weight": 2.0}
    assert config["problem"] == {"name": "corridor", "length": 4} and config["policy"] == {"name": "tiny"}

    evaluated = json.loads(run_command(capsys, "evaluate", result["run_folder"], "--walks", "3", "--json"))
    assert evaluated["episodes"] == 3 and -6 < evaluated["test_return"] <= -4
    longer = json.loads(run_command(capsys, "resume", result["run_folder"], "--iterations", "14", "--json"))
    assert longer["iterations"] == 14
    assert (Path(result["run_folder"]) / "curve.png").is_file()


@pytest.mark.parametrize(
    "options",
    [
        ["cartpole", "--update", "signed", "--step-size", "0.01"],
        ["cartpole", "--oracle", "stepped"],
        ["corridor", "--method", "stroll"],
        ["corridor", "--start", "eager", "--push", "0.5"],
        ["corridor", "--method", "dagger", "--update", "regular"],
        ["cartpole", "--policy", "tiny"],
        ["cartpole", "--update", "natural", "--gradient", "bold"],
    ],
)
def test_installed_components_work_with_builtin_ones(
    install_folder: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    few = ["--iterations", "2", "--trajectories", "3"]
    few += ["--horizon", "30", "--validation-episodes", "3", "--test-episodes", "5"] if "cartpole" in options else []
    result = json.loads(run_command(capsys, "train", *options, *few, "--json"))
    assert result["iterations"] == 2 and result["task"] == options[0]


def test_installed_head_is_selected_by_the_action_space(install_folder: Path) -> None:
    assert select_head(MultiDiscrete([3, 2])).name == "pair"
    assert select_head(MultiDiscrete([3, 2]))().build(MultiDiscrete([3, 2])).outputs == 6


def test_architecture_docs_name_every_entry_point_group() -> None:
    text = (Path(__file__).parents[2] / "docs/architecture.md").read_text()
    for registry in (*REGISTRIES.values(), HEAD_REGISTRY):
        assert (
            f"`{registry.entry_point_group}`" in text
            or f"`.{registry.entry_point_group.removeprefix('aggrevated.')}`" in text
        )


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"name": "other"}, "has the name 'other'"),
        ({"build": None}, "is not a frozen dataclass that defines all abstract methods"),
        ({"wide": field(default=None, metadata={"words": "", "rule": None})}, "has a setting 'wide' of an unsupported"),
    ],
)
def test_faulty_component_is_refused_by_resolve_config(
    install_folder: Path, fault: dict[str, object], message: str
) -> None:
    package = import_module("corridor_package")
    annotations = {"__annotations__": {"wide": float | None}} if "wide" in fault else {}
    changed = type("Changed", (package.SignedSettings,), {**fault, **annotations, "__module__": "corridor_package"})
    package.Changed = changed if "build" in fault else dataclass(frozen=True)(changed)
    points = install_folder / "corridor_package-1.0.dist-info/entry_points.txt"
    points.write_text("[aggrevated.updates]\nsigned = corridor_package:Changed\n")
    with pytest.raises(UsageError, match=message):
        resolve_config("cartpole", update="signed")


@pytest.mark.parametrize("task", ["corridor", "winding"])
def test_installed_task_runs_trials_in_processes(install_folder: Path, task: str) -> None:
    """Workers find a task by its name, so that its objects need not be picklable."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(install_folder), *filter(None, sys.path)])}
    command = [sys.executable, "-m", "aggrevated", "train", task, "--trials", "2", "--seed", "3", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert [trial["seed"] for trial in json.loads(done.stdout)["trials"]] == [3, 4]


def test_installed_components_appear_in_help_and_errors(
    install_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["train", "corridor", "--update", "signed", "--help-all"])
    text = capsys.readouterr().out
    assert "--step-size" in text and "--length" in text and "--delta-kl" not in text and "eager" in text
    with pytest.raises(SystemExit) as caught:
        main(["train", "corridor", "--step-size", "0.1"])
    assert caught.value.code == 2
    text = capsys.readouterr().err
    assert "--step-size has no effect on the update exponentiated: it belongs to --update signed" in text
    with pytest.raises(UsageError, match=r"unknown task 'corridoor' .did you mean corridor"):
        resolve_config("corridoor")


def test_task_object_trains_without_being_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "corridor_package", raising=False)
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        package = import_module("corridor_package")
        task = replace(package.TASK, name="mine", components=(*package.TASK.components, package.SignedSettings))
        run = aggrevated.train(task, update="signed", out=tmp_path / "run", iterations=3)
        assert run.policy.predict([0.0], deterministic=True)[0] in (0, 1)
        with pytest.raises(aggrevated.DataError, match="is of the task 'mine', which no installed package offers"):
            Run.open(run.folder)
        assert Run.open(run.folder, task).config == run.config
    finally:
        sys.path.pop(0)
        sys.modules.pop("corridor_package", None)


def test_broken_entry_point_error_names_its_package(install_folder: Path) -> None:
    points = install_folder / "corridor_package-1.0.dist-info/entry_points.txt"
    points.write_text("[aggrevated.updates]\nbroken = corridor_package:nothing\nmixed = corridor_package:TASK\n")
    with pytest.raises(UsageError, match="corridor_package:nothing of the package corridor-package cannot be imported"):
        resolve_config("cartpole", update="broken")
    with pytest.raises(UsageError, match="the update mixed of an installed package is not a subclass of Update"):
        resolve_config("cartpole", update="mixed")
    assert (
        resolve_config("cartpole").update.name == "exponentiated"
    )  # a broken component has no effect on configs without it
    with pytest.raises(UsageError, match=r"unknown setting --horizn .did you mean --horizon"):
        resolve_config("cartpole", horizn=3)
