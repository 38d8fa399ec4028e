"""The diagnosis: run every check within a time budget, and recommend a method."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from gymnasium.spaces import Discrete

from aggrevated.config import Config
from aggrevated.core.errors import AggrevatedError, UsageError
from aggrevated.core.hardware import single_thread
from aggrevated.core.settings import SEED, at_least, check_setting, to_flag
from aggrevated.doctor.checks import CHECKS
from aggrevated.doctor.examination import MAX_ACTIONS, Examination
from aggrevated.doctor.figure_data import FigureData, collect_figure_data
from aggrevated.doctor.findings import VERDICTS, Finding, Verdict
from aggrevated.doctor.time_budget import CpuTimer
from aggrevated.experts.checked import describe_expert_name
from aggrevated.oracles.monte_carlo import MonteCarloSettings
from aggrevated.storage import JsonDict
from aggrevated.tasks import find_task

COST_CHECKS = ("sign", "noise", "discount", "calibration", "agreement", "horizon")  # checks of the expert's costs
MAX_EQUAL_MISTAKES = 0.2  # fraction of the cost of all mistakes that the costliest tenth has: below, they cost the same


@dataclass(frozen=True)
class Recommendation:
    """Recommended method, with its command and its cost.

    Attributes:
        method: Name of the method.
        options: Recommended settings besides those of the config.
        command: The command.
        why: The reason, in words.
        steps: Estimated simulator steps.
        minutes: Estimated minutes of simulation.
        parts: The simulator steps by purpose.
    """

    method: str
    options: dict[str, Any]
    command: str
    why: str
    steps: int
    minutes: float
    parts: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> JsonDict:
        """Return the recommendation for JSON."""
        texts = {"method": self.method, "options": self.options, "command": self.command, "why": self.why}
        return texts | {"steps": self.steps, "minutes": self.minutes, "parts": self.parts}


def recommend(exam: Examination, findings: Sequence[Finding]) -> Recommendation:
    """Return the recommendation that follows from the findings by the table of docs/which-method.md."""
    method, why = choose_method(exam, findings)
    options: dict[str, Any] = {}
    config = exam.config
    doubted = any(finding.check in COST_CHECKS and finding.verdict in ("fault", "warning") for finding in findings)
    only_acts = not exam.capability
    if method in ("aggrevated", "loki") and config.oracle.name != "monte-carlo" and (doubted or only_acts):
        options["oracle"] = "monte-carlo"
        reason = "its costs are not reliable" if doubted else "it returns no costs"
        why += f"; the expert is rolled out, since {reason}"
    if exam.problem.seen_by_expert is not None and config.policy.name == "mlp":
        options["policy"] = "lstm"
        why += "; the policy needs a memory, since it observes less than the expert"
    command = format_training_command(exam, method, options)
    parts, minutes = estimate_run_cost(exam, options.get("oracle", config.oracle.name))
    return Recommendation(method, options, command, why, sum(parts.values()), minutes, parts)


def choose_method(exam: Examination, findings: Sequence[Finding]) -> tuple[str, str]:
    """Return the name of the recommended method, and the reason."""
    by_check = {finding.check: finding for finding in findings}
    returns = by_check.get("return")
    headroom = by_check.get("headroom")
    if returns is not None and returns.verdict in ("fault", "warning"):
        return "loki", "the expert is weak: imitation is only the start, and reinforcement learning follows"
    costliest_tenth = headroom.numbers.get("share_of_costliest_tenth", [1.0])[0] if headroom else 1.0
    is_settled = headroom is not None and headroom.verdict == "fine"
    is_surpassed = bool(headroom and headroom.numbers.get("surpassed", [0.0])[0])
    if (
        not exam.capability
        and costliest_tenth < MAX_EQUAL_MISTAKES
        and is_settled
        and not is_surpassed
        and exam.problem.seen_by_expert is None
    ):
        return (
            "dagger",
            "all mistakes cost about the same and the expert can hardly be surpassed: its actions are enough",
        )
    if is_surpassed:
        return "aggrevated", "the expert can be surpassed, and the costs of actions show where"
    share = f"the costliest tenth of them causes {costliest_tenth:.0%} of the total"
    return "aggrevated", f"mistakes differ in cost: {share}"


def format_training_command(exam: Examination, method: str, options: dict[str, Any]) -> str:
    """Return the command that trains with the method and options."""
    settings = collect_non_default_settings(exam)
    arguments = ["aggrevated", "train", exam.config.task.name]
    if method != "aggrevated":
        arguments += ["--method", method]
    for name, value in {**options, **settings}.items():
        if isinstance(value, bool):
            arguments.append(to_flag(name) if value else to_flag(name).replace("--", "--no-", 1))
        else:
            values = value if isinstance(value, tuple | list) else (value,)
            arguments += [to_flag(name), *map(str, values)]
    return shlex.join(arguments)


def collect_non_default_settings(exam: Examination) -> dict[str, Any]:
    """Return the settings of the problem that are not the task's defaults."""
    config = exam.config
    try:
        task = find_task(config.task.name, trust_code=True)  # the code was imported for the examination already
    except AggrevatedError:
        task = config.task
    settings = exam.problem.to_values()
    iterations = config.loop.iterations
    same_horizon = replace(task.problem, **{"horizon": exam.horizon})  # leave out what follows from the horizon
    defaults = same_horizon.fill_defaults(iterations, ()).to_values() | {
        "horizon": task.problem.fill_defaults(iterations, ()).to_values().get("horizon")
    }
    return {
        name: settings[name]
        for name in settings
        if name in defaults and settings[name] != defaults[name] and settings[name] != ""
    }


