"""The diagnosis: run every check within a time budget, and recommend a method."""

from __future__ import annotations

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
from aggrevated.experts.checked import display_name
from aggrevated.oracles.monte_carlo import MonteCarloSettings
from aggrevated.storage import JsonDict
from aggrevated.tasks import find_task

DOUBT = ("sign", "noise", "discount", "calibration", "agreement", "horizon")  # checks of what the expert says
ALIKE = 0.2  # the share of all mistakes' cost that the costliest tenth has: below, one is about as bad as another


@dataclass(frozen=True)
class Recommendation:
    """A command, why, and what it will take about."""

    method: str
    options: dict[str, Any]
    command: str
    why: str
    steps: int  # of the simulator
    minutes: float
    parts: dict[str, int] = field(default_factory=dict)  # of the steps

    def to_dict(self) -> JsonDict:
        """For JSON."""
        said = {"method": self.method, "options": self.options, "command": self.command, "why": self.why}
        return said | {"steps": self.steps, "minutes": self.minutes, "parts": self.parts}


def recommend(patient: Examination, findings: Sequence[Finding]) -> Recommendation:
    """The table of docs/which-method.md, applied to what was found."""
    method, why = choose_method(patient, findings)
    options: dict[str, Any] = {}
    config = patient.config
    doubted = any(one.check in DOUBT and one.verdict in ("fault", "warning") for one in findings)
    only_acts = not patient.capability
    if method in ("aggrevated", "loki") and config.oracle.name != "monte-carlo" and (doubted or only_acts):
        options["oracle"] = "monte-carlo"
        why += "; what it says is not relied on: it is rolled out" if doubted else "; it only acts: it is rolled out"
    if patient.problem.seen_by_expert is not None and config.policy.name == "mlp":
        options["policy"] = "lstm"
        why += "; the learner sees less than the expert, and needs a memory"
    command = format_training_command(patient, method, options)
    parts, minutes = estimate_run_cost(patient, options.get("oracle", config.oracle.name))
    return Recommendation(method, options, command, why, sum(parts.values()), minutes, parts)


def choose_method(patient: Examination, findings: Sequence[Finding]) -> tuple[str, str]:
    """(its name, why)."""
    by_name = {one.check: one for one in findings}
    earned = by_name.get("return")
    room = by_name.get("headroom")
    if earned is not None and earned.verdict in ("fault", "warning"):
        return "loki", "the expert is not good: its costs are a start, and no end"
    unequal = room.numbers.get("share_of_costliest_tenth", [1.0])[0] if room else 1.0
    settled = room is not None and room.verdict == "fine"
    surpassed = bool(room and room.numbers.get("surpassed", [0.0])[0])
    if (
        not patient.capability
        and unequal < ALIKE
        and settled
        and not surpassed
        and patient.problem.seen_by_expert is None
    ):
        return "dagger", "mistakes cost about alike and there is little to win over the expert: advice is enough"
    if surpassed:
        return "aggrevated", "the expert can be surpassed, and costs say where"
    return "aggrevated", f"mistakes differ in cost: the costliest tenth of them is {unequal:.0%} of it all"


def format_training_command(patient: Examination, method: str, options: dict[str, Any]) -> str:
    """What to type."""
    given = collect_non_default_settings(patient)
    words = ["aggrevated", "train", patient.config.task.name]
    if method != "aggrevated":
        words += ["--method", method]
    for name, value in {**options, **given}.items():
        if isinstance(value, bool):
            words.append(to_flag(name) if value else to_flag(name).replace("--", "--no-", 1))
        else:
            several = value if isinstance(value, tuple | list) else (value,)
            words += [to_flag(name), *map(str, several)]
    return shlex.join(words)


def collect_non_default_settings(patient: Examination) -> dict[str, Any]:
    """The settings of the world that are not those that the task has by itself."""
    config = patient.config
    try:
        task = find_task(config.task.name, trust_code=True)  # whoever is examined was imported before
    except AggrevatedError:
        task = config.task
    own = patient.problem.to_values()
    iterations = config.loop.iterations
    alike = replace(task.problem, **{"horizon": patient.horizon})  # what follows from the horizon is not given
    usual = alike.fill_defaults(iterations, ()).to_values() | {
        "horizon": task.problem.fill_defaults(iterations, ()).to_values().get("horizon")
    }
    return {name: own[name] for name in own if name in usual and own[name] != usual[name] and own[name] != ""}


