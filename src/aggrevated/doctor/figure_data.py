"""Arrays that the figure of a diagnosis shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import AggrevatedError
from aggrevated.doctor.checks.costs import predict_rollout_costs
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import center_by_group
from aggrevated.doctor.value_bias import estimate_value_bias

MAX_TIMES = 60  # points of a curve over time


@dataclass(frozen=True)
class FigureData:
    """Arrays of the figure; those of predicted costs are empty if the expert has no costs.

    Attributes:
        returns: Returns of episodes, by who acts.
        predicted_costs: [n] costs-to-go by the expert, at its own states.
        rollout_costs: [n] costs of roll-outs from these states.
        first_policy_predicted_costs: [k] costs-to-go by the expert, at the states of the first policy.
        first_policy_rollout_costs: [k] costs of roll-outs from these states.
        predicted_advantages: [m] predicted costs of actions, less the mean of their state.
        rollout_advantages: [m] rollout costs of these actions, less the mean of their state.
        by_time: (t, mean predicted costs, mean costs until the end) along the expert's episodes.
        action_gaps: [n] cost that the best single action saves, at the expert's states.
    """

    returns: dict[str, Array]
    predicted_costs: Array
    rollout_costs: Array
    first_policy_predicted_costs: Array
    first_policy_rollout_costs: Array
    predicted_advantages: Array
    rollout_advantages: Array
    by_time: tuple[Array, Array, Array]
    action_gaps: Array


def collect_figure_data(exam: Examination) -> FigureData:
    """Return the arrays of the figure, from the episodes and roll-outs of the checks."""
    probes, rollouts = exam.probe_rollouts
    trajectories = {
        "expert": exam.expert_trajectories,
        "first policy": exam.first_policy_trajectories,
        "at random": exam.random_trajectories,
    }
    empty = np.zeros(0)
    predicted = first_predicted = first_rollout = rollout = predicted_advantages = rollout_advantages = empty
    total = rollouts.get_costs(1.0)
    finite = np.isfinite(total)
    if has_costs(exam):
        bias = estimate_value_bias(exam)
        predicted = bias.predicted_costs
        rollout = bias.rollout_costs
        costs = predict_rollout_costs(exam, bias.beyond_horizon)
        rows = np.flatnonzero(probes.is_expert_action & ~probes.on_expert_state & finite)
        first_predicted = exam.predicted_costs[rows]
        first_rollout = costs[rows]
        if exam.capability != "v":
            rows = np.flatnonzero(probes.on_expert_state & finite)
            predicted_advantages = center_by_group(exam.predicted_costs[rows], probes.probe[rows])
            rollout_advantages = center_by_group(costs[rows], probes.probe[rows])
    expert_action_cost = np.full(len(probes.states), np.nan)
    expert_action_cost[probes.probe[probes.is_expert_action]] = total[probes.is_expert_action]
    least = np.full(len(probes.states), np.inf)
    np.minimum.at(least, probes.probe[finite], total[finite])
    gaps = (expert_action_cost - least)[probes.by_expert]
    returns = {name: one.returns for name, one in trajectories.items()}
    return FigureData(
        returns, predicted, rollout, first_predicted, first_rollout, predicted_advantages, rollout_advantages,
        mean_costs_by_time(exam), gaps[np.isfinite(gaps)],
    )  # fmt: skip


def has_costs(exam: Examination) -> bool:
    """Return whether the expert can be queried for costs."""
    try:
        return bool(exam.capability) and len(exam.predicted_costs) > 0
    except AggrevatedError:
        return False  # a check reports the error


def mean_costs_by_time(exam: Examination) -> tuple[Array, Array, Array]:
    """Return (t, mean predicted costs, mean costs until the end) over the expert's episodes that still run at t.

    Costs are discounted as the expert's are.
    """
    trajectories = exam.expert_trajectories
    times = np.unique(np.linspace(0, trajectories.mask.shape[1] - 1, MAX_TIMES).astype(int))
    weights = exam.discount ** np.arange(trajectories.costs.shape[1])
    weighted = trajectories.costs * trajectories.mask * weights
    to_go = np.cumsum(weighted[:, ::-1], axis=1)[:, ::-1] / weights
    actual = np.array([to_go[trajectories.mask[:, t], t].mean() for t in times])
    predicted = (
        [exam.query_values(trajectories.states[trajectories.mask[:, t], t]).mean() for t in times]
        if has_costs(exam)
        else []
    )
    return times, np.array(predicted), actual
