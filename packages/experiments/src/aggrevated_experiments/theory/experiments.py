"""The four experiments of `aggrevated theory`: algorithms, instances and bounds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aggrevated.simulators.tabular import compute_optimal_q, make_random_mdps
from aggrevated.updates import Update
from aggrevated.updates.natural import NaturalUpdate
from aggrevated.updates.regular import RegularUpdate
from aggrevated_experiments.theory import bounds, finite_mdp, one_step, tree
from aggrevated_experiments.theory.bandits import Bonus, compute_moss_bonus, compute_ucb1_bonus, run_index_policy
from aggrevated_experiments.theory.study import Growth, Regret, Study, TuningTrial, fit_slope, list_recorded_episodes
from aggrevated_experiments.theory.tuning import Tunable, choose_setting, list_plotted_settings, tune
from aggrevated_experiments.theory.ucbvi import run_ucbvi

# random trees for Theorem special_upper, of all depths from 2 on
RANDOM_TREES = 1000
MAX_RANDOM_TREE_DEPTH = 16
UCB1_BONUS = 0.25  # factor of UCB1's bonus in the game
STEP_FACTORS = (1.0, 10.0, 100.0, 1000.0)  # times the theorem's step
BONUS_FACTORS = (1.0, 0.3, 0.1, 0.03)  # times the theorem's bonus, closer together than steps
RATES = (0.03, 0.1, 0.3, 1.0)  # Adam's learning rate and δ_KL, which no theorem gives


def run_tree_study(depth: int, episodes: int, trials: int, seed: int) -> Study:
    """Run Theorems special_upper and special_lower: instances with one good leaf, better by ½√(L/N)."""
    leaves = 2 ** (depth - 1)
    gap = compute_hard_gap(depth, episodes)
    points = list_recorded_episodes(episodes)
    algorithms = make_hard_tree_tunables(depth, episodes, trials)
    tried = [trial for algorithm in algorithms for trial in tune(algorithm, seed)]
    leader = run_leader_on_hard_trees(depth, episodes, trials, seed)
    regrets = [*run_plotted_settings(algorithms, tried, seed), leader]

    def run_growth(depth: int, episodes: int) -> list[Regret]:
        return run_growth_settings(make_hard_tree_tunables(depth, episodes, trials), tried, seed)

    depths = [d for d in range(depth - 6, depth + 1, 2) if d >= 4]
    shorter = [*list_halvings(episodes, least=2 * leaves), episodes]
    in_n = {n: run_growth(depth, n) for n in shorter}
    in_s = {2**d - 1: run_growth(d, episodes) for d in depths}
    last = {regret.label: float(regret.last.mean()) for regret in regrets}
    best_rl = min(last[r.label] for r in regrets if not r.learns_from_expert)
    imitator = algorithms[-1].algorithm
    bandit = choose_best_label(tried, [algorithm.algorithm for algorithm in algorithms[:-1]])
    return Study(
        "tree",
        f"The tree, depth {depth} (S = {2**depth - 1:,}), one good leaf",
        {"depth": depth, "episodes": episodes, "trials": trials, "seed": seed},
        points,
        tuple(regrets),
        bounds.compute_special_upper_bound(depth, points, gap),
        "Theorem special_upper, (K−1)·gap",
        (leader.label,),
        (*compute_growths("N", in_n), *compute_growths("S", in_s)),
        bounds.compute_special_lower_bound(leaves, gap, points),
        "Theorem special_lower: no RL below, in the mean",
        gap * points * (1 - 1 / leaves),
        make_ratio_entry("ratio_of_best_rl_to_aggrevate", best_rl, last[leader.label])
        | summarize_random_trees(depth, seed),
        tuple(tried),
        make_comparison_pairs(bandit, imitator, choose_setting(tried, imitator).label, leader.label),
    )


def make_hard_tree_tunables(depth: int, episodes: int, trials: int) -> list[Tunable]:
    """Return two bandits over leaves, and AggreVaTeD, on the instances with one good leaf."""

    def make_trees(seed: int) -> tree.Trees:
        return tree.make_hard_trees(trials, depth, compute_hard_gap(depth, episodes), seed)

    def make_bandit(bonus: Bonus, label: str) -> Tunable:
        return Tunable(
            label,
            "bonus ×",
            BONUS_FACTORS,
            lambda seed, x: run_index_policy(make_trees(seed).means, episodes, bonus, "", seed, x),
        )

    def run_imitation(seed: int, step: float) -> Regret:
        return tree.run_exponentiated_gradient(make_trees(seed), episodes, seed, step=step)

    label = "AggreVaTeD, EG over base policies, noisy Q*"
    return [
        make_bandit(compute_ucb1_bonus, "UCB1 over leaves"),
        make_bandit(compute_moss_bonus, "MOSS over leaves"),
        Tunable(label, "step ×", STEP_FACTORS, run_imitation),
    ]


def run_leader_on_hard_trees(depth: int, episodes: int, trials: int, seed: int) -> Regret:
    """Return the regret of AggreVaTe, which has nothing to tune, on the same instances."""
    trees = tree.make_hard_trees(trials, depth, compute_hard_gap(depth, episodes), seed)
    return tree.run_follow_the_leader(trees, episodes, seed)[0]


def run_plotted_settings(algorithms: Iterable[Tunable], tried: Sequence[TuningTrial], seed: int) -> list[Regret]:
    """Return the regret of each algorithm with the theorem's setting and with the tuned one."""
    return [one.run_setting(seed, value) for one in algorithms for value in list_plotted_settings(one, tried)]


