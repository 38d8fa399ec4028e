"""The binary tree of Section 5.1 at any depth: many trees at once, as heaps (the children of i are 2i+1 and 2i+2).

A tree of depth K has S = 2^K − 1 states, 2^(K−1) leaves, D = K − 1 decisions, and a cost of 0 or 1 at the leaf.
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

    means: Array  # [trials, leaves]: the expected cost of each leaf

    @property
    def decisions(self) -> int:
        """D = K − 1."""
        return int(self.means.shape[1]).bit_length() - 1

    @cached_property
    def v_star(self) -> Array:
        """[trials, S]: the cost of the best leaf below each node; Q*(s, a) is that of the child."""
        return aggregate_leaves(self.means, lambda left, right: np.minimum(left, right))

    @property
    def trials(self) -> int:
        return len(self.means)


def aggregate_leaves(leaves: Array, join: Callable[[Array, Array], Array]) -> Array:
    """[trials, S]: the leaves' values, and for each node above what `join` makes of its children's."""
    levels = [leaves]
    while levels[-1].shape[1] > 1:
        levels.append(join(levels[-1][:, ::2], levels[-1][:, 1::2]))
    return np.concatenate(levels[::-1], axis=1)


def make_hard_trees(trials: int, depth: int, gap: float, seed: int) -> Trees:
    """The hard instances: every leaf costs 1/2, a random one less by `gap`."""
    means = np.full((trials, 2 ** (depth - 1)), 0.5)
    means[np.arange(trials), np.random.default_rng(seed).integers(means.shape[1], size=trials)] -= gap
    return Trees(means)


def make_random_trees(trials: int, depth: int, seed: int) -> Trees:
    """Expected costs drawn uniformly from [0, 1]."""
    return Trees(np.random.default_rng(seed).random((trials, 2 ** (depth - 1))))


def iter_decisions(trees: Trees, go_right: Callable[[int, Array], Array]) -> Iterator[tuple[Array, Array]]:
    """(node, action) [trials] of each decision on the way down; `go_right(level, node)` decides."""
    node = np.zeros(trees.trials, int)
    for level in range(trees.decisions):
        action = go_right(level, node)
        yield node, action
        node = 2 * node + 1 + action


@dataclass(frozen=True)
class Episode:
    """What one episode was in every trial: π_n, its path, what the expert said there, and what was lost.

    `policy` is the learner's own array: it changes when the next episode is asked for.
    """

    policy: Array  # [trials, S − L] of going right: the log-odds (EG), or whether the leader does (FTL)
    nodes: Array  # [trials, D]
    actions: Array  # [trials, D]: 1 is right
    q: Array  # [2, trials, D]: Q̃ of going left and right
    regret: Array  # [trials]: μ(π_n) − μ(π*)


def run_follow_the_leader(trees: Trees, episodes: int, seed: int, rollouts: int | None = None) -> tuple[Regret, Array]:
    """AggreVaTe with FTL over deterministic policies and exact Q* (Theorem special_upper), from random policies.

    (its regret, [trials] after how many episodes the policy reaches the best leaf). With `rollouts` Q* is noisy.
    """
    recorder = Recorder(trees.trials, episodes)
    found = np.full(trees.trials, episodes)
    for n, episode in enumerate(iter_follow_the_leader(trees, episodes, seed, rollouts), 1):
        found[(episode.regret == 0) & (found == episodes)] = n - 1
        recorder.add(n, episode.regret)
    return recorder.make_regret(f"AggreVaTe, FTL, {'exact' if rollouts is None else 'noisy'} Q*"), found


def iter_follow_the_leader(trees: Trees, episodes: int, seed: int, rollouts: int | None = None) -> Iterator[Episode]:
    """Yield the episodes of `run_follow_the_leader`, whose leader is the action with the smaller Q̃ over all visits."""
    generator = np.random.default_rng(seed)
    policy = generator.integers(2, size=(trees.trials, trees.means.shape[1] - 1), dtype=np.int8)
    lane = np.arange(trees.trials)
    best = trees.means.min(axis=1)
    total = np.zeros((2, *policy.shape)) if rollouts else None  # of Q̃ so far
    for _ in range(episodes):
        nodes, actions = walk_down(trees, lambda level, node: policy[lane, node])
        q = query_expert(trees, nodes, generator, rollouts)
        yield Episode(policy, nodes, actions, q, trees.v_star[lane, 2 * nodes[:, -1] + 1 + actions[:, -1]] - best)
        here = lane[:, None], nodes
        if total is not None:  # what is exact is known at once
            total[:, *here] += q
            q = total[:, *here]
        policy[here] = q[1] < q[0]


def run_exponentiated_gradient(
    trees: Trees, episodes: int, seed: int, rollouts: int | None = 1, per_node: bool = False, step: float = 1.0
) -> Regret:
    """AggreVaTeD with EG (Theorem special_lower_noisy): one path an episode, Q̃ of both actions at its nodes.

    Q̃ is the mean of `rollouts` of π* from there, or exact. The policy is a mixture of base policies (the leaves), or,
    with `per_node`, a distribution π^s at each node (Eq. 7). η is `step` times the sharper one of docs/theory.md.
    """
    recorder = Recorder(trees.trials, episodes)
    for n, episode in enumerate(iter_exponentiated_gradient(trees, episodes, seed, rollouts, per_node, step), 1):
        recorder.add(n, episode.regret)
    kind = "π^s" if per_node else "base policies"
    return recorder.make_regret(f"AggreVaTeD, EG over {kind}, {'exact' if rollouts is None else 'noisy'} Q*")


def iter_exponentiated_gradient(
    trees: Trees, episodes: int, seed: int, rollouts: int | None = 1, per_node: bool = False, step: float = 1.0
) -> Iterator[Episode]:
    """The episodes of `run_exponentiated_gradient`."""
    generator = np.random.default_rng(seed)
    lane = np.arange(trees.trials)
    best = trees.means.min(axis=1)
    log_odds = np.zeros((trees.trials, trees.means.shape[1] - 1))  # of going right
    value = aggregate_leaves(trees.means, lambda left, right: (left + right) / 2)  # of π_n below each node
    eta = step * 2 * np.sqrt(np.log(2) / episodes)
    luck = np.empty((trees.decisions, trees.trials))

    def choose_action(level: int, node: Array) -> Array:
        drawn: Array = luck[level] < log_odds[lane, node]
        return drawn.astype(int)

    for _ in range(episodes):
        luck[:] = generator.logistic(size=luck.shape)
        nodes, actions = walk_down(trees, choose_action)
        q = query_expert(trees, nodes, generator, rollouts)
        yield Episode(log_odds, nodes, actions, q, value[:, 0] - best)
        here = lane[:, None], nodes
        log_odds[here] = update_log_odds(log_odds[here], actions, q, eta, per_node)
        update_values(value, log_odds, nodes, actions)


def walk_down(trees: Trees, go_right: Callable[[int, Array], Array]) -> tuple[Array, Array]:
    """(nodes, actions) [trials, D] of a path."""
    nodes, actions = (np.stack(x, axis=1) for x in zip(*iter_decisions(trees, go_right), strict=True))
    return nodes, actions


def query_expert(trees: Trees, nodes: Array, generator: np.random.Generator, rollouts: int | None) -> Array:
    """Q̃ [2, trials, D] of going left and right at these nodes: the mean of so many roll-outs of π*, or exact."""
    lane = np.arange(trees.trials)[:, None]
    q: Array = trees.v_star[lane, 2 * nodes + np.array([1, 2])[:, None, None]]
    return q if rollouts is None else generator.binomial(rollouts, q) / rollouts


def update_log_odds(log_odds: Array, actions: Array, q: Array, eta: float, per_node: bool) -> Array:
    """The new log-odds [trials, D] of going right at the nodes of one path, from Q̃ [2, trials, D] of both actions."""
    if per_node:
        updated: Array = log_odds + eta * (q[0] - q[1])
        return updated
    sign = 2 * actions - 1
    taken = np.where(actions, q[1], q[0])
    other = np.where(actions, q[0], q[1])
    return sign * apply_base_policies_step(sign * log_odds, taken, other, eta)


def update_values(value: Array, log_odds: Array, nodes: Array, actions: Array) -> None:
    """Bring `value` [trials, S] up to date after the odds at these nodes [trials, D] of one path have changed.

    Only the nodes of the path have another value now, each from the one below it and from that beside the path.
    """
    lane = np.arange(len(value))[:, None]
    sign = 2 * actions - 1
    child = 2 * nodes + 1
    stays = np.exp(-np.logaddexp(0.0, -sign * log_odds[lane, nodes]))  # the probability of the action taken
    beside = (1 - stays) * value[lane, child + 1 - actions]
    below = value[lane[:, 0], child[:, -1] + actions[:, -1]]  # the leaf
    path = np.empty_like(stays)
    for level in range(path.shape[1] - 1, -1, -1):
        path[:, level] = below = stays[:, level] * below + beside[:, level]
    value[lane, nodes] = path
