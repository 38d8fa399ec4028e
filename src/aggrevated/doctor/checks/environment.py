"""Checks of the environment: states, randomness, action masks, horizon, observations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.examination import CHANGED, Examination, sample_steps
from aggrevated.doctor.findings import Finding, bootstrap_estimate, estimate_mean
from aggrevated.doctor.time_budget import run_largest_affordable
from aggrevated.doctor.value_bias import estimate_value_bias, mean_squared_error
from aggrevated.experts import Expert
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import find_action_mask, find_reseedable
from aggrevated.simulators.checked import observe_and_check, reset_and_check, step_and_check

AGAIN = 2000  # steps, at most: an environment that replays its way to each of them may be slow
SHARE = 0.05  # of the time, for those of expert and random policy each
LANES = 6  # whole episodes


def check_markov_state(patient: Examination) -> Iterator[Finding]:
    """Episodes are stepped again, out of order, from their start, and from their middle: not a bit may differ."""
    for of in (patient.expert_trajectories, patient.random_trajectories):
        for look in (replay_some_out_of_order, replay_from_start, replay_from_middle):
            if way := look(patient, of):
                remedy = (
                    "let a state hold all that the next step hangs on: counters, generators, what wrappers remember"
                )
                yield Finding("snapshot", "fault", f"a state is not all that decides what comes next: {way}", remedy)
                return
    said = "states can be gone back to: stepped again they give the same, to the last bit"
    yield Finding("snapshot", "fine", said, "", {"episodes": 2 * LANES})


def replay_some_out_of_order(patient: Examination, of: Trajectories) -> str:
    """Single steps, later ones before earlier ones: as many as there is time for."""
    return run_largest_affordable(lambda n: replay_out_of_order(patient, of, n), AGAIN, SHARE * patient.seconds)


def replay_out_of_order(patient: Examination, of: Trajectories, count: int) -> str:
    """So many of them."""
    k, t = np.nonzero(of.mask)
    rows = np.random.default_rng(patient.seed).permutation(len(k))[:count]
    k = k[rows]
    t = t[rows]
    following, cost, done = step_and_check(patient.simulator, of.states[k, t], of.actions[k, t])
    last = find_last_step_times(of)[k] == t
    if not np.array_equal(cost, of.costs[k, t], equal_nan=True):
        different = count_differing_rows(cost, of.costs[k, t])
        return f"{different} of {len(k)} single steps cost something else when taken again"
    early = done & ~last
    if early.any():
        return f"{int(early.sum())} of {len(k)} single steps end the episode when taken again, and did not before"
    late = ~done & last & (t + 1 < patient.horizon)
    if late.any():
        return f"{int(late.sum())} steps that ended an episode do not when taken again"
    on = ~last & ~done
    shown = observe_and_check(patient.simulator, following[on]) if on.any() else of.observations[:0, 0]
    wrong = count_differing_rows(shown, of.observations[k[on], t[on] + 1])
    return f"{wrong} of {len(k)} single steps lead elsewhere when taken again" if wrong else ""


def replay_from_start(patient: Examination, of: Trajectories) -> str:
    """Whole episodes, in reverse order."""
    lanes = np.arange(min(LANES, of.count))[::-1]
    return describe_replay_difference(
        patient, of, lanes, np.zeros(len(lanes), int), reset_and_check(patient.simulator, of.seeds[lanes])
    )


def replay_from_middle(patient: Examination, of: Trajectories) -> str:
    """From a state half-way on to the end."""
    lanes = np.argsort(of.mask.sum(axis=1))[::-1][:LANES]
    start = of.mask[lanes].sum(axis=1) // 2
    return describe_replay_difference(patient, of, lanes, start, of.states[lanes, start])


def describe_replay_difference(
    patient: Examination, of: Trajectories, lanes: Array, start: Array, states: Array
) -> str:
    """In words, how what happens from these states on differs from what happened; nothing if it does not."""
    end = find_last_step_times(of)
    at = start.copy()
    while len(lanes):
        if count_differing_rows(observe_and_check(patient.simulator, states), of.observations[lanes, at]):
            return f"an episode that is gone through again looks otherwise at step {int(at.min())}"
        states, cost, done = step_and_check(patient.simulator, states, of.actions[lanes, at])
        if count_differing_rows(cost, of.costs[lanes, at]):
            return f"an episode that is gone through again costs something else at step {int(at.min())}"
        over = at == end[lanes]
        if (done & ~over).any() or (over & ~done & (at + 1 < patient.horizon)).any():
            return f"an episode that is gone through again does not end where it did (step {int(at.min())})"
        lanes = lanes[~over]
        states = states[~over]
        at = at[~over] + 1
    return ""


def find_last_step_times(of: Trajectories) -> Array:
    """[K]: when the last step was."""
    found: Array = of.mask.sum(axis=1) - 1
    return found


def count_differing_rows(one: Array, other: Array) -> int:
    """How many rows are not equal, bit for bit."""
    n = len(one)
    same = (one == other) | ((one != one) & (other != other))
    return int((~same.reshape(n, -1).all(axis=1)).sum()) if n else 0


TRIED = 64


def check_stochasticity(patient: Examination) -> Iterator[Finding]:
    """The same action in the same state, with other luck."""
    luck = find_reseedable(patient.simulator)
    if luck is None:
        yield Finding("chance", "fine", "nothing is left to chance after the first state: one roll-out tells all")
        return
    of = patient.expert_trajectories
    k, t = np.nonzero(of.mask)
    rows = np.linspace(0, len(k) - 1, min(TRIED, len(k))).astype(int)
    states = of.states[k[rows], t[rows]]
    actions = of.actions[k[rows], t[rows]]
    outcomes = []
    for part in (10, 11):
        after, cost, _ = step_and_check(
            patient.simulator, luck.reseed(states, patient.make_seeds(part, len(rows))), actions
        )
        outcomes.append(np.column_stack([cost, observe_and_check(patient.simulator, after).reshape(len(rows), -1)]))
    differ = float((outcomes[0] != outcomes[1]).any(axis=1).mean())
    numbers = {"share_of_steps": differ}
    if differ:
        said = f"chance decides {differ:.0%} of the steps: a roll-out is one draw of many"
        yield Finding("chance", "fine", said, "", numbers)
    else:
        yield Finding("chance", "fine", "other luck changed no step: there is hardly any chance", "", numbers)


ASKED = 200


def check_action_masks(patient: Examination) -> Iterator[Finding]:
    """Only legal actions, also in states that it did not choose."""
    known = find_action_mask(patient.simulator)
    if known is None:
        return
    k, t = sample_steps(patient.random_trajectories, ASKED, patient.seed)
    states = patient.random_trajectories.states[k, t]
    actions = patient.query_actions_at(states, t)
    legal = known.action_mask(states)[np.arange(len(states)), actions]
    illegal = float(1 - legal.mean())
    if illegal:
        sentence = f"in {illegal:.0%} of the states that chance leads to the expert does what is not legal"
        yield Finding("rules", "fault", sentence, "let its act choose among the legal actions", {"illegal": illegal})
    else:
        yield Finding("rules", "fine", "the expert does only what is legal", "", {"illegal": 0.0})


NEAR = (0.75, 4 / 3)  # times as long: what is beyond is another task
MATTERS = 0.05  # of the expert's episodes: so many must be longer than the shorter of the two
TIMES = 2.0  # costs that go on must be surely so many times nearer, in root mean square, to what the expert says
MOST = 0.5  # of the episodes: where as many are cut, it matters what comes after


def check_horizon(patient: Examination) -> Iterator[Finding]:
    """Beside what is known of its training; where nothing is, beside what its costs foresee."""
    here = patient.horizon
    made_for = patient.training.horizon
    lengths = patient.expert_trajectories.mask.sum(axis=1)
    cut = float((lengths >= here).mean())
    numbers = {"horizon": here, "made_for": made_for, "cut": cut, "mean_length": float(lengths.mean())}
    said = f"H = {here}, the expert's episodes have {lengths.mean():.0f} steps, and {cut:.0%} are cut"
    if made_for is not None:
        longer = float((lengths >= min(here, made_for)).mean())
        times = here / made_for
        if times != 1 and longer > MATTERS:
            sentence = f"{said}, but {patient.training.source} says {made_for}"
            verdict = "warning" if NEAR[0] <= times <= NEAR[1] else "fault"
            yield Finding("horizon", verdict, sentence, f"use --horizon {made_for}", numbers)  # type: ignore[arg-type]
            return
    elif patient.capability and cut > MOST and (beyond := estimate_foresight(patient)) is not None:
        sentence = f"{said}; the expert's costs are those of longer episodes ({beyond:.1f} times nearer)"
        remedy = f"use a longer --horizon than {here}, or --oracle monte-carlo, which keeps to it"
        yield Finding("horizon", "warning", sentence, remedy, numbers | {"times_nearer": beyond})
        return
    yield Finding("horizon", "fine", said, "", numbers)


def estimate_foresight(patient: Examination) -> float | None:
    """How many times nearer to what it says costs are that go on beyond the horizon; None where not for sure."""
    level = estimate_value_bias(patient)
    own = patient.discount
    if (own, True) not in level.fits:
        return None
    ways = [level.fits[own, going_on] for going_on in (False, True)]

    def compute_ratio(rows: Array) -> float:
        kept, gone_on = (mean_squared_error(level.predicted_costs[rows], way[rows]) for way in ways)
        return float(np.sqrt(kept / max(gone_on, 1e-30)))

    nearer = bootstrap_estimate(compute_ratio, level.group)
    return nearer.value if nearer.known and nearer.low > TIMES else None


FRESH = 40
MUCH = 0.5  # of what it earns above chance with normalised inputs: by so much that must be better, for sure
STATISTICS = "the statistics that normalised them (VecNormalize)"
ODD = (0.05, 20.0)  # inputs whose root mean square lies beyond are unusual for a network


def check_observation_scale(patient: Examination) -> Iterator[Finding]:
    """Beside its training where that is known; and would it do better if what it sees were normalised?"""
    watched = collect_observations(patient)
    if watched is None:
        yield Finding("scales", "unknown", "what the expert sees is its own affair, and cannot be looked at")
        return
    mean = watched.mean(axis=0)
    deviation = watched.std(axis=0)
    sizes = np.sqrt((watched**2).mean(axis=0))
    numbers = {"mean": mean.tolist(), "deviation": deviation.tolist()}
    if patient.training.normalised and not getattr(patient.problem, "vec_normalize", ""):
        sentence = "the expert was trained on normalised observations, and nothing normalises them here"
        yield Finding("scales", "fault", sentence, f"give {STATISTICS}: --vec-normalize FILE", numbers)
        return
    better = compare_normalized_returns(patient, mean, deviation)
    if better is not None:
        own, other = better
        sentence = f"with normalised observations the expert earns {other:.1f}, and {own:.1f} as it is"
        remedy = f"it was trained on normalised observations: give {STATISTICS}"
        yield Finding("scales", "fault", sentence, remedy, numbers | {"own": own, "normalised": other})
        return
    used = sizes[sizes > 0]
    odd = bool(((used < ODD[0]) | (used > ODD[1])).any())
    if odd and not is_better_than_random(patient):
        sentence = f"what the expert sees is of sizes from {used.min():.2g} to {used.max():.2g}, and it earns nothing"
        remedy = "check whether its observations were normalised in training"
        yield Finding("scales", "warning", sentence, remedy, numbers)
    else:
        said = (
            f"what the expert sees is of sizes from {used.min():.2g} to {used.max():.2g}" if len(used) else "it sees 0"
        )
        yield Finding("scales", "fine", said, "", numbers)


def collect_observations(patient: Examination) -> Array | None:
    """[n, O]: what the expert's network reads of the states that it comes to, and that chance comes to."""
    look: Callable[[Array], Array] | None = getattr(patient.expert, "observe", None)
    if not callable(look):
        return None
    parts = [look(of.states[of.mask]) for of in (patient.expert_trajectories, patient.random_trajectories)]
    return np.concatenate([np.asarray(part, float).reshape(len(part), -1) for part in parts])


