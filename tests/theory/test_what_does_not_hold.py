"""A numeric check of each row of "What does not hold literally" in docs/theory.md."""

from itertools import product

import numpy as np
import pytest

from aggrevated.simulators.tabular import greedy, optimal_q, q_of, random_mdps, state_distributions, total_cost
from aggrevated.theory import finite_mdp, tree
from aggrevated.theory.bounds import DELTA, special_lower_noisy
from aggrevated.theory.study import slope
from aggrevated.updates.exponentiated import exponentiated

# ---- the performance difference lemma


@pytest.fixture(scope="module")
def pairs():
    """(MDPs, π₁, π₂, Σ_t E_{d_t^π₁}[Q^π₂ − V^π₂]) of 1,000 random MDPs and pairs of policies, H = 4."""
    mdps, generator = random_mdps(1000, 4, 3, 0), np.random.default_rng(0)
    first, second = generator.dirichlet(np.ones(3), (2, 1000, 4, 4))
    return mdps, first, second, expected_advantage(mdps, first, second)


def expected_advantage(mdps, first, second):
    transitions, costs, start = mdps
    q = q_of(transitions, costs, second)
    advantage = q - (second * q).sum(axis=3, keepdims=True)
    return np.einsum("nts,ntsa,ntsa->n", state_distributions(transitions, start, first), first, advantage)


def test_the_performance_difference_lemma_holds_without_the_factor_h(pairs):
    mdps, first, second, advantage = pairs
    difference = total_cost(*mdps, first) - total_cost(*mdps, second)
    np.testing.assert_allclose(difference, advantage, atol=1e-10, rtol=0)


def test_as_the_paper_has_it_it_is_wrong_by_the_factor_h(pairs):
    mdps, first, second, advantage = pairs
    difference = total_cost(*mdps, first) - total_cost(*mdps, second)
    apart = np.abs(difference) > 1e-3
    assert apart.mean() > 0.99
    np.testing.assert_allclose((4 * advantage / difference)[apart], 4.0, rtol=1e-6)


def test_regret_is_h_times_the_regret_in_the_loss(pairs):
    """ℓₙ is an average over time, so here the H is right: μ(πₙ) − μ(π*) = H (ℓₙ(πₙ) − ℓₙ(π*))."""
    mdps, policy, _, _ = pairs
    transitions, costs, start = mdps
    q_star = optimal_q(transitions, costs, 4)
    best, d = greedy(q_star), state_distributions(transitions, start, policy)

    def loss(other):
        return np.einsum("nts,ntsa,ntsa->n", d, other, q_star) / 4

    regret = total_cost(*mdps, policy) - total_cost(*mdps, best)
    np.testing.assert_allclose(regret, 4 * (loss(policy) - loss(best)), atol=1e-10)
    assert regret.min() > 0.01


# ---- the scale of the Fisher matrix (with the library's scores: tests/losses/test_scores.py)


def test_eq_9_is_the_fisher_matrix_per_state_divided_by_h():
    """π(a|s) by a softmax of a table, every trajectory of H = 3 steps through two states with two actions."""
    p, _, start = (array[0] for array in random_mdps(1, 2, 2, 0))
    policy, steps = np.random.default_rng(0).dirichlet(np.ones(2), 2), range(3)

    def score(s, a):
        table = np.zeros((2, 2))
        table[s] = np.eye(2)[a] - policy[s]
        return table.ravel()

    eq_9, per_state = np.zeros((4, 4)), np.zeros((4, 4))
    for states, actions in product(product(range(2), repeat=3), repeat=2):
        chance = start[states[0]] * np.prod([policy[states[t], actions[t]] for t in steps])
        chance *= np.prod([p[states[t], actions[t], states[t + 1]] for t in steps[:-1]])
        each = [score(states[t], actions[t]) for t in steps]
        eq_9 += chance * np.outer(sum(each), sum(each)) / 3**2
        per_state += chance * sum(np.outer(one, one) for one in each) / 3
    np.testing.assert_allclose(eq_9, per_state / 3, atol=1e-15)
    assert np.abs(per_state).max() > 0.05


# ---- the step of the appendix


def of_the_appendix(q_max, horizon, states, actions, episodes):
    return np.sqrt(q_max**2 * episodes * states * np.log(actions) / (2 * horizon**2))


