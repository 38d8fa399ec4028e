"""The expert of a parser: gold trees, known at training time only, and by them what every transition loses."""

from types import ModuleType

import numpy as np

from aggrevated.arrays import Array
from aggrevated.parsing.transitions.configurations import begin, with_root

NEVER = np.iinfo(np.int64).max


def advised(system: ModuleType, rows: Array, gold: Array) -> Array:
    """[batch] the legal transition that loses least; of several the one that comes first in the system's ORDER.

    From a configuration in which nothing is lost it is the static oracle: the gold sequence, arcs as early as can be.
    """
    costs = np.where(system.legal(rows), system.lost(rows, gold), NEVER)
    order = np.array(system.ORDER)
    choice: Array = order[costs[:, order].argmin(axis=1)]
    return choice


def gold_sequence(system: ModuleType, heads: Array) -> list[int]:
    """The transitions that make this tree."""
    rows, gold, sequence = begin(np.array([len(heads)]), len(heads)), with_root(heads, len(heads))[None], []
    while not system.done(rows)[0]:
        action = advised(system, rows, gold)
        sequence.append(int(action[0]))
        rows = system.step(rows, action)
    return sequence
