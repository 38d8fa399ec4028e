"""Evaluating the policy that a run chose."""

from aggrevated.randomness import Purpose, seeds
from aggrevated.runs.run import Run
from aggrevated.runs.storage import Facts, digest
from aggrevated.setup import set_up
from aggrevated.validation import mean_return


def evaluate(run: Run, episodes: int, seed: int, deterministic: bool) -> Facts:
    """The run's result with `test_return`, `expert_return` and `ratio` measured anew on other episodes."""
    setup, policy, lines = set_up(run.config), run.policy(), run.metrics()
    fresh = seeds(seed, Purpose.TEST, 0, episodes)
    test = mean_return(policy, setup.simulator, fresh, deterministic)
    expert = mean_return(setup.expert, setup.simulator, fresh)
    measured: Facts = {
        "expert_return": expert,
        "test_return": test,
        "ratio": setup.task.ratio(test, expert, run.config.horizon),
        "episodes": episodes,
        "deterministic": deterministic,
        "run": str(run.folder),
        "weights_sha256": digest(policy.state_dict()),
    }
    return (run.result() or unfinished(run, lines)) | measured


def unfinished(run: Run, lines: list[Facts]) -> Facts:
    """What is known of a run that has not ended."""
    last = lines[-1]
    return {
        "task": run.config.task,
        "method": run.config.method,
        "update": run.config.update,
        "seed": run.config.seed,
        "iterations": last["iteration"],
        "initial_return": None,
        "best_return": last["best_return"],
        "simulator_steps": last["simulator_steps"],
        "oracle_queries": last["oracle_queries"],
        "seconds": last["seconds"],
    }
