"""Which method is likely to serve, as one command, and what a run of it will take."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gymnasium.spaces import Discrete

from aggrevated.core.settings import to_flag
from aggrevated.doctor.examination import MAX_ACTIONS, Examination
from aggrevated.doctor.findings import Finding
from aggrevated.errors import AggrevatedError
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
    only_acts = not patient.knows
    if method in ("aggrevated", "loki") and config.oracle.name != "monte-carlo" and (doubted or only_acts):
        options["oracle"] = "monte-carlo"
        why += "; what it says is not relied on: it is rolled out" if doubted else "; it only acts: it is rolled out"
    if patient.problem.seen_by_expert is not None and config.policy.name == "mlp":
        options["policy"] = "lstm"
        why += "; the learner sees less than the expert, and needs a memory"
    command = training_command(patient, method, options)
    parts, minutes = estimate_run_cost(patient, options.get("oracle", config.oracle.name))
    return Recommendation(method, options, command, why, sum(parts.values()), minutes, parts)


def choose_method(patient: Examination, findings: Sequence[Finding]) -> tuple[str, str]:
    """(its name, why)."""
    by_name = {one.check: one for one in findings}
    earned, room = by_name.get("return"), by_name.get("headroom")
    if earned is not None and earned.verdict in ("fault", "warning"):
        return "loki", "the expert is not good: its costs are a start, and no end"
    unequal = room.numbers.get("share_of_costliest_tenth", [1.0])[0] if room else 1.0
    settled = room is not None and room.verdict == "fine"
    surpassed = bool(room and room.numbers.get("surpassed", [0.0])[0])
    if not patient.knows and unequal < ALIKE and settled and not surpassed and patient.problem.seen_by_expert is None:
        return "dagger", "mistakes cost about alike and there is little to win over the expert: advice is enough"
    if surpassed:
        return "aggrevated", "the expert can be surpassed, and costs say where"
    return "aggrevated", f"mistakes differ in cost: the costliest tenth of them is {unequal:.0%} of it all"


def training_command(patient: Examination, method: str, options: dict[str, Any]) -> str:
    """What to type."""
    given = non_default_problem_settings(patient)
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


def non_default_problem_settings(patient: Examination) -> dict[str, Any]:
    """The settings of the world that are not those that the task has by itself."""
    config = patient.config
    try:
        task = find_task(config.task.name, trust_code=True)  # whoever is examined was imported before
    except AggrevatedError:
        task = config.task
    own, iterations = patient.problem.to_values(), config.loop.iterations
    alike = replace(task.problem, **{"horizon": patient.horizon})  # what follows from the horizon is not given
    usual = alike.fill_defaults(iterations, ()).to_values() | {
        "horizon": task.problem.fill_defaults(iterations, ()).to_values().get("horizon")
    }
    return {name: own[name] for name in own if name in usual and own[name] != usual[name] and own[name] != ""}


def estimate_run_cost(patient: Examination, oracle: str) -> tuple[dict[str, int], float]:
    """(simulator steps of a run by what they are for, minutes), by the length of the expert's episodes."""
    loop, world, space = patient.config.loop, patient.problem, patient.simulator.action_space
    length = float(patient.of_expert.mask.sum(axis=1).mean())
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
    by_policy, by_expert = patient.pace
    minutes = ((rolled_in + validated + tested) / by_policy + asked / by_expert) / 60
    parts = {"roll-ins": rolled_in, "oracle": asked, "validation": validated, "test": tested}
    return {name: int(steps) for name, steps in parts.items()}, minutes
