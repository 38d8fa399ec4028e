"""Checks of the environment: states, randomness, action masks, horizon, observations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.examination import CHANGED_SHARE, Examination, sample_steps
from aggrevated.doctor.findings import Finding, bootstrap_estimate, estimate_mean
from aggrevated.doctor.time_budget import run_largest_affordable
from aggrevated.doctor.value_bias import estimate_value_bias, mean_squared_error
from aggrevated.experts import Expert
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import find_action_mask, find_reseedable
from aggrevated.simulators.checked import observe_and_check, reset_and_check, step_and_check

MAX_REPLAYED_STEPS = 2000
REPLAY_SHARE = 0.05  # of the available time, for each of expert and random policy
MAX_REPLAYED_EPISODES = 6


def check_markov_state(exam: Examination) -> Iterator[Finding]:
    """Check that steps taken again, out of order, from the start or from the middle, give the same bits."""
    for trajectories in (exam.expert_trajectories, exam.random_trajectories):
        for replay in (replay_some_out_of_order, replay_from_start, replay_from_middle):
            if difference := replay(exam, trajectories):
                remedy = (
                    "store in the state all that the next step depends on: counters, random generators, "
                    "and what wrappers remember"
                )
                sentence = f"a state does not hold all that the next step depends on: {difference}"
                yield Finding("snapshot", "fault", sentence, remedy)
                return
    sentence = "states can be restored: steps taken again give the same result, to the last bit"
    yield Finding("snapshot", "fine", sentence, "", {"episodes": 2 * MAX_REPLAYED_EPISODES})


def replay_some_out_of_order(exam: Examination, trajectories: Trajectories) -> str:
    """Take as many single steps again as time allows, in random order; return a difference, or ""."""
    return run_largest_affordable(
        lambda n: replay_out_of_order(exam, trajectories, n), MAX_REPLAYED_STEPS, REPLAY_SHARE * exam.seconds
    )


def replay_out_of_order(exam: Examination, trajectories: Trajectories, count: int) -> str:
    """Take single steps again in random order; return a difference, or ""."""
    k, t = np.nonzero(trajectories.mask)
    rows = np.random.default_rng(exam.seed).permutation(len(k))[:count]
    k = k[rows]
    t = t[rows]
    following, cost, done = step_and_check(exam.simulator, trajectories.states[k, t], trajectories.actions[k, t])
    is_last = find_last_step_times(trajectories)[k] == t
    if not np.array_equal(cost, trajectories.costs[k, t], equal_nan=True):
        different = count_differing_rows(cost, trajectories.costs[k, t])
        return f"{different} of {len(k)} single steps have another cost when taken again"
    early = done & ~is_last
    if early.any():
        return f"{int(early.sum())} of {len(k)} single steps end the episode only when taken again"
    late = ~done & is_last & (t + 1 < exam.horizon)
    if late.any():
        return f"{int(late.sum())} steps that ended an episode do not end it when taken again"
    on = ~is_last & ~done
    observations = observe_and_check(exam.simulator, following[on]) if on.any() else trajectories.observations[:0, 0]
    different = count_differing_rows(observations, trajectories.observations[k[on], t[on] + 1])
    return f"{different} of {len(k)} single steps lead to another observation when taken again" if different else ""


def replay_from_start(exam: Examination, trajectories: Trajectories) -> str:
    """Run whole episodes again, in reverse order; return a difference, or ""."""
    episodes = np.arange(min(MAX_REPLAYED_EPISODES, trajectories.count))[::-1]
    return describe_replay_difference(
        exam,
        trajectories,
        episodes,
        np.zeros(len(episodes), int),
        reset_and_check(exam.simulator, trajectories.seeds[episodes]),
    )


def replay_from_middle(exam: Examination, trajectories: Trajectories) -> str:
    """Run the longest episodes again from their middle; return a difference, or ""."""
    episodes = np.argsort(trajectories.mask.sum(axis=1))[::-1][:MAX_REPLAYED_EPISODES]
    start = trajectories.mask[episodes].sum(axis=1) // 2
    return describe_replay_difference(exam, trajectories, episodes, start, trajectories.states[episodes, start])


def describe_replay_difference(
    exam: Examination, trajectories: Trajectories, episodes: Array, start: Array, states: Array
) -> str:
    """Return how episodes that are run again from these states differ from the trajectories; "" if they do not."""
    end = find_last_step_times(trajectories)
    at = start.copy()
    while len(episodes):
        observations = observe_and_check(exam.simulator, states)
        if count_differing_rows(observations, trajectories.observations[episodes, at]):
            return f"an episode that is run again has another observation at step {int(at.min())}"
        states, cost, done = step_and_check(exam.simulator, states, trajectories.actions[episodes, at])
        if count_differing_rows(cost, trajectories.costs[episodes, at]):
            return f"an episode that is run again has another cost at step {int(at.min())}"
        ended = at == end[episodes]
        if (done & ~ended).any() or (ended & ~done & (at + 1 < exam.horizon)).any():
            return f"an episode that is run again does not end at the same step (step {int(at.min())})"
        episodes = episodes[~ended]
        states = states[~ended]
        at = at[~ended] + 1
    return ""


def find_last_step_times(trajectories: Trajectories) -> Array:
    """Return the time [K] of each trajectory's last step."""
    times: Array = trajectories.mask.sum(axis=1) - 1
    return times