def estimate_run_cost(exam: Examination, oracle: str) -> tuple[dict[str, int], float]:
    """Return the simulator steps of a run by purpose, and its minutes, if episodes are as long as the expert's."""
    loop = exam.config.loop
    problem = exam.problem
    space = exam.simulator.action_space
    length = float(exam.expert_trajectories.mask.sum(axis=1).mean())
    roll_in_steps = loop.iterations * loop.trajectories * length
    validation_steps = loop.iterations / loop.validate_every * problem.validation_episodes * length
    oracle_steps = 0.0
    if oracle == "monte-carlo":
        configured = exam.config.oracle
        settings = configured if isinstance(configured, MonteCarloSettings) else MonteCarloSettings()
        steps = min(settings.query_steps or length, length)
        actions = min(int(space.n), MAX_ACTIONS * 4) if isinstance(space, Discrete) else 2
        oracle_steps = loop.iterations * loop.trajectories * steps * actions * length / 2 * settings.query_rollouts
    test_steps = 2 * problem.n_test_episodes * length
    policy_pace, expert_pace = exam.steps_per_second
    minutes = ((roll_in_steps + validation_steps + test_steps) / policy_pace + oracle_steps / expert_pace) / 60
    parts = {"roll-ins": roll_in_steps, "oracle": oracle_steps, "validation": validation_steps, "test": test_steps}
    return {name: int(steps) for name, steps in parts.items()}, minutes


Check = Callable[[Examination], Iterator[Finding]]
SECONDS_PER_DAY = 86_400
RECOVERABLE_ERRORS = (ArithmeticError, LookupError, TypeError, ValueError)  # an unusual expert may cause them


