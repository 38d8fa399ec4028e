"""LSTM and GRU: recurrences by hand, against torch's layers and a textbook; scores and gradients against autograd."""

from copy import deepcopy
from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.fisher import compute_trajectory_scores
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.recurrent_cells import CELLS
from aggrevated.policies.window import WindowPolicy
from helpers.tiny_mdp import (
    flat,
    gradient,
    random_costs,
    random_trajectories,
    randomise,
    with_expert_steps,
    with_legal,
    with_vectors,
)

INPUTS = 3
ACTIONS = 3
HIDDEN = 4
both_cells = pytest.mark.parametrize("cell", CELLS)


def make_recurrent_policy(cell, head, hidden=HIDDEN, seed=0, scale=0.7):
    return randomise(RecurrentPolicy(INPUTS, head, hidden, cell), seed, scale)


# The recurrences.


def textbook_outputs(policy, observations):
    """Return the outputs [K, T, A] of a recurrent policy in float64, gate by gate from the definition."""
    w, u, b, c = (p.detach().double().numpy() for p in policy.recurrent.parameters())
    v, d = (p.detach().double().numpy() for p in policy.readout.parameters())
    n = policy.recurrent.hidden_size
    out = np.empty((*observations.shape[:2], len(d)))

    def part(k, x, h):
        rows = slice(k * n, (k + 1) * n)
        return w[rows] @ x + b[rows], u[rows] @ h + c[rows]

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    for k, sequence in enumerate(observations.astype(np.float64)):
        h = memory = np.zeros(n)
        for t, x in enumerate(sequence):
            if isinstance(policy.recurrent, torch.nn.LSTM):
                i, f, g, o = (sum(part(gate, x, h)) for gate in range(4))
                memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(memory)
            else:
                r, z = (sigmoid(sum(part(gate, x, h))) for gate in range(2))
                from_x, from_h = part(2, x, h)
                h = (1 - z) * np.tanh(from_x + r * from_h) + z * h
            out[k, t] = v @ h + d
    return out


def make_one_unit_layer(cell):
    """Return a cell of one unit whose W, U, b, c give simple gates: σ(ln 3) = 3/4, tanh(ln 3) = 4/5, ….

    Inputs 1 and then 0. LSTM: i = 3/4, f = 9/10, g = 4/5, o = 1/4, so c₁ = 0.6 and h₁ = tanh(0.6)/4; then i = 1/4,
    f = 9/10, g = −1/2, o = 3/4, so c₂ = 0.54 − 0.125 = 0.415 and h₂ = 3 tanh(0.415)/4.
    GRU: r = 3/4, z = 1/4, n = tanh(½ ln 3 + ¾ · ⅔ ln 3) = 4/5, so h₁ = 0.6; then r = 1/4, z = 9/10,
    n = tanh(¼ · (−2 ln 3)) = −1/2, so h₂ = −0.05 + 0.54 = 0.49.
    """
    ln3 = log(3.0)
    if cell == "lstm":
        h1 = 0.5370495669980353 / 4
        w = [ln3 - 0.5, 2 * ln3, ln3, -ln3 + 0.25]
        b = [0.5, 0, 0.3, -0.25]
        c = [0.0, 0, -0.3, 0]
        # compensates b + c at the second step, where x = 0
        u = [(-ln3 - 0.5) / h1, 2 * ln3 / h1, -ln3 / 2 / h1, (ln3 + 0.25) / h1]
        states = [(h1, 0.6), (0.75 * 0.3927098596, 0.415)]
    else:
        w = [ln3 - 0.5, -ln3 + 0.25, ln3 / 2]
        b = [0.75, 0, 0]
        c = [-0.25, -0.25, 2 / 3 * ln3]
        u = [(-ln3 - 0.5) / 0.6, (2 * ln3 + 0.25) / 0.6, -8 / 3 * ln3 / 0.6]
        states = [(0.6,), (0.49,)]
    layer = CELLS[cell].layer(1, 1, batch_first=True)
    with torch.no_grad():
        for parameter, value in zip(layer.parameters(), (w, u, b, c), strict=True):
            parameter.copy_(torch.tensor(value).reshape(parameter.shape))
    return layer, np.array([1.0, 0.0], np.float32), states


