"""A numeric check of each row of "What does not hold literally" in docs/theory.md."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from aggrevated.simulators.tabular import (
    compute_optimal_q,
    compute_policy_q_values,
    compute_state_distributions,
    compute_total_cost,
    make_greedy_policy,
    make_random_mdps,
)
from aggrevated.updates.tabular_exponentiated import apply_exponentiated_step
from aggrevated_experiments.theory import finite_mdp, tree
from aggrevated_experiments.theory.bounds import DELTA, compute_special_lower_noisy_bound
from aggrevated_experiments.theory.study import fit_slope
from aggrevated_experiments.theory.tabular_problems import make_binary_tree

# ---- the performance difference lemma


@pytest.fixture(scope="module")
def pairs():
    """Return MDPs, π₁, π₂ and Σ_t E_{d_t^π₁}[Q^π₂ − V^π₂] of 1,000 random MDPs and pairs of policies, H = 4."""
    mdps = make_random_mdps(1000, 4, 3, 0)
    generator = np.random.default_rng(0)
    first, second = generator.dirichlet(np.ones(3), (2, 1000, 4, 4))
    return mdps, first, second, expected_advantage(mdps, first, second)


def expected_advantage(mdps, first, second):
    transitions, costs, start = mdps
    q = compute_policy_q_values(transitions, costs, second)
    advantage = q - (second * q).sum(axis=3, keepdims=True)
    return np.einsum("nts,ntsa,ntsa->n", compute_state_distributions(transitions, start, first), first, advantage)


def test_performance_difference_lemma_holds_without_the_factor_h(pairs):
    mdps, first, second, advantage = pairs
    difference = compute_total_cost(*mdps, first) - compute_total_cost(*mdps, second)
    np.testing.assert_allclose(difference, advantage, atol=1e-10, rtol=0)


def test_performance_difference_lemma_as_printed_is_off_by_the_factor_h(pairs):
    mdps, first, second, advantage = pairs
    difference = compute_total_cost(*mdps, first) - compute_total_cost(*mdps, second)
    apart = np.abs(difference) > 1e-3
    assert apart.mean() > 0.99
    np.testing.assert_allclose((4 * advantage / difference)[apart], 4.0, rtol=1e-6)


def test_cost_regret_is_h_times_the_regret_in_the_loss(pairs):
    """ℓₙ is a mean over time, so the factor H is right here: μ(πₙ) − μ(π*) = H (ℓₙ(πₙ) − ℓₙ(π*))."""
    mdps, policy, _, _ = pairs
    transitions, costs, start = mdps
    q_star = compute_optimal_q(transitions, costs, 4)
    best = make_greedy_policy(q_star)
    d = compute_state_distributions(transitions, start, policy)

    def loss(other):
        return np.einsum("nts,ntsa,ntsa->n", d, other, q_star) / 4

    regret = compute_total_cost(*mdps, policy) - compute_total_cost(*mdps, best)
    np.testing.assert_allclose(regret, 4 * (loss(policy) - loss(best)), atol=1e-10)
    assert regret.min() > 0.01


# ---- Eq. 2


def equation_2_terms(mdp, expert_q, played, expert):
    """Return μ of each πₙ, μ(π*), ε_N and the regret in ℓ per round, for policies πₙ [N, H, S, A] and any expert."""
    p, c, start, horizon = mdp
    d = compute_state_distributions(p, start, played)  # [N, H, S]
    own = np.einsum("nts,ntsa,tsa->n", d, played, expert_q) / horizon
    of_expert = np.einsum("nts,tsa,tsa->n", d, expert, expert_q) / horizon
    least = np.einsum("nts,tsa->tsa", d, expert_q).min(axis=2).sum() / horizon / len(played)
    costs = compute_total_cost(p, c, start, played)
    return costs, compute_total_cost(p, c, start, expert), of_expert.mean() - least, own.mean() - least


@pytest.mark.parametrize("horizon", [2, 5, 10])
def test_equation_2_needs_the_factor_h_before_both_terms(horizon):
    """The mean of μ(πₙ) is μ(π*) − H ε_N + H · regret per round, which is H times the gain of Eq. 2.

    The expert is far from optimal; the policies are half-way to being greedy in its Q.
    """
    p, c, start = (array[0] for array in make_random_mdps(1, 4, 3, 5))
    expert, *others = np.random.default_rng(0).dirichlet(np.ones(3), (21, horizon, 4))
    expert_q = compute_policy_q_values(p, c, expert)
    played = 0.5 * np.stack(others) + 0.5 * make_greedy_policy(expert_q)
    costs, of_expert, epsilon, regret = equation_2_terms((p, c, start, horizon), expert_q, played, expert)
    assert epsilon > regret > 0.05
    assert costs.mean() == pytest.approx(of_expert + horizon * (regret - epsilon), abs=1e-10)
    assert abs(costs.mean() - (of_expert + regret - epsilon)) > 0.01


@pytest.mark.parametrize("depth", [3, 6, 9])
def test_equation_2_as_printed_is_violated_by_ftl_on_the_tree(depth):
    """FTL starts from "always right", and the best leaf is leftmost.

    In K − 1 episodes FTL plays no policy below μ(π*) + gap. Its regret in ℓ is gap/H per round, which is all that Eq. 2
    as printed allows between π̂ and π*.
    """
    gap = 0.25
    horizon = depth
    mdp = make_binary_tree(np.array([0.5 - gap, *[0.5] * (2 ** (depth - 1) - 1)]))
    policy = np.broadcast_to(np.eye(2)[1], mdp.q_star.shape).copy()
    played = []
    for t in range(depth - 1):
        played.append(policy.copy())
        policy[t, 2**t - 1] = np.eye(2)[0]  # what FTL learns on this path: left is better at the first mistake
    expert = make_greedy_policy(mdp.q_star)
    costs, of_expert, epsilon, regret = equation_2_terms(
        (mdp.transitions, mdp.costs, mdp.start, horizon), mdp.q_star, np.stack(played), expert
    )
    assert epsilon == pytest.approx(0, abs=1e-12) and regret == pytest.approx(gap / horizon)
    assert costs.min() > of_expert - epsilon + regret + 0.5 * gap  # for any choice of π̂
    assert costs.min() == pytest.approx(of_expert + horizon * (regret - epsilon))


# ---- the scale of the Fisher matrix (with the library's scores: tests/losses/test_scores.py)


def test_equation_9_is_the_fisher_matrix_per_state_divided_by_h():
    """π(a|s) is a softmax of a table, and every trajectory of H = 3 steps visits two states with two actions."""
    p, _, start = (array[0] for array in make_random_mdps(1, 2, 2, 0))
    policy = np.random.default_rng(0).dirichlet(np.ones(2), 2)
    steps = range(3)

    def score(s, a):
        table = np.zeros((2, 2))
        table[s] = np.eye(2)[a] - policy[s]
        return table.ravel()

    eq_9 = np.zeros((4, 4))
    per_state = np.zeros((4, 4))
    for states, actions in product(product(range(2), repeat=3), repeat=2):
        chance = start[states[0]] * np.prod([policy[states[t], actions[t]] for t in steps])
        chance *= np.prod([p[states[t], actions[t], states[t + 1]] for t in steps[:-1]])
        each = [score(states[t], actions[t]) for t in steps]
        eq_9 += chance * np.outer(sum(each), sum(each)) / 3**2
        per_state += chance * sum(np.outer(one, one) for one in each) / 3
    np.testing.assert_allclose(eq_9, per_state / 3, atol=1e-15)
    assert np.abs(per_state).max() > 0.05


def test_delta_kl_step_changes_trajectory_kl_by_half_h_squared_delta_kl():
    """η = √(δ_KL / ∇ᵀδ) with Eq. 9: KL(ρ_{n+1} ‖ ρ_n) is H² δ_KL / 2, not δ_KL; here H = 3 and there are 3 states."""
    p, _, start = (array[0] for array in make_random_mdps(1, 3, 2, 0))
    generator = np.random.default_rng(0)
    horizon = 3
    delta_kl = 1e-6
    theta = generator.normal(size=3)  # the log-odds of action 1
    chance = 1 / (1 + np.exp(-theta))

    def policy(of):
        return np.broadcast_to(np.stack([1 - of, of], axis=1), (horizon, 3, 2))

    visits = compute_state_distributions(p, start, policy(chance)).sum(axis=0)
    fisher = np.diag(visits * chance * (1 - chance)) / horizon**2  # Eq. 9
    gradient = generator.normal(size=3)
    direction = np.linalg.solve(fisher, gradient)
    after = 1 / (1 + np.exp(-(theta - np.sqrt(delta_kl / (gradient @ direction)) * direction)))
    one = after * np.log(after / chance) + (1 - after) * np.log((1 - after) / (1 - chance))
    kl = (
        compute_state_distributions(p, start, policy(after)).sum(axis=0) @ one
    )  # of trajectories: the sum over their steps
    assert kl == pytest.approx(horizon**2 * delta_kl / 2, rel=0.01)


# ---- the step of the appendix


def appendix_step(q_max, horizon, states, actions, episodes):
    return np.sqrt(q_max**2 * episodes * states * np.log(actions) / (2 * horizon**2))


def test_appendix_step_grows_with_n_and_ours_shrinks():
    ours, theirs = (
        np.array([step(2.0, 3, 8, 4, n) for n in (100, 400, 1600)]) for step in (finite_mdp.step_size, appendix_step)
    )
    np.testing.assert_allclose(ours[1:] / ours[:-1], 0.5)
    np.testing.assert_allclose(theirs[1:] / theirs[:-1], 2.0)


def test_our_step_minimizes_the_bound_and_the_appendix_step_makes_it_vacuous():
    """The bound is H (S H ln A / μ + μ N Q² / (2 H)); no policy has a regret above H Q N."""
    q = 2.0
    h = 3
    s = 8
    a = 4
    for n in (1000, 4000):

        def bound(step, n=n):
            return h * (s * h * np.log(a) / step + step * n * q**2 / (2 * h))

        ours = finite_mdp.step_size(q, h, s, a, n)
        assert bound(ours) == pytest.approx(h * q * np.sqrt(2 * s * np.log(a) * n))
        assert bound(ours) < min(bound(0.99 * ours), bound(1.01 * ours))
        assert bound(appendix_step(q, h, s, a, n)) > h * q * n


@pytest.mark.parametrize("n", [1000, 4000])
def test_appendix_step_gives_linear_regret_on_contradicting_costs(n):
    """One state, H = 1, costs (½, 0), (0, 1), (1, 0), (0, 1), …: a long step is always on the wrong side."""
    costs = np.array([[0.5, 0.0], *[[0.0, 1.0], [1.0, 0.0]] * (n // 2)])[:n]
    least = costs.sum(axis=0).min()

    def regret(eta):
        log_policy = np.log([0.5, 0.5])
        total = 0.0
        for q in costs:
            total += np.exp(log_policy) @ q
            log_policy = apply_exponentiated_step(log_policy, q, eta)
        return total - least

    assert regret(finite_mdp.step_size(1.0, 1, 1, 2, n)) < np.sqrt(2 * np.log(2) * n)
    assert regret(appendix_step(1.0, 1, 1, 2, n)) > 0.49 * n


@pytest.mark.parametrize("n", [250, 1000])
def test_long_steps_do_no_harm_on_random_mdps(n, monkeypatch):
    """Q* at a state and time is equal in all episodes and never contradictory, so the bound is too pessimistic.

    With the step of the appendix, which is almost follow-the-leader, the regret is smaller, not larger.
    """
    mdps = make_random_mdps(10, 4, 3, 0)
    noise = finite_mdp.make_rollout_noise(mdps, 1)
    ours = [finite_mdp.run_with_exact_q(mdps, 3, n), finite_mdp.run_with_sampled_q(mdps, 3, n, 0, noise, "noisy")]
    monkeypatch.setattr(finite_mdp, "step_size", appendix_step)
    theirs = [finite_mdp.run_with_exact_q(mdps, 3, n), finite_mdp.run_with_sampled_q(mdps, 3, n, 0, noise, "noisy")]
    for own, other in zip(ours, theirs, strict=True):
        assert (other.curve[:, -1] < 0.6 * own.curve[:, -1]).all()


def test_appendix_sum_over_time_is_h_times_what_is_printed():
    """Σ_t (S ln A / μ + μ Q² N / (2 H²)) is at least Q √(2 S ln A N) for any μ; the paper prints (1/H) of that."""
    q = 2.0
    h = 5
    s = 8
    a = 4
    n = 1000
    mu = np.geomspace(1e-4, 1e4, 200_001)
    least = (h * (s * np.log(a) / mu + mu * q**2 * n / (2 * h**2))).min()
    assert least == pytest.approx(q * np.sqrt(2 * s * np.log(a) * n), rel=1e-6)
    printed = q / h * np.sqrt(2 * s * np.log(a) * n)
    assert least == pytest.approx(h * printed, rel=1e-6)


def test_lemma_on_eg_needs_nonnegative_losses():
    """One round, 100 actions, a loss of −1 for one of them: regret .99, and the lemma allows .30.

    With 1 added, no loss is negative and the lemma holds.
    """
    d = 100
    step = np.sqrt(2 * 100 * np.log(100))
    losses = np.zeros(d)
    losses[0] = -1.0

    def regret_and_lemma(y):
        return y.mean() - y.min(), np.log(d) / step + step / 2 * (y**2).mean()

    regret, allowed = regret_and_lemma(losses)
    assert (regret, allowed) == (pytest.approx(0.99), pytest.approx(np.sqrt(2 * np.log(100) / 100)))
    assert regret > 3 * allowed
    regret, allowed = regret_and_lemma(losses + 1)
    assert regret < allowed


# ---- the noisy tree


@pytest.mark.parametrize("depth", [2, 8, 16])
def test_lemma_on_eg_cannot_give_the_papers_first_root(depth):
    """The lemma: ln(2^D)/η + η N l²/2. Its minimum l √(2 ln(2^D) N) is above the paper's l √(ln(S) N)."""
    n = 1000
    logarithm = (depth - 1) * np.log(2)
    eta = np.geomspace(1e-3, 10, 20_001)
    least = (logarithm / eta + eta * n / 2).min()
    assert least == pytest.approx(np.sqrt(2 * logarithm * n), rel=1e-6)
    assert least > np.sqrt(np.log(2**depth - 1) * n)
    ours = compute_special_lower_noisy_bound(depth, np.array([n]))[0] / (depth - 1) - 4 * np.sqrt(np.log(2 / DELTA) * n)
    assert ours == pytest.approx(least, rel=1e-6)


