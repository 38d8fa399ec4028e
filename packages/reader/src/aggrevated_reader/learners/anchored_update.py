"""Regular gradient descent of a pretrained policy that acts by a mean of its initial and its learned weights.

Part of what is learned from few pages holds for these pages only. On the line from the initial weights to the
learned ones, three quarters of the way score better than all of it, both on other pages by the same writer
and on all other pages (`benchmarks/corrected.py --anchor-weight 0` goes all the way).
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from aggrevated.core.settings import BELOW_1, setting
from aggrevated.losses import Loss
from aggrevated.oracles import CostToGo
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import UpdateResult
from aggrevated.updates.regular import RegularSettings, RegularUpdate

FIRST = "anchored.first"
MOVING = "anchored.moving"


@dataclass
class AnchoredUpdate:
    """Update whose policy is θ_1 + (1 − anchor)(θ_n − θ_1), where `inner` moves θ_n by gradients at θ_n.

    Args:
        inner: The update of θ_n.
        anchor: The weight of θ_1 in the policy, 0 to below 1.
    """

    inner: RegularUpdate
    anchor: float
    _vectors: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)  # θ_1 and θ_n, each [d]

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        initial = self._vectors.get(FIRST, get_weights(policy))
        set_weights(policy, self._vectors.get(MOVING, initial))
        result = self.inner(policy, loss, trajectories, cost_to_go)
        learned = get_weights(policy)
        set_weights(policy, initial + (1 - self.anchor) * (learned - initial))
        self._vectors = {FIRST: initial, MOVING: learned}
        return result

    def state(self) -> dict[str, Tensor]:
        """Return the state of `inner`, θ_1 and θ_n."""
        return self.inner.state() | {name: w.clone() for name, w in self._vectors.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._vectors = {name: state[name].clone() for name in (FIRST, MOVING) if name in state}
        self.inner.restore({name: w for name, w in state.items() if name not in self._vectors})


def get_weights(policy: Policy) -> Tensor:
    """Return a copy of all weights of the policy as a vector [d]."""
    return parameters_to_vector(policy.parameters()).detach().clone()


@torch.no_grad()
def set_weights(policy: Policy, weights: Tensor) -> None:
    """Set all weights of the policy from a vector [d]."""
    offset = 0
    for parameter in policy.parameters():
        parameter.copy_(weights[offset : offset + parameter.numel()].view_as(parameter))
        offset += parameter.numel()


@dataclass(frozen=True)
class AnchoredSettings(RegularSettings):
    """Regular gradient descent whose policy is a mean of the initial and the learned weights."""

    name = "anchored"
    anchor_weight: float = setting(0.25, "Weight of the initial policy; 0: use the learned weights only.", BELOW_1)

    def build(self, seed: int) -> AnchoredUpdate:  # type: ignore[override]  # AnchoredUpdate contains a RegularUpdate
        return AnchoredUpdate(super().build(seed), self.anchor_weight)
