"""Both transition systems by hand, their oracles against brute force, and the string in the paper's appendix."""

import pickle

import numpy as np
import pytest

from aggrevated.parsing.transitions import arc_eager, arc_hybrid
from aggrevated.parsing.transitions.configurations import (
    NO_SYMBOL,
    ConfigurationView,
    add_root,
    count_wrong_heads,
    make_initial_configurations,
)
from aggrevated.parsing.transitions.gold import find_gold_transitions, select_best_transition
from aggrevated.parsing.transitions.oracle_check import (
    compare_with_brute_force,
    count_mismatches,
    sample_projective_tree,
)
from aggrevated.parsing.transitions.systems import SYSTEMS

APPENDIX = np.array([2, 7, 7, 5, 3, 5, 8, 0, 10, 8, 10, 13, 15, 13, 8, 15, 18, 8, 18])  # decoded from the string
EAGER = SYSTEMS["arc-eager"]
HYBRID = SYSTEMS["arc-hybrid"]
every_system = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)


def play(system, n, actions):
    """Return the configurations after each of these transitions, from the initial one."""
    rows = [make_initial_configurations(np.array([n]), n)]
    for action in actions:
        assert system.action_mask(rows[-1])[0, action], (action, rows[-1])
        rows.append(system.step(rows[-1], np.array([action])))
    return rows


def test_gold_sequence_gives_the_appendix_string():
    assert "".join("slr"[action] for action in find_gold_transitions(HYBRID, APPENDIX)) == (
        "slssslssrrllslsslssrrslssrlssrrslssrr"
    )


def test_arc_eager_builds_known_tree():
    """a ← b → c: shift a, left, right from ROOT, right; the parse ends, since the buffer is empty."""
    rows = play(EAGER, 3, [arc_eager.SHIFT, arc_eager.LEFT, arc_eager.RIGHT, arc_eager.RIGHT])
    assert [ConfigurationView(r).on_stack[0].tolist() for r in rows[1:]] == [
        [1, 1, 0, 0],
        [1, 0, 0, 0],
        [1, 0, 1, 0],
        [1, 0, 1, 1],
    ]
    assert ConfigurationView(rows[-1]).heads[0].tolist() == [NO_SYMBOL, 2, 0, 2]
    assert [bool(EAGER.is_done(r)[0]) for r in rows] == [False] * 4 + [True]
    assert find_gold_transitions(EAGER, np.array([2, 0, 2])) == [
        arc_eager.SHIFT, arc_eager.LEFT, arc_eager.RIGHT, arc_eager.RIGHT,
    ]  # fmt: skip


def test_arc_hybrid_builds_known_tree():
    """a ← b → c: symbols left above ROOT become its dependents."""
    rows = play(HYBRID, 3, [arc_hybrid.SHIFT, arc_hybrid.LEFT, arc_hybrid.SHIFT, arc_hybrid.SHIFT, arc_hybrid.RIGHT])
    assert ConfigurationView(rows[-1]).heads[0].tolist() == [NO_SYMBOL, 2, 0, 2]
    assert HYBRID.is_done(rows[-1])[0] and not HYBRID.is_done(rows[-2])[0]


def test_action_mask_of_transition_systems_matches_hand_computed_values():
    start = make_initial_configurations(np.array([2]), 2)
    assert EAGER.action_mask(start).tolist() == [[True, False, True, False]]  # ROOT has no head and gets none
    assert HYBRID.action_mask(start).tolist() == [[True, False, False]]
    shifted = play(EAGER, 2, [arc_eager.SHIFT])[-1]
    headed = play(EAGER, 2, [arc_eager.RIGHT])[-1]
    assert EAGER.action_mask(shifted).tolist() == [[True, True, True, False]]
    assert EAGER.action_mask(headed).tolist() == [[True, False, True, True]]
    assert not EAGER.action_mask(play(EAGER, 1, [arc_eager.SHIFT])[-1]).any()  # ended
    two = play(HYBRID, 2, [arc_hybrid.SHIFT, arc_hybrid.SHIFT])[-1]
    assert HYBRID.action_mask(two).tolist() == [[False, False, True]]


