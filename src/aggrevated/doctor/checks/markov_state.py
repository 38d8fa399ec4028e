"""Is a state all that decides what comes next?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import Finding
from aggrevated.doctor.time_budget import run_largest_affordable
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators.checked import checked_observe, checked_reset, checked_step

AGAIN = 2000  # steps, at most: an environment that replays its way to each of them may be slow
SHARE = 0.05  # of the time, for those of expert and random policy each
LANES = 6  # whole episodes


def check_markov_state(patient: Examination) -> Iterator[Finding]:
    """Episodes are stepped again, out of order, from their start, and from their middle: not a bit may differ."""
    for of in (patient.of_expert, patient.of_random):
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
    k, t = k[rows], t[rows]
    following, cost, done = checked_step(patient.simulator, of.states[k, t], of.actions[k, t])
    last = last_step_times(of)[k] == t
    if not np.array_equal(cost, of.costs[k, t], equal_nan=True):
        return f"{count_differing_rows(cost, of.costs[k, t])} of {len(k)} single steps cost something else when taken again"
    early = done & ~last
    if early.any():
        return f"{int(early.sum())} of {len(k)} single steps end the episode when taken again, and did not before"
    late = ~done & last & (t + 1 < patient.horizon)
    if late.any():
        return f"{int(late.sum())} steps that ended an episode do not when taken again"
    on = ~last & ~done
    shown = checked_observe(patient.simulator, following[on]) if on.any() else of.observations[:0, 0]
    wrong = count_differing_rows(shown, of.observations[k[on], t[on] + 1])
    return f"{wrong} of {len(k)} single steps lead elsewhere when taken again" if wrong else ""


def replay_from_start(patient: Examination, of: Trajectories) -> str:
    """Whole episodes, in reverse order."""
    lanes = np.arange(min(LANES, of.count))[::-1]
    return describe_replay_difference(
        patient, of, lanes, np.zeros(len(lanes), int), checked_reset(patient.simulator, of.seeds[lanes])
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
    end, at = last_step_times(of), start.copy()
    while len(lanes):
        if count_differing_rows(checked_observe(patient.simulator, states), of.observations[lanes, at]):
            return f"an episode that is gone through again looks otherwise at step {int(at.min())}"
        states, cost, done = checked_step(patient.simulator, states, of.actions[lanes, at])
        if count_differing_rows(cost, of.costs[lanes, at]):
            return f"an episode that is gone through again costs something else at step {int(at.min())}"
        over = at == end[lanes]
        if (done & ~over).any() or (over & ~done & (at + 1 < patient.horizon)).any():
            return f"an episode that is gone through again does not end where it did (step {int(at.min())})"
        lanes, states, at = lanes[~over], states[~over], at[~over] + 1
    return ""


def last_step_times(of: Trajectories) -> Array:
    """[K]: when the last step was."""
    found: Array = of.mask.sum(axis=1) - 1
    return found


def count_differing_rows(one: Array, other: Array) -> int:
    """How many rows are not equal, bit for bit."""
    n = len(one)
    same = (one == other) | ((one != one) & (other != other))
    return int((~same.reshape(n, -1).all(axis=1)).sum()) if n else 0
