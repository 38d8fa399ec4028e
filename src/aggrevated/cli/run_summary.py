"""The lines that a run prints at its end. All numbers are in result.json and in the output of --json."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from aggrevated.cli.options import format_trust_option
from aggrevated.core.settings import to_flag
from aggrevated.training.records import Result
from aggrevated.training.run_folder import Run

NORMAL_QUANTILE = 1.96  # of a 95 % interval


def describe_runs(runs: Sequence[Run], results: Sequence[Result], folder: Path) -> list[str]:
    """Return the lines: task and method, return and that of the expert, cost, files and the next command."""
    config = runs[0].config
    seeds = f"seed {results[0].seed}"
    if len(runs) > 1:
        seeds = f"{len(runs)} trials, seeds {results[0].seed} to {results[-1].seed}"
    prefix = "trial-*/" if len(runs) > 1 else ""
    rows = {
        f"test {config.problem.metric_name}": describe_returns(results, config.problem.digits),
        "training": describe_training(results),
        "files": f"{folder}: {prefix}policy.safetensors, {prefix}result.json, {prefix}metrics.jsonl, {prefix}curve.png",
        "next": suggest_next_command(runs[0], results[0], folder),
    }
    width = max(map(len, rows))
    title = f"{config.task.title}: {config.method_spec.title}, {config.update.name} update, {seeds}"
    return [title, *(f"  {name:<{width}}  {text}" for name, text in rows.items())]


def describe_returns(results: Sequence[Result], digits: int) -> str:
    """Return the test return of the best policy and that of the expert, with 95 % intervals."""
    if len(results) > 1:
        return describe_trial_returns(results, digits)
    score = results[0].more
    policy = format_interval(score["test_return"], score.get("test_standard_error"), digits)
    expert = format_interval(score["expert_return"], score.get("expert_standard_error"), digits)
    return f"{policy}; expert {expert} (mean of new episodes ± 95 % interval)"


def describe_trial_returns(results: Sequence[Result], digits: int) -> str:
    """Return the interquartile mean of the trials, its bootstrap interval, and the mean return of the expert."""
    import numpy as np

    from aggrevated.core.statistics import estimate

    policy = estimate(np.array([float(result.more["test_return"]) for result in results]))
    expert = np.mean([float(result.more["expert_return"]) for result in results])
    interval = f"{policy.low:.{digits}f} to {policy.high:.{digits}f}"
    return (
        f"{policy.value:.{digits}f} ({interval}); expert {expert:.{digits}f} "
        "(interquartile mean over trials and its 95 % interval)"
    )


def format_interval(mean: float, standard_error: float | None, digits: int) -> str:
    """Return a mean with half the width of its 95 % interval."""
    if standard_error is None:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {NORMAL_QUANTILE * standard_error:.{digits}f}"


def describe_training(results: Sequence[Result]) -> str:
    """Return what training took, per trial in the mean, and which limit ended it."""
    counts = {
        name: sum(getattr(result, name) for result in results) / len(results)
        for name in ("iterations", "simulator_steps", "validation_steps", "oracle_queries", "seconds")
    }
    limits = ", ".join(dict.fromkeys(to_flag(result.ended_by) for result in results))
    return (
        f"{counts['iterations']:,.0f} iterations, {counts['simulator_steps']:,.0f} simulator steps "
        f"(and {counts['validation_steps']:,.0f} for validation), "
        f"{counts['oracle_queries']:,.0f} oracle queries, {counts['seconds']:,.1f} s"
        f"{' per trial' if len(results) > 1 else ''}; {limits} reached"
    )


def suggest_next_command(run: Run, result: Result, folder: Path) -> str:
    """Return the command to try next: more training where the policy is behind its expert, else the export."""
    score = result.more
    error = (score.get("test_standard_error") or 0.0) + (score.get("expert_standard_error") or 0.0)
    is_behind = score["test_return"] < score["expert_return"] - NORMAL_QUANTILE * error
    if is_behind and not run.config.update.to_values().get("anneal_iterations"):
        limit = getattr(run.config.loop, result.ended_by)
        options = f"{to_flag(result.ended_by)} {2 * limit}{format_trust_option(run.config)}"
        return f"aggrevated resume {quote(str(folder))} {options}  # trains longer"
    return f"aggrevated export {quote(str(folder))}  # writes the policy as one file"