def count_differing_rows(one: Array, other: Array) -> int:
    """Return the number of rows that are not equal; NaN equals NaN."""
    n = len(one)
    is_equal = (one == other) | ((one != one) & (other != other))
    return int((~is_equal.reshape(n, -1).all(axis=1)).sum()) if n else 0


MAX_REPEATED_STEPS = 64


def check_stochasticity(exam: Examination) -> Iterator[Finding]:
    """Take the same actions in the same states with other random streams."""
    reseedable = find_reseedable(exam.simulator)
    if reseedable is None:
        sentence = "the environment is deterministic after the first state: one roll-out per action is enough"
        yield Finding("chance", "fine", sentence)
        return
    trajectories = exam.expert_trajectories
    k, t = np.nonzero(trajectories.mask)
    rows = np.linspace(0, len(k) - 1, min(MAX_REPEATED_STEPS, len(k))).astype(int)
    states = trajectories.states[k[rows], t[rows]]
    actions = trajectories.actions[k[rows], t[rows]]
    outcomes = []
    for part in (10, 11):
        following, cost, _ = step_and_check(
            exam.simulator, reseedable.reseed(states, exam.make_seeds(part, len(rows))), actions
        )
        observations = observe_and_check(exam.simulator, following).reshape(len(rows), -1)
        outcomes.append(np.column_stack([cost, observations]))
    stochastic = float((outcomes[0] != outcomes[1]).any(axis=1).mean())
    numbers = {"share_of_steps": stochastic}
    if stochastic:
        sentence = f"{stochastic:.0%} of the steps are stochastic: the cost of a single roll-out is random"
    else:
        sentence = (
            "another random stream changed none of the steps that were tried: the environment is nearly deterministic"
        )
    yield Finding("chance", "fine", sentence, "", numbers)


MAX_QUERIED_STEPS = 200


def check_action_masks(exam: Examination) -> Iterator[Finding]:
    """Check that the expert takes only legal actions, also in states that random actions lead to."""
    masked = find_action_mask(exam.simulator)
    if masked is None:
        return
    k, t = sample_steps(exam.random_trajectories, MAX_QUERIED_STEPS, exam.seed)
    states = exam.random_trajectories.states[k, t]
    actions = exam.query_actions_at(states, t)
    legal = masked.action_mask(states)[np.arange(len(states)), actions]
    illegal = float(1 - legal.mean())
    if illegal:
        sentence = f"the expert's action is illegal in {illegal:.0%} of the states that random actions lead to"
        remedy = "let its act choose among the legal actions only"
        yield Finding("rules", "fault", sentence, remedy, {"illegal": illegal})
    else:
        yield Finding("rules", "fine", "the expert takes only legal actions", "", {"illegal": 0.0})


