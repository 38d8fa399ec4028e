"""Regular gradient descent (online gradient descent): plain, or with Adam as in the paper's experiments."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from aggrevated.cost_to_go import CostToGo
from aggrevated.losses import Loss
from aggrevated.policies import Policy
from aggrevated.schedules import Schedule, at
from aggrevated.settings import POSITIVE, one_of, setting
from aggrevated.trajectories import Trajectories
from aggrevated.updates import AnnealedSettings, Step, loss_and_gradient, norm
from aggrevated.updates.safe_step import MOST_HALVINGS, safe_step


@dataclass
class Regular:
    """θ_{n+1} = θ_n − η_n ∇ℓ_n, the step made by any of torch's optimisers over θ as one flat vector."""

    learning_rate: float | Schedule = 0.01
    optimiser: Callable[..., torch.optim.Optimizer] = torch.optim.Adam
    max_kl: float = 0.5
    _theta: Tensor | None = field(default=None, init=False, repr=False)
    _optimiser: torch.optim.Optimizer | None = field(default=None, init=False, repr=False)

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> Step:
        value, gradient = loss_and_gradient(policy, loss, trajectories, cost_to_go)
        if not torch.isfinite(gradient.square()).all():  # an infinite second moment would stop Adam for ever
            return Step(value, norm(gradient), 0.0, MOST_HALVINGS)
        displacement = self._displacement(policy, gradient, trajectories.n)
        kl, halvings = safe_step(policy, trajectories, displacement, self.max_kl)
        return Step(value, norm(gradient), kl, halvings)

    def _displacement(self, policy: Policy, gradient: Tensor, n: int) -> Tensor:
        """Where the optimiser would go from θ_n, as a vector from θ_n."""
        start = parameters_to_vector(policy.parameters()).detach()
        theta, optimiser = self._flat(start)
        theta.data.copy_(start)
        theta.grad = gradient
        optimiser.param_groups[0]["lr"] = at(self.learning_rate, n)
        optimiser.step()
        return theta.detach() - start

    def _flat(self, like: Tensor) -> tuple[Tensor, torch.optim.Optimizer]:
        if self._theta is None or self._optimiser is None:
            self._theta = torch.zeros_like(like, requires_grad=True)
            self._optimiser = self.optimiser([self._theta], lr=0.0)  # the rate is set before each step
        return self._theta, self._optimiser

    def state(self) -> dict[str, Tensor]:
        """The optimiser's moments; empty before the first step, or for plain descent."""
        if self._optimiser is None:
            return {}
        return {name: w.clone() for name, w in self._optimiser.state_dict()["state"].get(0, {}).items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._theta = self._optimiser = None
        if not state:
            return
        state = {name: w.clone() for name, w in state.items()}
        _, optimiser = self._flat(max(state.values(), key=Tensor.numel))
        groups = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": {0: state}, "param_groups": groups})


OPTIMISERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


@dataclass(frozen=True)
class RegularSettings(AnnealedSettings):
    """Regular gradient descent."""

    name = "regular"
    learning_rate: float = setting(0.01, "The step size of the regular update.", POSITIVE)
    optimiser: str = setting("adam", f"For the regular update: {' or '.join(OPTIMISERS)}.", one_of(OPTIMISERS))

    def build(self, seed: int) -> Regular:
        return Regular(self.schedule(self.learning_rate), OPTIMISERS[self.optimiser])
