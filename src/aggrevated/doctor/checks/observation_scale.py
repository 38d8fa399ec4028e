"""Does the expert see numbers of the size that it was trained on?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.estimates import estimate_mean
from aggrevated.doctor.examination import CHANGED, Examination
from aggrevated.doctor.findings import Finding
from aggrevated.doctor.time_budget import run_largest_affordable
from aggrevated.experts import Expert
from aggrevated.rollout.roll_in import RollInPolicy, roll_in

FRESH = 40
MUCH = 0.5  # of what it earns above chance with normalised inputs: by so much that must be better, for sure
STATISTICS = "the statistics that normalised them (VecNormalize)"
ODD = (0.05, 20.0)  # inputs whose root mean square lies beyond are unusual for a network


def check_observation_scale(patient: Examination) -> Iterator[Finding]:
    """Beside its training where that is known; and would it do better if what it sees were normalised?"""
    watched = collect_observations(patient)
    if watched is None:
        yield Finding("scales", "unknown", "what the expert sees is its own affair, and cannot be looked at")
        return
    mean, deviation = watched.mean(axis=0), watched.std(axis=0)
    sizes = np.sqrt((watched**2).mean(axis=0))
    numbers = {"mean": mean.tolist(), "deviation": deviation.tolist()}
    if patient.training.normalised and not getattr(patient.problem, "vec_normalize", ""):
        sentence = "the expert was trained on normalised observations, and nothing normalises them here"
        yield Finding("scales", "fault", sentence, f"give {STATISTICS}: --vec-normalize FILE", numbers)
        return
    better = returns_with_normalization(patient, mean, deviation)
    if better is not None:
        own, other = better
        sentence = f"with normalised observations the expert earns {other:.1f}, and {own:.1f} as it is"
        remedy = f"it was trained on normalised observations: give {STATISTICS}"
        yield Finding("scales", "fault", sentence, remedy, numbers | {"own": own, "normalised": other})
        return
    used = sizes[sizes > 0]
    odd = bool(((used < ODD[0]) | (used > ODD[1])).any())
    if odd and not beats_random(patient):
        sentence = f"what the expert sees is of sizes from {used.min():.2g} to {used.max():.2g}, and it earns nothing"
        remedy = "check whether its observations were normalised in training"
        yield Finding("scales", "warning", sentence, remedy, numbers)
    else:
        said = (
            f"what the expert sees is of sizes from {used.min():.2g} to {used.max():.2g}" if len(used) else "it sees 0"
        )
        yield Finding("scales", "fine", said, "", numbers)


def collect_observations(patient: Examination) -> Array | None:
    """[n, O]: what the expert's network reads of the states that it comes to, and that chance comes to."""
    look: Callable[[Array], Array] | None = getattr(patient.expert, "observe", None)
    if not callable(look):
        return None
    parts = [look(of.states[of.mask]) for of in (patient.of_expert, patient.of_random)]
    return np.concatenate([np.asarray(part, float).reshape(len(part), -1) for part in parts])


def beats_random(patient: Examination) -> bool:
    """Whether it is better than chance."""
    shared = min(patient.of_expert.count, patient.of_random.count)
    return estimate_mean(patient.of_expert.returns[:shared] - patient.of_random.returns[:shared]).low > 0


@dataclass(frozen=True)
class NormalizedView:
    """A view less its mean, divided by its deviation."""

    observe: Callable[[Array], Array]
    mean: Array
    deviation: Array

    def __call__(self, states: Array) -> Array:
        shown = self.observe(states)
        found: Array = ((shown - self.mean) / np.maximum(self.deviation, 1e-8)).clip(-10, 10)
        return np.ascontiguousarray(found.astype(shown.dtype))


def returns_with_normalization(patient: Examination, mean: Array, deviation: Array) -> tuple[float, float] | None:
    """(what it earns, what it earns with normalised observations) if that is surely much more; else None."""
    expert: Any = patient.expert
    if not is_dataclass(expert) or isinstance(expert, type) or "observe" not in {f.name for f in fields(expert)}:
        return None
    usual = np.where(deviation > 0, deviation, 1.0)
    seen_by = NormalizedView(patient.expert.observe, mean, usual)  # type: ignore[attr-defined]
    other: Any = replace(expert, observe=seen_by)

    def tried(who: Expert) -> Array:
        def work(n: int) -> Array:
            return roll_in(patient.simulator, RollInPolicy(who, None, 1.0), patient.seeds(4, n)).returns

        return run_largest_affordable(work, FRESH, CHANGED * patient.seconds / 4)

    own, changed = tried(patient.expert), tried(other)
    shared = min(len(own), len(changed))
    gain = estimate_mean(changed[:shared] - own[:shared])
    room = float(changed.mean()) - float(patient.of_random.returns.mean())
    much = gain.low > 0 and gain.low > MUCH * max(room, 0.0)
    return (float(own.mean()), float(changed.mean())) if much else None
