"""Is there more in the expert's costs than noise?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.estimates import Estimate, bootstrap_estimate, center_by_group
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import Finding
from aggrevated.simulators import find_reseedable

FLAT = 1e-6  # of its own size: what varies less is constant
# What an action is said to cost, less what one step and V after it come to, beside how much V varies at all. Exact
# costs have 0, the shipped networks 0.03 to 0.22, noise as large as the signal 0.7 and more.
LOUD = 0.4


def check_signal_to_noise(patient: Examination) -> Iterator[Finding]:
    """Costs must vary, be the same when asked again, and be those of the next step and what follows."""
    if not patient.knows:
        return
    probes, _ = patient.probed
    said = patient.believed
    spread = float((center_by_group(said, probes.probe) if patient.knows != "v" else said).std())
    if spread <= FLAT * max(1.0, float(abs(said).mean())):
        what = "all actions cost the same" if patient.knows != "v" else "all states cost the same"
        remedy = "check that q is asked of the state that is given, and that its weights were read"
        yield Finding("noise", "fault", f"the expert's costs are constant: {what}", remedy, {"spread": spread})
        return
    again = patient.costs(probes.states, probes.probe, probes.action)
    change = float((again - said).std())
    if change > LOUD * spread:
        sentence = f"asked twice, the expert tells other costs: they change by {change:.3g}, and vary by {spread:.3g}"
        remedy = "let its q be a function of the state, or the mean of many answers"
        yield Finding("noise", "fault", sentence, remedy, {"change": change, "spread": spread})
        return
    ratio = value_roughness(patient)
    numbers = {"change": change, "spread": spread, "noise_to_signal": ratio.as_list()}
    if ratio.known and ratio.low > LOUD:
        sentence = f"what the expert says of an action is not what it says one step later: noise to signal {ratio}"
        remedy = "do not trust its q: use --oracle monte-carlo, which rolls it out"
        verdict = "fault" if find_reseedable(patient.simulator) is None else "warning"
        yield Finding("noise", verdict, sentence, remedy, numbers)  # type: ignore[arg-type]
    else:
        yield Finding("noise", "fine", f"there is more signal than noise in the expert's costs: {ratio}", "", numbers)


def value_roughness(patient: Examination) -> Estimate:
    """The noise by Bellman's equation, beside how much the expert's V varies where it comes to."""
    if patient.knows == "v":
        return differences_along_episodes(patient)
    probes, _ = patient.probed
    rows = np.flatnonzero(probes.in_view & np.isfinite(patient.foreseen))
    wrong = center_by_group((patient.believed - patient.foreseen)[rows], probes.probe[rows])
    values = patient.values(probes.states)[probes.probe[rows]]
    return bootstrap_estimate(
        lambda at: interdecile_range(wrong[at]) / max(interdecile_range(values[at]), 1e-12), probes.group[rows]
    )


def differences_along_episodes(patient: Examination) -> Estimate:
    """The same of V, from step to step of the expert's own episodes."""
    of = patient.of_expert
    values = np.zeros(of.mask.shape)
    values[of.mask] = patient.values(of.states[of.mask])
    episode, t = np.nonzero(of.mask[:, 1:])
    now, later = values[episode, t], values[episode, t + 1]
    wrong = now - of.costs[episode, t] - patient.discount * later
    return bootstrap_estimate(lambda at: interdecile_range(wrong[at]) / max(interdecile_range(now[at]), 1e-12), episode)


def interdecile_range(values: Array) -> float:
    """Of the middle four fifths: ends of episodes, which networks hardly know, are few and far out."""
    low, high = np.percentile(values, [10, 90])
    return float(high - low)
