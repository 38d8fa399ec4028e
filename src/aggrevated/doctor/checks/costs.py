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

MAX_NEGATED_CORRELATION = -0.2  # a rank correlation whose interval is below: the costs are negated


def check_cost_sign(exam: Examination) -> Iterator[Finding]:
    """Check that predicted costs have the sign of rollout costs, and rise with them."""
    if not exam.capability:
        return
    bias = estimate_value_bias(exam)
    predicted = bootstrap_estimate(lambda rows: float(bias.predicted_costs[rows].mean()), bias.group)
    rollout = bootstrap_estimate(lambda rows: float(bias.rollout_costs[rows].mean()), bias.group)
    ranks = bootstrap_estimate(
        lambda rows: rank_correlation(bias.predicted_costs[rows], bias.rollout_costs[rows]), bias.group
    )
    numbers = {
        "predicted_costs": predicted.to_list(), "rollout_costs": rollout.to_list(),
        "rank_correlation": ranks.to_list(),
    }  # fmt: skip
    # If rollout costs have both signs, their mean says nothing about the sign.
    one_sided = min((bias.rollout_costs > 0).mean(), (bias.rollout_costs < 0).mean()) < 0.05
    opposite = ranks.known and one_sided and (predicted.low > 0 > rollout.high or predicted.high < 0 < rollout.low)
    if opposite or (ranks.known and ranks.high < MAX_NEGATED_CORRELATION):
        means = f"predicted {predicted.value:.1f} on average, roll-outs cost {rollout.value:.1f}"
        remedy = "negate its q or v: they must return costs-to-go, of which the smallest is the best"
        sentence = (
            f"the expert's costs are negated, or belong to another environment: {means}; rank correlation {ranks}"
        )
        yield Finding("sign", "fault", sentence, remedy, numbers)
    else:
        means = f"predicted {predicted.value:.1f} on average, roll-outs cost {rollout.value:.1f}"
        yield Finding("sign", "fine", f"the sign of the expert's costs is right: {means}", numbers=numbers)


MIN_ERROR_RATIO = 2.0  # the stated discount must fit worse by this factor, in root mean square error
# Ratio of the costs by the two discounts that gives a warning and a fault. Costs of a critic that is not fully trained
# look discounted, too.
COST_RATIOS = 1.5, 3.0


def check_discount(exam: Examination) -> Iterator[Finding]:
    """Check that the stated discount is the one with which roll-outs are nearest to the predicted costs."""
    if not exam.capability:
        return
    bias = estimate_value_bias(exam)
    stated = exam.discount

    def list_fits(gamma: float) -> list[tuple[float, bool]]:
        return [key for key in bias.fits if key[0] == gamma]

    if not rank_correlation(bias.predicted_costs, bias.rollout_costs) > 0:
        sentence = (
            f"the discount cannot be checked, since predicted costs do not rise with rollout costs; "
            f"the expert states {stated:g}"
        )
        yield Finding("discount", "unknown", sentence)
        return
    best = min(bias.fits, key=lambda key: mean_squared_error(bias.predicted_costs, bias.fits[key]))[0]

    def compute_ratio(rows: Array) -> float:
        errors = {
            gamma: min(mean_squared_error(bias.predicted_costs[rows], bias.fits[key][rows]) for key in list_fits(gamma))
            for gamma in (stated, best)
        }
        return float(np.sqrt(errors[stated] / max(errors[best], 1e-30)))

    ratio = bootstrap_estimate(compute_ratio, bias.group)
    sizes = [min((abs(bias.fits[key]).mean() for key in list_fits(gamma)), default=0.0) for gamma in (stated, best)]
    cost_ratio = max(sizes) / max(min(sizes), 1e-30)
    numbers = {"says": stated, "fits": best, "times_nearer": ratio.to_list(), "apart": cost_ratio}
    if best != stated and ratio.known and ratio.low > MIN_ERROR_RATIO and cost_ratio > COST_RATIOS[0]:
        error = f"the error with {stated:g} is {format_factor(ratio.value)} times as large"
        sentence = f"the expert states a discount of {stated:g}, but its costs fit a discount of {best:g}: {error}"
        remedy = f"set its attribute discount to {best:g}, or use --oracle monte-carlo, which rolls the expert out"
        yield Finding("discount", "fault" if cost_ratio > COST_RATIOS[1] else "warning", sentence, remedy, numbers)
    else:
        sentence = f"the expert's costs fit its discount of {stated:g} (H = {exam.horizon})"
        yield Finding("discount", "fine", sentence, "", numbers)


