"""UCBVI: reinforcement learning by optimism, value iteration on counts with a bonus for what was seldom tried."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.simulators.tabular import compute_optimal_q, compute_total_cost, make_greedy_policy, sample_categorical
from aggrevated_experiments.theory.study import Recorder, Regret


def run_ucbvi(mdps: tuple[Array, Array, Array], horizon: int, episodes: int, seed: int, scale: float = 1.0) -> Regret:
    """Its regret on these MDPs (transitions, costs, start), with costs of 0 or 1; one trial on each, all at once.

    The bonus is `scale` times what makes it optimistic with high probability.
    """
    transitions, costs, start = mdps
    generator = np.random.default_rng(seed)
    (trials, states, actions) = costs.shape
    lane = np.arange(trials)
    best = (start * compute_optimal_q(transitions, costs, horizon)[:, 0].min(axis=2)).sum(axis=1)
    counts = np.zeros_like(transitions)
    paid = np.zeros_like(costs)
    confidence = np.log(states * actions * horizon * episodes)
    recorder = Recorder(trials, episodes)
    for n in range(1, episodes + 1):
        policy = make_greedy_policy(compute_optimistic_q(counts, paid, horizon, scale, confidence))
        recorder.add(n, compute_total_cost(transitions, costs, start, policy) - best)
        s = sample_categorical(start, generator)
        for t in range(horizon):
            a = policy[lane, t, s].argmax(axis=1)
            following = sample_categorical(transitions[lane, s, a], generator)
            paid[lane, s, a] += generator.random(trials) < costs[lane, s, a]
            counts[lane, s, a, following] += 1
            s = following
    return recorder.make_regret("UCBVI", learns_from_expert=False)


def compute_optimistic_q(counts: Array, paid: Array, horizon: int, scale: float, confidence: float) -> Array:
    """[trials, H, S, A]: a cost-to-go that is, with high probability, below Q*; 0 for what was never tried."""
    visits = counts.sum(axis=3)
    seldom = np.maximum(visits, 1)
    model = counts / seldom[..., None]
    cost = paid / seldom
    width = scale * np.sqrt(confidence / seldom)
    q = []
    value = np.zeros(counts.shape[:2])
    for t in range(horizon - 1, -1, -1):
        expected = cost + (model @ value[:, None, :, None])[..., 0]
        q.append(np.maximum(expected - width * (horizon - t), 0.0))
        value = q[-1].min(axis=2)
    return np.stack(q[::-1], axis=1)