@both_cells
def test_numpy_recurrent_cell_matches_hand_computed_states(cell):
    layer, inputs, states = make_one_unit_layer(cell)
    numpy_cell = CELLS[cell].copy_of(layer)
    memory = np.zeros((1, numpy_cell.size), np.float32)
    for x, expected in zip(inputs, states, strict=True):
        h, memory = numpy_cell.step(x.reshape(1, 1), memory)
        np.testing.assert_allclose(h, [expected[:1]], atol=3e-7)
        np.testing.assert_allclose(memory, [expected], atol=3e-7)


@both_cells
def test_torch_recurrent_cell_matches_hand_computed_states(cell):
    layer, inputs, states = make_one_unit_layer(cell)
    w, u, b, c = (p.detach() for p in layer.parameters())
    state = CELLS[cell].make_initial_state(1, 1)
    for x, expected in zip(torch.from_numpy(inputs), states, strict=True):
        state = CELLS[cell].step(x.reshape(1, 1) @ w.T + b, state[0] @ u.T + c, state)
        np.testing.assert_allclose(torch.cat(state, 1), [expected], atol=3e-7)


@both_cells
def test_recurrent_policy_matches_hand_computed_density(cell):
    """The output is 2 h + 1, the deviation e⁰ = 1: density of N(2 h + 1, 1) at 2 h + 2 is exp(−1/2)/√(2π)."""
    layer, inputs, states = make_one_unit_layer(cell)
    policy = RecurrentPolicy(1, GaussianHead(1, log_deviation=0.0), hidden=1, cell=cell)
    policy.recurrent = layer
    with torch.no_grad():
        policy.readout.weight.fill_(2.0)
        policy.readout.bias.fill_(1.0)
    expected = 2 * torch.tensor([state[0] for state in states]).reshape(1, 2, 1) + 1
    actual = policy.distribution(torch.from_numpy(inputs).reshape(1, 2, 1), torch.ones(1, 2, dtype=torch.bool))
    torch.testing.assert_close(actual.mean, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(actual.log_prob(expected + 1), torch.full((1, 2), -1.4189385), atol=2e-6, rtol=0)


@both_cells
@pytest.mark.parametrize("hidden", [1, 4, 32])
def test_recurrent_cells_match_torch_layers(cell, hidden):
    """Both cells, stepped 30 times, give the hidden states of torch's layer."""
    policy = make_recurrent_policy(cell, CategoricalHead(ACTIONS), hidden, scale=0.4)
    x = torch.randn(5, 30, INPUTS, generator=torch.Generator().manual_seed(1))
    w, u, b, c = (p.detach() for p in policy.recurrent.parameters())
    in_torch = CELLS[cell].make_initial_state(5, hidden)
    in_numpy = CELLS[cell].copy_of(policy.recurrent)
    memory = np.zeros((5, in_numpy.size), np.float32)
    with torch.no_grad():
        expected, _ = policy.recurrent(x)
    for t in range(30):
        in_torch = CELLS[cell].step(x[:, t] @ w.T + b, in_torch[0] @ u.T + c, in_torch)
        h, memory = in_numpy.step(x[:, t].numpy(), memory)
        torch.testing.assert_close(in_torch[0], expected[:, t], atol=1e-6, rtol=0)
        np.testing.assert_allclose(h, expected[:, t], atol=1e-6, rtol=0)
        np.testing.assert_allclose(memory, torch.cat(in_torch, 1), atol=2e-6, rtol=1e-6)


@both_cells
def test_recurrent_policy_sequence_matches_textbook_equations(cell):
    policy = make_recurrent_policy(cell, CategoricalHead(ACTIONS))
    observations = random_trajectories(k=5, t=20, dtype=np.float32).observations
    with torch.no_grad():
        logits = policy.distribution(torch.from_numpy(observations), torch.ones(5, 20)).logits
    expected = textbook_outputs(policy, observations)
    expected -= np.logaddexp.reduce(expected, axis=-1, keepdims=True)
    np.testing.assert_allclose(logits, expected, atol=2e-6, rtol=0)


def test_recurrent_policy_of_the_paper_has_4963_parameters():
    """Counts 4 · 32 · (4 + 32 + 1 + 1) in the gates (torch has two biases), 32 · 3 + 3 in the output layer."""
    assert sum(p.numel() for p in RecurrentPolicy(4, CategoricalHead(3)).parameters()) == 4963


# Scores of every policy: trajectory by trajectory against plain autograd.


POLICIES = {
    "feed-forward": lambda head: FeedForwardPolicy(INPUTS, head, hidden=(5,)),
    "window": lambda head: WindowPolicy(INPUTS, head, hidden=(5,), width=3),
    "lstm": lambda head: RecurrentPolicy(INPUTS, head, HIDDEN, "lstm"),
    "gru": lambda head: RecurrentPolicy(INPUTS, head, HIDDEN, "gru"),
}
HEADS = {"categorical": lambda: CategoricalHead(ACTIONS), "Gaussian": lambda: GaussianHead(ACTIONS)}
every_policy = pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)