def format_factor(factor: float) -> str:
    """Return a factor with one decimal, or "more than 100"."""
    return f"{factor:.1f}" if factor < 100 else "more than 100"


CONSTANT_FRACTION = 1e-6  # costs that vary less, as a fraction of their size, are constant
# Predicted cost of an action less the cost of one step and V after it, as a fraction of the variation of V. Exact costs
# have 0, the builtin networks 0.03 to 0.22, noise as large as the signal 0.7 and more.
MAX_NOISE_TO_SIGNAL = 0.4


def check_signal_to_noise(exam: Examination) -> Iterator[Finding]:
    """Check that costs vary, are the same when queried again, and satisfy Bellman's equation."""
    if not exam.capability:
        return
    probes, _ = exam.probe_rollouts
    predicted = exam.predicted_costs
    spread = float((center_by_group(predicted, probes.probe) if exam.capability != "v" else predicted).std())
    if spread <= CONSTANT_FRACTION * max(1.0, float(abs(predicted).mean())):
        detail = "all actions cost the same" if exam.capability != "v" else "all states cost the same"
        remedy = "check that its q or v reads the states that it is passed, and that its weights were loaded"
        yield Finding("noise", "fault", f"the expert's costs are constant: {detail}", remedy, {"spread": spread})
        return
    repeated = exam.query_costs(probes.states, probes.probe, probes.action)
    change = float((repeated - predicted).std())
    if change > MAX_NOISE_TO_SIGNAL * spread:
        sentence = (
            f"the expert returns other costs when queried again: they change by {change:.3g} and vary by {spread:.3g} "
            "over states and actions"
        )
        remedy = "make its costs a function of the state alone, or return the mean of many samples"
        yield Finding("noise", "fault", sentence, remedy, {"change": change, "spread": spread})
        return
    ratio = estimate_value_roughness(exam)
    numbers = {"change": change, "spread": spread, "noise_to_signal": ratio.to_list()}
    if ratio.known and ratio.low > MAX_NOISE_TO_SIGNAL:
        sentence = f"the expert's costs of an action do not match its costs one step later: noise to signal {ratio}"
        remedy = "do not use its costs: choose --oracle monte-carlo, which rolls the expert out"
        verdict = "fault" if find_reseedable(exam.simulator) is None else "warning"
        yield Finding("noise", verdict, sentence, remedy, numbers)  # type: ignore[arg-type]
    else:
        sentence = f"the expert's costs match its costs one step later: noise to signal {ratio}"
        yield Finding("noise", "fine", sentence, "", numbers)


def estimate_value_roughness(exam: Examination) -> BootstrapEstimate:
    """Return the error of Bellman's equation as a fraction of the variation of V, at the expert's own states."""
    if exam.capability == "v":
        return estimate_episode_differences(exam)
    probes, _ = exam.probe_rollouts
    rows = np.flatnonzero(probes.on_expert_state & np.isfinite(exam.lookahead_costs))
    error = center_by_group((exam.predicted_costs - exam.lookahead_costs)[rows], probes.probe[rows])
    values = exam.query_values(probes.states)[probes.probe[rows]]
    return bootstrap_estimate(
        lambda at: compute_interdecile_range(error[at]) / max(compute_interdecile_range(values[at]), 1e-12),
        probes.group[rows],
    )


def estimate_episode_differences(exam: Examination) -> BootstrapEstimate:
    """Return the error of Bellman's equation for V as a fraction of its variation, along the expert's episodes."""
    trajectories = exam.expert_trajectories
    values = np.zeros(trajectories.mask.shape)
    values[trajectories.mask] = exam.query_values(trajectories.states[trajectories.mask])
    episode, t = np.nonzero(trajectories.mask[:, 1:])
    current = values[episode, t]
    later = values[episode, t + 1]
    error = current - trajectories.costs[episode, t] - exam.discount * later
    return bootstrap_estimate(
        lambda at: compute_interdecile_range(error[at]) / max(compute_interdecile_range(current[at]), 1e-12), episode
    )


def compute_interdecile_range(values: Array) -> float:
    """Return the range of the middle 80 %, which leaves out the few outliers at the ends of episodes."""
    low, high = np.percentile(values, [10, 90])
    return float(high - low)


