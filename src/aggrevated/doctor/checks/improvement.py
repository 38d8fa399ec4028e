"""What would be won over the expert by looking one step further than it does?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.discounted_rollouts import run_discounted_rollouts
from aggrevated.doctor.estimates import estimate_mean
from aggrevated.doctor.examination import IMPROVED, Examination
from aggrevated.doctor.findings import Finding
from aggrevated.doctor.time_budget import run_largest_affordable
from aggrevated.simulators import find_reseedable
from aggrevated.simulators.checked import checked_reset, checked_step

EPISODES = 8
LITTLE = 0.01  # of what the expert earns above chance: less is not worth a run
SEEDS_PER_STEP = 4  # of which the mean is taken where there is chance; never that which the episode itself will have


def check_improvement(patient: Examination) -> Iterator[Finding]:
    """In some steps of fresh episodes all actions are rolled out, and the best is taken; else the expert acts."""
    numbers = summarize_action_gaps(patient)
    with_help, decisions = run_largest_affordable(
        lambda n: (one_step_improvement(patient, n), n), patient.horizon, IMPROVED * patient.seconds
    )
    alone = one_step_improvement(patient, 0)
    gain = estimate_mean(with_help - alone)
    worth = LITTLE * abs(float(alone.mean()) - float(patient.of_random.returns.mean()))
    share = decisions / patient.horizon
    numbers |= {"expert": [float(alone.mean())], "improved": [float(with_help.mean())], "gain": gain.as_list()}
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
    probes, rolled = patient.probed
    paid = rolled.by(1.0)
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


def one_step_improvement(patient: Examination, decisions: int) -> Array:
    """[EPISODES] returns of the expert, helped in so many steps, evenly over the horizon."""
    simulator, chance = patient.simulator, find_reseedable(patient.simulator)
    helped = set(np.linspace(0, patient.horizon, decisions, endpoint=False).astype(int).tolist())
    state, lanes, total = checked_reset(simulator, patient.seeds(5, EPISODES)), np.arange(EPISODES), np.zeros(EPISODES)
    for t in range(patient.horizon):
        times = np.full(len(lanes), t)
        action = patient.acting(state, times)
        if t in helped:
            probe, tried, own = patient.tried(state, action)
            costs = np.zeros(len(probe))
            for luck in range(SEEDS_PER_STEP if chance is not None else 1):
                fresh = patient.seeds(1000 + SEEDS_PER_STEP * t + luck, len(lanes))
                start = state if chance is None else chance.reseed(state, fresh)
                rolled = run_discounted_rollouts(simulator, patient.expert, start[probe], times[probe], tried, (1.0,))
                costs += np.nan_to_num(rolled.by(1.0), nan=np.inf)
            for row in range(len(lanes)):
                options = np.flatnonzero(probe == row)
                best = options[np.lexsort((~own[options], costs[options]))[0]]  # the expert's own where they are equal
                action[row] = tried[best]
        state, cost, done = checked_step(simulator, state, action)
        total[lanes] -= cost
        lanes, state = lanes[~done], state[~done]
        if not len(lanes):
            break
    return total
