"""Is the discount what the expert says it is?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.estimates import bootstrap_estimate, rank_correlation
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import Finding
from aggrevated.doctor.value_bias import estimate_value_bias, mean_squared_error

TIMES = 2.0  # another discount must be surely so many times nearer, in root mean square
APART = 1.5, 3.0  # and costs by the two so far apart; a critic that has not learned all looks discounted, too


def check_discount(patient: Examination) -> Iterator[Finding]:
    """Of all discounts, that by which roll-outs come nearest to what the expert says."""
    if not patient.knows:
        return
    level, own = estimate_value_bias(patient), patient.discount

    def of(gamma: float) -> list[tuple[float, bool]]:
        return [way for way in level.fits if way[0] == gamma]

    if not rank_correlation(level.predicted_costs, level.rollout_costs) > 0:
        yield Finding(
            "discount", "unknown", f"costs that do not rise with what is paid tell no discount; {own:g} is said"
        )
        return
    best = min(level.fits, key=lambda way: mean_squared_error(level.predicted_costs, level.fits[way]))[0]

    def times(rows: Array) -> float:
        at = {
            g: min(mean_squared_error(level.predicted_costs[rows], level.fits[way][rows]) for way in of(g))
            for g in (own, best)
        }
        return float(np.sqrt(at[own] / max(at[best], 1e-30)))

    nearer = bootstrap_estimate(times, level.group)
    sizes = [min((abs(level.fits[way]).mean() for way in of(gamma)), default=0.0) for gamma in (own, best)]
    apart = max(sizes) / max(min(sizes), 1e-30)
    numbers = {"says": own, "fits": best, "times_nearer": nearer.as_list(), "apart": apart}
    if best != own and nearer.known and nearer.low > TIMES and apart > APART[0]:
        by = f"{format_factor(nearer.value)} times nearer"
        sentence = f"the expert says a discount of {own:g}, but its costs are those of {best:g}: {by}"
        remedy = f"let its attribute discount be {best:g}, or roll it out instead of asking it"
        yield Finding("discount", "fault" if apart > APART[1] else "warning", sentence, remedy, numbers)
    else:
        horizon = f"H = {patient.horizon}"
        yield Finding("discount", "fine", f"{horizon}, and the expert's costs are discounted by {own:g}", "", numbers)


def format_factor(times: float) -> str:
    """A number that nobody reads to the last digit."""
    return f"{times:.1f}" if times < 100 else "more than 100"
