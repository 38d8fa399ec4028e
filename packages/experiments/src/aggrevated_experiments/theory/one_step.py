"""H = 1 (Theorem lower_bound): EG between the bound that no algorithm beats and the bound that it keeps."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.updates.tabular_exponentiated import apply_exponentiated_step
from aggrevated_experiments.theory.study import Recorder, Regret


def compute_hard_gap(states: int, actions: int, episodes: int) -> float:
    """½ √(S ln A / N): so small that the best actions are hardly found within N episodes, and no smaller."""
    return min(0.5, 0.5 * float(np.sqrt(states * np.log(actions) / episodes)))


def run_exponentiated_gradient(trials: int, states: int, actions: int, episodes: int, gap: float, seed: int) -> Regret:
    """A random state an episode; Q̃ of every action is 0 or 1 with mean 1/2, of the best one less by the gap."""
    generator = np.random.default_rng(seed)
    lane = np.arange(trials)
    best = generator.integers(actions, size=(trials, states))
    means = np.full((trials, states, actions), 0.5)
    np.put_along_axis(means, best[..., None], 0.5 - gap, axis=2)
    eta = np.sqrt(2 * states * np.log(actions) / episodes)
    log_policy = np.full(means.shape, -np.log(actions))
    regret = (np.exp(log_policy) * means).sum(axis=2) - (0.5 - gap)  # [trials, S]
    recorder = Recorder(trials, episodes)
    total = regret.mean(axis=1)
    for n in range(1, episodes + 1):
        recorder.add(n, total)
        s = generator.integers(states, size=trials)
        q = (generator.random((trials, actions)) < means[lane, s]).astype(float)
        log_policy[lane, s] = apply_exponentiated_step(log_policy[lane, s], q, eta)
        now = (np.exp(log_policy[lane, s]) * means[lane, s]).sum(axis=1) - (0.5 - gap)
        total = total + (now - regret[lane, s]) / states
        regret[lane, s] = now
    return recorder.make_regret("AggreVaTeD, EG, noisy Q*")


def compute_fano_lower_bound(states: int, actions: int, episodes: int, gap: float) -> Array:
    """[N] a bound that the mean regret of every algorithm exceeds on these instances, by Fano's inequality.

    After m looks at a state, whose best action is uniformly random, it is missed with a probability of at least
    1 − (m·KL + ln 2) / ln A, where KL is what one look tells: that of one coin, 1/2 − gap against 1/2. Before episode
    n there were Binomial(n − 1, 1/S) looks; the bound is convex in m, so their mean serves (Jensen's inequality).
    """
    p = 0.5 - gap
    kl = (p * np.log(2 * p) if p > 0 else 0.0) + (1 - p) * np.log(2 * (1 - p))
    looks = np.arange(episodes) / states
    missed = np.maximum(0.0, 1 - (looks * kl + np.log(2)) / np.log(actions))
    bound: Array = np.cumsum(gap * missed)
    return bound