WARNING_HORIZON_RATIOS = (0.75, 4 / 3)  # a horizon beyond these fractions of that of the training is a fault
MIN_AFFECTED_FRACTION = 0.05  # of the expert's episodes, which must be longer than the shorter horizon
MIN_ERROR_RATIO = 2.0  # predicted costs must be nearer to costs beyond the horizon by this factor
MIN_CUT_FRACTION = 0.5  # of the episodes, which the horizon must cut


def check_horizon(exam: Examination) -> Iterator[Finding]:
    """Compare the horizon with that of the expert's training or, if that is not known, with its costs."""
    horizon = exam.horizon
    trained = exam.training.horizon
    lengths = exam.expert_trajectories.mask.sum(axis=1)
    cut = float((lengths >= horizon).mean())
    numbers = {"horizon": horizon, "made_for": trained, "cut": cut, "mean_length": float(lengths.mean())}
    details = (
        f"the horizon is {horizon} steps, the expert's episodes have {lengths.mean():.0f} on average, "
        f"and the horizon cuts {cut:.0%} of them"
    )
    if trained is not None:
        longer = float((lengths >= min(horizon, trained)).mean())
        ratio = horizon / trained
        if ratio != 1 and longer > MIN_AFFECTED_FRACTION:
            sentence = f"{details}; according to {exam.training.source} the horizon is {trained}"
            verdict = "warning" if WARNING_HORIZON_RATIOS[0] <= ratio <= WARNING_HORIZON_RATIOS[1] else "fault"
            yield Finding("horizon", verdict, sentence, f"use --horizon {trained}", numbers)  # type: ignore[arg-type]
            return
    elif exam.capability and cut > MIN_CUT_FRACTION and (error_ratio := estimate_foresight(exam)) is not None:
        sentence = f"{details}; the expert's costs fit longer episodes {error_ratio:.1f} times better"
        remedy = f"use a longer --horizon than {horizon}, or --oracle monte-carlo, whose costs end at the horizon"
        yield Finding("horizon", "warning", sentence, remedy, numbers | {"times_nearer": error_ratio})
        return
    yield Finding("horizon", "fine", details, "", numbers)


def estimate_foresight(exam: Examination) -> float | None:
    """Return by which factor predicted costs are nearer to costs beyond the horizon; None if that is uncertain."""
    bias = estimate_value_bias(exam)
    if (exam.discount, True) not in bias.fits:
        return None
    fits = [bias.fits[exam.discount, beyond_horizon] for beyond_horizon in (False, True)]

    def compute_ratio(rows: Array) -> float:
        cut, extended = (mean_squared_error(bias.predicted_costs[rows], fit[rows]) for fit in fits)
        return float(np.sqrt(cut / max(extended, 1e-30)))

    ratio = bootstrap_estimate(compute_ratio, bias.group)
    return ratio.value if ratio.known and ratio.low > MIN_ERROR_RATIO else None


MAX_FRESH_EPISODES = 40
MIN_GAIN_FRACTION = 0.5  # gain by normalized inputs, as a fraction of the return with them above that of random actions
STATISTICS_REMEDY = "pass the statistics that normalized them, with --vec-normalize FILE"
COMMON_SCALES = (0.05, 20.0)  # root mean squares of a network's inputs