@dataclass(frozen=True)
class Diagnosis:
    """Findings on one environment and one expert.

    Attributes:
        task: Name of the task.
        expert: Name of the expert.
        findings: The findings, in the order of the checks.
        recommendation: The recommended method; None if no episode could be run.
        views: Arrays of the figure; None likewise.
        seconds: Wall-clock seconds that the diagnosis took.
    """

    task: str
    expert: str
    findings: tuple[Finding, ...]
    recommendation: Recommendation | None
    views: FigureData | None
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """Worst verdict of all findings: "fault", "warning" or "fine"; "unknown" if none is known."""
        verdicts = {finding.verdict for finding in self.findings} - {"unknown"} or {"unknown"}
        return next(verdict for verdict in VERDICTS if verdict in verdicts)

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.verdict == "fault")

    def to_dict(self) -> JsonDict:
        """Return the diagnosis for JSON."""
        values: JsonDict = {
            "task": self.task, "expert": self.expert, "verdict": self.verdict, "seconds": self.seconds,
        }  # fmt: skip
        recommendation = self.recommendation.to_dict() if self.recommendation else None
        return values | {"findings": [finding.to_dict() for finding in self.findings], "recommendation": recommendation}


def diagnose(
    config: Config,
    episodes: int = 200,
    seed: int = 0,
    seconds: float = 60.0,
    progress: Callable[[int, int, str], Any] = lambda done, total, what: None,
) -> Diagnosis:
    """Run all checks of a config's environment and expert within a time budget, and recommend a method.

    Args:
        config: The config that you would train with.
        episodes: Largest number of episodes for each of expert, first policy and random actions.
        seed: Seed of all random numbers.
        seconds: Available time in seconds, about.
        progress: Called with (checks done, checks in all, name of the next check).

    Returns:
        The diagnosis. If the expert cannot act, it has one finding and no recommendation.

    Raises:
        UsageError: An argument is out of range, or the problem has no simulator.
    """
    at_least(2).check("episodes", episodes)
    SEED.check("seed", seed)
    check_setting(
        0 < seconds <= SECONDS_PER_DAY, "seconds", seconds, f"a positive number, and at most {SECONDS_PER_DAY:,}"
    )
    started_at = time.monotonic()
    timer = CpuTimer()
    exam = Examination(config, episodes, seed, seconds)
    findings: list[Finding] = []
    with single_thread():
        try:
            name = exam.expert.name
            _ = exam.expert_trajectories, exam.random_trajectories, exam.first_policy_trajectories
        except UsageError:
            raise
        except AggrevatedError as error:
            return Diagnosis(
                config.task.name, "", (make_failed_finding("parts", error),), None, None, time.monotonic() - started_at
            )
        for index, (check, examine) in enumerate(CHECKS.items()):
            progress(index, len(CHECKS), check)
            if timer.measure_seconds() > 2 * seconds:
                findings.append(Finding(check, "unknown", f"there was no time left for {check}; increase --seconds"))
            else:
                findings += run_check(check, examine, exam)
        recommendation = views = None
        with suppress(AggrevatedError):  # a check reports the error
            recommendation = recommend(exam, findings)
            views = collect_figure_data(exam)
    progress(len(CHECKS), len(CHECKS), "done")
    return Diagnosis(config.task.name, name, tuple(findings), recommendation, views, time.monotonic() - started_at)


REMEDY = re.compile(r"(?P<sentence>.+)[;:] (?P<remedy>[a-z][^()]*)", re.DOTALL)  # of an error


def make_failed_finding(check: str, error: AggrevatedError) -> Finding:
    """Return an error and its remedy, which follows the last semicolon or colon, as a finding."""
    match = REMEDY.fullmatch(str(error))
    if match is None:
        return Finding(check, "fault", str(error))
    return Finding(check, "fault", match["sentence"], match["remedy"])


def run_check(check: str, examine: Check, exam: Examination) -> list[Finding]:
    """Return the findings of a check; an error in the check is a finding, too."""
    try:
        return list(examine(exam))
    except UsageError as error:
        return [Finding(check, "unknown", str(error))]
    except AggrevatedError as error:
        return [make_failed_finding(check, error)]
    except RECOVERABLE_ERRORS as error:
        cause = f"{type(error).__name__}: {error}"
        return [Finding(check, "unknown", f"the check {check} of {describe_expert_name(exam.expert)} failed: {cause}")]
