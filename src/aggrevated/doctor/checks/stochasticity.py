"""Is there chance in the environment?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import Finding
from aggrevated.simulators import stochastic
from aggrevated.simulators.checked import seen, stepped

TRIED = 64


def chance(patient: Examination) -> Iterator[Finding]:
    """The same action in the same state, with other luck."""
    luck = stochastic(patient.simulator)
    if luck is None:
        yield Finding("chance", "fine", "nothing is left to chance after the first state: one roll-out tells all")
        return
    of = patient.of_expert
    k, t = np.nonzero(of.mask)
    rows = np.linspace(0, len(k) - 1, min(TRIED, len(k))).astype(int)
    states, actions = of.states[k[rows], t[rows]], of.actions[k[rows], t[rows]]
    outcomes = []
    for part in (10, 11):
        after, cost, _ = stepped(patient.simulator, luck.reseed(states, patient.seeds(part, len(rows))), actions)
        outcomes.append(np.column_stack([cost, seen(patient.simulator, after).reshape(len(rows), -1)]))
    differ = float((outcomes[0] != outcomes[1]).any(axis=1).mean())
    numbers = {"share_of_steps": differ}
    if differ:
        said = f"chance decides {differ:.0%} of the steps: a roll-out is one draw of many"
        yield Finding("chance", "fine", said, "", numbers)
    else:
        yield Finding("chance", "fine", "other luck changed no step: there is hardly any chance", "", numbers)
