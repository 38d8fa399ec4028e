"""H = 1: the regret of EG is between the lower bound and its upper bound."""

import math

import numpy as np
import pytest

from aggrevated_experiments.theory.bounds import compute_upper_bound
from aggrevated_experiments.theory.one_step import (
    compute_fano_lower_bound,
    compute_hard_gap,
    run_exponentiated_gradient,
)
from aggrevated_experiments.theory.study import fit_slope, list_recorded_episodes


def test_hard_gap_matches_hand_computed_values():
    assert compute_hard_gap(16, 4, 1600) == pytest.approx(0.05 * np.sqrt(np.log(4)))
    assert compute_hard_gap(64, 16, 10) == 0.5


def miss_probability(looks, gap, actions):
    """Fano: return the probability that the best of A actions is still missed after `looks` observations."""
    p = 0.5 - gap
    kl = sum(x * math.log(x / 0.5) for x in (p, 1 - p) if x > 0)
    return max(0.0, 1 - (looks * kl + math.log(2)) / math.log(actions))


@pytest.mark.parametrize(("states", "actions", "gap"), [(4, 16, 0.1), (3, 5, 0.5), (8, 64, 0.02)])
def test_no_algorithm_below_equals_fano_bound(states, actions, gap):
    bound = compute_fano_lower_bound(states, actions, 60, gap)
    total = 0.0
    for n in range(60):
        total += gap * miss_probability(n / states, gap, actions)
        assert bound[n] == pytest.approx(total, abs=1e-12)


def test_no_algorithm_below_is_smaller_than_the_exact_expectation():
    """Jensen's inequality gives the simple bound, which is slightly below the exact expectation."""
    states = 4
    actions = 16
    gap = 0.25
    episodes = 80
    exact = 0.0
    for n in range(episodes):
        chances = [math.comb(n, m) / states**m * (1 - 1 / states) ** (n - m) for m in range(n + 1)]
        exact += gap * sum(chance * miss_probability(m, gap, actions) for m, chance in enumerate(chances))
    simple = compute_fano_lower_bound(states, actions, episodes, gap)[-1]
    assert simple < exact < 1.2 * simple


def test_exponentiated_gradient_equals_loop_over_states():
    """The same random numbers; regret is summed over all states in every episode."""
    trials = 2
    states = 3
    actions = 4
    episodes = 60
    gap = 0.2
    generator = np.random.default_rng(5)
    best = generator.integers(actions, size=(trials, states))
    weights = np.ones((trials, states, actions))
    total = np.zeros(trials)
    curve = run_exponentiated_gradient(trials, states, actions, episodes, gap, seed=5).curve
    eta = np.sqrt(2 * states * np.log(actions) / episodes)
    for n in range(episodes):
        policy = weights / weights.sum(axis=2, keepdims=True)
        total += [gap * np.mean([1 - policy[i, s, best[i, s]] for s in range(states)]) for i in range(trials)]
        np.testing.assert_allclose(curve[:, n], total, atol=1e-10)
        visited = generator.integers(states, size=trials)
        draws = generator.random((trials, actions))
        for i, s in enumerate(visited):
            means = 0.5 - gap * (np.arange(actions) == best[i, s])
            weights[i, s] *= np.exp(-eta * (draws[i] < means))


def test_one_step_regret_is_between_lower_and_upper_bound():
    states = 16
    actions = 16
    episodes = 2000
    gap = compute_hard_gap(states, actions, episodes)
    curve = run_exponentiated_gradient(20, states, actions, episodes, gap, seed=0).curve
    at = list_recorded_episodes(episodes)
    assert (curve.mean(axis=0) >= compute_fano_lower_bound(states, actions, episodes, gap)[at - 1]).all()
    assert (curve <= compute_upper_bound(1, 1.0, states, actions, at)).all()


def test_one_step_regret_grows_as_the_root_of_n_and_of_s():
    def at_the_end(states, episodes):
        gap = compute_hard_gap(states, 16, episodes)
        return run_exponentiated_gradient(20, states, 16, episodes, gap, seed=0).curve[:, -1].mean()

    n = np.array([500, 1000, 2000])
    s = np.array([4, 8, 16])
    assert fit_slope(np.log(n), np.log([at_the_end(8, x) for x in n])) == pytest.approx(0.5, abs=0.07)
    assert fit_slope(np.log(s), np.log([at_the_end(x, 2000) for x in s])) == pytest.approx(0.5, abs=0.07)