def is_better_than_random(patient: Examination) -> bool:
    """Whether it is better than chance."""
    shared = min(patient.expert_trajectories.count, patient.random_trajectories.count)
    return (
        estimate_mean(patient.expert_trajectories.returns[:shared] - patient.random_trajectories.returns[:shared]).low
        > 0
    )


@dataclass(frozen=True)
class NormalizedView:
    """A view less its mean, divided by its deviation."""

    observe: Callable[[Array], Array]
    mean: Array
    deviation: Array

    def __call__(self, states: Array) -> Array:
        shown = self.observe(states)
        found: Array = ((shown - self.mean) / np.maximum(self.deviation, 1e-8)).clip(-10, 10)
        return np.ascontiguousarray(found.astype(shown.dtype))


def compare_normalized_returns(patient: Examination, mean: Array, deviation: Array) -> tuple[float, float] | None:
    """(what it earns, what it earns with normalised observations) if that is surely much more; else None."""
    expert: Any = patient.expert
    if not is_dataclass(expert) or isinstance(expert, type) or "observe" not in {f.name for f in fields(expert)}:
        return None
    usual = np.where(deviation > 0, deviation, 1.0)
    seen_by = NormalizedView(patient.expert.observe, mean, usual)  # type: ignore[attr-defined]
    other: Any = replace(expert, observe=seen_by)

    def collect_returns(who: Expert) -> Array:
        def work(n: int) -> Array:
            return roll_in(patient.simulator, RollInPolicy(who, None, 1.0), patient.make_seeds(4, n)).returns

        return run_largest_affordable(work, FRESH, CHANGED * patient.seconds / 4)

    own = collect_returns(patient.expert)
    changed = collect_returns(other)
    shared = min(len(own), len(changed))
    gain = estimate_mean(changed[:shared] - own[:shared])
    room = float(changed.mean()) - float(patient.random_trajectories.returns.mean())
    much = gain.low > 0 and gain.low > MUCH * max(room, 0.0)
    return (float(own.mean()), float(changed.mean())) if much else None
