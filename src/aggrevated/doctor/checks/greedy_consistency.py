"""Does the expert do what it says is best?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from gymnasium.spaces import Discrete

from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import Finding
from aggrevated.experts import DiscreteQExpert, StateValueExpert
from aggrevated.experts.checked import query_q_values, query_state_values

RARE = 0.05  # of the states: as often it may do otherwise, by ties and by rounding
NEAR = 0.1  # of how much V varies: V and min Q may differ by this
OTHER = 0.25  # of the states: as often it does otherwise where its costs are not those that it acts by


def check_greedy_consistency(patient: Examination) -> Iterator[Finding]:
    """act = argmin Q, and V = min Q, where it has them."""
    expert, space = patient.expert, patient.simulator.action_space
    if not isinstance(expert, DiscreteQExpert) or not isinstance(space, Discrete):
        return
    probes, _ = patient.probed
    q = query_q_values(expert, probes.states, int(space.n))
    rows = np.arange(len(q))
    own = np.zeros(len(q), int)
    own[probes.probe[probes.own]] = probes.action[probes.own]
    legal = np.zeros(q.shape, bool)
    legal[probes.probe, probes.action] = True  # of those that were tried
    least = np.where(legal, q, np.inf).min(axis=1)
    otherwise = float((q[rows, own] > least + 1e-6 * abs(least)).mean())
    numbers = {"acts_otherwise": otherwise}
    if otherwise > RARE:
        remedy = "let act choose the least of q; or use --oracle monte-carlo, which asks what it does"
        sentence = f"in {otherwise:.0%} of the states the expert does not do what its own costs say is best"
        yield Finding("agreement", "fault" if otherwise > OTHER else "warning", sentence, remedy, numbers)
    else:
        yield Finding("agreement", "fine", "the expert does what its own costs say is best", "", numbers)
    if isinstance(expert, StateValueExpert):
        gap = query_state_values(expert, probes.states) - q.min(axis=1)
        size = float(abs(gap).mean()) / max(float(q.min(axis=1).std()), 1e-12)
        if size > NEAR:
            sentence = f"V is not the least of Q: they differ by {float(abs(gap).mean()):.3g} on average"
            yield Finding("agreement", "warning", sentence, "let v be the minimum of q", {"gap": size})
