"""Checks of the expert's costs: sign, discount, noise, calibration."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import (
    BootstrapEstimate,
    Finding,
    bootstrap_estimate,
    center_by_group,
    compute_correlation,
    rank_correlation,
)
from aggrevated.doctor.value_bias import estimate_value_bias, mean_squared_error
from aggrevated.simulators import find_reseedable

AGAINST = -0.2  # a rank correlation that is surely below this runs the other way


def check_cost_sign(patient: Examination) -> Iterator[Finding]:
    """What it says must be of the sign of what is paid, and rise where that rises."""
    if not patient.capability:
        return
    level = estimate_value_bias(patient)
    said = bootstrap_estimate(lambda rows: float(level.predicted_costs[rows].mean()), level.group)
    paid = bootstrap_estimate(lambda rows: float(level.rollout_costs[rows].mean()), level.group)
    ranks = bootstrap_estimate(
        lambda rows: rank_correlation(level.predicted_costs[rows], level.rollout_costs[rows]), level.group
    )
    numbers = {"predicted_costs": said.to_list(), "rollout_costs": paid.to_list(), "rank_correlation": ranks.to_list()}
    one_sided = (
        min((level.rollout_costs > 0).mean(), (level.rollout_costs < 0).mean()) < 0.05
    )  # costs of both signs say nothing
    opposite = ranks.known and one_sided and (said.low > 0 > paid.high or said.high < 0 < paid.low)
    if opposite or (ranks.known and ranks.high < AGAINST):
        way = f"it says {said.value:.1f} on average, and {paid.value:.1f} is paid; rank correlation {ranks}"
        remedy = "turn the sign of its q or v: they are costs, what is yet to be paid, and the least is the best"
        yield Finding(
            "sign", "fault", f"the expert's costs are negated, or of another environment: {way}", remedy, numbers
        )
    else:
        at = f"{said.value:.1f} said, {paid.value:.1f} paid on average"
        yield Finding("sign", "fine", f"the sign of the expert's costs is right: {at}", numbers=numbers)


TIMES = 2.0  # another discount must be surely so many times nearer, in root mean square
APART = 1.5, 3.0  # and costs by the two so far apart; a critic that has not learned all looks discounted, too


def check_discount(patient: Examination) -> Iterator[Finding]:
    """Of all discounts, that by which roll-outs come nearest to what the expert says."""
    if not patient.capability:
        return
    level = estimate_value_bias(patient)
    own = patient.discount

    def list_fits(gamma: float) -> list[tuple[float, bool]]:
        return [way for way in level.fits if way[0] == gamma]

    if not rank_correlation(level.predicted_costs, level.rollout_costs) > 0:
        yield Finding(
            "discount", "unknown", f"costs that do not rise with what is paid tell no discount; {own:g} is said"
        )
        return
    best = min(level.fits, key=lambda way: mean_squared_error(level.predicted_costs, level.fits[way]))[0]

    def compute_ratio(rows: Array) -> float:
        at = {
            g: min(mean_squared_error(level.predicted_costs[rows], level.fits[way][rows]) for way in list_fits(g))
            for g in (own, best)
        }
        return float(np.sqrt(at[own] / max(at[best], 1e-30)))

    nearer = bootstrap_estimate(compute_ratio, level.group)
    sizes = [min((abs(level.fits[way]).mean() for way in list_fits(gamma)), default=0.0) for gamma in (own, best)]
    apart = max(sizes) / max(min(sizes), 1e-30)
    numbers = {"says": own, "fits": best, "times_nearer": nearer.to_list(), "apart": apart}
    if best != own and nearer.known and nearer.low > TIMES and apart > APART[0]:
        by = f"{format_factor(nearer.value)} times nearer"
        sentence = f"the expert says a discount of {own:g}, but its costs are those of {best:g}: {by}"
        remedy = f"let its attribute discount be {best:g}, or roll it out instead of asking it"
        yield Finding("discount", "fault" if apart > APART[1] else "warning", sentence, remedy, numbers)
    else:
        horizon = f"H = {patient.horizon}"
        yield Finding("discount", "fine", f"{horizon}, and the expert's costs are discounted by {own:g}", "", numbers)


def format_factor(times: float) -> str:
    """A number that nobody reads to the last digit."""
    return f"{times:.1f}" if times < 100 else "more than 100"


FLAT = 1e-6  # of its own size: what varies less is constant
# What an action is said to cost, less what one step and V after it come to, beside how much V varies at all. Exact
# costs have 0, the shipped networks 0.03 to 0.22, noise as large as the signal 0.7 and more.
LOUD = 0.4


def check_signal_to_noise(patient: Examination) -> Iterator[Finding]:
    """Costs must vary, be the same when asked again, and be those of the next step and what follows."""
    if not patient.capability:
        return
    probes, _ = patient.probe_rollouts
    said = patient.predicted_costs
    spread = float((center_by_group(said, probes.probe) if patient.capability != "v" else said).std())
    if spread <= FLAT * max(1.0, float(abs(said).mean())):
        what = "all actions cost the same" if patient.capability != "v" else "all states cost the same"
        remedy = "check that q is asked of the state that is given, and that its weights were read"
        yield Finding("noise", "fault", f"the expert's costs are constant: {what}", remedy, {"spread": spread})
        return
    again = patient.query_costs(probes.states, probes.probe, probes.action)
    change = float((again - said).std())
    if change > LOUD * spread:
        sentence = f"asked twice, the expert tells other costs: they change by {change:.3g}, and vary by {spread:.3g}"
        remedy = "let its q be a function of the state, or the mean of many answers"
        yield Finding("noise", "fault", sentence, remedy, {"change": change, "spread": spread})
        return
    ratio = estimate_value_roughness(patient)
    numbers = {"change": change, "spread": spread, "noise_to_signal": ratio.to_list()}
    if ratio.known and ratio.low > LOUD:
        sentence = f"what the expert says of an action is not what it says one step later: noise to signal {ratio}"
        remedy = "do not trust its q: use --oracle monte-carlo, which rolls it out"
        verdict = "fault" if find_reseedable(patient.simulator) is None else "warning"
        yield Finding("noise", verdict, sentence, remedy, numbers)  # type: ignore[arg-type]
    else:
        yield Finding("noise", "fine", f"there is more signal than noise in the expert's costs: {ratio}", "", numbers)


def estimate_value_roughness(patient: Examination) -> BootstrapEstimate:
    """The noise by Bellman's equation, beside how much the expert's V varies where it comes to."""
    if patient.capability == "v":
        return estimate_episode_differences(patient)
    probes, _ = patient.probe_rollouts
    rows = np.flatnonzero(probes.in_view & np.isfinite(patient.lookahead_costs))
    wrong = center_by_group((patient.predicted_costs - patient.lookahead_costs)[rows], probes.probe[rows])
    values = patient.query_values(probes.states)[probes.probe[rows]]
    return bootstrap_estimate(
        lambda at: compute_interdecile_range(wrong[at]) / max(compute_interdecile_range(values[at]), 1e-12),
        probes.group[rows],
    )


def estimate_episode_differences(patient: Examination) -> BootstrapEstimate:
    """The same of V, from step to step of the expert's own episodes."""
    of = patient.expert_trajectories
    values = np.zeros(of.mask.shape)
    values[of.mask] = patient.query_values(of.states[of.mask])
    episode, t = np.nonzero(of.mask[:, 1:])
    now = values[episode, t]
    later = values[episode, t + 1]
    wrong = now - of.costs[episode, t] - patient.discount * later
    return bootstrap_estimate(
        lambda at: compute_interdecile_range(wrong[at]) / max(compute_interdecile_range(now[at]), 1e-12), episode
    )


