"""One check a file: a function from an `Examination` to findings."""

from aggrevated.doctor.checks.action_masks import check_action_masks
from aggrevated.doctor.checks.action_order import check_action_order
from aggrevated.doctor.checks.calibration import check_calibration
from aggrevated.doctor.checks.cost_sign import check_cost_sign
from aggrevated.doctor.checks.discount import check_discount
from aggrevated.doctor.checks.greedy_consistency import check_greedy_consistency
from aggrevated.doctor.checks.horizon import check_horizon
from aggrevated.doctor.checks.improvement import check_improvement
from aggrevated.doctor.checks.markov_state import check_markov_state
from aggrevated.doctor.checks.observation_scale import check_observation_scale
from aggrevated.doctor.checks.returns import check_returns
from aggrevated.doctor.checks.signal_to_noise import check_signal_to_noise
from aggrevated.doctor.checks.stochasticity import check_stochasticity

CHECKS = {  # by name, in the order in which they are told
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
