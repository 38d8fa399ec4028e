"""One check a file: a function from an `Examination` to findings."""

from aggrevated.doctor.checks.actions import actions
from aggrevated.doctor.checks.agreement import agreement
from aggrevated.doctor.checks.calibration import calibration
from aggrevated.doctor.checks.chance import chance
from aggrevated.doctor.checks.discount import discount
from aggrevated.doctor.checks.headroom import headroom
from aggrevated.doctor.checks.horizon import horizon
from aggrevated.doctor.checks.noise import noise
from aggrevated.doctor.checks.returns import returns
from aggrevated.doctor.checks.rules import rules
from aggrevated.doctor.checks.scales import scales
from aggrevated.doctor.checks.sign import sign
from aggrevated.doctor.checks.snapshot import snapshot

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