def compute_interdecile_range(values: Array) -> float:
    """Of the middle four fifths: ends of episodes, which networks hardly know, are few and far out."""
    low, high = np.percentile(values, [10, 90])
    return float(high - low)


STRANGE = 0.2  # rank correlations that are surely below this are those of somebody else's costs
UNIT = 3.0  # so many times too much or too little is another unit


def check_calibration(patient: Examination) -> Iterator[Finding]:
    """By rank and by size, over states; and over the actions at each of them."""
    if not patient.capability:
        return
    probes, rolled = patient.probe_rollouts
    level = estimate_value_bias(patient)
    states = np.flatnonzero(probes.own & np.isfinite(rolled.get_costs(1.0)))
    paid = predict_rollout_costs(patient, level.going_on)[states]
    said = patient.predicted_costs[states]
    group = probes.group[states]
    ranks = bootstrap_estimate(lambda rows: rank_correlation(said[rows], paid[rows]), group)
    seen = bootstrap_estimate(
        lambda rows: rank_correlation(level.predicted_costs[rows], level.rollout_costs[rows]), level.group
    )
    bias = bootstrap_estimate(
        lambda rows: float((level.predicted_costs - level.rollout_costs)[rows].mean()), level.group
    )
    size = float(abs(level.rollout_costs).mean())
    times = float(abs(level.predicted_costs).mean()) / max(size, 1e-12)
    numbers = {"rank_correlation": ranks.to_list(), "on_its_own_states": seen.to_list(), "bias": bias.to_list()}
    numbers |= {"times": [times], **estimate_advantage_calibration(patient, level.going_on)}
    said_so = f"rank correlation {seen}, on all states {ranks}; bias {bias.value:.2g} of {size:.2g}"
    if seen.known and seen.high < AGAINST:
        return  # `sign` says so
    if ranks.known and seen.known and max(ranks.high, seen.high) < STRANGE:
        sentence = f"the expert's costs have nothing to do with what its roll-outs pay: {said_so}"
        remedy = "check that its q is of this environment; until then use --oracle monte-carlo"
        yield Finding("calibration", "fault", sentence, remedy, numbers)
    elif size > 0 and not 1 / UNIT < times < UNIT:
        sentence = f"the expert's costs are {times:.2g} times as large as what its roll-outs pay: {said_so}"
        remedy = "check whether its rewards were scaled or normalised in training; --oracle monte-carlo needs no q"
        yield Finding("calibration", "warning", sentence, remedy, numbers)
    else:
        yield Finding("calibration", "fine", f"the expert's costs go with its roll-outs: {said_so}", "", numbers)