def test_uniform_leaf_costs_give_linear_regret_while_n_is_below_s():
    """Depth 12 and up to 4,000 episodes: an exponent above 0.9, and about 0.5 where only one leaf is good."""
    episodes = np.array([1000, 4000])

    def exponent(trees):
        regret = [tree.run_exponentiated_gradient(trees, n, seed=1).curve[:, -1].mean() for n in episodes]
        return fit_slope(np.log(episodes), np.log(regret))

    assert exponent(tree.make_random_trees(4, 12, seed=1)) > 0.9
    assert exponent(tree.make_hard_trees(4, 12, 0.25, seed=1)) < 0.65


# ---- the lower bound


def within_half(n, states):
    """Return P(½ N/S ≤ N_i ≤ 1½ N/S) exactly, for N_i ~ Binomial(N, 1/S)."""
    counts = np.arange(n + 1)
    inside = (counts >= 0.5 * n / states) & (counts <= 1.5 * n / states)
    return binom.pmf(counts, n, 1 / states)[inside].sum()


@pytest.mark.parametrize(("states", "n"), [(2, 10), (2, 40), (4, 40), (4, 160), (8, 160), (12, 640)])
def test_hoeffding_exponent_differs_from_that_of_the_lower_bound(states, n):
    """ε = 1/(2S) makes 2 N ε² = N/(2S²), and two sides double it; the printed probability would be greater."""
    printed = 1 - np.exp(-2 * n / states**2)
    follows = 1 - 2 * np.exp(-n / (2 * states**2))
    assert follows <= within_half(n, states) < printed


