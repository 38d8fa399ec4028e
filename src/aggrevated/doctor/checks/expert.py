"""Checks of the expert's actions: its return, their order, their agreement with its costs, and its headroom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import estimate_standard_error
from aggrevated.doctor.examination import CHANGED_SHARE, IMPROVED_SHARE, Examination
from aggrevated.doctor.findings import BootstrapEstimate, Finding, estimate_mean
from aggrevated.doctor.probes import PerturbedExpert, run_discounted_rollouts
from aggrevated.doctor.time_budget import run_largest_affordable
from aggrevated.experts import DiscreteQExpert, StateValueExpert
from aggrevated.experts.checked import query_q_values, query_state_values
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import find_action_mask, find_reseedable
from aggrevated.simulators.checked import reset_and_check, step_and_check

# Return here above that of random actions, as a fraction of the return in training above it. Below this fraction, the
# expert or its environment is another one.
MIN_TRAINING_RETURN_FRACTION = 0.5


def check_returns(exam: Examination) -> Iterator[Finding]:
    """Check that the expert earns more than random actions, and about as much as in its training."""
    expert = exam.expert_trajectories
    random = exam.random_trajectories
    first = exam.first_policy_trajectories
    means = {name: estimate_mean(of.returns) for name, of in (("expert", expert), ("random", random), ("first", first))}
    numbers = {name: mean.to_list() for name, mean in means.items()}
    numbers |= {f"{name}_episodes": [episodes.count] for name, episodes in (("expert", expert), ("random", random))}
    shared = min(expert.count, random.count)
    difference = estimate_mean(expert.returns[:shared] - random.returns[:shared])
    error = estimate_standard_error(expert.returns)
    plus_minus = f" ± {error:.1f}" if error is not None else ""
    details = (
        f"its mean return is {means['expert'].value:.1f}{plus_minus} ({expert.count} episodes), that of random actions "
        f"{means['random'].value:.1f}, that of the untrained policy {means['first'].value:.1f}"
    )
    if difference.high < 0:
        remedy = "check the sign of its costs, the order of its actions, and that it was made for this environment"
        yield Finding("return", "fault", f"the expert is worse than random actions: {details}", remedy, numbers)
    elif difference.low <= 0:
        remedy = "check that it was made for this environment; if so, use reinforcement learning instead"
        sentence = f"the expert is not measurably better than random actions: {details}"
        yield Finding("return", "warning", sentence, remedy, numbers)
    else:
        sentence = f"the expert is better than random actions: {details}"
        yield Finding("return", "fine", sentence, numbers=numbers)
    yield from compare_with_training_return(exam, means["expert"], means["random"])


def compare_with_training_return(
    exam: Examination, mean: BootstrapEstimate, random: BootstrapEstimate
) -> Iterator[Finding]:
    """Compare the expert's return with that of its training, if that is known for episodes of the same length."""
    training = exam.training
    if training.mean_return is None or training.horizon not in (None, exam.horizon):
        return
    least = random.value + MIN_TRAINING_RETURN_FRACTION * (training.mean_return - random.value)
    numbers = {"here": mean.to_list(), "in_training": training.mean_return}
    if mean.high < least:
        sentence = (
            f"the expert's mean return is {mean.value:.1f} here, but {training.mean_return:.1f} "
            f"according to {training.source}"
        )
        remedy = "use the environment that the expert was trained in, with the same wrappers and normalization"
        yield Finding("training", "fault", sentence, remedy, numbers)


# Up to this many actions every order is tried; of more actions, those with two exchanged, and all reversed.
MAX_PERMUTED_ACTIONS = 4
EPISODES = 8
MAX_FRESH_EPISODES = 40
MIN_GAIN_FRACTION = 0.5  # gain of the changed expert, as a fraction of its return above that of random actions


