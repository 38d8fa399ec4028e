"""Are the expert's costs what its roll-outs pay?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.checks.cost_sign import AGAINST
from aggrevated.doctor.estimates import bootstrap_estimate, center_by_group, correlation, rank_correlation
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import Finding
from aggrevated.doctor.value_bias import estimate_value_bias

STRANGE = 0.2  # rank correlations that are surely below this are those of somebody else's costs
UNIT = 3.0  # so many times too much or too little is another unit


def check_calibration(patient: Examination) -> Iterator[Finding]:
    """By rank and by size, over states; and over the actions at each of them."""
    if not patient.knows:
        return
    probes, rolled = patient.probed
    level = estimate_value_bias(patient)
    states = np.flatnonzero(probes.own & np.isfinite(rolled.by(1.0)))
    paid = predicted_rollout_costs(patient, level.going_on)[states]
    said, group = patient.believed[states], probes.group[states]
    ranks = bootstrap_estimate(lambda rows: rank_correlation(said[rows], paid[rows]), group)
    seen = bootstrap_estimate(
        lambda rows: rank_correlation(level.predicted_costs[rows], level.rollout_costs[rows]), level.group
    )
    bias = bootstrap_estimate(
        lambda rows: float((level.predicted_costs - level.rollout_costs)[rows].mean()), level.group
    )
    size = float(abs(level.rollout_costs).mean())
    times = float(abs(level.predicted_costs).mean()) / max(size, 1e-12)
    numbers = {"rank_correlation": ranks.as_list(), "on_its_own_states": seen.as_list(), "bias": bias.as_list()}
    numbers |= {"times": [times], **advantage_calibration(patient, level.going_on)}
    said_so = f"rank correlation {seen}, on all states {ranks}; bias {bias.value:.2g} of {size:.2g}"
    if seen.known and seen.high < AGAINST:
        return  # `sign` says so
    if ranks.known and seen.known and max(ranks.high, seen.high) < STRANGE:
        sentence = f"the expert's costs have nothing to do with what its roll-outs pay: {said_so}"
        remedy = "check that its q is of this environment; until then use --oracle monte-carlo"
        yield Finding("calibration", "fault", sentence, remedy, numbers)
    elif size > 0 and not 1 / UNIT < times < UNIT:
        sentence = f"the expert's costs are {times:.2g} times as large as what its roll-outs pay: {said_so}"
        remedy = "check whether its rewards were scaled or normalised in training; --oracle monte-carlo needs no q"
        yield Finding("calibration", "warning", sentence, remedy, numbers)
    else:
        yield Finding("calibration", "fine", f"the expert's costs go with its roll-outs: {said_so}", "", numbers)


def predicted_rollout_costs(patient: Examination, going_on: bool) -> Array:
    """[m]: what each tried action costs, as the expert counts."""
    _, rolled = patient.probed
    return rolled.going_on(patient.discount, patient.usual_cost) if going_on else rolled.by(patient.discount)


def advantage_calibration(patient: Examination, going_on: bool) -> dict[str, list[float]]:
    """Of the advantages: their rank correlation and slope, against roll-outs and against one step and V after it."""
    if patient.knows == "v":
        return {}
    probes, _ = patient.probed
    paid = predicted_rollout_costs(patient, going_on)
    rows = np.flatnonzero(np.isfinite(paid) & probes.in_view)
    at, group = probes.probe[rows], probes.group[rows]
    said, paid, ahead = (center_by_group(x[rows], at) for x in (patient.believed, paid, patient.foreseen))
    ranks = bootstrap_estimate(lambda i: rank_correlation(said[i], paid[i]), group)
    near = bootstrap_estimate(lambda i: correlation(said[i], ahead[i]), group)
    slope = float((said * paid).sum() / max(float((paid * paid).sum()), 1e-30))
    return {"advantages": ranks.as_list(), "advantages_one_step": near.as_list(), "slope": [slope]}
