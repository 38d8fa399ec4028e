"""Are the expert's costs costs, and not rewards?"""

from __future__ import annotations

from collections.abc import Iterator

from aggrevated.doctor.estimates import bootstrap_estimate, rank_correlation
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import Finding
from aggrevated.doctor.value_bias import estimate_value_bias

AGAINST = -0.2  # a rank correlation that is surely below this runs the other way


def check_cost_sign(patient: Examination) -> Iterator[Finding]:
    """What it says must be of the sign of what is paid, and rise where that rises."""
    if not patient.knows:
        return
    level = estimate_value_bias(patient)
    said = bootstrap_estimate(lambda rows: float(level.predicted_costs[rows].mean()), level.group)
    paid = bootstrap_estimate(lambda rows: float(level.rollout_costs[rows].mean()), level.group)
    ranks = bootstrap_estimate(
        lambda rows: rank_correlation(level.predicted_costs[rows], level.rollout_costs[rows]), level.group
    )
    numbers = {"predicted_costs": said.as_list(), "rollout_costs": paid.as_list(), "rank_correlation": ranks.as_list()}
    one_sided = (
        min((level.rollout_costs > 0).mean(), (level.rollout_costs < 0).mean()) < 0.05
    )  # costs of both signs say nothing
    opposite = ranks.known and one_sided and (said.low > 0 > paid.high or said.high < 0 < paid.low)
    if opposite or (ranks.known and ranks.high < AGAINST):
        way = f"it says {said.value:.1f} on average, and {paid.value:.1f} is paid; rank correlation {ranks}"
        remedy = "turn the sign of its q or v: they are costs, what is yet to be paid, and the least is the best"
        yield Finding(
            "sign", "fault", f"the expert's costs are negated, or of another environment: {way}", remedy, numbers
        )
    else:
        at = f"{said.value:.1f} said, {paid.value:.1f} paid on average"
        yield Finding("sign", "fine", f"the sign of the expert's costs is right: {at}", numbers=numbers)