@every_system
@pytest.mark.parametrize("seed", range(4))
def test_transition_oracle_equals_brute_force_on_every_configuration(system, seed):
    result = compare_with_brute_force(system.name, trees=10, most=5, seed=seed)
    assert result["compared"] > 500 and result["mismatches"] == 0


@every_system
def test_count_mismatches_notices_a_wrong_oracle(system, monkeypatch):
    monkeypatch.setattr(
        type(system), "count_lost_arcs", lambda self, rows, gold: np.zeros((len(rows), len(self.actions)), int)
    )
    assert count_mismatches(system, np.array([2, 0, 2, 3]))[1] > 0


@every_system
def test_best_transition_builds_gold_trees_in_mixed_length_batches(system):
    generator = np.random.default_rng(0)
    trees = [sample_projective_tree(n, generator) for n in (1, 2, 5, 9, 14, 20) for _ in range(20)]
    most = max(map(len, trees))
    rows = make_initial_configurations(np.array([len(tree) for tree in trees]), most)
    gold = np.stack([add_root(tree, most) for tree in trees])
    for _ in range(system.max_transitions(most)):
        live = ~system.is_done(rows)
        rows[live] = system.step(rows[live], select_best_transition(system, rows[live], gold[live]))
    assert system.is_done(rows).all() and not count_wrong_heads(rows, gold).any()


@every_system
def test_transition_systems_step_batch_rows_independently(system):
    """Steps a batch of random parses, and each parse alone with a smaller maximum length."""
    generator = np.random.default_rng(1)
    lengths = generator.integers(1, 8, size=30)
    rows = make_initial_configurations(lengths, 8)
    gold = np.stack([add_root(sample_projective_tree(n, generator), 8) for n in lengths])
    alone = [make_initial_configurations(np.array([n]), int(n)) for n in lengths]
    for _ in range(system.max_transitions(8)):
        legal = system.action_mask(rows) & ~system.is_done(rows)[:, None]
        live = np.flatnonzero(legal.any(axis=1))
        lost = system.count_lost_arcs(rows, gold)
        action = np.array(
            [generator.choice(np.flatnonzero(row_legal)) if row_legal.any() else 0 for row_legal in legal]
        )
        for i in live:
            np.testing.assert_array_equal(system.action_mask(alone[i])[0], system.action_mask(rows[[i]])[0])
            np.testing.assert_array_equal(
                system.count_lost_arcs(alone[i], gold[[i], : lengths[i] + 1])[0][legal[i]], lost[i][legal[i]]
            )
            alone[i] = system.step(alone[i], action[[i]])
        before = rows.copy()
        rows[live] = system.step(rows[live], action[live])
        assert (before[~legal.any(axis=1)] == rows[~legal.any(axis=1)]).all()
    for i, n in enumerate(lengths):
        np.testing.assert_array_equal(ConfigurationView(alone[i]).heads[0], ConfigurationView(rows).heads[i, : n + 1])


@every_system
def test_transition_systems_can_be_pickled(system):
    assert pickle.loads(pickle.dumps(system)) == system and SYSTEMS[system.name] is system
    assert sorted(system.order) == list(range(len(system.actions)))


@every_system
def test_transition_step_does_not_change_its_input(system):
    rows = make_initial_configurations(np.array([3]), 3)
    before = rows.copy()
    system.step(rows, np.array([system.actions.index("shift")]))
    np.testing.assert_array_equal(rows, before)


def test_random_projective_tree_is_projective_with_one_root():
    generator = np.random.default_rng(2)
    for n in range(1, 12):
        for _ in range(20):
            heads = sample_projective_tree(n, generator)
            assert (heads == 0).sum() == 1
            for dependent, head in enumerate(heads, start=1):
                low, high = sorted((dependent, head))
                inside = heads[low : high - 1]  # symbols in between depend on this one, or on one of the two
                assert ((inside >= low) & (inside <= high)).all() or head == 0
