"""Limits of a run: it ends after its iterations, or before an iteration that would exceed a limit."""

from collections.abc import Mapping
from dataclasses import replace

from aggrevated.algorithm import Learner
from aggrevated.config.loop import LIMIT_NAMES, LIMIT_UNITS, LoopSettings
from aggrevated.core.errors import UsageError
from aggrevated.core.settings import check_setting, to_flag
from aggrevated.training.records import Metrics
from aggrevated.training.run_folder import Run

LIMIT_COUNTERS = dict(zip(LIMIT_NAMES, ("simulator_steps", "oracle_queries"), strict=True))  # by limit


def count_used(totals: Learner | Metrics) -> dict[str, int]:
    """Return the amounts used so far, by the names of the limits."""
    return {name: getattr(totals, counter) for name, counter in LIMIT_COUNTERS.items()}


def count_since(learner: Learner, before: Mapping[str, int]) -> dict[str, int]:
    """Return the amounts used since `before`, by the names of the limits."""
    return {name: count - before[name] for name, count in count_used(learner).items()}


def find_exhausted_limit(loop: LoopSettings, n: int, used: Mapping[str, int], cost: Mapping[str, int]) -> str:
    """Return the name of the limit that ends a run after n iterations; "" if the run continues.

    A limit ends the run if another iteration with the cost of the last one would exceed it; before the first
    iteration, if nothing is left of it.
    """
    if n >= loop.iterations:
        return "iterations"
    exhausted = (name for name, limit in loop.limits.items() if used[name] + max(cost.get(name, 0), 1) > limit)
    return next(exhausted, "")


def check_progress_towards_limit(run: Run, cost: Mapping[str, int]) -> None:
    """Raise a `UsageError` if an iteration used nothing of the only limits that could end the run."""
    limits = run.config.loop.limits
    if not run.config.loop.known_iterations and not any(cost[name] for name in limits):
        units = " or ".join(LIMIT_UNITS[name] for name in limits)
        flags = " and ".join(map(to_flag, limits))
        raise UsageError(
            f"an iteration of {run.folder} took no {units}: {flags} alone will not end the run; "
            f"set a limit on iterations, for example 'aggrevated resume {run.folder} --iterations 100'"
        )


def compute_fraction_done(loop: LoopSettings, line: Metrics) -> float:
    """Return how far a run is, from 0 to 1, by the limit that is nearest."""
    fractions = (count_used(line)[name] / limit for name, limit in loop.limits.items())
    return min(1.0, max(line.iteration / loop.iterations, *fractions, 0.0))


def extend_limits(
    run: Run, iterations: int | None = None, budget: int | None = None, queries: int | None = None
) -> Run:
    """Return the run with higher limits.

    Raises:
        UsageError: A limit is lower than before or than what was done, or another limit has ended the run.
    """
    arguments = {"iterations": iterations, "budget": budget, "queries": queries}
    new_limits = {name: value for name, value in arguments.items() if value is not None}
    if not new_limits:
        return run
    loop = run.config.loop
    metrics = run.metrics()
    done = {"iterations": len(metrics)} | (count_used(metrics[-1]) if metrics else {})
    old_limits = {"iterations": loop.known_iterations, **loop.limits}
    for name, value in new_limits.items():
        least = max(old_limits.get(name, 0), done.get(name, 0))
        check_setting(value >= least, name, value, f"at least the {least:,} of {run.folder}")
    if (result := run.result()) is not None and result.ended_by not in new_limits:
        flag = to_flag(result.ended_by)
        raise UsageError(
            f"{run.folder} has ended by {flag} {getattr(loop, result.ended_by)}; pass a higher {flag}, too"
        )
    check_not_annealed(run, new_limits.get("iterations", len(metrics) + 1))
    config = run.config.with_settings(**new_limits)
    config.validate()
    return replace(run, config=config)


def check_not_annealed(run: Run, iterations: int) -> None:
    """Raise a `UsageError` if the annealed step size of a run is 0 before this number of iterations."""
    annealed = run.config.update.to_values().get("anneal_iterations", 0)
    if 0 < annealed < iterations:
        raise UsageError(
            f"the step size of {run.folder} has fallen to 0 after {annealed} iterations, and "
            "more iterations change nothing; start a new run with more iterations"
        )
