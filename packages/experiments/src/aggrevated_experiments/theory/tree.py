"""Binary trees of Section 5.1 at any depth: many at once, as heaps (the children of i are 2i+1 and 2i+2).

A tree of depth K has S = 2^K − 1 states, 2^(K−1) leaves, D = K − 1 decisions, and a leaf's cost of 0 or 1.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.updates.tabular_exponentiated import apply_base_policies_step
from aggrevated_experiments.theory.study import Recorder, Regret


@dataclass(frozen=True)
class Trees:
    """One tree per trial."""

    means: Array  # [trials, leaves]: expected cost of each leaf

    @property
    def decisions(self) -> int:
        """Return the number of decisions, D = K − 1."""
        return int(self.means.shape[1]).bit_length() - 1

    @cached_property
    def v_star(self) -> Array:
        """Return the cost of the best leaf below each node [trials, S]; Q*(s, a) is that of the child."""
        return aggregate_leaves(self.means, lambda left, right: np.minimum(left, right))

    @property
    def trials(self) -> int:
        """The number of trees."""
        return len(self.means)


def aggregate_leaves(leaves: Array, join: Callable[[Array, Array], Array]) -> Array:
    """Return a value for each node [trials, S]: the leaves' values, joined level by level."""
    levels = [leaves]
    while levels[-1].shape[1] > 1:
        levels.append(join(levels[-1][:, ::2], levels[-1][:, 1::2]))
    return np.concatenate(levels[::-1], axis=1)


def make_hard_trees(trials: int, depth: int, gap: float, seed: int) -> Trees:
    """Return the hard instances: every leaf costs 1/2, except for a random one that costs less by `gap`."""
    means = np.full((trials, 2 ** (depth - 1)), 0.5)
    means[np.arange(trials), np.random.default_rng(seed).integers(means.shape[1], size=trials)] -= gap
    return Trees(means)


def make_random_trees(trials: int, depth: int, seed: int) -> Trees:
    """Return trees with expected costs drawn uniformly from [0, 1]."""
    return Trees(np.random.default_rng(seed).random((trials, 2 ** (depth - 1))))


def iter_decisions(trees: Trees, go_right: Callable[[int, Array], Array]) -> Iterator[tuple[Array, Array]]:
    """Yield (node, action) [trials] of each decision on a path; `go_right(level, node)` decides."""
    node = np.zeros(trees.trials, int)
    for level in range(trees.decisions):
        action = go_right(level, node)
        yield node, action
        node = 2 * node + 1 + action


@dataclass(frozen=True)
class Episode:
    """One episode in every trial: π_n, its path, the expert's Q̃ on it, and the regret.

    `policy` is the learner's own array: it changes when the next episode is requested.
    """

    policy: Array  # [trials, S − L]: log-odds of going right (EG), or whether the leader goes right (FTL)
    nodes: Array  # [trials, D]
    actions: Array  # [trials, D]: 1 is right
    q: Array  # [2, trials, D]: Q̃ of going left and right
    regret: Array  # [trials]: μ(π_n) − μ(π*)


def run_follow_the_leader(trees: Trees, episodes: int, seed: int, rollouts: int | None = None) -> tuple[Regret, Array]:
    """Run AggreVaTe with FTL over deterministic policies (Theorem special_upper), from random policies.

    `rollouts` is the number of roll-outs per Q̃; None stands for exact Q*.

    Returns:
        The regret, and [trials] the number of episodes until the policy reaches the best leaf.
    """
    recorder = Recorder(trees.trials, episodes)
    first_best = np.full(trees.trials, episodes)
    for n, episode in enumerate(iter_follow_the_leader(trees, episodes, seed, rollouts), 1):
        first_best[(episode.regret == 0) & (first_best == episodes)] = n - 1
        recorder.add(n, episode.regret)
    return recorder.make_regret(f"AggreVaTe, FTL, {'exact' if rollouts is None else 'noisy'} Q*"), first_best


def iter_follow_the_leader(trees: Trees, episodes: int, seed: int, rollouts: int | None = None) -> Iterator[Episode]:
    """Yield the episodes of FTL: the leader is the action with the smaller Q̃ over all visits."""
    generator = np.random.default_rng(seed)
    policy = generator.integers(2, size=(trees.trials, trees.means.shape[1] - 1), dtype=np.int8)
    trial = np.arange(trees.trials)
    best = trees.means.min(axis=1)
    total = np.zeros((2, *policy.shape)) if rollouts else None  # sum of Q̃ so far
    for _ in range(episodes):
        nodes, actions = walk_down(trees, lambda level, node: policy[trial, node])
        q = query_expert(trees, nodes, generator, rollouts)
        yield Episode(policy, nodes, actions, q, trees.v_star[trial, 2 * nodes[:, -1] + 1 + actions[:, -1]] - best)
        index = trial[:, None], nodes
        if total is not None:  # exact values need no average
            total[:, *index] += q
            q = total[:, *index]
        policy[index] = q[1] < q[0]