MIN_RANK_CORRELATION = 0.2  # a rank correlation whose interval is below: the costs are of another environment
MAX_COST_RATIO = 3.0  # predicted costs that are larger or smaller by this factor are in another unit


def check_calibration(exam: Examination) -> Iterator[Finding]:
    """Check predicted costs by rank and by size, over states, and over the actions at each state."""
    if not exam.capability:
        return
    probes, rollouts = exam.probe_rollouts
    bias = estimate_value_bias(exam)
    states = np.flatnonzero(probes.is_expert_action & np.isfinite(rollouts.get_costs(1.0)))
    rollout = predict_rollout_costs(exam, bias.beyond_horizon)[states]
    predicted = exam.predicted_costs[states]
    group = probes.group[states]
    all_ranks = bootstrap_estimate(lambda rows: rank_correlation(predicted[rows], rollout[rows]), group)
    expert_ranks = bootstrap_estimate(
        lambda rows: rank_correlation(bias.predicted_costs[rows], bias.rollout_costs[rows]), bias.group
    )
    mean_error = bootstrap_estimate(
        lambda rows: float((bias.predicted_costs - bias.rollout_costs)[rows].mean()), bias.group
    )
    size = float(abs(bias.rollout_costs).mean())
    ratio = float(abs(bias.predicted_costs).mean()) / max(size, 1e-12)
    numbers = {
        "rank_correlation": all_ranks.to_list(), "on_its_own_states": expert_ranks.to_list(),
        "bias": mean_error.to_list(),
    }  # fmt: skip
    numbers |= {"times": [ratio], **estimate_advantage_calibration(exam, bias.beyond_horizon)}
    details = (
        f"rank correlation {expert_ranks} on its own states, {all_ranks} on all; bias {mean_error.value:.2g} "
        f"at a mean cost of {size:.2g}"
    )
    if expert_ranks.known and expert_ranks.high < MAX_NEGATED_CORRELATION:
        return  # the check `sign` reports it
    if all_ranks.known and expert_ranks.known and max(all_ranks.high, expert_ranks.high) < MIN_RANK_CORRELATION:
        sentence = f"the expert's costs are unrelated to the costs of its roll-outs: {details}"
        remedy = "check that its costs are of this environment; until then use --oracle monte-carlo"
        yield Finding("calibration", "fault", sentence, remedy, numbers)
    elif size > 0 and not 1 / MAX_COST_RATIO < ratio < MAX_COST_RATIO:
        sentence = f"the expert's costs are {ratio:.2g} times as large as those of its roll-outs: {details}"
        remedy = (
            "check whether rewards were scaled or normalized in its training; "
            "--oracle monte-carlo does not need the expert's costs"
        )
        yield Finding("calibration", "warning", sentence, remedy, numbers)
    else:
        sentence = f"the expert's costs agree with those of its roll-outs: {details}"
        yield Finding("calibration", "fine", sentence, "", numbers)


def predict_rollout_costs(exam: Examination, beyond_horizon: bool) -> Array:
    """Return the rollout cost [m] of each tried action with the expert's discount, cut at the horizon or extended."""
    _, rollouts = exam.probe_rollouts
    return (
        rollouts.estimate_infinite_costs(exam.discount, exam.mean_step_cost)
        if beyond_horizon
        else rollouts.get_costs(exam.discount)
    )


def estimate_advantage_calibration(exam: Examination, beyond_horizon: bool) -> dict[str, list[float]]:
    """Return correlations and slope of predicted advantages, against roll-outs and against one step and V after it."""
    if exam.capability == "v":
        return {}
    probes, _ = exam.probe_rollouts
    costs = predict_rollout_costs(exam, beyond_horizon)
    rows = np.flatnonzero(np.isfinite(costs) & probes.on_expert_state)
    at = probes.probe[rows]
    group = probes.group[rows]
    predicted, rollout, lookahead = (
        center_by_group(values[rows], at) for values in (exam.predicted_costs, costs, exam.lookahead_costs)
    )
    ranks = bootstrap_estimate(lambda i: rank_correlation(predicted[i], rollout[i]), group)
    one_step = bootstrap_estimate(lambda i: compute_correlation(predicted[i], lookahead[i]), group)
    slope = float((predicted * rollout).sum() / max(float((rollout * rollout).sum()), 1e-30))
    return {"advantages": ranks.to_list(), "advantages_one_step": one_step.to_list(), "slope": [slope]}