def estimate_run_cost(patient: Examination, oracle: str) -> tuple[dict[str, int], float]:
    """(simulator steps of a run by what they are for, minutes), by the length of the expert's episodes."""
    loop = patient.config.loop
    world = patient.problem
    space = patient.simulator.action_space
    length = float(patient.expert_trajectories.mask.sum(axis=1).mean())
    rolled_in = loop.iterations * loop.trajectories * length
    validated = loop.iterations / loop.validate_every * world.validation_episodes * length
    asked = 0.0
    if oracle == "monte-carlo":
        own = patient.config.oracle
        settings = own if isinstance(own, MonteCarloSettings) else MonteCarloSettings()
        steps = min(settings.query_steps or length, length)
        actions = min(int(space.n), MAX_ACTIONS * 4) if isinstance(space, Discrete) else 2
        asked = loop.iterations * loop.trajectories * steps * actions * length / 2 * settings.query_rollouts
    tested = 2 * world.n_test_episodes * length
    by_policy, by_expert = patient.steps_per_second
    minutes = ((rolled_in + validated + tested) / by_policy + asked / by_expert) / 60
    parts = {"roll-ins": rolled_in, "oracle": asked, "validation": validated, "test": tested}
    return {name: int(steps) for name, steps in parts.items()}, minutes


Check = Callable[[Examination], Iterator[Finding]]
SECONDS_PER_DAY = 86_400
RECOVERABLE_ERRORS = (ArithmeticError, LookupError, TypeError, ValueError)  # that a patient nobody foresaw can cause


@dataclass(frozen=True)
class Diagnosis:
    """What was found of one environment and one expert."""

    task: str
    expert: str
    findings: tuple[Finding, ...]
    recommendation: Recommendation | None  # None where not even episodes could be run
    views: FigureData | None
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """The worst of all: "fault", "warning", "unknown" or "fine"."""
        found = {one.verdict for one in self.findings} - {"unknown"} or {"unknown"}
        return next(verdict for verdict in VERDICTS if verdict in found)

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.verdict == "fault")

    def to_dict(self) -> JsonDict:
        """For JSON."""
        about: JsonDict = {"task": self.task, "expert": self.expert, "verdict": self.verdict, "seconds": self.seconds}
        advice = self.recommendation.to_dict() if self.recommendation else None
        return about | {"findings": [one.to_dict() for one in self.findings], "recommendation": advice}


def diagnose(
    config: Config,
    episodes: int = 200,
    seed: int = 0,
    seconds: float = 60.0,
    progress: Callable[[int, int, str], Any] = lambda done, total, what: None,
) -> Diagnosis:
    """Everything that can be found out about a config's environment and expert within about so many seconds."""
    at_least(2).check("episodes", episodes)
    SEED.check("seed", seed)
    check_setting(
        0 < seconds <= SECONDS_PER_DAY, "seconds", seconds, f"a positive number, and at most {SECONDS_PER_DAY:,}"
    )
    began = time.monotonic()
    watch = CpuTimer()
    patient = Examination(config, episodes, seed, seconds)
    findings: list[Finding] = []
    with single_thread():
        try:
            name = patient.expert.name
            _ = patient.expert_trajectories, patient.random_trajectories, patient.first_policy_trajectories
        except UsageError:
            raise
        except AggrevatedError as error:
            return Diagnosis(
                config.task.name, "", (make_failed_finding("parts", error),), None, None, time.monotonic() - began
            )
        for place, (check, look) in enumerate(CHECKS.items()):
            progress(place, len(CHECKS), check)
            if watch.measure_seconds() > 2 * seconds:
                findings.append(Finding(check, "unknown", f"there was no time left for {check}; give more --seconds"))
            else:
                findings += run_check(check, look, patient)
        advice = views = None
        with suppress(AggrevatedError):  # a check says what is wrong
            advice = recommend(patient, findings)
            views = collect_figure_data(patient)
    progress(len(CHECKS), len(CHECKS), "done")
    return Diagnosis(config.task.name, name, tuple(findings), advice, views, time.monotonic() - began)


def make_failed_finding(check: str, error: AggrevatedError) -> Finding:
    """What went wrong, and the remedy that it comes with."""
    what, _, remedy = str(error).rpartition("; ")
    return Finding(check, "fault", what or remedy, remedy if what else "")


def run_check(check: str, look: Check, patient: Examination) -> list[Finding]:
    """What a check finds; what goes wrong in it is a finding, too."""
    try:
        return list(look(patient))
    except UsageError as error:
        return [Finding(check, "unknown", str(error))]
    except AggrevatedError as error:
        return [make_failed_finding(check, error)]
    except RECOVERABLE_ERRORS as error:
        sentence = f"{display_name(patient.expert)} could not be looked at for {check}: {type(error).__name__}: {error}"
        return [Finding(check, "unknown", sentence)]
