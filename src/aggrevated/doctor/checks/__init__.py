"""Checks of the doctor: functions from an `Examination` to findings."""

from aggrevated.doctor.checks.costs import check_calibration, check_cost_sign, check_discount, check_signal_to_noise
from aggrevated.doctor.checks.environment import (
    check_action_masks,
    check_horizon,
    check_markov_state,
    check_observation_scale,
    check_stochasticity,
)
from aggrevated.doctor.checks.expert import (
    check_action_order,
    check_greedy_consistency,
    check_improvement,
    check_returns,
)

CHECKS = {  # by name, in the order of the report
    "return": check_returns,
    "snapshot": check_markov_state,
    "chance": check_stochasticity,
    "rules": check_action_masks,
    "horizon": check_horizon,
    "scales": check_observation_scale,
    "actions": check_action_order,
    "sign": check_cost_sign,
    "agreement": check_greedy_consistency,
    "discount": check_discount,
    "noise": check_signal_to_noise,
    "calibration": check_calibration,
    "headroom": check_improvement,
}
