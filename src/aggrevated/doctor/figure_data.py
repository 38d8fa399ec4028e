"""The numbers that the figure shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import AggrevatedError
from aggrevated.doctor.checks.costs import predict_rollout_costs
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import center_by_group
from aggrevated.doctor.value_bias import estimate_value_bias

TIMES = 60  # points of a curve over time


@dataclass(frozen=True)
class FigureData:
    """Empty where an expert says nothing of costs."""

    returns: dict[str, Array]
    predicted_costs: Array  # [n]: costs-to-go by the expert, where it comes to
    rollout_costs: Array  # [n]
    first_said: Array  # [k]: the same where the first policy comes to
    first_paid: Array
    advantage_said: Array  # [m]
    advantage_paid: Array
    by_time: tuple[Array, Array, Array]  # (t, what the expert says, what is paid) along its episodes
    saved: Array  # [n]: by the best single action at each of the expert's states


def collect_figure_data(patient: Examination) -> FigureData:
    """From the episodes and roll-outs that were made anyway."""
    probes, rolled = patient.probe_rollouts
    returns = {
        "expert": patient.expert_trajectories,
        "first policy": patient.first_policy_trajectories,
        "at random": patient.random_trajectories,
    }
    nothing = np.zeros(0)
    said = first_said = first_paid = paid = advantage_said = advantage_paid = nothing
    total = rolled.get_costs(1.0)
    sound = np.isfinite(total)
    if has_costs(patient):
        level = estimate_value_bias(patient)
        said = level.predicted_costs
        paid = level.rollout_costs
        counted = predict_rollout_costs(patient, level.going_on)
        rows = np.flatnonzero(probes.own & ~probes.in_view & sound)
        first_said = patient.predicted_costs[rows]
        first_paid = counted[rows]
        if patient.capability != "v":
            rows = np.flatnonzero(probes.in_view & sound)
            advantage_said = center_by_group(patient.predicted_costs[rows], probes.probe[rows])
            advantage_paid = center_by_group(counted[rows], probes.probe[rows])
    own = np.full(len(probes.states), np.nan)
    own[probes.probe[probes.own]] = total[probes.own]
    least = np.full(len(probes.states), np.inf)
    np.minimum.at(least, probes.probe[sound], total[sound])
    saved = (own - least)[probes.by_expert]
    drawn = {name: of.returns for name, of in returns.items()}
    return FigureData(
        drawn, said, paid, first_said, first_paid, advantage_said, advantage_paid, mean_costs_by_time(patient),
        saved[np.isfinite(saved)],
    )  # fmt: skip


def has_costs(patient: Examination) -> bool:
    """Whether the expert can be asked for costs."""
    try:
        return bool(patient.capability) and len(patient.predicted_costs) > 0
    except AggrevatedError:
        return False  # a check says so


def mean_costs_by_time(patient: Examination) -> tuple[Array, Array, Array]:
    """Means over the expert's episodes that still run, with the expert's own discount."""
    of = patient.expert_trajectories
    times = np.unique(np.linspace(0, of.mask.shape[1] - 1, TIMES).astype(int))
    weights = patient.discount ** np.arange(of.costs.shape[1])
    later = np.cumsum((of.costs * of.mask * weights)[:, ::-1], axis=1)[:, ::-1] / weights
    paid = np.array([later[of.mask[:, t], t].mean() for t in times])
    said = [patient.query_values(of.states[of.mask[:, t], t]).mean() for t in times] if has_costs(patient) else []
    return times, np.array(said), paid
