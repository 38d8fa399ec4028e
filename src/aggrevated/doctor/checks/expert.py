"""Checks of the expert's actions: its return, their order, their agreement with its values, and what improves on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import estimate_standard_error
from aggrevated.doctor.examination import CHANGED, IMPROVED, Examination
from aggrevated.doctor.findings import BootstrapEstimate, Finding, estimate_mean
from aggrevated.doctor.probes import PerturbedExpert, run_discounted_rollouts
from aggrevated.doctor.time_budget import run_largest_affordable
from aggrevated.experts import DiscreteQExpert, StateValueExpert
from aggrevated.experts.checked import query_q_values, query_state_values
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import find_action_mask, find_reseedable
from aggrevated.simulators.checked import reset_and_check, step_and_check

LOST = 0.5  # of what it earned in training above what chance earns: less than this is another expert, or another world


def check_returns(patient: Examination) -> Iterator[Finding]:
    """An expert that is worse than chance teaches the opposite; one far below its training is not itself here."""
    expert = patient.expert_trajectories
    random = patient.random_trajectories
    first = patient.first_policy_trajectories
    means = {name: estimate_mean(of.returns) for name, of in (("expert", expert), ("random", random), ("first", first))}
    numbers = {name: mean.to_list() for name, mean in means.items()}
    numbers |= {f"{name}_episodes": [of.count] for name, of in (("expert", expert), ("random", random))}
    shared = min(expert.count, random.count)
    better = estimate_mean(expert.returns[:shared] - random.returns[:shared])
    error = estimate_standard_error(expert.returns)
    give_or_take = f" ± {error:.1f}" if error is not None else ""
    said = f"the expert earns {means['expert'].value:.1f}{give_or_take} an episode ({expert.count} of them)"
    beside = f"acting at random {means['random'].value:.1f}, the first policy {means['first'].value:.1f}"
    if better.high < 0:
        remedy = "check the sign of its costs, the order of its actions, and that it was made for this environment"
        yield Finding("return", "fault", f"the expert is worse than chance: {said}, {beside}", remedy, numbers)
    elif better.low <= 0:
        remedy = "check that it was made for this environment; if it was, reinforcement learning serves better"
        yield Finding("return", "warning", f"the expert is no better than chance: {said}, {beside}", remedy, numbers)
    else:
        yield Finding("return", "fine", f"{said}; {beside}", numbers=numbers)
    yield from compare_with_training_return(patient, means["expert"], means["random"])


def compare_with_training_return(
    patient: Examination, mean: BootstrapEstimate, random: BootstrapEstimate
) -> Iterator[Finding]:
    """Only where somebody says what it earned there, and over as many steps."""
    known = patient.training
    if known.mean_return is None or known.horizon not in (None, patient.horizon):
        return
    least = random.value + LOST * (known.mean_return - random.value)
    numbers = {"here": mean.to_list(), "in_training": known.mean_return}
    if mean.high < least:
        sentence = f"it earns {mean.value:.1f} here, where {known.source} says {known.mean_return:.1f}"
        remedy = "give it the environment that it was trained in, with the same wrappers and normalisation"
        yield Finding("training", "fault", sentence, remedy, numbers)


ALL = 4  # actions of which every order is tried; of more, those in which two are exchanged, and all reversed
EPISODES = 8
FRESH = 40
MUCH = 0.5  # of what the changed expert earns above chance: by so much it must be better, for sure


def check_action_order(patient: Examination) -> Iterator[Finding]:
    """The expert is rolled out with its actions changed; the best of them again on fresh episodes."""
    space = patient.simulator.action_space
    if find_action_mask(patient.simulator) is not None:
        yield Finding("actions", "unknown", "where not every action is legal, no other order of them can be tried")
        return
    changes = (
        list_candidate_permutations(int(space.n)) if isinstance(space, Discrete) else list_candidate_sign_flips(space)
    )

    def collect_returns(part: int, episodes: int, change: Callable[[Array], Array] | None) -> Array:
        expert = PerturbedExpert(patient.expert, change) if change else patient.expert
        return roll_in(patient.simulator, RollInPolicy(expert, None, 1.0), patient.make_seeds(part, episodes)).returns

    names = [*changes]
    seconds = CHANGED * patient.seconds
    found = run_largest_affordable(
        lambda n: [collect_returns(2, EPISODES, changes[name]).mean() for name in names[:n]], len(names), seconds / 2
    )
    best = names[int(np.argmax(found))]
    fresh = partial(collect_returns, 3)
    own = run_largest_affordable(lambda n: fresh(n, None), FRESH, seconds / 4)
    other = run_largest_affordable(lambda n: fresh(n, changes[best]), FRESH, seconds / 4)
    shared = min(len(own), len(other))
    gain = estimate_mean(other[:shared] - own[:shared])
    random = float(patient.random_trajectories.returns.mean())
    numbers = {"own": float(own.mean()), "changed": float(other.mean()), "change": best, "gain": gain.to_list()}
    numbers |= {"tried": len(found)}
    if gain.low > MUCH * max(float(other.mean()) - random, 0.0) and gain.low > 0:
        what = f"with its actions {best} the expert earns {other.mean():.1f}, and {own.mean():.1f} as it is"
        remedy = "check which action is which: the environment's order is not that of the expert"
        yield Finding("actions", "fault", what, remedy, numbers)
    else:
        kind = "order" if isinstance(space, Discrete) else "sign"
        said = f"no other {kind} of its actions serves the expert better ({len(found)} tried)"
        yield Finding("actions", "fine", said, "", numbers)


def list_candidate_permutations(count: int) -> dict[str, Callable[[Array], Array]]:
    """Other orders of the actions, by what they are called."""
    if count <= ALL:
        found = [order for order in permutations(range(count)) if order != tuple(range(count))]
    else:
        found = [tuple(range(count))[::-1]]
        for one, other in combinations(range(count), 2):
            swapped = [*range(count)]
            swapped[one] = other
            swapped[other] = one
            found.append(tuple(swapped))
    return {f"as {', '.join(map(str, order))}": partial(np.take, np.array(order)) for order in found}


def list_candidate_sign_flips(space: Box) -> dict[str, Callable[[Array], Array]]:
    """Vectors with one number turned, or all of them; and two exchanged."""
    size = int(np.prod(space.shape))
    signs = {"all turned": -np.ones(size)}
    for place in range(size if size > 1 else 0):
        signs[f"turned at place {place}"] = np.where(np.arange(size) == place, -1.0, 1.0)
    found: dict[str, Callable[[Array], Array]] = {name: partial(np.multiply, sign) for name, sign in signs.items()}
    for one, other in combinations(range(min(size, 6)), 2):
        order = np.arange(size)
        order[[one, other]] = other, one
        found[f"{one} and {other} exchanged"] = partial(permute_actions, order=order)
    return found


def permute_actions(actions: Array, order: Array) -> Array:
    """[n, A] with the numbers of each vector in another order."""
    found: Array = actions[:, order]
    return found


RARE = 0.05  # of the states: as often it may do otherwise, by ties and by rounding
NEAR = 0.1  # of how much V varies: V and min Q may differ by this
OTHER = 0.25  # of the states: as often it does otherwise where its costs are not those that it acts by


def check_greedy_consistency(patient: Examination) -> Iterator[Finding]:
    """act = argmin Q, and V = min Q, where it has them."""
    expert = patient.expert
    space = patient.simulator.action_space
    if not isinstance(expert, DiscreteQExpert) or not isinstance(space, Discrete):
        return
    probes, _ = patient.probe_rollouts
    q = query_q_values(expert, probes.states, int(space.n))
    rows = np.arange(len(q))
    own = np.zeros(len(q), int)
    own[probes.probe[probes.own]] = probes.action[probes.own]
    legal = np.zeros(q.shape, bool)
    legal[probes.probe, probes.action] = True  # of those that were tried
    least = np.where(legal, q, np.inf).min(axis=1)
    otherwise = float((q[rows, own] > least + 1e-6 * abs(least)).mean())
    numbers = {"acts_otherwise": otherwise}
    if otherwise > RARE:
        remedy = "let act choose the least of q; or use --oracle monte-carlo, which asks what it does"
        sentence = f"in {otherwise:.0%} of the states the expert does not do what its own costs say is best"
        yield Finding("agreement", "fault" if otherwise > OTHER else "warning", sentence, remedy, numbers)
    else:
        yield Finding("agreement", "fine", "the expert does what its own costs say is best", "", numbers)
    if isinstance(expert, StateValueExpert):
        gap = query_state_values(expert, probes.states) - q.min(axis=1)
        size = float(abs(gap).mean()) / max(float(q.min(axis=1).std()), 1e-12)
        if size > NEAR:
            sentence = f"V is not the least of Q: they differ by {float(abs(gap).mean()):.3g} on average"
            yield Finding("agreement", "warning", sentence, "let v be the minimum of q", {"gap": size})


LITTLE = 0.01  # of what the expert earns above chance: less is not worth a run
SEEDS_PER_STEP = 4  # of which the mean is taken where there is chance; never that which the episode itself will have


def check_improvement(patient: Examination) -> Iterator[Finding]:
    """In some steps of fresh episodes all actions are rolled out, and the best is taken; else the expert acts."""
    numbers = summarize_action_gaps(patient)
    with_help, decisions = run_largest_affordable(
        lambda n: (rollout_one_step_improvement(patient, n), n), patient.horizon, IMPROVED * patient.seconds
    )
    alone = rollout_one_step_improvement(patient, 0)
    gain = estimate_mean(with_help - alone)
    worth = LITTLE * abs(float(alone.mean()) - float(patient.random_trajectories.returns.mean()))
    share = decisions / patient.horizon
    numbers |= {"expert": [float(alone.mean())], "improved": [float(with_help.mean())], "gain": gain.to_list()}
    numbers |= {"decisions": [decisions], "surpassed": [float(gain.low > worth)]}
    how = (
        f"deciding {share:.0%} of the steps by roll-outs earns {with_help.mean():.1f} where it earns {alone.mean():.1f}"
    )
    if gain.low > worth:
        said = f"this expert can be surpassed: {how}"
    elif share < 1:
        said = f"whether this expert can be surpassed is open: {how}; more --seconds tell more"
    else:
        said = f"there is hardly anything to win over this expert: {how}"
    yield Finding("headroom", "fine" if gain.low > worth or share == 1 else "unknown", said, "", numbers)


def summarize_action_gaps(patient: Examination) -> dict[str, list[float]]:
    """Of single steps: what the best action saves, how often there is a better one, and how unequal mistakes are."""
    probes, rolled = patient.probe_rollouts
    paid = rolled.get_costs(1.0)
    own = np.full(len(probes.states), np.nan)
    own[probes.probe[probes.own]] = paid[probes.own]
    over = paid - own[probes.probe]
    rows = np.flatnonzero(probes.in_view & np.isfinite(over))
    least = np.zeros(len(probes.states))
    np.minimum.at(least, probes.probe[rows], over[rows])
    saved = -least[np.unique(probes.probe[rows])]
    mistakes = np.sort(over[rows][over[rows] > 0])[::-1]
    tenth = float(mistakes[: -(-len(mistakes) // 10)].sum() / mistakes.sum()) if len(mistakes) else 0.0
    found = {"better_there_is": [float((saved > 0).mean())], "share_of_costliest_tenth": [tenth]}
    if find_reseedable(patient.simulator) is None:  # else the least of several draws is luck
        found["saved_by_one_step"] = [float(saved.mean())]
    return found


def rollout_one_step_improvement(patient: Examination, decisions: int) -> Array:
    """[EPISODES] returns of the expert, helped in so many steps, evenly over the horizon."""
    simulator = patient.simulator
    chance = find_reseedable(patient.simulator)
    helped = set(np.linspace(0, patient.horizon, decisions, endpoint=False).astype(int).tolist())
    state = reset_and_check(simulator, patient.make_seeds(5, EPISODES))
    lanes = np.arange(EPISODES)
    total = np.zeros(EPISODES)
    for t in range(patient.horizon):
        times = np.full(len(lanes), t)
        action = patient.query_actions_at(state, times)
        if t in helped:
            probe, tried, own = patient.list_tried_actions(state, action)
            costs = np.zeros(len(probe))
            for luck in range(SEEDS_PER_STEP if chance is not None else 1):
                fresh = patient.make_seeds(1000 + SEEDS_PER_STEP * t + luck, len(lanes))
                start = state if chance is None else chance.reseed(state, fresh)
                rolled = run_discounted_rollouts(simulator, patient.expert, start[probe], times[probe], tried, (1.0,))
                costs += np.nan_to_num(rolled.get_costs(1.0), nan=np.inf)
            for row in range(len(lanes)):
                options = np.flatnonzero(probe == row)
                best = options[np.lexsort((~own[options], costs[options]))[0]]  # the expert's own where they are equal
                action[row] = tried[best]
        state, cost, done = step_and_check(simulator, state, action)
        total[lanes] -= cost
        lanes = lanes[~done]
        state = state[~done]
        if not len(lanes):
            break
    return total
