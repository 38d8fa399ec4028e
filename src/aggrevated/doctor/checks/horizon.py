"""Are episodes as long as those that the expert was made for?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.estimates import bootstrap_estimate
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import Finding
from aggrevated.doctor.value_bias import estimate_value_bias, mean_squared_error

NEAR = (0.75, 4 / 3)  # times as long: what is beyond is another task
MATTERS = 0.05  # of the expert's episodes: so many must be longer than the shorter of the two
TIMES = 2.0  # costs that go on must be surely so many times nearer, in root mean square, to what the expert says
MOST = 0.5  # of the episodes: where as many are cut, it matters what comes after


def check_horizon(patient: Examination) -> Iterator[Finding]:
    """Beside what is known of its training; where nothing is, beside what its costs foresee."""
    here, made_for = patient.horizon, patient.training.horizon
    lengths = patient.of_expert.mask.sum(axis=1)
    cut = float((lengths >= here).mean())
    numbers = {"horizon": here, "made_for": made_for, "cut": cut, "mean_length": float(lengths.mean())}
    said = f"H = {here}, the expert's episodes have {lengths.mean():.0f} steps, and {cut:.0%} are cut"
    if made_for is not None:
        longer = float((lengths >= min(here, made_for)).mean())
        times = here / made_for
        if times != 1 and longer > MATTERS:
            sentence = f"{said}, but {patient.training.source} says {made_for}"
            verdict = "warning" if NEAR[0] <= times <= NEAR[1] else "fault"
            yield Finding("horizon", verdict, sentence, f"use --horizon {made_for}", numbers)  # type: ignore[arg-type]
            return
    elif patient.knows and cut > MOST and (beyond := estimate_foresight(patient)) is not None:
        sentence = f"{said}; the expert's costs are those of longer episodes ({beyond:.1f} times nearer)"
        remedy = f"use a longer --horizon than {here}, or --oracle monte-carlo, which keeps to it"
        yield Finding("horizon", "warning", sentence, remedy, numbers | {"times_nearer": beyond})
        return
    yield Finding("horizon", "fine", said, "", numbers)


def estimate_foresight(patient: Examination) -> float | None:
    """How many times nearer to what it says costs are that go on beyond the horizon; None where not for sure."""
    level, own = estimate_value_bias(patient), patient.discount
    if (own, True) not in level.fits:
        return None
    ways = [level.fits[own, going_on] for going_on in (False, True)]

    def times(rows: Array) -> float:
        kept, gone_on = (mean_squared_error(level.predicted_costs[rows], way[rows]) for way in ways)
        return float(np.sqrt(kept / max(gone_on, 1e-30)))

    nearer = bootstrap_estimate(times, level.group)
    return nearer.value if nearer.known and nearer.low > TIMES else None
