"""One-step problems, H = 1 (Theorem lower_bound): EG between its bound and every algorithm's lower bound."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.updates.tabular_exponentiated import apply_exponentiated_step
from aggrevated_experiments.theory.study import Recorder, Regret


def compute_hard_gap(states: int, actions: int, episodes: int) -> float:
    """Return ½ √(S ln A / N): the largest gap at which best actions are hardly found within N episodes."""
    return min(0.5, 0.5 * float(np.sqrt(states * np.log(actions) / episodes)))


def run_exponentiated_gradient(trials: int, states: int, actions: int, episodes: int, gap: float, seed: int) -> Regret:
    """Return the regret of EG with one random state per episode.

    Q̃ of each action is 0 or 1 with mean 1/2; the best action's mean is smaller by the gap.
    """
    generator = np.random.default_rng(seed)
    trial = np.arange(trials)
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
        q = (generator.random((trials, actions)) < means[trial, s]).astype(float)
        log_policy[trial, s] = apply_exponentiated_step(log_policy[trial, s], q, eta)
        new_regret = (np.exp(log_policy[trial, s]) * means[trial, s]).sum(axis=1) - (0.5 - gap)
        total = total + (new_regret - regret[trial, s]) / states
        regret[trial, s] = new_regret
    return recorder.make_regret("AggreVaTeD, EG, noisy Q*")


def compute_fano_lower_bound(states: int, actions: int, episodes: int, gap: float) -> Array:
    """Return a lower bound [N] on every algorithm's mean regret on these instances, by Fano's inequality.

    After m observations of a state with a uniformly random best action, the error probability is at least 1
    − (m·KL + ln 2) / ln A. KL is the information of one observation: a coin of 1/2 − gap against one of
    1/2. Before episode n there were Binomial(n − 1, 1/S) observations; the bound is convex in m, so their
    mean suffices (Jensen's inequality).
    """
    p = 0.5 - gap
    kl = (p * np.log(2 * p) if p > 0 else 0.0) + (1 - p) * np.log(2 * (1 - p))
    observations = np.arange(episodes) / states
    error_probability = np.maximum(0.0, 1 - (observations * kl + np.log(2)) / np.log(actions))
    bound: Array = np.cumsum(gap * error_probability)
    return bound
