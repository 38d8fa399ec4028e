"""Expected costs: the loss learns an expectation, and the calibration corrects it."""

import numpy as np
import pytest
import torch

from aggrevated_reader.learners.expected_cost import (
    NO_ARC_TARGET,
    ExpectedCostEstimates,
    ExpectedCosts,
    compute_bernoulli_moments,
    compute_poisson_moments,
    fit_calibration,
)


def test_expected_costs_loss_is_minimal_at_the_means():
    """A state in which one action costs 0, 0, 1 and 3, and the other makes a wrong arc in one of four times."""
    torch.manual_seed(0)
    head = ExpectedCosts(2, 2, width=8)
    state = torch.ones(4, 2)
    costs = torch.tensor([[0.0, 2.0], [0.0, 2.0], [1.0, 2.0], [3.0, 2.0]])
    wrong = torch.tensor([[NO_ARC_TARGET, 0.0], [NO_ARC_TARGET, 0.0], [NO_ARC_TARGET, 1.0], [NO_ARC_TARGET, 0.0]])
    adam = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(400):
        adam.zero_grad()
        head.loss(state, costs, wrong, torch.ones(4, 2, dtype=torch.bool)).backward()
        adam.step()
    first, second = (head.estimate_costs(state[:1], torch.tensor([action])) for action in (0, 1))
    assert first.costs[0] == pytest.approx(1.0, abs=0.02) and second.costs[0] == pytest.approx(2.0, abs=0.04)
    assert second.doubts[0] == pytest.approx(0.25, abs=0.01)


def test_expected_costs_loss_ignores_unknown_actions():
    head = ExpectedCosts(2, 2)
    state = torch.ones(1, 2)
    known = torch.tensor([[True, False]])
    a, b = (head.loss(state, torch.tensor([[1.0, cost]]), torch.tensor([[0.0, 1.0]]), known) for cost in (0.0, 9.0))
    assert a == b


@pytest.mark.parametrize(("family", "draw"), [(compute_poisson_moments, "poisson"), (compute_bernoulli_moments, "yes")])
def test_fit_calibration_recovers_slope_and_intercept(family, draw):
    generator = np.random.default_rng(0)
    x = generator.normal(-1.0, 1.5, 20_000)
    mean, _ = family(0.6 * x + 0.4)
    y = generator.poisson(mean) if draw == "poisson" else generator.random(len(x)) < mean
    assert fit_calibration(x, y.astype(float), family) == pytest.approx([0.6, 0.4], abs=0.05)


def test_fit_calibration_without_examples_is_the_identity():
    assert fit_calibration(np.zeros(0), np.zeros(0), compute_bernoulli_moments) == [1.0, 0.0]


def test_expected_costs_calibrate_arc_errors_to_their_frequency():
    generator = np.random.default_rng(1)
    head = ExpectedCosts(2, 2)
    logits = generator.normal(-3.0, 2.0, 20_000)  # overconfident: the true logits are half as large
    wrong = (generator.random(len(logits)) < 1 / (1 + np.exp(-logits / 2))).astype(float)
    none = np.full(100, NO_ARC_TARGET)
    raw = ExpectedCostEstimates(np.zeros(20_100), np.concatenate([logits, np.zeros(100)]), np.zeros(0), np.zeros(0))
    head.calibrate(raw, np.ones(20_100), np.concatenate([wrong, none]))
    slope, level = head.correction[1].tolist()
    assert (slope, level) == (pytest.approx(0.5, abs=0.04), pytest.approx(0.0, abs=0.08))