def run_growth_settings(algorithms: Iterable[Tunable], tried: Sequence[TuningTrial], seed: int) -> list[Regret]:
    """Return the regret of each tuned algorithm, and of imitation with the theorem's setting."""
    regrets = []
    for algorithm in algorithms:
        settings = list_plotted_settings(algorithm, tried)
        regrets += [
            algorithm.run_setting(seed, value) for value in (settings if algorithm.what == "step ×" else settings[-1:])
        ]
    return regrets


def choose_best_label(tried: Sequence[TuningTrial], algorithms: Iterable[str]) -> str:
    """Return the label of the tuned algorithm with the smallest regret in tuning."""
    return min((choose_setting(tried, algorithm) for algorithm in algorithms), key=lambda one: one.regret).label


def make_comparison_pairs(rl: str, *imitators: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of each imitator and the RL algorithm."""
    return tuple((imitator, rl) for imitator in dict.fromkeys(imitators))


def compute_hard_gap(depth: int, episodes: int) -> float:
    """Return ½ √(L/N), below 1/2: the order at which bandits are hardest."""
    return min(0.49, 0.5 * float(np.sqrt(2 ** (depth - 1) / episodes)))


def summarize_random_trees(depth: int, seed: int) -> dict[str, Any]:
    """Return numbers of Theorem special_upper on random trees: AggreVaTe needs at most K − 1 episodes."""
    by_depth = {d: run_leader_on_random_trees(d, seed) for d in range(2, max(depth, MAX_RANDOM_TREE_DEPTH) + 1)}
    return {
        "random_trees": RANDOM_TREES,
        "most_episodes_to_the_best_leaf": {str(d): worst for d, (worst, _) in by_depth.items()},
        "random_trees_within_k_minus_1": all(worst <= d - 1 for d, (worst, _) in by_depth.items()),
        "regret_on_random_trees": {str(d): round(mean, 4) for d, (_, mean) in by_depth.items()},
        "regret_per_level": fit_slope(np.array(list(by_depth)), np.array([mean for _, mean in by_depth.values()])),
    }


def run_leader_on_random_trees(depth: int, seed: int, batch: int = 100) -> tuple[int, float]:
    """Return the largest number of episodes until AggreVaTe reaches the best leaf, and its mean regret.

    Trees and first policies are random.
    """
    most_episodes = []
    mean_regrets = []
    for part in range(RANDOM_TREES // batch):
        trees = tree.make_random_trees(batch, depth, seed + 1000 * part)
        regret, episodes = tree.run_follow_the_leader(trees, depth, seed + 1000 * part + 1)
        most_episodes.append(episodes.max())
        mean_regrets.append(regret.curve[:, -1].mean())
    return int(max(most_episodes)), float(np.mean(mean_regrets))


def run_tree_noisy_study(depth: int, episodes: int, trials: int, seed: int, rollouts: int) -> Study:
    """Run Theorem special_lower_noisy: Q̃ by roll-outs of π*, one good leaf, better by 1/4."""
    gap = 0.25
    points = list_recorded_episodes(episodes)

    def run_all(depth: int, episodes: int) -> list[Regret]:
        trees = tree.make_hard_trees(trials, depth, gap, seed)
        return [
            tree.run_exponentiated_gradient(trees, episodes, seed, rollouts),
            tree.run_exponentiated_gradient(trees, episodes, seed, rollouts, per_node=True),
        ]

    regrets = run_all(depth, episodes)
    depths = [d for d in range(depth - 8, depth, 2) if d >= 4]
    in_s = {2**d - 1: run_all(d, episodes) for d in depths} | {2**depth - 1: regrets}
    in_n = {n: run_all(depth, n) for n in list_halvings(episodes, least=100)} | {episodes: regrets}
    growths = (*compute_growths("N", in_n), *compute_growths("S", in_s))
    of_ln_s = {
        g.label: round(fit_slope(np.log(np.log(g.x)), np.log(g.regret)), 4) for g in growths if g.quantity == "S"
    }
    return Study(
        "tree-noisy",
        f"The tree with noisy Q*, depth {depth} (S = {2**depth - 1:,})",
        {"depth": depth, "episodes": episodes, "trials": trials, "seed": seed, "rollouts": rollouts, "gap": gap},
        points,
        tuple(regrets),
        bounds.compute_special_lower_noisy_bound(depth, points),
        "Theorem special_lower_noisy, δ = 0.05",
        tuple(regret.label for regret in regrets),
        growths,
        more={"exponents_of_ln_s": of_ln_s},
    )


def run_mdp_study(
    states: int, actions: int, horizon: int, episodes: int, trials: int, seed: int, rollouts: int
) -> Study:
    """Run Theorem upper_bound on random MDPs, together with UCBVI, REINFORCE and TNPG."""
    points = list_recorded_episodes(episodes)
    largest = float(compute_optimal_q(*make_random_mdps(trials, states, actions, seed)[:2], horizon).max())

    def make_imitators(states: int, episodes: int) -> tuple[Tunable, Tunable]:
        return make_expert_tunables(trials, states, actions, horizon, episodes, rollouts)

    exact, noisy = with_expert = make_imitators(states, episodes)
    without = make_rl_tunables(trials, states, actions, horizon, episodes)
    tried = [trial for algorithm in (*with_expert, *without) for trial in tune(algorithm, seed)]
    imitating = run_plotted_settings(with_expert, tried, seed)
    sizes = [s for s in (states // 4, states // 2) if s >= 2]
    shorter = list_halvings(episodes, least=500, times=3)
    in_n = {n: run_plotted_settings(make_imitators(states, n), tried, seed) for n in shorter} | {episodes: imitating}
    in_s = {s: run_plotted_settings(make_imitators(s, episodes), tried, seed) for s in sizes} | {states: imitating}
    exact_bound = bounds.compute_upper_bound(horizon, largest, states, actions, points)
    rl = choose_best_label(tried, [algorithm.algorithm for algorithm in without])
    settings = {"states": states, "actions": actions, "horizon": horizon, "episodes": episodes}
    return Study(
        "mdp",
        f"Random MDPs, S = {states}, A = {actions}, H = {horizon}",
        {**settings, "trials": trials, "seed": seed, "rollouts": rollouts},
        points,
        (*imitating, *run_plotted_settings(without, tried, seed)),
        bounds.compute_noisy_upper_bound(horizon, largest, states, actions, points),
        "Theorem upper_bound with noisy Q*, δ = 0.05",
        (exact.algorithm, noisy.algorithm),
        (*compute_growths("N", in_n), *compute_growths("S", in_s)),
        more={"largest_ratio_of_exact_to_exact_bound": float((imitating[0].curve / exact_bound).max())},
        tuning=tuple(tried),
        compared_labels=(
            *make_comparison_pairs(rl, noisy.algorithm, choose_setting(tried, noisy.algorithm).label),
            *make_comparison_pairs(rl, exact.algorithm, choose_setting(tried, exact.algorithm).label),
            *make_comparison_pairs(without[0].algorithm, noisy.algorithm),
        ),
    )


def make_expert_tunables(
    trials: int, states: int, actions: int, horizon: int, episodes: int, rollouts: int
) -> tuple[Tunable, Tunable]:
    """Return AggreVaTeD with exact and with noisy Q*."""

    def run_exact(seed: int, step: float) -> Regret:
        return finite_mdp.run_with_exact_q(make_random_mdps(trials, states, actions, seed), horizon, episodes, step)

    def run_noisy(seed: int, step: float) -> Regret:
        mdps = make_random_mdps(trials, states, actions, seed)
        return finite_mdp.run_with_sampled_q(
            mdps, horizon, episodes, seed, finite_mdp.make_rollout_noise(mdps, rollouts), "", step
        )

    return (
        Tunable("AggreVaTeD, EG, exact Q*", "step ×", STEP_FACTORS, run_exact),
        Tunable("AggreVaTeD, EG, noisy Q*", "step ×", STEP_FACTORS, run_noisy),
    )


def make_rl_tunables(trials: int, states: int, actions: int, horizon: int, episodes: int) -> list[Tunable]:
    """Return reinforcement learning on the same MDPs: UCBVI, REINFORCE and TNPG."""

    def run_optimist(seed: int, bonus: float) -> Regret:
        return run_ucbvi(make_random_mdps(trials, states, actions, seed), horizon, episodes, seed, bonus)

    def make_gradient_runner(update: Callable[[float], Update]) -> Callable[[int, float], Regret]:
        def run(seed: int, setting: float) -> Regret:
            mdps = make_random_mdps(trials, states, actions, seed)
            return finite_mdp.run_policy_gradient(mdps, horizon, episodes, seed, lambda: update(setting), "", k=50)

        return run

    return [
        Tunable("UCBVI", "bonus ×", BONUS_FACTORS, run_optimist),
        Tunable("REINFORCE", "rate", RATES, make_gradient_runner(RegularUpdate), has_theorem=False),
        Tunable(
            "TNPG", "δ_KL", RATES, make_gradient_runner(lambda delta: NaturalUpdate(delta, 1.0)), has_theorem=False
        ),
    ]


def run_lower_bound_study(states: int, actions: int, episodes: int, trials: int, seed: int) -> Study:
    """Run Theorem lower_bound: H = 1, one good action in each state, better by ½√(S ln A / N)."""
    points = list_recorded_episodes(episodes)

    def run_instances(states: int, episodes: int) -> list[Regret]:
        gap = one_step.compute_hard_gap(states, actions, episodes)
        return [one_step.run_exponentiated_gradient(trials, states, actions, episodes, gap, seed)]

    regrets = run_instances(states, episodes)
    gap = one_step.compute_hard_gap(states, actions, episodes)
    in_n = {n: run_instances(states, n) for n in list_halvings(episodes, least=100)} | {episodes: regrets}
    in_s = {s: run_instances(s, episodes) for s in (states // 8, states // 4, states // 2) if s >= 2} | {
        states: regrets
    }
    at_the_end = float(regrets[0].curve[:, -1].mean())
    lower = one_step.compute_fano_lower_bound(states, actions, episodes, gap)[points - 1]
    return Study(
        "lower-bound",
        f"One step, S = {states}, A = {actions}",
        {"states": states, "actions": actions, "episodes": episodes, "trials": trials, "seed": seed, "gap": gap},
        points,
        tuple(regrets),
        bounds.compute_upper_bound(1, 1.0, states, actions, points),
        "Theorem upper_bound with H = 1",
        (regrets[0].label,),
        (*compute_growths("N", in_n), *compute_growths("S", in_s)),
        lower,
        "Theorem lower_bound: no algorithm below, by Fano",
        gap * points * (1 - 1 / actions),
        {"lower_bound": float(lower[-1])} | make_ratio_entry("regret_over_lower_bound", at_the_end, float(lower[-1])),
    )


def make_ratio_entry(name: str, above: float, below: float) -> dict[str, float]:
    """Return one entry with the ratio; {} if the denominator is not positive."""
    return {name: above / below} if below > 0 else {}


def list_halvings(episodes: int, least: int, times: int = 4) -> list[int]:
    """Return N/2^times … N/2, from `least` on."""
    return [n for n in (episodes >> power for power in range(times, 0, -1)) if n >= least]


def compute_growths(quantity: str, runs: Mapping[int, Iterable[Regret]]) -> list[Growth]:
    """Return each algorithm's regret at the end over the varied quantity."""
    x = np.array(list(runs), float)
    columns: dict[str, list[float]] = {}
    for regrets in runs.values():
        for regret in regrets:
            columns.setdefault(regret.label, []).append(float(regret.curve[:, -1].mean()))
    return [Growth(quantity, label, x, np.array(y)) for label, y in columns.items() if len(y) > 1]


@dataclass(frozen=True)
class Experiment:
    """One experiment: its function, and its settings by default, in the docs and with --quick."""

    run: Callable[..., Study]
    defaults: Mapping[str, Any]
    docs: Mapping[str, Any]
    quick: Mapping[str, Any] = field(default_factory=dict)  # for `reproduce theory --quick`


COMMON_DEFAULTS = {"trials": 20, "seed": 0}
EXPERIMENTS = {
    "tree": Experiment(
        run_tree_study, {"depth": 10, "episodes": 8192, **COMMON_DEFAULTS}, {"depth": 12, "episodes": 32768}
    ),
    "tree-noisy": Experiment(
        run_tree_noisy_study,
        {"depth": 10, "episodes": 4000, **COMMON_DEFAULTS, "rollouts": 1},
        {"depth": 16, "episodes": 10000},
    ),
    "mdp": Experiment(
        run_mdp_study,
        {"states": 8, "actions": 3, "horizon": 2, "episodes": 4000, "trials": 10, "seed": 0, "rollouts": 1},
        {"episodes": 16000},
        {"episodes": 500, "trials": 5},
    ),
    "lower-bound": Experiment(
        run_lower_bound_study,
        {"states": 32, "actions": 16, "episodes": 16000, **COMMON_DEFAULTS},
        {"states": 64, "episodes": 32000},
    ),
}


@dataclass(frozen=True)
class RegretRow:
    """One algorithm of a study: its regret at N with interval and range over trials, and its growth."""

    algorithm: str
    regret: float
    low: float
    high: float
    least: float
    most: float
    exponent_n: float | None  # None without a fit
    exponent_s: float | None


def make_regret_rows(study: Study) -> list[RegretRow]:
    """Return a row for each algorithm."""

    def find_exponent(of: str, label: str) -> float | None:
        fits = [g.exponent for g in study.growths if g.quantity == of and g.label == label]
        return fits[0] if fits else None

    rows = []
    for regret in study.regrets:
        exponents = find_exponent("N", regret.label), find_exponent("S", regret.label)
        extremes = float(regret.last.min()), float(regret.last.max())
        rows.append(RegretRow(regret.label, *regret.mean(), *extremes, *exponents))
    return rows
