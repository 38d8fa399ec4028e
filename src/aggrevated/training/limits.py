"""When a run ends: after its iterations or, before that, where another would not fit into what it may spend."""

from collections.abc import Mapping
from dataclasses import replace

from aggrevated.algorithm import Learner
from aggrevated.config.loop import LIMIT_NAMES, LIMIT_UNITS, LoopSettings
from aggrevated.core.errors import UsageError
from aggrevated.core.settings import check_setting, to_flag
from aggrevated.training.records import Metrics
from aggrevated.training.run_folder import Run

LIMIT_COUNTERS = dict(zip(LIMIT_NAMES, ("simulator_steps", "oracle_queries"), strict=True))  # what each is a limit of


def count_spent(by: Learner | Metrics) -> dict[str, int]:
    """What was spent so far of each thing that has a limit, by the names of the limits."""
    return {name: getattr(by, count) for name, count in LIMIT_COUNTERS.items()}


def count_since(learner: Learner, before: Mapping[str, int]) -> dict[str, int]:
    """What was spent since then."""
    return {name: now - before[name] for name, now in count_spent(learner).items()}


def find_exhausted_limit(loop: LoopSettings, n: int, spent: Mapping[str, int], cost: Mapping[str, int]) -> str:
    """The setting that ends a run after n iterations, of which the last had this cost; nothing if it goes on.

    A limit does where another iteration of that cost would exceed it; before the first, where nothing is left.
    """
    if n >= loop.iterations:
        return "iterations"
    full = (name for name, most in loop.limits.items() if spent[name] + max(cost.get(name, 0), 1) > most)
    return next(full, "")


def check_progress_towards_limit(run: Run, cost: Mapping[str, int]) -> None:
    """A `UsageError` if nothing was spent of what alone could end the run."""
    limits = run.config.loop.limits
    if not run.config.loop.known_iterations and not any(cost[name] for name in limits):
        none = " or ".join(LIMIT_UNITS[name] for name in limits)
        named = " and ".join(map(to_flag, limits))
        raise UsageError(
            f"an iteration of {run.folder} took no {none}: {named} alone will not end "
            f"it; give another end, for example 'aggrevated resume {run.folder} --iterations 100'"
        )


def compute_fraction_done(loop: LoopSettings, line: Metrics) -> float:
    """How far a run is, from 0 to 1, by whatever will end it first."""
    by_limits = (count_spent(line)[name] / most for name, most in loop.limits.items())
    return min(1.0, max(line.iteration / loop.iterations, *by_limits, 0.0))


def extend_limits(
    run: Run, iterations: int | None = None, budget: int | None = None, queries: int | None = None
) -> Run:
    """The run with more to do than before, by any of its ends; a `UsageError` where that is less, or does nothing."""
    given = {"iterations": iterations, "budget": budget, "queries": queries}
    asked = {name: value for name, value in given.items() if value is not None}
    if not asked:
        return run
    loop = run.config.loop
    lines = run.metrics()
    done = {"iterations": len(lines)} | (count_spent(lines[-1]) if lines else {})
    least = {"iterations": loop.known_iterations, **loop.limits}
    for name, value in asked.items():
        most = max(least.get(name, 0), done.get(name, 0))
        check_setting(value >= most, name, value, f"at least the {most:,} of {run.folder}")
    if (result := run.result()) is not None and result.ended_by not in asked:
        ended = f"{run.folder} has ended by {to_flag(result.ended_by)} {getattr(loop, result.ended_by)}"
        raise UsageError(f"{ended}; give more of that, too")
    check_not_annealed(run, asked.get("iterations", len(lines) + 1))
    config = run.config.with_settings(**asked)
    config.validate()
    return replace(run, config=config)


def check_not_annealed(run: Run, iterations: int) -> None:
    """A `UsageError` if the steps of a run are none any more before so many iterations."""
    annealed = run.config.update.to_values().get("anneal_iterations", 0)
    if 0 < annealed < iterations:
        raise UsageError(
            f"the step size of {run.folder} has fallen to 0 after {annealed} iterations, and "
            "more change nothing; start a new run that is as long"
        )
