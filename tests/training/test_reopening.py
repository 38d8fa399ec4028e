"""Runs whose environment or expert was a Python object: given again they go on, others are refused."""

from pathlib import Path
from typing import Any

import pytest

import aggrevated
from aggrevated.cli import main
from aggrevated.core.errors import DataError, UsageError
from aggrevated.training.evaluation import evaluate_run
from aggrevated.training.run_folder import Run
from helpers import gymnasium_environments as surroundings

FEW = {"iterations": 2, "trajectories": 3, "validation_episodes": 6, "test_episodes": 5, "horizon": 20}


def silent(_: str) -> None:
    pass


def local() -> tuple[Any, Any]:
    """An environment and an expert that nobody can import."""
    return (lambda: surroundings.Corridor()), (lambda observation: surroundings.act(observation))


def trained(folder: Path, env: Any, expert: Any, **settings: Any) -> Run:
    return aggrevated.train(env, expert=expert, out=folder, say=silent, **FEW | settings)


def test_given_again_it_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", *local(), iterations=4)
    trained(tmp_path / "half", *local())
    env, expert = local()
    run = aggrevated.resume(tmp_path / "half", env, expert=expert, iterations=4)
    assert run.result().weights_sha256 == whole.result().weights_sha256  # type: ignore[union-attr]
    again = Run.open(tmp_path / "half", env=env, expert=expert)
    tried = evaluate_run(again, again.config.problem.evaluation(episodes=5))  # type: ignore[call-arg]
    assert tried.more["episodes"] == 5 and tried.more["expert_return"] > 0


def test_of_a_named_environment_only_the_expert_is_given_again(tmp_path: Path) -> None:
    for name, act in (("CartPole-v1", lambda o: int(o[2] > 0)), ("cartpole", lambda o: int(o[2] > 0))):
        trained(tmp_path / name, name, act, oracle="monte-carlo")
        with pytest.raises((UsageError, DataError), match=r"aggrevated.resume\(folder, expert=...\)"):
            aggrevated.resume(tmp_path / name, iterations=3)
        with pytest.raises(DataError, match="its expert or its pages changed"):
            aggrevated.resume(tmp_path / name, expert=lambda o: int(o[2] < 0), iterations=3)
        run = aggrevated.resume(tmp_path / name, expert=lambda o: int(o[2] > 0), iterations=3)
        assert run.result().iterations == 3  # type: ignore[union-attr]


def test_another_expert_that_begins_alike_is_refused(tmp_path: Path) -> None:
    """`lazy` does in every first state what `act` does."""
    env, expert = local()
    trained(tmp_path / "run", env, expert)
    with pytest.raises(DataError, match="its expert or its pages changed"):
        Run.open(tmp_path / "run", env=env, expert=lambda observation: surroundings.lazy(observation))
    with pytest.raises(DataError, match="its expert or its pages changed"):
        aggrevated.resume(tmp_path / "run", env, expert=lambda o: surroundings.lazy(o), iterations=3)


def test_another_environment_is_refused(tmp_path: Path) -> None:
    env, expert = local()
    trained(tmp_path / "run", env, expert)
    with pytest.raises(DataError, match="its environment, its expert"):
        Run.open(tmp_path / "run", env=lambda: surroundings.Corridor(length=3), expert=expert)


def test_what_has_a_name_is_not_given_again(tmp_path: Path) -> None:
    trained(tmp_path / "run", surroundings.make, surroundings.act)
    with pytest.raises(UsageError, match=r"names its expert, helpers\.gymnasium_environments:act; leave expert out"):
        aggrevated.resume(tmp_path / "run", expert=surroundings.act, iterations=3)
    run = aggrevated.resume(tmp_path / "run", trust_code=True, iterations=3)
    assert run.result().iterations == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("command", ["resume", "evaluate"])
def test_the_command_line_says_how(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    env, expert = local()
    trained(tmp_path / "both", env, expert)
    trained(tmp_path / "expert", "CartPole-v1", lambda o: int(o[2] > 0))
    more = ["--iterations", "3"] if command == "resume" else []
    for folder, sentence in (("both", "folder, env=..., expert=...)"), ("expert", "folder, expert=...)")):
        with pytest.raises(SystemExit) as left:
            main([command, str(tmp_path / folder), *more])
        assert left.value.code in (2, 65) and sentence in capsys.readouterr().err
