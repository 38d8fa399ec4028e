"""Runs whose environment or expert is a Python object: resumed with the same objects, refused with others."""

from pathlib import Path
from typing import Any

import pytest

import aggrevated
from aggrevated.cli import main
from aggrevated.core.errors import DataError, UsageError
from aggrevated.training.evaluation import evaluate_run
from aggrevated.training.run_folder import Run
from helpers import gymnasium_environments

FEW = {"iterations": 2, "trajectories": 3, "validation_episodes": 6, "test_episodes": 5, "horizon": 20}


def ignore_message(_: str) -> None:
    pass


def make_local_objects() -> tuple[Any, Any]:
    """Return an environment and an expert that cannot be imported."""
    return (lambda: gymnasium_environments.Corridor()), (lambda observation: gymnasium_environments.act(observation))


def train_small_run(folder: Path, env: Any, expert: Any, **settings: Any) -> Run:
    return aggrevated.train(env, expert=expert, out=folder, say=ignore_message, **FEW | settings)


def test_resume_with_environment_and_expert_passed_again_gives_the_same_weights(tmp_path: Path) -> None:
    whole = train_small_run(tmp_path / "whole", *make_local_objects(), iterations=4)
    train_small_run(tmp_path / "half", *make_local_objects())
    env, expert = make_local_objects()
    run = aggrevated.resume(tmp_path / "half", env, expert=expert, iterations=4)
    assert run.result().weights_sha256 == whole.result().weights_sha256  # type: ignore[union-attr]
    again = Run.open(tmp_path / "half", env=env, expert=expert)
    tried = evaluate_run(again, again.config.problem.evaluation(episodes=5))  # type: ignore[call-arg]
    assert tried.more["episodes"] == 5 and tried.more["expert_return"] > 0


def test_resume_of_a_named_environment_needs_only_the_expert(tmp_path: Path) -> None:
    for name, act in (("CartPole-v1", lambda o: int(o[2] > 0)), ("cartpole", lambda o: int(o[2] > 0))):
        train_small_run(tmp_path / name, name, act, oracle="monte-carlo")
        with pytest.raises((UsageError, DataError), match=r"aggrevated.resume\(folder, expert=...\)"):
            aggrevated.resume(tmp_path / name, iterations=3)
        with pytest.raises(DataError, match="its expert or its pages changed"):
            aggrevated.resume(tmp_path / name, expert=lambda o: int(o[2] < 0), iterations=3)
        run = aggrevated.resume(tmp_path / name, expert=lambda o: int(o[2] > 0), iterations=3)
        assert run.result().iterations == 3  # type: ignore[union-attr]


def test_run_open_refuses_another_expert_with_the_same_first_actions(tmp_path: Path) -> None:
    """`lazy` takes the same first actions as `act`."""
    env, expert = make_local_objects()
    train_small_run(tmp_path / "run", env, expert)
    with pytest.raises(DataError, match="its expert or its pages changed"):
        Run.open(tmp_path / "run", env=env, expert=lambda observation: gymnasium_environments.lazy(observation))
    with pytest.raises(DataError, match="its expert or its pages changed"):
        aggrevated.resume(tmp_path / "run", env, expert=lambda o: gymnasium_environments.lazy(o), iterations=3)


def test_run_open_refuses_another_environment(tmp_path: Path) -> None:
    env, expert = make_local_objects()
    train_small_run(tmp_path / "run", env, expert)
    with pytest.raises(DataError, match="its environment, its expert"):
        Run.open(tmp_path / "run", env=lambda: gymnasium_environments.Corridor(length=3), expert=expert)


def test_resume_refuses_an_expert_object_when_the_run_names_its_expert(tmp_path: Path) -> None:
    train_small_run(tmp_path / "run", gymnasium_environments.make, gymnasium_environments.act)
    with pytest.raises(UsageError, match=r"names its expert, helpers\.gymnasium_environments:act; leave expert out"):
        aggrevated.resume(tmp_path / "run", expert=gymnasium_environments.act, iterations=3)
    run = aggrevated.resume(tmp_path / "run", trust_code=True, iterations=3)
    assert run.result().iterations == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("command", ["resume", "evaluate"])
def test_commands_say_how_to_resume_a_run_with_objects_in_python(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    env, expert = make_local_objects()
    train_small_run(tmp_path / "both", env, expert)
    train_small_run(tmp_path / "expert", "CartPole-v1", lambda o: int(o[2] > 0))
    more = ["--iterations", "3"] if command == "resume" else []
    for folder, sentence in (("both", "folder, env=..., expert=...)"), ("expert", "folder, expert=...)")):
        with pytest.raises(SystemExit) as left:
            main([command, str(tmp_path / folder), *more])
        assert left.value.code in (2, 65) and sentence in capsys.readouterr().err
