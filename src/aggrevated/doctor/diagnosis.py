"""The examination as a whole: every check, the figure's numbers, and what to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aggrevated.config import Config
from aggrevated.core.hardware import one_thread
from aggrevated.core.settings import SEED, at_least, require
from aggrevated.doctor.checks import CHECKS
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.figure_data import Views, views_of
from aggrevated.doctor.findings import VERDICTS, Finding, Verdict
from aggrevated.doctor.recommendation import Recommendation, recommend
from aggrevated.doctor.time_budget import Watch
from aggrevated.errors import AggrevatedError, UsageError
from aggrevated.experts.checked import called
from aggrevated.storage import Facts

Check = Callable[[Examination], Iterator[Finding]]
A_DAY = 86_400
GOING_WRONG = (ArithmeticError, LookupError, TypeError, ValueError)  # that a patient nobody foresaw can cause


@dataclass(frozen=True)
class Diagnosis:
    """What was found of one environment and one expert."""

    task: str
    expert: str
    findings: tuple[Finding, ...]
    recommendation: Recommendation | None  # None where not even episodes could be run
    views: Views | None
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """The worst of all: "fault", "warning", "unknown" or "fine"."""
        found = {one.verdict for one in self.findings} - {"unknown"} or {"unknown"}
        return next(verdict for verdict in VERDICTS if verdict in found)

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.verdict == "fault")

    def facts(self) -> Facts:
        """For JSON."""
        about: Facts = {"task": self.task, "expert": self.expert, "verdict": self.verdict, "seconds": self.seconds}
        advice = self.recommendation.facts() if self.recommendation else None
        return about | {"findings": [one.facts() for one in self.findings], "recommendation": advice}


def examine(
    config: Config,
    episodes: int = 200,
    seed: int = 0,
    seconds: float = 60.0,
    progress: Callable[[int, int, str], Any] = lambda done, total, what: None,
) -> Diagnosis:
    """Everything that can be found out about a config's environment and expert within about so many seconds."""
    at_least(2).require("episodes", episodes)
    SEED.require("seed", seed)
    require(0 < seconds <= A_DAY, "seconds", seconds, f"a positive number, and at most {A_DAY:,}")
    began, watch = time.monotonic(), Watch()
    patient = Examination(config, episodes, seed, seconds)
    findings: list[Finding] = []
    with one_thread():
        try:
            name = patient.expert.name
            _ = patient.of_expert, patient.of_random, patient.of_first
        except UsageError:
            raise
        except AggrevatedError as error:
            return Diagnosis(config.task.name, "", (broken("parts", error),), None, None, time.monotonic() - began)
        for place, (check, look) in enumerate(CHECKS.items()):
            progress(place, len(CHECKS), check)
            if watch.seconds() > 2 * seconds:
                findings.append(Finding(check, "unknown", f"there was no time left for {check}; give more --seconds"))
            else:
                findings += looked(check, look, patient)
        advice = views = None
        with suppress(AggrevatedError):  # a check says what is wrong
            advice, views = recommend(patient, findings), views_of(patient)
    progress(len(CHECKS), len(CHECKS), "done")
    return Diagnosis(config.task.name, name, tuple(findings), advice, views, time.monotonic() - began)


def broken(check: str, error: AggrevatedError) -> Finding:
    """What went wrong, and the remedy that it comes with."""
    what, _, remedy = str(error).rpartition("; ")
    return Finding(check, "fault", what or remedy, remedy if what else "")


def looked(check: str, look: Check, patient: Examination) -> list[Finding]:
    """What a check finds; what goes wrong in it is a finding, too."""
    try:
        return list(look(patient))
    except UsageError as error:
        return [Finding(check, "unknown", str(error))]
    except AggrevatedError as error:
        return [broken(check, error)]
    except GOING_WRONG as error:
        sentence = f"{called(patient.expert)} could not be looked at for {check}: {type(error).__name__}: {error}"
        return [Finding(check, "unknown", sentence)]