def test_the_step_of_the_appendix_grows_with_n_and_ours_shrinks():
    ours, theirs = (
        np.array([step(2.0, 3, 8, 4, n) for n in (100, 400, 1600)]) for step in (finite_mdp.step_size, of_the_appendix)
    )
    np.testing.assert_allclose(ours[1:] / ours[:-1], 0.5)
    np.testing.assert_allclose(theirs[1:] / theirs[:-1], 2.0)


def test_our_step_minimises_the_bound_and_that_of_the_appendix_makes_it_worse_than_nothing():
    """The bound is H (S H ln A / μ + μ N Q² / (2 H)); no policy's regret is above H Q N."""
    q, h, s, a = 2.0, 3, 8, 4
    for n in (1000, 4000):

        def bound(step, n=n):
            return h * (s * h * np.log(a) / step + step * n * q**2 / (2 * h))

        ours = finite_mdp.step_size(q, h, s, a, n)
        assert bound(ours) == pytest.approx(h * q * np.sqrt(2 * s * np.log(a) * n))
        assert bound(ours) < min(bound(0.99 * ours), bound(1.01 * ours))
        assert bound(of_the_appendix(q, h, s, a, n)) > h * q * n


@pytest.mark.parametrize("n", [1000, 4000])
def test_with_the_step_of_the_appendix_eg_loses_linearly_where_costs_contradict_each_other(n):
    """One state, H = 1, costs (½, 0), (0, 1), (1, 0), (0, 1), …: a long step is always on the wrong side."""
    costs = np.array([[0.5, 0.0], *[[0.0, 1.0], [1.0, 0.0]] * (n // 2)])[:n]
    least = costs.sum(axis=0).min()

    def regret(eta):
        log_policy, total = np.log([0.5, 0.5]), 0.0
        for q in costs:
            total += np.exp(log_policy) @ q
            log_policy = exponentiated(log_policy, q, eta)
        return total - least

    assert regret(finite_mdp.step_size(1.0, 1, 1, 2, n)) < np.sqrt(2 * np.log(2) * n)
    assert regret(of_the_appendix(1.0, 1, 1, 2, n)) > 0.49 * n


@pytest.mark.parametrize("n", [250, 1000])
def test_on_random_mdps_long_steps_do_no_harm(n, monkeypatch):
    """Q* of a state and time is the same in every episode and never contradicts itself: the bound is too pessimistic
    there, and with the step of the appendix, which is nearly follow-the-leader, regret is smaller, not larger."""
    mdps = random_mdps(10, 4, 3, 0)
    noise = finite_mdp.rolled_out(mdps, 1)
    ours = [finite_mdp.exact(mdps, 3, n), finite_mdp.sampled(mdps, 3, n, 0, noise, "noisy")]
    monkeypatch.setattr(finite_mdp, "step_size", of_the_appendix)
    theirs = [finite_mdp.exact(mdps, 3, n), finite_mdp.sampled(mdps, 3, n, 0, noise, "noisy")]
    for own, other in zip(ours, theirs, strict=True):
        assert (other.curve[:, -1] < 0.6 * own.curve[:, -1]).all()


# ---- the noisy tree


@pytest.mark.parametrize("depth", [2, 8, 16])
def test_no_step_gets_the_paper_s_first_root_out_of_the_lemma(depth):
    """The lemma: ln(2^D)/η + η N l²/2. Its least is l √(2 ln(2^D) N), which is above the paper's l √(ln(S) N)."""
    n, logarithm = 1000, (depth - 1) * np.log(2)
    eta = np.geomspace(1e-3, 10, 20_001)
    least = (logarithm / eta + eta * n / 2).min()
    assert least == pytest.approx(np.sqrt(2 * logarithm * n), rel=1e-6)
    assert least > np.sqrt(np.log(2**depth - 1) * n)
    ours = special_lower_noisy(depth, np.array([n]))[0] / (depth - 1) - 4 * np.sqrt(np.log(2 / DELTA) * n)
    assert ours == pytest.approx(least, rel=1e-6)


def test_on_uniform_leaf_costs_regret_is_linear_while_n_is_below_s():
    """Depth 12 up to 4,000 episodes: an exponent above 0.9, and 0.5 or so where only one leaf is good."""
    episodes = np.array([1000, 4000])

    def exponent(trees):
        regret = [tree.exponentiated_gradient(trees, n, seed=1).curve[:, -1].mean() for n in episodes]
        return slope(np.log(episodes), np.log(regret))

    assert exponent(tree.uniform_leaves(4, 12, seed=1)) > 0.9
    assert exponent(tree.one_good_leaf(4, 12, 0.25, seed=1)) < 0.65