def make_trajectories(head, t=12, restricted=False, alpha=0.0, dtype=np.float32):
    """Return episodes of different lengths, with some expert steps and some illegal actions."""
    trajectories = with_expert_steps(random_trajectories(k=8, t=t, seed=2, dtype=dtype), alpha)
    assert len(set(trajectories.mask.sum(axis=1))) > 3
    if restricted:
        trajectories = with_legal(trajectories)
    return with_vectors(trajectories) if head == "Gaussian" else trajectories


def scores_one_by_one(policy, trajectories):
    """Return Σ_t ∇ log π(a_t|s_t) over learner steps, [K, d], for each trajectory alone and unpadded, in float64.

    The densities are written out: a softmax over the legal actions, or the normal density.
    """
    policy = deepcopy(policy).double()
    rows = []
    for i in range(trajectories.count):
        length = int(trajectories.mask[i].sum())
        observations = torch.from_numpy(trajectories.observations[i : i + 1, :length]).double()
        distribution = policy.distribution(observations, torch.ones(1, length, dtype=torch.bool))
        total = 0.0
        for t in np.flatnonzero(trajectories.by_learner[i]):
            action = trajectories.actions[i, t]
            if isinstance(distribution, torch.distributions.Categorical):
                legal = (
                    np.flatnonzero(trajectories.action_mask[i, t])
                    if trajectories.action_mask.size
                    else np.arange(ACTIONS)
                )
                logits = distribution.logits[0, t, legal]
                total = total + logits[legal.tolist().index(action)] - logits.logsumexp(0)
            else:
                mean = distribution.mean[0, t]
                deviation = distribution.stddev[0, t]
                normal = ((torch.from_numpy(action).double() - mean) / deviation).square() / 2 + deviation.log()
                total = total - normal.sum()
        if isinstance(total, float):  # the expert took all steps
            rows.append(torch.zeros(sum(p.numel() for p in policy.parameters()), dtype=torch.float64))
        else:
            gradients = torch.autograd.grad(total, list(policy.parameters()))
            rows.append(torch.cat([g.reshape(-1) for g in gradients]))
    return torch.stack(rows)


def assert_same_rows(found, expected, relative=1e-5):
    """Compare row by row, relative to the row's largest entry."""
    assert found.shape == expected.shape
    error = (found.double() - expected).abs().amax(dim=1)
    assert (error <= relative * expected.abs().amax(dim=1)).all(), error / expected.abs().amax(dim=1)


CASES = [("categorical", False), ("categorical", True), ("Gaussian", False)]


@every_policy
@pytest.mark.parametrize(("head", "restricted"), CASES, ids=["categorical", "with illegal actions", "Gaussian"])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_trajectory_scores_match_autograd_per_trajectory(make, head, restricted, alpha):
    policy = randomise(make(HEADS[head]()), seed=3)
    trajectories = make_trajectories(head, restricted=restricted, alpha=alpha)
    expected = scores_one_by_one(policy, trajectories)
    assert (expected.abs().amax(dim=1) > 0.1).sum() >= 5
    assert_same_rows(compute_trajectory_scores(policy, trajectories) * trajectories.horizon * np.sqrt(8), expected)