def run_exponentiated_gradient(
    trees: Trees, episodes: int, seed: int, rollouts: int | None = 1, per_node: bool = False, step: float = 1.0
) -> Regret:
    """Return the regret of AggreVaTeD with EG (Theorem special_lower_noisy): one path per episode.

    Args:
        trees: one tree per trial.
        episodes: N.
        seed: seed of actions and roll-outs.
        rollouts: roll-outs of π* per Q̃ of both actions at the path's nodes; None for exact Q*.
        per_node: learn a distribution π^s at each node (Eq. 7) instead of a mixture over leaves.
        step: factor of the sharper η of docs/theory.md.
    """
    recorder = Recorder(trees.trials, episodes)
    for n, episode in enumerate(iter_exponentiated_gradient(trees, episodes, seed, rollouts, per_node, step), 1):
        recorder.add(n, episode.regret)
    kind = "π^s" if per_node else "base policies"
    return recorder.make_regret(f"AggreVaTeD, EG over {kind}, {'exact' if rollouts is None else 'noisy'} Q*")


def iter_exponentiated_gradient(
    trees: Trees, episodes: int, seed: int, rollouts: int | None = 1, per_node: bool = False, step: float = 1.0
) -> Iterator[Episode]:
    """Yield the episodes of AggreVaTeD with EG."""
    generator = np.random.default_rng(seed)
    trial = np.arange(trees.trials)
    best = trees.means.min(axis=1)
    log_odds = np.zeros((trees.trials, trees.means.shape[1] - 1))  # of going right
    value = aggregate_leaves(
        trees.means, lambda left, right: (left + right) / 2
    )  # expected cost of π_n below each node
    eta = step * 2 * np.sqrt(np.log(2) / episodes)
    noise = np.empty((trees.decisions, trees.trials))

    def choose_action(level: int, node: Array) -> Array:
        goes_right: Array = noise[level] < log_odds[trial, node]
        return goes_right.astype(int)

    for _ in range(episodes):
        noise[:] = generator.logistic(size=noise.shape)
        nodes, actions = walk_down(trees, choose_action)
        q = query_expert(trees, nodes, generator, rollouts)
        yield Episode(log_odds, nodes, actions, q, value[:, 0] - best)
        index = trial[:, None], nodes
        log_odds[index] = update_log_odds(log_odds[index], actions, q, eta, per_node)
        update_values(value, log_odds, nodes, actions)


def walk_down(trees: Trees, go_right: Callable[[int, Array], Array]) -> tuple[Array, Array]:
    """Return nodes and actions [trials, D] of a path."""
    nodes, actions = (np.stack(x, axis=1) for x in zip(*iter_decisions(trees, go_right), strict=True))
    return nodes, actions


def query_expert(trees: Trees, nodes: Array, generator: np.random.Generator, rollouts: int | None) -> Array:
    """Return Q̃ [2, trials, D] of left and right at these nodes: the mean of roll-outs of π*, or exact."""
    trial = np.arange(trees.trials)[:, None]
    q: Array = trees.v_star[trial, 2 * nodes + np.array([1, 2])[:, None, None]]
    return q if rollouts is None else generator.binomial(rollouts, q) / rollouts


def update_log_odds(log_odds: Array, actions: Array, q: Array, eta: float, per_node: bool) -> Array:
    """Return new log-odds [trials, D] of going right at the nodes of a path, from Q̃ [2, trials, D]."""
    if per_node:
        updated: Array = log_odds + eta * (q[0] - q[1])
        return updated
    sign = 2 * actions - 1
    q_taken = np.where(actions, q[1], q[0])
    q_other = np.where(actions, q[0], q[1])
    return sign * apply_base_policies_step(sign * log_odds, q_taken, q_other, eta)


def update_values(value: Array, log_odds: Array, nodes: Array, actions: Array) -> None:
    """Update `value` [trials, S] after the odds at these nodes [trials, D] of one path have changed.

    Only nodes of the path change: each depends on its child on the path and its child off the path.
    """
    trial = np.arange(len(value))[:, None]
    sign = 2 * actions - 1
    child = 2 * nodes + 1
    p_taken = np.exp(-np.logaddexp(0.0, -sign * log_odds[trial, nodes]))  # probability of the taken action
    off_path = (1 - p_taken) * value[trial, child + 1 - actions]
    below = value[trial[:, 0], child[:, -1] + actions[:, -1]]  # the leaf
    path = np.empty_like(p_taken)
    for level in range(path.shape[1] - 1, -1, -1):
        path[:, level] = below = p_taken[:, level] * below + off_path[:, level]
    value[trial, nodes] = path
