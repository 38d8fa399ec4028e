"""Evaluating the policy that a run chose."""

from aggrevated.randomness import Purpose, seeds
from aggrevated.runs.run import Run
from aggrevated.runs.storage import Facts
from aggrevated.setup import set_up
from aggrevated.validation import mean_return


def evaluate(run: Run, episodes: int, seed: int, deterministic: bool) -> Facts:
    """The run's result, or what is known so far, with `test_return`, `expert_return` and `ratio` measured anew."""
    setup, policy = set_up(run.config), run.policy()
    fresh = seeds(seed, Purpose.TEST, 0, episodes)
    test = mean_return(policy, setup.simulator, fresh, deterministic)
    expert = mean_return(setup.expert, setup.simulator, fresh)
    return run.so_far() | {
        "expert_return": expert,
        "test_return": test,
        "ratio": setup.task.ratio(test, expert, run.config.horizon),
        "episodes": episodes,
        "deterministic": deterministic,
        "run": str(run.folder),
    }
