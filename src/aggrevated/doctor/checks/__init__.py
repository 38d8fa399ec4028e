"""One check a file: a function from an `Examination` to findings."""

from aggrevated.doctor.checks.action_masks import rules
from aggrevated.doctor.checks.action_order import actions
from aggrevated.doctor.checks.calibration import calibration
from aggrevated.doctor.checks.cost_sign import sign
from aggrevated.doctor.checks.discount import discount
from aggrevated.doctor.checks.greedy_consistency import agreement
from aggrevated.doctor.checks.horizon import horizon
from aggrevated.doctor.checks.improvement import headroom
from aggrevated.doctor.checks.markov_state import snapshot
from aggrevated.doctor.checks.observation_scale import scales
from aggrevated.doctor.checks.returns import returns
from aggrevated.doctor.checks.signal_to_noise import noise
from aggrevated.doctor.checks.stochasticity import chance

CHECKS = {  # by name, in the order in which they are told
    "return": returns,
    "snapshot": snapshot,
    "chance": chance,
    "rules": rules,
    "horizon": horizon,
    "scales": scales,
    "actions": actions,
    "sign": sign,
    "agreement": agreement,
    "discount": discount,
    "noise": noise,
    "calibration": calibration,
    "headroom": headroom,
}
