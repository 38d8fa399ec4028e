"""UCBVI: reinforcement learning by value iteration on counts, with a bonus for rare actions."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.simulators.tabular import compute_optimal_q, compute_total_cost, make_greedy_policy, sample_categorical
from aggrevated_experiments.theory.study import Recorder, Regret


def run_ucbvi(mdps: tuple[Array, Array, Array], horizon: int, episodes: int, seed: int, scale: float = 1.0) -> Regret:
    """Return UCBVI's regret, with one trial on each MDP, all at once.

    Args:
        mdps: transitions, 0/1 costs and start of each trial.
        horizon: H.
        episodes: N.
        seed: seed of states and costs.
        scale: factor of the bonus that makes it optimistic with high probability.
    """
    transitions, costs, start = mdps
    generator = np.random.default_rng(seed)
    (trials, states, actions) = costs.shape
    trial = np.arange(trials)
    best = (start * compute_optimal_q(transitions, costs, horizon)[:, 0].min(axis=2)).sum(axis=1)
    counts = np.zeros_like(transitions)
    total_costs = np.zeros_like(costs)
    confidence = np.log(states * actions * horizon * episodes)
    recorder = Recorder(trials, episodes)
    for n in range(1, episodes + 1):
        policy = make_greedy_policy(compute_optimistic_q(counts, total_costs, horizon, scale, confidence))
        recorder.add(n, compute_total_cost(transitions, costs, start, policy) - best)
        s = sample_categorical(start, generator)
        for t in range(horizon):
            a = policy[trial, t, s].argmax(axis=1)
            next_state = sample_categorical(transitions[trial, s, a], generator)
            total_costs[trial, s, a] += generator.random(trials) < costs[trial, s, a]
            counts[trial, s, a, next_state] += 1
            s = next_state
    return recorder.make_regret("UCBVI", learns_from_expert=False)


def compute_optimistic_q(counts: Array, total_costs: Array, horizon: int, scale: float, confidence: float) -> Array:
    """Return costs-to-go [trials, H, S, A] below Q* with high probability; 0 for untried actions."""
    visits = counts.sum(axis=3)
    clipped_visits = np.maximum(visits, 1)
    model = counts / clipped_visits[..., None]
    cost = total_costs / clipped_visits
    width = scale * np.sqrt(confidence / clipped_visits)
    q = []
    value = np.zeros(counts.shape[:2])
    for t in range(horizon - 1, -1, -1):
        expected = cost + (model @ value[:, None, :, None])[..., 0]
        q.append(np.maximum(expected - width * (horizon - t), 0.0))
        value = q[-1].min(axis=2)
    return np.stack(q[::-1], axis=1)
