"""RL on the tree is a bandit over its leaves (proof of Theorem special_lower): index policies, all trials at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated_experiments.theory.study import Recorder, Regret

Bonus = Callable[[Array, int, int], Array]  # from pulls of an arm, arms and rounds to the width of its interval


def compute_ucb1_bonus(pulls: Array, arms: int, rounds: int) -> Array:
    """UCB1's, with the number of rounds known: √(2 ln N / n_i)."""
    width: Array = np.sqrt(2 * np.log(rounds) / pulls)
    return width


def compute_moss_bonus(pulls: Array, arms: int, rounds: int) -> Array:
    """MOSS's, minimax optimal: √(max(ln(N / (L n_i)), 0) / n_i)."""
    return np.sqrt(np.maximum(np.log(rounds / (arms * pulls)), 0.0) / pulls)


@dataclass(frozen=True)
class Round:
    """What one round was in every trial."""

    arm: Array  # [trials]
    cost: Array  # [trials]: True is 1
    regret: Array  # [trials]: of the arm's mean


def run_index_policy(means: Array, rounds: int, bonus: Bonus, label: str, seed: int, scale: float = 1.0) -> Regret:
    """The regret of pulling the arm of least index, as `pull_arms` does."""
    recorder = Recorder(len(means), rounds)
    for n, one in enumerate(pull_arms(means, rounds, bonus, seed, scale), 1):
        recorder.add(n, one.regret)
    return recorder.make_regret(label, learns_from_expert=False)


def pull_arms(means: Array, rounds: int, bonus: Bonus, seed: int, scale: float = 1.0) -> Iterator[Round]:
    """Pull the arm of least mean − scale · bonus, for arms with 0/1 costs of these means [trials, L].

    Only the pulled arm's index changes, so a round costs one argmin over the arms.
    """
    generator = np.random.default_rng(seed)
    trials, arms = means.shape
    lane = np.arange(trials)
    best = means.min(axis=1)
    pulls = np.zeros_like(means)
    total = np.zeros_like(means)
    index = generator.random(means.shape) - 1e6  # every arm once first, in random order
    for _ in range(rounds):
        arm = index.argmin(axis=1)
        cost = generator.random(trials) < means[lane, arm]
        pulls[lane, arm] += 1
        total[lane, arm] += cost
        often = pulls[lane, arm]
        index[lane, arm] = total[lane, arm] / often - scale * bonus(often, arms, rounds)
        yield Round(arm, cost, means[lane, arm] - best)