def check_action_order(exam: Examination) -> Iterator[Finding]:
    """Roll the expert out with its actions changed, and compare the best change on fresh episodes."""
    space = exam.simulator.action_space
    if find_action_mask(exam.simulator) is not None:
        sentence = "the order of actions cannot be checked, since not every action is legal in every state"
        yield Finding("actions", "unknown", sentence)
        return
    changes = (
        list_candidate_permutations(int(space.n)) if isinstance(space, Discrete) else list_candidate_sign_flips(space)
    )

    def collect_returns(part: int, episodes: int, change: Callable[[Array], Array] | None) -> Array:
        expert = PerturbedExpert(exam.expert, change) if change else exam.expert
        return roll_in(exam.simulator, RollInPolicy(expert, None, 1.0), exam.make_seeds(part, episodes)).returns

    names = [*changes]
    seconds = CHANGED_SHARE * exam.seconds
    means = run_largest_affordable(
        lambda n: [collect_returns(2, EPISODES, changes[name]).mean() for name in names[:n]], len(names), seconds / 2
    )
    best = names[int(np.argmax(means))]
    collect_fresh = partial(collect_returns, 3)
    unchanged = run_largest_affordable(lambda n: collect_fresh(n, None), MAX_FRESH_EPISODES, seconds / 4)
    changed = run_largest_affordable(lambda n: collect_fresh(n, changes[best]), MAX_FRESH_EPISODES, seconds / 4)
    shared = min(len(unchanged), len(changed))
    gain = estimate_mean(changed[:shared] - unchanged[:shared])
    random = float(exam.random_trajectories.returns.mean())
    numbers = {
        "own": float(unchanged.mean()), "changed": float(changed.mean()), "change": best, "gain": gain.to_list(),
    }  # fmt: skip
    numbers |= {"tried": len(means)}
    if gain.low > MIN_GAIN_FRACTION * max(float(changed.mean()) - random, 0.0) and gain.low > 0:
        sentence = (
            f"with its actions {best} the expert has a mean return of {changed.mean():.1f}, "
            f"unchanged {unchanged.mean():.1f}"
        )
        remedy = "check the meaning of each action: the environment and the expert use another order or sign"
        yield Finding("actions", "fault", sentence, remedy, numbers)
    else:
        kind = "order" if isinstance(space, Discrete) else "sign or order"
        sentence = f"no other {kind} of its actions improves the expert's return ({len(means)} tried)"
        yield Finding("actions", "fine", sentence, "", numbers)


def list_candidate_permutations(count: int) -> dict[str, Callable[[Array], Array]]:
    """Return other orders of the actions, by their names."""
    if count <= MAX_PERMUTED_ACTIONS:
        orders = [order for order in permutations(range(count)) if order != tuple(range(count))]
    else:
        orders = [tuple(range(count))[::-1]]
        for one, other in combinations(range(count), 2):
            swapped = [*range(count)]
            swapped[one] = other
            swapped[other] = one
            orders.append(tuple(swapped))
    return {f"in the order {', '.join(map(str, order))}": partial(np.take, np.array(order)) for order in orders}


def list_candidate_sign_flips(space: Box) -> dict[str, Callable[[Array], Array]]:
    """Return changes of vectors, by their names: all or one number negated, and two numbers exchanged."""
    size = int(np.prod(space.shape))
    signs = {"all negated": -np.ones(size)}
    for index in range(size if size > 1 else 0):
        signs[f"negated at index {index}"] = np.where(np.arange(size) == index, -1.0, 1.0)
    changes: dict[str, Callable[[Array], Array]] = {name: partial(np.multiply, sign) for name, sign in signs.items()}
    for one, other in combinations(range(min(size, 6)), 2):
        order = np.arange(size)
        order[[one, other]] = other, one
        changes[f"exchanged at indices {one} and {other}"] = partial(permute_actions, order=order)
    return changes


def permute_actions(actions: Array, order: Array) -> Array:
    """Return actions [n, A] with the numbers of each vector in another order."""
    permuted: Array = actions[:, order]
    return permuted


# Fractions of the states in which the expert may act against its own costs: below the first, because of ties and
# rounding; above the second it is a fault.
MAX_DISAGREEMENT = 0.05
FAULT_DISAGREEMENT = 0.25
MAX_VALUE_GAP = 0.1  # difference of V and min Q, as a fraction of the variation of min Q


def check_greedy_consistency(exam: Examination) -> Iterator[Finding]:
    """Check that act = argmin Q, and V = min Q, for experts that have them."""
    expert = exam.expert
    space = exam.simulator.action_space
    if not isinstance(expert, DiscreteQExpert) or not isinstance(space, Discrete):
        return
    probes, _ = exam.probe_rollouts
    q = query_q_values(expert, probes.states, int(space.n))
    rows = np.arange(len(q))
    expert_actions = np.zeros(len(q), int)
    expert_actions[probes.probe[probes.is_expert_action]] = probes.action[probes.is_expert_action]
    tried = np.zeros(q.shape, bool)
    tried[probes.probe, probes.action] = True
    least = np.where(tried, q, np.inf).min(axis=1)
    disagreement = float((q[rows, expert_actions] > least + 1e-6 * abs(least)).mean())
    numbers = {"acts_otherwise": disagreement}
    if disagreement > MAX_DISAGREEMENT:
        remedy = "let its act choose the action of least q; or use --oracle monte-carlo, which does not use q"
        sentence = f"in {disagreement:.0%} of the states the expert's action is not the one of least cost by its own q"
        verdict = "fault" if disagreement > FAULT_DISAGREEMENT else "warning"
        yield Finding("agreement", verdict, sentence, remedy, numbers)  # type: ignore[arg-type]
    else:
        sentence = "the expert's actions are those of least cost by its own q"
        yield Finding("agreement", "fine", sentence, "", numbers)
    if isinstance(expert, StateValueExpert):
        gap = query_state_values(expert, probes.states) - q.min(axis=1)
        size = float(abs(gap).mean()) / max(float(q.min(axis=1).std()), 1e-12)
        if size > MAX_VALUE_GAP:
            sentence = (
                f"the expert's V is not the minimum of its Q: they differ by {float(abs(gap).mean()):.3g} on average"
            )
            yield Finding("agreement", "warning", sentence, "let v return the minimum of q", {"gap": size})


