"""Which heads form a tree: known answers, and all heads of few symbols against the transition systems."""

from itertools import product

import numpy as np
import pytest

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.trees import check_tree
from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.parsing.transitions.configurations import ConfigurationView, make_initial_configurations
from aggrevated.parsing.transitions.gold import find_gold_transitions
from aggrevated.parsing.transitions.systems import SYSTEMS


@pytest.mark.parametrize("heads", [[0], [2, 0], [0, 1], [2, 0, 2], [2, 7, 7, 5, 3, 5, 8, 0], [3, 1, 0]])
def test_check_tree_accepts_trees(heads: list[int]) -> None:
    check_tree(heads)
    check_tree(np.array(heads))


@pytest.mark.parametrize(
    ("heads", "sentence"),
    [
        ([], "the tree has no symbols; write at least one"),
        ([3, 0], "the head of symbol 1 is 3; give a number from 0, ROOT, to 2"),
        ([0, -1], "the head of symbol 2 is -1; give a number from 0, ROOT, to 2"),
        ([0, 2], "symbol 2 is its own head; give it another"),
        ([2, 1], "no symbol depends on ROOT; choose one that does"),
        ([0, 1, 0], "the symbols 1 and 3 depend on ROOT; keep one of them there"),
        ([0] * 9, "the symbols 1, 2, 3, 4, 5, 6 and 3 more depend on ROOT; keep one of them there"),
        ([2, 3, 2, 0], "the symbols 2 and 3 form a cycle; give one of them another head"),
        (
            [3, 4, 0, 3],
            "the arc from symbol 1 to its head 3 crosses the arc from symbol 2 to its head 4; "
            "give one of these symbols another head",
        ),
        # arcs may pass over the root: only ROOT's arc is crossed
        ([3, 0, 2], "the arc from symbol 1 to its head 3 crosses the arc from symbol 2 to ROOT; give one of these"),
    ],
)
def test_check_tree_raises_data_error_for_non_trees(heads: list[int], sentence: str) -> None:
    with pytest.raises(DataError) as raised:
        check_tree(heads)
    assert str(raised.value).startswith(sentence)


def build_best_heads(system: TransitionSystem, heads: list[int]) -> list[int]:
    """Return the heads of the system's best parse."""
    rows = make_initial_configurations(np.array([len(heads)]), len(heads))
    for action in find_gold_transitions(system, np.array(heads)):
        rows = system.step(rows, np.array([action]))
    return [int(head) for head in ConfigurationView(rows).heads[0, 1:]]


def is_accepted(heads: list[int]) -> bool:
    try:
        check_tree(heads)
    except DataError:
        return False
    return True


@pytest.mark.parametrize("name", SYSTEMS)
def test_check_tree_accepts_exactly_what_transition_systems_build(name: str) -> None:
    """Checks one to four symbols; arc-eager could attach several to ROOT, which no page of algebra does."""
    seen = 0
    for n in range(1, 5):
        for heads in product(range(n + 1), repeat=n):
            if heads.count(0) == 1:
                assert is_accepted(list(heads)) == (build_best_heads(SYSTEMS[name], list(heads)) == list(heads)), heads
                seen += is_accepted(list(heads))
    assert seen == 1 + 2 + 7 + 30  # projective trees with one root
