"""Regular gradient descent of a policy that knows much already: it acts by a mean of what it learns and where it began.

What is learned from few pages holds for them alone in part. On the way from the first weights to the new ones that part
is the last to come, and what was known is forgotten last: three quarters of the way are better than all of it, on other
pages by the same hand and on all others (`benchmarks/corrected.py --anchor-weight 0` is all of the way).
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
    """The policy is θ_1 + (1 − anchor)(θ_n − θ_1), where θ_n is what `inner` moves, by gradients at θ_n."""

    inner: RegularUpdate
    anchor: float
    _kept: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)  # θ_1 and θ_n, as vectors [d]

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        first = self._kept.get(FIRST, get_weights(policy))
        set_weights(policy, self._kept.get(MOVING, first))
        step = self.inner(policy, loss, trajectories, cost_to_go)
        moving = get_weights(policy)
        set_weights(policy, first + (1 - self.anchor) * (moving - first))
        self._kept = {FIRST: first, MOVING: moving}
        return step

    def state(self) -> dict[str, Tensor]:
        """What `inner` remembers, θ_1 and θ_n."""
        return self.inner.state() | {name: w.clone() for name, w in self._kept.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._kept = {name: state[name].clone() for name in (FIRST, MOVING) if name in state}
        self.inner.restore({name: w for name, w in state.items() if name not in self._kept})


def get_weights(policy: Policy) -> Tensor:
    """All of them, as a vector [d] of its own."""
    return parameters_to_vector(policy.parameters()).detach().clone()


@torch.no_grad()
def set_weights(policy: Policy, weights: Tensor) -> None:
    """Give the policy these weights [d]."""
    at = 0
    for own in policy.parameters():
        own.copy_(weights[at : at + own.numel()].view_as(own))
        at += own.numel()


@dataclass(frozen=True)
class AnchoredSettings(RegularSettings):
    """Regular gradient descent, of which the policy goes only a part of the way."""

    name = "anchored"
    anchor_weight: float = setting(0.25, "The share of the first policy in the one that acts.", BELOW_1)

    def build(self, seed: int) -> AnchoredUpdate:  # type: ignore[override]  # it has a Regular, and is none
        return AnchoredUpdate(super().build(seed), self.anchor_weight)
