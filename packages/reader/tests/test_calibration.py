"""Calibration of a policy: the identity that it rests on, and bins that are counted by hand."""

import numpy as np
import pytest

from aggrevated.parsing.parser import Parser
from aggrevated.parsing.scoring import MicroUasEvaluator, parse_greedily
from aggrevated.parsing.transitions.configurations import NO_SYMBOL
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated_reader.calibration import (
    CalibratingEvaluator,
    ChoiceLog,
    calibrate_policy,
    compute_reliability,
    compute_worst_tenth_share,
    measure_calibration,
)
from helpers.parser_policies import corpus, reader

PAGES = corpus(40)
HEADS = np.concatenate([gold[1 : n + 1] for gold, n in zip(PAGES.gold, PAGES.lengths, strict=True)])


def make_policy_and_parser(seed=0):
    policy = reader("reading", PAGES, seed=seed)
    policy.with_answers(np.arange(len(HEADS)) % 3, HEADS)
    return policy, Parser(PAGES, np.arange(40), in_order=True)


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_parse_loss_is_the_sum_of_transition_advantages(system):
    """Σ_t A*(s_t, a_t) = loss − V*(s_0) for random parses; V*(s_0) = 0, since every projective tree can be built."""
    parser = Parser(PAGES, np.arange(40), in_order=True, system=system)
    generator = np.random.default_rng(0)
    state = parser.start(np.arange(40))
    lost = np.zeros(40)
    loss = np.zeros(40)
    live = np.arange(40)
    assert not np.where(parser.action_mask(state), parser.expert.q(state), np.inf).min(axis=1).any()
    while len(live):
        legal = parser.action_mask(state)
        q = np.where(legal, parser.expert.q(state), np.inf)
        action = np.where(legal, generator.random(legal.shape), -1).argmax(axis=1)
        lost[live] += q[np.arange(len(live)), action] - q.min(axis=1)
        state, cost, done = parser.step(state, action)
        loss[live] += cost
        state = state[~done]
        live = live[~done]
    np.testing.assert_array_equal(lost, loss)
    assert loss.sum() > 40


def test_choice_log_has_losses_and_arc_correctness():
    policy, parser = make_policy_and_parser()
    found = parse_greedily(policy, parser)
    choices = ChoiceLog.of(policy, parser, found)
    _, lost = choices.losses
    np.testing.assert_array_equal(lost, -found.returns)
    sure, right = choices.arcs
    headless = -found.returns.sum() - (~right).sum()  # a missing head costs 1 and has no arc
    assert len(sure) == len(right) and headless >= 0 and ((sure > 0) & (sure < 1)).all()
    assert len(right) + headless == (PAGES.gold != NO_SYMBOL).sum()


def test_calibrate_policy_matches_expected_loss_to_loss():
    """The sums are equal, as in generalized linear models; the untrained policy is overconfident before."""
    policy, parser = make_policy_and_parser(seed=1)
    found = parse_greedily(policy, parser)
    before = measure_calibration(policy, parser, found)
    calibrate_policy(policy, parser, found)
    after = measure_calibration(policy, parser, found)
    assert before["loss"] == after["loss"] == -found.returns.sum()
    assert after["expected_loss"] == pytest.approx(after["loss"], rel=0.02)
    assert abs(before["expected_loss"] - before["loss"]) > 0.05 * before["loss"]
    assert after["calibration_error"] < before["calibration_error"]


def test_calibrating_evaluator_calibrates_and_returns_uas():
    policy, parser = make_policy_and_parser()
    plain = MicroUasEvaluator(parser)(policy)
    calibrated = CalibratingEvaluator(parser)(policy)
    assert calibrated.value == pytest.approx(plain.value) and calibrated.steps == plain.steps
    assert policy.costs.correction.tolist() != [[1.0, 0.0], [1.0, 0.0]]


def test_reliability_bins_match_hand_computed_values():
    sure = np.array([0.05, 0.95, 0.97, 1.0, 0.52])
    right = np.array([False, True, True, False, True])
    bins, error = compute_reliability(sure, right)
    assert [(b.count, round(b.right, 3)) for b in bins] == [(1, 0.0), (1, 1.0), (3, 0.667)]
    assert error == pytest.approx((0.05 + 0.48 + 3 * abs(2.92 / 3 - 2 / 3)) / 5)


def test_worst_tenth_is_the_share_of_losses_in_the_most_doubtful_pages():
    expected = np.arange(20.0)
    lost = np.zeros(20)
    lost[[19, 18, 3]] = 3, 1, 4
    assert compute_worst_tenth_share(expected, lost) == 0.5
