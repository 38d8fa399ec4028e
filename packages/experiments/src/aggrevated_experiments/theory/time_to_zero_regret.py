"""Number of episodes until play on the tree has almost no regret, for learners, and a lower bound for RL."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated_experiments.theory.bandits import Bonus, compute_moss_bonus, compute_ucb1_bonus, pull_arms
from aggrevated_experiments.theory.tree import Trees, iter_exponentiated_gradient, iter_follow_the_leader

# advantage of the best leaf; share of random play's regret that counts as zero
GAP = 0.25
ZERO_REGRET_SHARE = 0.05


@dataclass(frozen=True)
class Contender:
    """A learner on the tree.

    Attributes:
        label: name in the legend.
        play: function from trees, number of episodes and seed to the regrets [trials] of the episodes.
        episodes: function from the depth to the number of episodes.
        deepest: largest depth at which it is run.
        learns_from_expert: False for reinforcement learning.
    """

    label: str
    play: Callable[[Trees, int, int], Iterable[Array]]
    episodes: Callable[[int], int]
    deepest: int = 20
    learns_from_expert: bool = True


def count_episodes_to_zero_regret(regrets: Iterable[Array], random_play: float) -> Array:
    """Return the episode [trials] after which the newer half of all episodes always has almost no regret.

    Almost none is `ZERO_REGRET_SHARE` of random play's. The result is infinite if that never holds to the
    end.
    """
    total = np.cumsum(np.stack(list(regrets)), axis=0)  # [N, trials]
    total = np.concatenate([np.zeros_like(total[:1]), total])
    n = np.arange(1, len(total))
    newer = (total[n] - total[n // 2]) / (n - n // 2)[:, None]
    has_regret = newer > ZERO_REGRET_SHARE * random_play
    last = np.where(has_regret.any(axis=0), len(n) - has_regret[::-1].argmax(axis=0), 0)  # 0: never
    return np.where(last < len(n), last + 1.0, np.inf)


def compute_rl_lower_bound(depth: int) -> float:
    """Return Theorem special_lower's bound on RL's episodes, averaged over the trees with one good leaf.

    By its proof the best leaf's share of n episodes is at most 1/L + ½ √(−(n/L) ln(1 − 4 gap²)). Play whose
    newer half has almost no regret has a share of at least (1 − ZERO_REGRET_SHARE)/2.
    """
    leaves = 2 ** (depth - 1)
    distance = max((1 - ZERO_REGRET_SHARE) / 2 - 1 / leaves, 0.0)
    return float(max(1.0, leaves * (2 * distance) ** 2 / -np.log(1 - 4 * GAP**2)))


def compute_random_policy_regret(depth: int) -> float:
    """Return the regret per episode of a random policy."""
    return float(GAP * (1 - 0.5 ** (depth - 1)))


def count_expert_episodes(depth: int) -> int:
    """Return the number of episodes of learners with an expert."""
    return 100 * depth


def make_leader_player(rollouts: int | None) -> Callable[[Trees, int, int], Iterable[Array]]:
    """Return a player that follows the leader; `rollouts` None stands for exact Q*."""
    return lambda trees, n, seed: (episode.regret for episode in iter_follow_the_leader(trees, n, seed, rollouts))


def make_gradient_player(rollouts: int | None, eta: float) -> Callable[[Trees, int, int], Iterable[Array]]:
    """Return a player of EG over base policies with step η for any N."""

    def run(trees: Trees, n: int, seed: int) -> Iterable[Array]:
        step = eta / (2 * np.sqrt(np.log(2) / n))
        return (episode.regret for episode in iter_exponentiated_gradient(trees, n, seed, rollouts, step=float(step)))

    return run


def make_bandit_player(bonus: Bonus, scale: float) -> Callable[[Trees, int, int], Iterable[Array]]:
    """Return a player of a bandit with one arm per leaf."""
    return lambda trees, n, seed: (pulled.regret for pulled in pull_arms(trees.means, n, bonus, seed, scale))


def count_bandit_rounds(depth: int) -> int:
    """Return the number of rounds of a bandit: 256 per leaf, of order 1/gap²."""
    return int(256 * 2 ** (depth - 1))


# factors of the bonuses: the smallest of 1, ½, ¼ and .1 that learned trees of depths 6 and 8 (another seed)
UCB1_BONUS = 0.25
MOSS_BONUS = 0.25
# steps of EG: the best of .1, .3, 1, 3 and 10 at depths 10 and 20
EXACT_ETA = 10.0
NOISY_ETA = 1.0
CONTENDERS = (
    Contender("AggreVaTe, FTL, exact Q*", make_leader_player(None), count_expert_episodes),
    Contender("AggreVaTe, FTL, noisy Q*", make_leader_player(1), count_expert_episodes),
    Contender(
        f"AggreVaTeD, EG, exact Q*, η = {EXACT_ETA:g}", make_gradient_player(None, EXACT_ETA), count_expert_episodes
    ),
    Contender(
        f"AggreVaTeD, EG, noisy Q*, η = {NOISY_ETA:g}", make_gradient_player(1, NOISY_ETA), count_expert_episodes
    ),
    Contender(
        "UCB1 over leaves, ¼ bonus", make_bandit_player(compute_ucb1_bonus, UCB1_BONUS), count_bandit_rounds, 12, False
    ),
    Contender(
        "MOSS over leaves, ¼ bonus", make_bandit_player(compute_moss_bonus, MOSS_BONUS), count_bandit_rounds, 12, False
    ),
)
