"""Is there chance in the environment?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import Finding
from aggrevated.simulators import find_reseedable
from aggrevated.simulators.checked import checked_observe, checked_step

TRIED = 64


def check_stochasticity(patient: Examination) -> Iterator[Finding]:
    """The same action in the same state, with other luck."""
    luck = find_reseedable(patient.simulator)
    if luck is None:
        yield Finding("chance", "fine", "nothing is left to chance after the first state: one roll-out tells all")
        return
    of = patient.of_expert
    k, t = np.nonzero(of.mask)
    rows = np.linspace(0, len(k) - 1, min(TRIED, len(k))).astype(int)
    states, actions = of.states[k[rows], t[rows]], of.actions[k[rows], t[rows]]
    outcomes = []
    for part in (10, 11):
        after, cost, _ = checked_step(patient.simulator, luck.reseed(states, patient.seeds(part, len(rows))), actions)
        outcomes.append(np.column_stack([cost, checked_observe(patient.simulator, after).reshape(len(rows), -1)]))
    differ = float((outcomes[0] != outcomes[1]).any(axis=1).mean())
    numbers = {"share_of_steps": differ}
    if differ:
        said = f"chance decides {differ:.0%} of the steps: a roll-out is one draw of many"
        yield Finding("chance", "fine", said, "", numbers)
    else:
        yield Finding("chance", "fine", "other luck changed no step: there is hardly any chance", "", numbers)