def test_printed_exponent_is_true_with_many_states():
    """Hoeffding's inequality does not use that the variance of N_i is only N/S: S = 16, N = 640."""
    assert within_half(640, 16) > 1 - np.exp(-2 * 640 / 16**2) > 1 - 2 * np.exp(-640 / (2 * 16**2))


@pytest.mark.parametrize("epsilon", [0.05, 0.25])
def test_two_sided_hoeffding_needs_the_factor_two(epsilon):
    """One toss of a coin is off by ½ with certainty, so it is within ε with probability 0; printed: 1 − exp(−2ε²)."""
    assert 1 - np.exp(-2 * epsilon**2) > 0 >= 1 - 2 * np.exp(-2 * epsilon**2)


@pytest.mark.parametrize(("states", "n"), [(1, 1), (2, 1), (2, 10), (8, 1), (8, 160), (64, 100), (64, 10_000)])
def test_lower_bound_conclusion_holds_nevertheless(states, n):
    """E√N_i is near √(N/S), which is above both the printed and the corrected bound."""
    root = (binom.pmf(np.arange(n + 1), n, 1 / states) * np.sqrt(np.arange(n + 1))).sum()
    assert root >= np.sqrt(0.5 * n / states) * (1 - np.exp(-2 * n / states**2))
    assert root >= np.sqrt(0.5 * n / states) * (1 - 2 * np.exp(-n / (2 * states**2)))


def test_fair_coins_cost_nothing_against_a_fixed_expert():
    """The classic √(N ln A) is regret against the best action in hindsight; R_N is against π*, the best on average.

    If all coins are fair, no algorithm has any R_N: the instances need a gap (`one_step.compute_hard_gap`).
    """
    a = 16
    n = 200
    coins = np.random.default_rng(0).random((2000, n, a)) < 0.5  # each row: a game
    following = np.cumsum(coins, axis=1).argmin(axis=2)[:, :-1]  # follow-the-leader, as an example of an algorithm
    paid = np.take_along_axis(coins[:, 1:], following[..., None], axis=2).sum(axis=(1, 2))
    hindsight = paid - coins[:, 1:].sum(axis=1).min(axis=1)
    in_the_mean = paid - coins[:, 1:, 0].sum(axis=1)  # any fixed action is a best one
    assert hindsight.mean() > 0.7 * np.sqrt(0.5 * n * np.log(a))
    assert abs(in_the_mean.mean()) < 4 * in_the_mean.std() / np.sqrt(2000)