@both_cells
@pytest.mark.parametrize("head", HEADS)
def test_trajectory_scores_of_long_episodes_match_autograd(cell, head):
    """200 steps of the paper's LSTM of 32, as it is initialized."""
    generator = torch.Generator().manual_seed(0)
    policy = RecurrentPolicy(INPUTS, HEADS[head](), 32, cell, generator)
    trajectories = make_trajectories(head, t=200)
    scores = compute_trajectory_scores(policy, trajectories) * trajectories.horizon * np.sqrt(8)
    assert_same_rows(scores, scores_one_by_one(policy, trajectories))


@every_policy
@pytest.mark.parametrize("head", HEADS)
def test_trajectory_scores_ignore_padding_after_the_end(make, head):
    policy = randomise(make(HEADS[head]()), seed=3)
    trajectories = make_trajectories(head)
    padded = replace(
        trajectories, observations=np.where(trajectories.mask[..., None], trajectories.observations, np.float32(7))
    )
    torch.testing.assert_close(
        compute_trajectory_scores(policy, padded), compute_trajectory_scores(policy, trajectories), atol=1e-7, rtol=0
    )


@every_policy
def test_trajectory_scores_leave_no_gradients_and_need_none(make):
    policy = randomise(make(CategoricalHead(ACTIONS)), seed=3)
    trajectories = make_trajectories("categorical")
    before = flat(policy)
    scores = compute_trajectory_scores(policy, trajectories)
    assert not scores.requires_grad and all(parameter.grad is None for parameter in policy.parameters())
    np.testing.assert_array_equal(flat(policy), before)
    frozen = deepcopy(policy).requires_grad_(False)
    torch.testing.assert_close(compute_trajectory_scores(frozen, trajectories), scores, atol=0, rtol=0)


@every_policy
@pytest.mark.parametrize("head", HEADS)
def test_trajectory_score_columns_follow_parameters_to_vector(make, head):
    """Moving θ as one vector by ε v changes log ρ(τ_i) by ε times row i on v; v differs in every place."""
    policy = randomise(make(HEADS[head]()), seed=3)
    trajectories = make_trajectories(head)
    observations, actions, mask, by_learner = (
        torch.from_numpy(x)
        for x in (trajectories.observations, trajectories.actions, trajectories.mask, trajectories.by_learner)
    )
    rows = policy.compute_scores(observations, actions, mask, by_learner).double()
    policy = policy.double()
    observations = observations.double()
    actions = actions.double() if head == "Gaussian" else actions
    theta = parameters_to_vector(policy.parameters()).detach()
    v = torch.randn(len(theta), generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def log_likelihoods(at):
        vector_to_parameters(at, policy.parameters())
        with torch.no_grad():
            return (policy.distribution(observations, mask).log_prob(actions) * by_learner).sum(1)

    differences = (log_likelihoods(theta + 1e-5 * v) - log_likelihoods(theta - 1e-5 * v)) / 2e-5
    assert rows.shape == (8, len(theta))
    torch.testing.assert_close(rows @ v, differences, rtol=1e-4, atol=1e-4)


@every_policy
@pytest.mark.parametrize("head", HEADS)
def test_trajectory_scores_in_float64_match_autograd(make, head):
    policy = randomise(make(HEADS[head]()).double(), seed=3)
    trajectories = make_trajectories(head, dtype=np.float64)
    scores = compute_trajectory_scores(policy, trajectories) * trajectories.horizon * np.sqrt(8)
    assert scores.dtype == torch.float64
    assert_same_rows(scores, scores_one_by_one(policy, trajectories), relative=1e-12)


# The losses.


TRAJECTORIES = with_expert_steps(random_trajectories(k=6, t=5, seed=4))
RESTRICTED = with_legal(TRAJECTORIES)


def probabilities_from(policy, trajectories):
    """Return [K, T, A] by the textbook's recurrence and a softmax over the legal actions."""
    logits = textbook_outputs(policy, trajectories.observations)
    if trajectories.action_mask.size:
        logits = np.where(trajectories.action_mask | ~trajectories.mask[..., None], logits, -np.inf)
    return np.exp(logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True))


def expected_cost(pi, pi_n, costs, trajectories):
    return (pi * costs).sum(axis=-1)


def importance_weighted(pi, pi_n, costs, trajectories):
    ratio = np.take_along_axis(pi / np.where(pi_n == 0, 1, pi_n), trajectories.actions[..., None], axis=2)[..., 0]
    return ratio * costs * trajectories.by_learner / (1 - trajectories.alpha)


