"""Model cards: a description of the policy, and the command that reproduces it."""

import shlex
from pathlib import Path

import pytest

from aggrevated.cli import parse_command
from aggrevated.config.resolver import resolve_config
from aggrevated.tasks import as_task
from aggrevated.training.model_card import format_rerun_command, make_model_card, make_policy_metadata
from aggrevated.training.run_folder import Run
from helpers.small_runs import fit_run

SMALL = {"iterations": 3, "trajectories": 2, "horizon": 30, "validation_episodes": 3, "test_episodes": 4}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run.create(tmp_path_factory.mktemp("cards") / "run", resolve_config("cartpole", "dagger", seed=7, **SMALL))
    fit_run(run)
    return run


CONFIGS = {
    "the usual": ("cartpole", "aggrevated", {}),
    "another update": ("cartpole", "aggrevated", {"update": "natural", "delta_kl": 0.002}),
    "a switch and a tuple": ("hopper", "aggrevated", {"hidden": (8, 4), "iterations": 7}),
    "another method": ("acrobot", "dagger", {"seed": 3}),
    "a memory": ("acrobot-partial", "aggrevated", {"policy": "gru", "hidden": (9,)}),
}


@pytest.mark.parametrize(("task", "method", "given"), CONFIGS.values(), ids=CONFIGS)
def test_training_command_parses_to_the_same_config(task, method, given):
    config = resolve_config(task, method, **given)
    command = format_rerun_command(config)
    assert command.startswith(f"aggrevated train {task}")
    assert parse_command(shlex.split(command)[1:]).make_config() == config
    assert len(command.split()) <= 3 + 2 * (len(given) + 2)  # defaults are not repeated


def test_model_card_has_task_expert_scores_and_command(run):
    card = make_policy_metadata(run)
    result = run.result()
    assert card["task"] == "cartpole" and card["method"] == "dagger" and card["expert"] == "cartpole"
    assert card["ended"] and card["test_return"] == result.more["test_return"]
    assert card["test_standard_error"] == result.more["test_standard_error"]
    assert card["weights_sha256"] == result.weights_sha256 and card["simulator_steps"] == result.simulator_steps
    assert "--seed 7" in card["command"] and "--method dagger" in card["command"]
    text = make_model_card(run)
    assert text.startswith("# A policy for ") and card["command"] in text and "DAgger" in text
    assert f"{card['test_return']:.4g} ± {card['test_standard_error']:.2g} (policy)" in text


def test_model_card_of_an_unfinished_run_says_so(run, tmp_path):
    from dataclasses import replace

    longer = replace(run, config=run.config.with_settings(iterations=9))
    card = make_policy_metadata(longer)
    assert not card["ended"] and "test_return" not in card and card["iterations"] == 3
    assert "the run has not ended" in make_model_card(longer)


def test_training_command_names_an_expert_file_without_its_folder(tmp_path):
    import shutil

    from aggrevated.experts import loading

    (shipped,) = Path(loading.__file__).parent.rglob("cartpole.safetensors")
    mine = shutil.copy(shipped, tmp_path / "mine.safetensors")
    command = format_rerun_command(resolve_config("cartpole", expert=str(mine)))
    assert "--expert mine.safetensors" in command and str(tmp_path) not in command


def push(observation):
    """Heuristic: push in the direction of motion."""
    return 0 if observation[1] < 0 else 2


def test_training_command_names_a_custom_environment_with_its_settings():
    expert = f"{__name__}:push"
    config = resolve_config("MountainCar-v0", expert=expert, horizon=40, iterations=3)
    assert (
        format_rerun_command(config) == f"aggrevated train MountainCar-v0 --horizon 40 --expert {expert} --iterations 3"
    )


def test_training_command_of_unnamed_objects_is_python_code():
    config = resolve_config(as_task("MountainCar-v0", lambda observation: push(observation)), horizon=40, iterations=3)
    command = format_rerun_command(config)
    assert command.startswith("aggrevated.train('MountainCar-v0', expert=") and "horizon=40, iterations=3" in command
    config = resolve_config(as_task("cartpole", lambda observation: 0), iterations=3, oracle="monte-carlo")
    assert format_rerun_command(config).startswith("aggrevated.train('cartpole', expert=")
