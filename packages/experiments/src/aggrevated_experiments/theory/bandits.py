"""Index policies of bandits: RL on the tree is a bandit over its leaves (proof of Theorem special_lower)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated_experiments.theory.study import Recorder, Regret

Bonus = Callable[[Array, int, int], Array]  # (pulls of an arm, arms, rounds) to the width of its interval


def compute_ucb1_bonus(pulls: Array, arms: int, rounds: int) -> Array:
    """Return UCB1's bonus for a known number of rounds: √(2 ln N / n_i)."""
    width: Array = np.sqrt(2 * np.log(rounds) / pulls)
    return width


def compute_moss_bonus(pulls: Array, arms: int, rounds: int) -> Array:
    """Return MOSS's minimax-optimal bonus: √(max(ln(N / (L n_i)), 0) / n_i)."""
    return np.sqrt(np.maximum(np.log(rounds / (arms * pulls)), 0.0) / pulls)


@dataclass(frozen=True)
class Round:
    """One round in every trial."""

    arm: Array  # [trials]
    cost: Array  # [trials]: True is 1
    regret: Array  # [trials]: regret of the arm's mean


def run_index_policy(means: Array, rounds: int, bonus: Bonus, label: str, seed: int, scale: float = 1.0) -> Regret:
    """Return the regret of pulling the arm with the smallest index in each round."""
    recorder = Recorder(len(means), rounds)
    for n, pulled in enumerate(pull_arms(means, rounds, bonus, seed, scale), 1):
        recorder.add(n, pulled.regret)
    return recorder.make_regret(label, learns_from_expert=False)


def pull_arms(means: Array, rounds: int, bonus: Bonus, seed: int, scale: float = 1.0) -> Iterator[Round]:
    """Yield rounds that pull the arm with the smallest mean − scale · bonus.

    Only the pulled arm's index changes, so that a round costs one argmin over the arms.

    Args:
        means: expected 0/1 costs of the arms [trials, L].
        rounds: number of rounds.
        bonus: the function from pulls to the width of an interval.
        seed: seed of the costs and of the initial order.
        scale: factor of the bonus.
    """
    generator = np.random.default_rng(seed)
    trials, arms = means.shape
    trial = np.arange(trials)
    best = means.min(axis=1)
    pulls = np.zeros_like(means)
    total = np.zeros_like(means)
    index = generator.random(means.shape) - 1e6  # pulls every arm once at first, in random order
    for _ in range(rounds):
        arm = index.argmin(axis=1)
        cost = generator.random(trials) < means[trial, arm]
        pulls[trial, arm] += 1
        total[trial, arm] += cost
        count = pulls[trial, arm]
        index[trial, arm] = total[trial, arm] / count - scale * bonus(count, arms, rounds)
        yield Round(arm, cost, means[trial, arm] - best)
