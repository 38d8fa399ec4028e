"""Comparison of the expert's predicted costs with the rollout costs of following it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.examination import Examination


@dataclass(frozen=True)
class ValueBias:
    """Predicted and rollout costs of the expert's own actions, at its own states whose roll-outs did not diverge.

    Attributes:
        predicted_costs: [n] costs-to-go by the expert.
        rollout_costs: [n] costs of roll-outs with the expert's discount, cut at the horizon or extended beyond it,
            whichever is nearer to the predicted costs.
        fits: [n] costs of roll-outs by (discount, whether they are extended beyond the horizon).
        group: [n] episode of each state.
        beyond_horizon: Whether `rollout_costs` are extended beyond the horizon.
    """

    predicted_costs: Array
    rollout_costs: Array
    fits: dict[tuple[float, bool], Array]
    group: Array
    beyond_horizon: bool


def estimate_value_bias(exam: Examination) -> ValueBias:
    """Return predicted and rollout costs at the expert's own states and actions."""
    probes, rollouts = exam.probe_rollouts
    rows = np.flatnonzero(probes.is_expert_action & probes.on_expert_state & np.isfinite(rollouts.get_costs(1.0)))
    step_cost = exam.mean_step_cost
    fits = {}
    for discount in exam.discounts:
        fits[discount, False] = rollouts.get_costs(discount)[rows]
        if discount < 1:
            fits[discount, True] = rollouts.estimate_infinite_costs(discount, step_cost)[rows]
    predicted = exam.predicted_costs[rows]
    keys = [key for key in fits if key[0] == exam.discount]
    nearest = min(keys, key=lambda key: mean_squared_error(predicted, fits[key]))
    return ValueBias(predicted, fits[nearest], fits, probes.group[rows], nearest[1])


def mean_squared_error(predicted: Array, actual: Array) -> float:
    """Return the mean squared error."""
    return float(((predicted - actual) ** 2).mean())
