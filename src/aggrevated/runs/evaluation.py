"""Evaluating the policy that a run chose."""

from aggrevated.experiments import ControlTask, tasks
from aggrevated.files import Facts
from aggrevated.runs.run import Run
from aggrevated.setup import set_up
from aggrevated.worlds.control import on_fresh_episodes


def evaluate(run: Run, episodes: int, seed: int, deterministic: bool) -> Facts:
    """The run's result, or what is known so far, with `test_return`, `expert_return` and `ratio` measured anew."""
    task, world = tasks()[run.config.task], set_up(run.config).world
    assert isinstance(task, ControlTask)
    measured = on_fresh_episodes(task, world.simulator, world.expert, run.policy(), episodes, seed, deterministic)
    return run.so_far() | measured | {"episodes": episodes, "deterministic": deterministic, "run": str(run.folder)}
