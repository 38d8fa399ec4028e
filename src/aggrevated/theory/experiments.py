"""The four experiments of `aggrevated theory`: which algorithms on which instances, beside which bound."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from aggrevated.arrays import Array
from aggrevated.simulators.tabular import optimal_q, random_mdps
from aggrevated.theory import bounds, finite_mdp, one_step, tree
from aggrevated.theory.bandits import index_policy, moss, ucb1
from aggrevated.theory.study import Growth, Regret, Study, slope, when
from aggrevated.theory.ucbvi import ucbvi
from aggrevated.updates.natural import Natural
from aggrevated.updates.regular import Regular

RANDOM_TREES, DEEPEST = 1000, 16  # for Theorem special_upper: all depths from 2 on
UCB1_BONUS, MOSS_BONUS = 0.25, 0.5  # of their own: the best of 1/4, 1/2 and 1 on these instances at depths 10 and 12
REINFORCE_RATE, TNPG_DELTA = 0.3, 0.03  # the best of a few on such MDPs


def tree_study(depth: int, episodes: int, trials: int, seed: int) -> Study:
    """Theorems special_upper and special_lower: instances with one good leaf, better by ½√(L/N)."""
    leaves, gap, points = 2 ** (depth - 1), hard_gap(depth, episodes), when(episodes)
    regrets = on_hard_trees(depth, episodes, trials, seed)
    depths = [d for d in range(depth - 6, depth, 2) if d >= 4]
    in_s = {2**d - 1: on_hard_trees(d, episodes, trials, seed) for d in depths} | {2**depth - 1: regrets}
    fewer = halvings(episodes, least=2 * leaves)
    in_n = {n: on_hard_trees(depth, n, trials, seed) for n in fewer} | {episodes: regrets}
    last = {regret.label: float(regret.curve[:, -1].mean()) for regret in regrets}
    best_rl = min(last[r.label] for r in regrets if not r.learns_from_expert)
    return Study(
        "tree",
        f"The tree, depth {depth} (S = {2**depth - 1:,}), one good leaf",
        {"depth": depth, "episodes": episodes, "trials": trials, "seed": seed},
        points,
        tuple(regrets),
        bounds.special_upper(depth, points, gap),
        "Theorem special_upper, (K−1)·gap",
        (regrets[3].label,),
        tuple(g for g in (*growth("N", in_n), *growth("S", in_s)) if g.label != regrets[3].label),  # its gap varies
        bounds.special_lower(leaves, gap, points),
        "Theorem special_lower: no RL below, in the mean",
        gap * points * (1 - 1 / leaves),
        ratio("ratio_of_best_rl_to_aggrevate", best_rl, last[regrets[3].label]) | on_random_trees(depth, seed),
    )


def on_hard_trees(depth: int, episodes: int, trials: int, seed: int) -> list[Regret]:
    """Two bandits over leaves, and AggreVaTeD and AggreVaTe, on the instances with one good leaf."""
    trees = tree.one_good_leaf(trials, depth, hard_gap(depth, episodes), seed)
    return [
        index_policy(trees.means, episodes, ucb1, "UCB1 over leaves, ¼ bonus", seed, UCB1_BONUS),
        index_policy(trees.means, episodes, moss, "MOSS over leaves, ½ bonus", seed, MOSS_BONUS),
        tree.exponentiated_gradient(trees, episodes, seed),
        tree.follow_the_leader(trees, episodes, seed)[0],
    ]


def hard_gap(depth: int, episodes: int) -> float:
    """½ √(L/N), and below 1/2: the order at which bandits are hardest."""
    return min(0.49, 0.5 * float(np.sqrt(2 ** (depth - 1) / episodes)))


def on_random_trees(depth: int, seed: int) -> dict[str, Any]:
    """Facts of Theorem special_upper on trees of all depths from 2 on: AggreVaTe needs at most K − 1 episodes."""
    found = {d: slowest(d, seed) for d in range(2, max(depth, DEEPEST) + 1)}
    return {
        "random_trees": RANDOM_TREES,
        "most_episodes_to_the_best_leaf": {str(d): worst for d, (worst, _) in found.items()},
        "random_trees_within_k_minus_1": all(worst <= d - 1 for d, (worst, _) in found.items()),
        "regret_on_random_trees": {str(d): round(mean, 4) for d, (_, mean) in found.items()},
        "regret_per_level": slope(np.array(list(found)), np.array([mean for _, mean in found.values()])),
    }


def slowest(depth: int, seed: int, batch: int = 100) -> tuple[int, float]:
    """(the most episodes until AggreVaTe reaches the best leaf, its mean regret) on random trees and first policies."""
    found, regret = [], []
    for part in range(RANDOM_TREES // batch):
        trees = tree.uniform_leaves(batch, depth, seed + 1000 * part)
        one, after = tree.follow_the_leader(trees, depth, seed + 1000 * part + 1)
        found.append(after.max())
        regret.append(one.curve[:, -1].mean())
    return int(max(found)), float(np.mean(regret))


def tree_noisy_study(depth: int, episodes: int, trials: int, seed: int, rollouts: int) -> Study:
    """Theorem special_lower_noisy: Q̃ by roll-outs of π*, one good leaf, better by 1/4."""
    gap, points = 0.25, when(episodes)

    def all_on(depth: int, episodes: int) -> list[Regret]:
        trees = tree.one_good_leaf(trials, depth, gap, seed)
        return [
            tree.exponentiated_gradient(trees, episodes, seed, rollouts),
            tree.exponentiated_gradient(trees, episodes, seed, rollouts, per_node=True),
        ]

    regrets = all_on(depth, episodes)
    depths = [d for d in range(depth - 8, depth, 2) if d >= 4]
    in_s = {2**d - 1: all_on(d, episodes) for d in depths} | {2**depth - 1: regrets}
    in_n = {n: all_on(depth, n) for n in halvings(episodes, least=100)} | {episodes: regrets}
    growths = (*growth("N", in_n), *growth("S", in_s))
    of_ln_s = {g.label: round(slope(np.log(np.log(g.x)), np.log(g.regret)), 4) for g in growths if g.of == "S"}
    return Study(
        "tree-noisy",
        f"The tree with noisy Q*, depth {depth} (S = {2**depth - 1:,})",
        {"depth": depth, "episodes": episodes, "trials": trials, "seed": seed, "rollouts": rollouts, "gap": gap},
        points,
        tuple(regrets),
        bounds.special_lower_noisy(depth, points),
        "Theorem special_lower_noisy, δ = 0.05",
        tuple(regret.label for regret in regrets),
        growths,
        more={"exponents_of_ln_s": of_ln_s},
    )


def mdp_study(states: int, actions: int, horizon: int, episodes: int, trials: int, seed: int, rollouts: int) -> Study:
    """Theorem upper_bound on random MDPs, with UCBVI, REINFORCE and TNPG beside it."""

    def imitation(states: int, episodes: int) -> list[Regret]:
        return with_an_expert(random_mdps(trials, states, actions, seed), horizon, episodes, seed, rollouts)

    mdps, points, regrets = random_mdps(trials, states, actions, seed), when(episodes), imitation(states, episodes)
    sizes = {"states": states, "actions": actions, "horizon": horizon}
    largest = float(optimal_q(*mdps[:2], horizon).max())
    exact_bound = bounds.upper_bound(horizon, largest, states, actions, points)
    in_n = {n: imitation(states, n) for n in halvings(episodes, least=500, times=3)} | {episodes: regrets}
    in_s = {s: imitation(s, episodes) for s in (states // 4, states // 2) if s >= 2} | {states: regrets}
    return Study(
        "mdp",
        f"Random MDPs, S = {states}, A = {actions}, H = {horizon}",
        {**sizes, "episodes": episodes, "trials": trials, "seed": seed, "rollouts": rollouts},
        points,
        (*regrets, *without_an_expert(mdps, horizon, episodes, seed)),
        bounds.noisy_upper_bound(horizon, largest, states, actions, points),
        "Theorem upper_bound with noisy Q*, δ = 0.05",
        tuple(regret.label for regret in regrets),
        (*growth("N", in_n), *growth("S", in_s)),
        more={"largest_ratio_of_exact_to_exact_bound": float((regrets[0].curve / exact_bound).max())},
    )


def with_an_expert(mdps: finite_mdp.Mdps, horizon: int, episodes: int, seed: int, rollouts: int) -> list[Regret]:
    """AggreVaTeD with exact and with noisy Q*."""
    noise = finite_mdp.rolled_out(mdps, rollouts)
    return [
        finite_mdp.exact(mdps, horizon, episodes),
        finite_mdp.sampled(mdps, horizon, episodes, seed, noise, "AggreVaTeD, EG, noisy Q*"),
    ]


def without_an_expert(mdps: finite_mdp.Mdps, horizon: int, episodes: int, seed: int) -> list[Regret]:
    """Reinforcement learning on the same MDPs: UCBVI, REINFORCE and TNPG."""
    return [
        ucbvi(mdps, horizon, episodes, seed),
        finite_mdp.policy_gradient(mdps, horizon, episodes, seed, lambda: Regular(REINFORCE_RATE), "REINFORCE", k=50),
        finite_mdp.policy_gradient(mdps, horizon, episodes, seed, lambda: Natural(TNPG_DELTA, 1.0), "TNPG", k=50),
    ]


def lower_bound_study(states: int, actions: int, episodes: int, trials: int, seed: int) -> Study:
    """Theorem lower_bound: H = 1, one good action in every state, better by ½√(S ln A / N)."""
    points = when(episodes)

    def regret(states: int, episodes: int) -> list[Regret]:
        gap = one_step.hard_gap(states, actions, episodes)
        return [one_step.exponentiated_gradient(trials, states, actions, episodes, gap, seed)]

    regrets, gap = regret(states, episodes), one_step.hard_gap(states, actions, episodes)
    in_n = {n: regret(states, n) for n in halvings(episodes, least=100)} | {episodes: regrets}
    in_s = {s: regret(s, episodes) for s in (states // 8, states // 4, states // 2) if s >= 2} | {states: regrets}
    at_the_end = float(regrets[0].curve[:, -1].mean())
    lower = one_step.no_algorithm_below(states, actions, episodes, gap)[points - 1]
    return Study(
        "lower-bound",
        f"One step, S = {states}, A = {actions}",
        {"states": states, "actions": actions, "episodes": episodes, "trials": trials, "seed": seed, "gap": gap},
        points,
        tuple(regrets),
        bounds.upper_bound(1, 1.0, states, actions, points),
        "Theorem upper_bound with H = 1",
        (regrets[0].label,),
        (*growth("N", in_n), *growth("S", in_s)),
        lower,
        "Theorem lower_bound: no algorithm below, by Fano",
        gap * points * (1 - 1 / actions),
        {"lower_bound": float(lower[-1])} | ratio("regret_over_lower_bound", at_the_end, float(lower[-1])),
    )


def ratio(name: str, above: float, below: float) -> dict[str, float]:
    """One entry, or none where there is nothing to divide by."""
    return {name: above / below} if below > 0 else {}


def halvings(episodes: int, least: int, times: int = 4) -> list[int]:
    """N/2^times … N/2, from `least` on."""
    return [n for n in (episodes >> power for power in range(times, 0, -1)) if n >= least]


def growth(of: str, runs: Mapping[int, Iterable[Regret]]) -> list[Growth]:
    """The regret at the end of each algorithm, over what was varied."""
    x = np.array(list(runs), float)
    columns: dict[str, list[float]] = {}
    for regrets in runs.values():
        for regret in regrets:
            columns.setdefault(regret.label, []).append(float(regret.curve[:, -1].mean()))
    return [Growth(of, label, x, np.array(y)) for label, y in columns.items() if len(y) > 1]


@dataclass(frozen=True)
class Experiment:
    """One of the four: what runs it, and with what by default, on the command line and in the docs."""

    run: Callable[..., Study]
    defaults: Mapping[str, Any]
    docs: Mapping[str, Any]


COMMON = {"trials": 20, "seed": 0}
EXPERIMENTS = {
    "tree": Experiment(tree_study, {"depth": 10, "episodes": 8192, **COMMON}, {"depth": 14, "episodes": 65536}),
    "tree-noisy": Experiment(
        tree_noisy_study, {"depth": 10, "episodes": 4000, **COMMON, "rollouts": 1}, {"depth": 16, "episodes": 10000}
    ),
    "mdp": Experiment(
        mdp_study,
        {"states": 8, "actions": 3, "horizon": 2, "episodes": 4000, "trials": 10, "seed": 0, "rollouts": 1},
        {"episodes": 64000},
    ),
    "lower-bound": Experiment(
        lower_bound_study, {"states": 32, "actions": 16, "episodes": 16000, **COMMON}, {"states": 64, "episodes": 32000}
    ),
}


@dataclass(frozen=True)
class RegretRow:
    """One algorithm of a study: its regret at N, with the spread over trials, and how it grows."""

    algorithm: str
    regret: float
    least: float
    most: float
    exponent_n: float | None  # None where it was not fitted
    exponent_s: float | None


def table(study: Study) -> list[RegretRow]:
    """A row for each algorithm."""

    def exponent(of: str, label: str) -> float | None:
        fits = [g.exponent for g in study.growths if g.of == of and g.label == label]
        return fits[0] if fits else None

    rows = []
    for regret in study.regrets:
        last: Array = regret.curve[:, -1]
        exponents = exponent("N", regret.label), exponent("S", regret.label)
        rows.append(RegretRow(regret.label, float(last.mean()), float(last.min()), float(last.max()), *exponents))
    return rows