MIN_WORTHWHILE_GAIN = 0.01  # fraction of the expert's return above that of random actions: less is not worth a run
# Random streams per step of a stochastic simulator, of which the mean is taken. The episode itself uses another one.
SEEDS_PER_STEP = 4


def check_improvement(exam: Examination) -> Iterator[Finding]:
    """Estimate how much better the expert becomes if roll-outs of all actions decide some steps of fresh episodes."""
    numbers = summarize_action_gaps(exam)
    improved, decisions = run_largest_affordable(
        lambda n: (rollout_one_step_improvement(exam, n), n), exam.horizon, IMPROVED_SHARE * exam.seconds
    )
    alone = rollout_one_step_improvement(exam, 0)
    gain = estimate_mean(improved - alone)
    random = float(exam.random_trajectories.returns.mean())
    worthwhile = MIN_WORTHWHILE_GAIN * abs(float(alone.mean()) - random)
    share = decisions / exam.horizon
    numbers |= {"expert": [float(alone.mean())], "improved": [float(improved.mean())], "gain": gain.to_list()}
    numbers |= {"decisions": [decisions], "surpassed": [float(gain.low > worthwhile)]}
    details = (
        f"if roll-outs decide {share:.0%} of its steps, its mean return is {improved.mean():.1f} "
        f"instead of {alone.mean():.1f}"
    )
    if gain.low > worthwhile:
        sentence = f"the expert can be surpassed: {details}"
    elif share < 1:
        sentence = f"it is not known whether the expert can be surpassed: {details}; increase --seconds to find out"
    else:
        sentence = f"the expert can hardly be surpassed: {details}"
    verdict = "fine" if gain.low > worthwhile or share == 1 else "unknown"
    yield Finding("headroom", verdict, sentence, "", numbers)  # type: ignore[arg-type]


def summarize_action_gaps(exam: Examination) -> dict[str, list[float]]:
    """Return how often an action is better than the expert's, how much it saves, and how unequal mistakes are."""
    probes, rollouts = exam.probe_rollouts
    costs = rollouts.get_costs(1.0)
    expert_action_cost = np.full(len(probes.states), np.nan)
    expert_action_cost[probes.probe[probes.is_expert_action]] = costs[probes.is_expert_action]
    excess = costs - expert_action_cost[probes.probe]
    rows = np.flatnonzero(probes.on_expert_state & np.isfinite(excess))
    least = np.zeros(len(probes.states))
    np.minimum.at(least, probes.probe[rows], excess[rows])
    saved = -least[np.unique(probes.probe[rows])]
    mistakes = np.sort(excess[rows][excess[rows] > 0])[::-1]
    tenth = float(mistakes[: -(-len(mistakes) // 10)].sum() / mistakes.sum()) if len(mistakes) else 0.0
    numbers = {"better_there_is": [float((saved > 0).mean())], "share_of_costliest_tenth": [tenth]}
    if find_reseedable(exam.simulator) is None:  # else the least of several random costs is biased
        numbers["saved_by_one_step"] = [float(saved.mean())]
    return numbers


def rollout_one_step_improvement(exam: Examination, decisions: int) -> Array:
    """Return the expert's returns [EPISODES] if roll-outs decide some steps, spread evenly over the horizon."""
    simulator = exam.simulator
    reseedable = find_reseedable(exam.simulator)
    decided = set(np.linspace(0, exam.horizon, decisions, endpoint=False).astype(int).tolist())
    state = reset_and_check(simulator, exam.make_seeds(5, EPISODES))
    running = np.arange(EPISODES)
    total = np.zeros(EPISODES)
    for t in range(exam.horizon):
        times = np.full(len(running), t)
        action = exam.query_actions_at(state, times)
        if t in decided:
            probe, tried, is_expert_action = exam.list_tried_actions(state, action)
            costs = np.zeros(len(probe))
            for stream in range(SEEDS_PER_STEP if reseedable is not None else 1):
                seeds = exam.make_seeds(1000 + SEEDS_PER_STEP * t + stream, len(running))
                start = state if reseedable is None else reseedable.reseed(state, seeds)
                rollouts = run_discounted_rollouts(simulator, exam.expert, start[probe], times[probe], tried, (1.0,))
                costs += np.nan_to_num(rollouts.get_costs(1.0), nan=np.inf)
            for row in range(len(running)):
                options = np.flatnonzero(probe == row)
                best = options[np.lexsort((~is_expert_action[options], costs[options]))[0]]  # ties: the expert's action
                action[row] = tried[best]
        state, cost, done = step_and_check(simulator, state, action)
        total[running] -= cost
        running = running[~done]
        state = state[~done]
        if not len(running):
            break
    return total