def check_observation_scale(exam: Examination) -> Iterator[Finding]:
    """Check that the expert's inputs are normalized as in its training, or whether normalization would improve it."""
    inputs = collect_observations(exam)
    if inputs is None:
        sentence = "the scale of the expert's inputs cannot be checked, since the expert has no method observe"
        yield Finding("scales", "unknown", sentence)
        return
    mean = inputs.mean(axis=0)
    deviation = inputs.std(axis=0)
    scales = np.sqrt((inputs**2).mean(axis=0))
    numbers = {"mean": mean.tolist(), "deviation": deviation.tolist()}
    if exam.training.normalised and not getattr(exam.problem, "vec_normalize", ""):
        sentence = "the expert was trained on normalized observations, but they are not normalized here"
        yield Finding("scales", "fault", sentence, STATISTICS_REMEDY, numbers)
        return
    returns = compare_normalized_returns(exam, mean, deviation)
    if returns is not None:
        unchanged, normalized = returns
        sentence = (
            f"with normalized observations the expert's mean return is {normalized:.1f}, without {unchanged:.1f}: "
            "it was trained on normalized ones"
        )
        yield Finding(
            "scales", "fault", sentence, STATISTICS_REMEDY, numbers | {"own": unchanged, "normalised": normalized}
        )
        return
    nonzero = scales[scales > 0]
    is_unusual = bool(((nonzero < COMMON_SCALES[0]) | (nonzero > COMMON_SCALES[1])).any())
    sentence = (
        f"the root mean squares of the expert's inputs are from {nonzero.min():.2g} to {nonzero.max():.2g}"
        if len(nonzero)
        else "all inputs of the expert are 0"
    )
    if is_unusual and not is_better_than_random(exam):
        sentence += ", which is unusual, and it is not better than random actions"
        remedy = "check whether its observations were normalized in training"
        yield Finding("scales", "warning", sentence, remedy, numbers)
    else:
        yield Finding("scales", "fine", sentence, "", numbers)


def collect_observations(exam: Examination) -> Array | None:
    """Return the inputs [n, O] of the expert's network in states of the expert and of random actions."""
    observe: Callable[[Array], Array] | None = getattr(exam.expert, "observe", None)
    if not callable(observe):
        return None
    sources = (exam.expert_trajectories, exam.random_trajectories)
    parts = [observe(trajectories.states[trajectories.mask]) for trajectories in sources]
    return np.concatenate([np.asarray(part, float).reshape(len(part), -1) for part in parts])


def is_better_than_random(exam: Examination) -> bool:
    """Return whether the expert earns measurably more than random actions."""
    shared = min(exam.expert_trajectories.count, exam.random_trajectories.count)
    difference = exam.expert_trajectories.returns[:shared] - exam.random_trajectories.returns[:shared]
    return estimate_mean(difference).low > 0


@dataclass(frozen=True)
class NormalizedView:
    """Observations less their mean, divided by their standard deviation."""

    observe: Callable[[Array], Array]
    mean: Array
    deviation: Array

    def __call__(self, states: Array) -> Array:
        observations = self.observe(states)
        normalized: Array = ((observations - self.mean) / np.maximum(self.deviation, 1e-8)).clip(-10, 10)
        return np.ascontiguousarray(normalized.astype(observations.dtype))


def compare_normalized_returns(exam: Examination, mean: Array, deviation: Array) -> tuple[float, float] | None:
    """Return (mean return, mean return with normalized inputs) if the latter is much higher; else None."""
    expert: Any = exam.expert
    if not is_dataclass(expert) or isinstance(expert, type) or "observe" not in {f.name for f in fields(expert)}:
        return None
    nonzero_deviation = np.where(deviation > 0, deviation, 1.0)
    view = NormalizedView(exam.expert.observe, mean, nonzero_deviation)  # type: ignore[attr-defined]
    normalized_expert: Any = replace(expert, observe=view)

    def collect_returns(expert: Expert) -> Array:
        def work(n: int) -> Array:
            return roll_in(exam.simulator, RollInPolicy(expert, None, 1.0), exam.make_seeds(4, n)).returns

        return run_largest_affordable(work, MAX_FRESH_EPISODES, CHANGED_SHARE * exam.seconds / 4)

    unchanged = collect_returns(exam.expert)
    normalized = collect_returns(normalized_expert)
    shared = min(len(unchanged), len(normalized))
    gain = estimate_mean(normalized[:shared] - unchanged[:shared])
    above_random = float(normalized.mean()) - float(exam.random_trajectories.returns.mean())
    is_large = gain.low > 0 and gain.low > MIN_GAIN_FRACTION * max(above_random, 0.0)
    return (float(unchanged.mean()), float(normalized.mean())) if is_large else None
