"""Does the expert keep to the rules?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.doctor.examination import Examination, sample_steps
from aggrevated.doctor.findings import Finding
from aggrevated.simulators import find_action_mask

ASKED = 200


def check_action_masks(patient: Examination) -> Iterator[Finding]:
    """Only legal actions, also in states that it did not choose."""
    known = find_action_mask(patient.simulator)
    if known is None:
        return
    k, t = sample_steps(patient.of_random, ASKED, patient.seed)
    states = patient.of_random.states[k, t]
    actions = patient.acting(states, t)
    legal = known.action_mask(states)[np.arange(len(states)), actions]
    illegal = float(1 - legal.mean())
    if illegal:
        sentence = f"in {illegal:.0%} of the states that chance leads to the expert does what is not legal"
        yield Finding("rules", "fault", sentence, "let its act choose among the legal actions", {"illegal": illegal})
    else:
        yield Finding("rules", "fine", "the expert does only what is legal", "", {"illegal": 0.0})
