"""Does the expert keep to the rules?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.doctor.examination import Examination, drawn
from aggrevated.doctor.findings import Finding
from aggrevated.simulators import restricted

ASKED = 200


def rules(patient: Examination) -> Iterator[Finding]:
    """Only legal actions, also in states that it did not choose."""
    known = restricted(patient.simulator)
    if known is None:
        return
    k, t = drawn(patient.of_random, ASKED, patient.seed)
    states = patient.of_random.states[k, t]
    actions = patient.acting(states, t)
    legal = known.legal(states)[np.arange(len(states)), actions]
    illegal = float(1 - legal.mean())
    if illegal:
        sentence = f"in {illegal:.0%} of the states that chance leads to the expert does what is not legal"
        yield Finding("rules", "fault", sentence, "let its act choose among the legal actions", {"illegal": illegal})
    else:
        yield Finding("rules", "fine", "the expert does only what is legal", "", {"illegal": 0.0})
