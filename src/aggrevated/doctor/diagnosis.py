"""The examination as a whole: every check, the figure's numbers, and what to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aggrevated.config import Config
from aggrevated.core.hardware import single_thread
from aggrevated.core.settings import SEED, at_least, check_setting
from aggrevated.doctor.checks import CHECKS
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.figure_data import FigureData, collect_figure_data
from aggrevated.doctor.findings import VERDICTS, Finding, Verdict
from aggrevated.doctor.recommendation import Recommendation, recommend
from aggrevated.doctor.time_budget import CpuTimer
from aggrevated.errors import AggrevatedError, UsageError
from aggrevated.experts.checked import display_name
from aggrevated.storage import JsonDict

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
    began, watch = time.monotonic(), CpuTimer()
    patient = Examination(config, episodes, seed, seconds)
    findings: list[Finding] = []
    with single_thread():
        try:
            name = patient.expert.name
            _ = patient.of_expert, patient.of_random, patient.of_first
        except UsageError:
            raise
        except AggrevatedError as error:
            return Diagnosis(
                config.task.name, "", (failed_check("parts", error),), None, None, time.monotonic() - began
            )
        for place, (check, look) in enumerate(CHECKS.items()):
            progress(place, len(CHECKS), check)
            if watch.seconds() > 2 * seconds:
                findings.append(Finding(check, "unknown", f"there was no time left for {check}; give more --seconds"))
            else:
                findings += run_check(check, look, patient)
        advice = views = None
        with suppress(AggrevatedError):  # a check says what is wrong
            advice, views = recommend(patient, findings), collect_figure_data(patient)
    progress(len(CHECKS), len(CHECKS), "done")
    return Diagnosis(config.task.name, name, tuple(findings), advice, views, time.monotonic() - began)


def failed_check(check: str, error: AggrevatedError) -> Finding:
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
        return [failed_check(check, error)]
    except RECOVERABLE_ERRORS as error:
        sentence = f"{display_name(patient.expert)} could not be looked at for {check}: {type(error).__name__}: {error}"
        return [Finding(check, "unknown", sentence)]
