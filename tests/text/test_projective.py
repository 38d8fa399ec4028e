"""Projectivity by its definition, and lifting by its rule, each against the slow way that the definition says."""

import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutations import tree

from aggrevated.parsing.transitions.oracle_check import random_projective_tree
from aggrevated.text.projective import crossed, is_projective, projectivised, tree_fault

# Nivre & Nilsson 2005, Figure 1: "Z nich je jen jedna na kvalitu ." (only one of them concerns quality), its full stop
# below the verb.
CZECH = [5, 1, 0, 5, 3, 3, 6, 3]


def test_the_example_of_the_paper() -> None:
    heads = np.array(CZECH)
    assert not is_projective(heads) and crossed(heads).tolist() == [True] + [False] * 7
    assert projectivised(heads).tolist() == [3, 1, 0, 5, 3, 3, 6, 3]
    assert heads.tolist() == CZECH  # what was given is not changed


@pytest.mark.parametrize(
    ("heads", "lifted"),
    [
        ([0], [0]),
        ([2, 0], [2, 0]),
        ([3, 0, 2], [2, 0, 2]),  # an arc over the root
        ([2, 0, 1], [2, 0, 2]),
        ([3, 0, 2, 1], [2, 0, 2, 2]),  # 3 → 1 before 1 → 4, which is longer: the other way 4 would stay below 3
        ([2, 5, 0, 1, 3], [2, 3, 0, 5, 3]),  # 1 → 4 before 5 → 2, as long: 4 goes up by 2 to 5, as long as 2 is there
        ([0, 4, 5, 1, 1], [0, 1, 1, 1, 1]),  # lifting one of two that cross does not help if both are over a stranger
    ],
)
def test_small_trees(heads: list[int], lifted: list[int]) -> None:
    found = projectivised(np.array(heads))
    assert found.tolist() == lifted and found.dtype == np.int64


@pytest.mark.parametrize(
    ("heads", "fault"),
    [
        ([0], None),
        ([2, 0], None),
        (CZECH, None),
        ([], "no root"),
        ([2, 1], "no root"),
        ([2, 3, 1], "no root"),
        ([0, 0], "more than one root"),
        ([0, 0, 4, 3], "more than one root"),
        ([0, 3, 2], "a cycle"),
        ([0, 3, 4, 5, 2], "a cycle"),
        ([0, 2], "a cycle"),
        ([4, 1, 2, 3, 0], "a cycle"),
        ([*range(500)], None),
        ([0, 500, *range(2, 500)], "a cycle"),
    ],
)
def test_what_is_no_tree(heads: list[int], fault: str | None) -> None:
    assert tree_fault(np.array(heads, int)) == fault


# Against the definitions.


def is_over(heads: list[int], head: int, word: int) -> bool:
    while word and word != head:
        word = heads[word - 1]
    return word == head


def crossed_by_definition(heads: list[int]) -> list[bool]:
    """Of each arc, whether a word between its ends is not below its head."""
    return [
        not all(is_over(heads, head, between) for between in range(min(head, word) + 1, max(head, word)))
        for word, head in enumerate(heads, 1)
    ]


def lifted_by_definition(heads: list[int]) -> list[int]:
    heads = list(heads)
    while any(found := crossed_by_definition(heads)):
        arcs = [(abs(head - word), min(head, word), word) for word, head in enumerate(heads, 1) if found[word - 1]]
        word = min(arcs)[2]
        heads[word - 1] = heads[heads[word - 1] - 1]
    return heads


trees = st.builds(lambda n, seed: tree(n, random.Random(seed)), st.integers(1, 14), st.integers(0, 10**9))


@given(trees)
def test_projectivity_is_that_of_the_definition(heads: list[int]) -> None:
    expected = crossed_by_definition(heads)
    assert crossed(np.array(heads)).tolist() == expected
    assert is_projective(np.array(heads)) == (not any(expected))
    assert tree_fault(np.array(heads)) is None


@given(trees)
def test_lifting_is_that_of_the_rule(heads: list[int]) -> None:
    found = projectivised(np.array(heads))
    assert found.tolist() == lifted_by_definition(heads)
    assert is_projective(found) and tree_fault(found) is None
    assert all(is_over(heads, new, old) for old, new in zip(heads, found.tolist(), strict=True))  # and never down


@given(trees)
def test_an_arc_that_no_lifted_word_was_below_stays(heads: list[int]) -> None:
    """An arc is lost only if it is crossed, or if lifting took words away from below its head."""
    found, across = projectivised(np.array(heads)).tolist(), crossed_by_definition(heads)
    lifted = [word for word, head in enumerate(heads, 1) if found[word - 1] != head]
    for word in lifted:
        head = heads[word - 1]
        assert across[word - 1] or any(is_over(heads, head, other) for other in lifted if other != word)


@pytest.mark.parametrize("n", [1, 2, 7, 60, 300])
def test_a_projective_tree_is_left_as_it_is(n: int) -> None:
    for seed in range(10):
        heads = random_projective_tree(n, np.random.default_rng(seed))
        assert is_projective(heads) and not crossed(heads).any()
        assert projectivised(heads).tolist() == heads.tolist()


def test_the_longest_sentences_take_no_longer_than_a_few_seconds() -> None:
    words = np.arange(1, 501)
    chain = np.where(words % 2, words + 2, words - 2)  # odd ones to the right and even ones back: all of it is crossed
    chain[-2:] = 0, 499  # 499 is the root
    chain[1] = 1
    for heads in (chain, np.array(tree(500, random.Random(0)))):
        assert tree_fault(heads) is None
        began = time.process_time()
        assert is_projective(projectivised(heads))
        assert time.process_time() - began < 20