def predict_rollout_costs(patient: Examination, going_on: bool) -> Array:
    """[m]: what each tried action costs, as the expert counts."""
    _, rolled = patient.probe_rollouts
    return (
        rolled.estimate_infinite_costs(patient.discount, patient.mean_step_cost)
        if going_on
        else rolled.get_costs(patient.discount)
    )


def estimate_advantage_calibration(patient: Examination, going_on: bool) -> dict[str, list[float]]:
    """Of the advantages: their rank correlation and slope, against roll-outs and against one step and V after it."""
    if patient.capability == "v":
        return {}
    probes, _ = patient.probe_rollouts
    paid = predict_rollout_costs(patient, going_on)
    rows = np.flatnonzero(np.isfinite(paid) & probes.in_view)
    at = probes.probe[rows]
    group = probes.group[rows]
    said, paid, ahead = (center_by_group(x[rows], at) for x in (patient.predicted_costs, paid, patient.lookahead_costs))
    ranks = bootstrap_estimate(lambda i: rank_correlation(said[i], paid[i]), group)
    near = bootstrap_estimate(lambda i: compute_correlation(said[i], ahead[i]), group)
    slope = float((said * paid).sum() / max(float((paid * paid).sum()), 1e-30))
    return {"advantages": ranks.to_list(), "advantages_one_step": near.to_list(), "slope": [slope]}
