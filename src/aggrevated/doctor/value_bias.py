"""What the expert says that following it will cost, beside what it does cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.examination import Examination


@dataclass(frozen=True)
class ValueBias:
    """At the probes whose roll-outs did not diverge."""

    predicted_costs: Array  # [n]
    rollout_costs: Array  # [n]: with the expert's own discount, and as the horizon cuts it or as if it went on
    fits: dict[tuple[float, bool], Array]  # [n]: the same by (discount, whether it goes on)
    group: Array  # [n]: the episode of each
    going_on: bool  # whether what it says fits better to costs that no horizon cuts


def estimate_value_bias(patient: Examination) -> ValueBias:
    """Where the expert itself comes to, and takes its own action."""
    probes, rolled = patient.probe_rollouts
    rows = np.flatnonzero(probes.own & probes.in_view & np.isfinite(rolled.get_costs(1.0)))
    usual = patient.mean_step_cost
    fits = {}
    for discount in patient.discounts:
        fits[discount, False] = rolled.get_costs(discount)[rows]
        if discount < 1:
            fits[discount, True] = rolled.estimate_infinite_costs(discount, usual)[rows]
    said = patient.predicted_costs[rows]
    own = patient.discount
    ways = [way for way in fits if way[0] == own]
    nearest = min(ways, key=lambda way: mean_squared_error(said, fits[way]))
    return ValueBias(said, fits[nearest], fits, probes.group[rows], nearest[1])


def mean_squared_error(said: Array, paid: Array) -> float:
    """The mean square of what is wrong."""
    return float(((said - paid) ** 2).mean())