def log_loss(pi, pi_n, costs, trajectories):
    legal = trajectories.action_mask if trajectories.action_mask.size else np.ones(costs.shape, bool)
    cheapest = np.where(legal | ~trajectories.mask[..., None], costs, np.inf).argmin(axis=2)[..., None]
    return -np.log(np.take_along_axis(pi, cheapest, axis=2)[..., 0])


LOSSES = {
    "all actions": (all_actions_loss, AdvantageOracle(random_costs), expected_cost),
    "taken action": (taken_action_loss, TakenActionOracle(AdvantageOracle(random_costs)), importance_weighted),
    "likelihood": (best_action_nll_loss, random_costs, log_loss),
}


@both_cells
@pytest.mark.parametrize("trajectories", [TRAJECTORIES, RESTRICTED], ids=["all legal", "some illegal"])
@pytest.mark.parametrize(("loss", "oracle", "formula"), LOSSES.values(), ids=LOSSES)
def test_losses_of_a_recurrent_policy_match_finite_differences(cell, trajectories, loss, oracle, formula):
    """In float64 by the textbook's recurrence, without torch's layers and autograd."""
    policy = make_recurrent_policy(cell, CategoricalHead(ACTIONS), hidden=2).double()
    costs = oracle(trajectories)
    theta = flat(policy)

    def value_at(vector, pi_n=None):
        vector_to_parameters(torch.from_numpy(vector), policy.parameters())
        pi = probabilities_from(policy, trajectories)
        terms = formula(pi, pi if pi_n is None else pi_n, costs.values, trajectories)
        return (terms * trajectories.mask).sum() / (trajectories.horizon * trajectories.count)

    pi_n = probabilities_from(policy, trajectories)
    differences = np.array(
        [(value_at(theta + e, pi_n) - value_at(theta - e, pi_n)) / 2e-6 for e in 1e-6 * np.eye(len(theta))]
    )
    expected = value_at(theta)
    assert loss(policy, trajectories, costs).item() == pytest.approx(expected, rel=1e-6)
    exact = gradient(policy, loss, trajectories, costs)
    assert np.abs(exact).max() > 1e-3
    # 1/(1 − α) is a float32 in taken_action: seven digits
    np.testing.assert_allclose(exact, differences, atol=1e-8, rtol=1e-6)


@both_cells
@pytest.mark.parametrize(
    ("head", "loss"),
    [("categorical", all_actions_loss), ("categorical", taken_action_loss), ("Gaussian", taken_action_loss)],
)
def test_loss_gradients_of_a_recurrent_policy_sum_over_single_steps(cell, head, loss):
    """Each step's term by autograd on the trajectory up to that step; their sum is the batch's gradient."""
    policy = make_recurrent_policy(cell, HEADS[head]()).double()
    trajectories = with_vectors(TRAJECTORIES) if head == "Gaussian" else TRAJECTORIES
    costs = random_costs(trajectories, actions=ACTIONS if loss is all_actions_loss else None)
    total = np.zeros(len(flat(policy)))
    for i, t in zip(*np.nonzero(trajectories.mask), strict=True):
        observations = torch.from_numpy(trajectories.observations[i : i + 1, : t + 1])
        distribution = policy.distribution(observations, torch.ones(1, t + 1, dtype=torch.bool))
        if loss is all_actions_loss:
            term = (distribution.probs[0, t] * torch.from_numpy(costs.values[i, t])).sum()
        elif trajectories.by_expert[i, t]:
            continue
        else:  # ∇π/π · Q = Q ∇ log π
            actions = torch.from_numpy(trajectories.actions[i : i + 1, : t + 1])
            term = distribution.log_prob(actions)[0, t] * costs.values[i, t] / (1 - trajectories.alpha)
        gradients = torch.autograd.grad(term, list(policy.parameters()), allow_unused=True)
        zeros = [torch.zeros_like(p) if g is None else g for g, p in zip(gradients, policy.parameters(), strict=True)]
        total += torch.cat([g.reshape(-1) for g in zeros]).numpy()
    total /= trajectories.horizon * trajectories.count
    assert np.abs(total).max() > 1e-3
    np.testing.assert_allclose(gradient(policy, loss, trajectories, costs), total, atol=1e-9, rtol=1e-6)
