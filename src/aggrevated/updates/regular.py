"""Regular gradient descent (online gradient descent): plain, or with Adam as in the paper's experiments."""

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from aggrevated.core.schedules import Schedule, evaluate_schedule
from aggrevated.core.settings import POSITIVE, one_of, setting
from aggrevated.kernels.adam import Adam, Optimizer
from aggrevated.losses import Loss
from aggrevated.oracles import CostToGo
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import GradientSettings, UpdateResult, compute_gradient_norm, compute_loss_and_gradient
from aggrevated.updates.cost_scale import RunningCostScale
from aggrevated.updates.safe_step import (
    KL_TOLERANCE_FACTOR,
    MAX_HALVINGS,
    count_halvings,
    is_all_finite,
    search_step_to_kl,
    take_safe_step,
)


@dataclass
class RegularUpdate:
    """θ_{n+1} = θ_n − η_n ∇ℓ_n, the step made by any of torch's optimizers over θ as one flat vector.

    With a `target_kl` the rate is multiplied by a factor that is remembered: after each step it is corrected by what
    the measured KL per state missed the target by, and a step of more than 1.5 times the target is halved.
    """

    learning_rate: float | Schedule = 0.01
    optimizer: Callable[..., Optimizer] = Adam
    max_kl: float = 0.5
    target_kl: float | Schedule = 0.0
    normalize_costs: bool = False  # whether A* is divided by its spread
    _factor: float = field(default=1.0, init=False, repr=False)
    _spread: RunningCostScale = field(default_factory=RunningCostScale, init=False, repr=False)
    _theta: Tensor | None = field(default=None, init=False, repr=False)
    _optimizer: Optimizer | None = field(default=None, init=False, repr=False)

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        told = cost_to_go
        if self.normalize_costs:
            self._spread = self._spread.include(cost_to_go, trajectories)
            cost_to_go = self._spread.divide(cost_to_go)
        value, gradient = compute_loss_and_gradient(policy, loss, trajectories, cost_to_go, along=told)
        if not is_all_finite(gradient.square()):  # an infinite second moment would stop Adam for ever
            return UpdateResult(value, compute_gradient_norm(gradient), 0.0, MAX_HALVINGS)
        displacement = self._compute_displacement(policy, gradient, trajectories.n)
        if target := evaluate_schedule(self.target_kl, trajectories.n):
            kl, far = search_step_to_kl(
                policy, trajectories, displacement, min(target, self.max_kl / KL_TOLERANCE_FACTOR)
            )
            self._factor = min(self._factor * min(max(far, 0.5), 2.0), 2.0**20)
            return UpdateResult(value, compute_gradient_norm(gradient), kl, count_halvings(far))
        kl, halvings = take_safe_step(policy, trajectories, displacement, self.max_kl)
        return UpdateResult(value, compute_gradient_norm(gradient), kl, halvings)

    def _compute_displacement(self, policy: Policy, gradient: Tensor, n: int) -> Tensor:
        """Where the optimizer would go from θ_n, as a vector from θ_n."""
        start = parameters_to_vector(policy.parameters()).detach()
        theta, optimizer = self._get_flat_optimizer(start)
        theta.data.copy_(start)
        theta.grad = gradient
        optimizer.param_groups[0]["lr"] = evaluate_schedule(self.learning_rate, n) * self._factor
        optimizer.step()
        return theta.detach() - start

    def _get_flat_optimizer(self, like: Tensor) -> tuple[Tensor, Optimizer]:
        if self._theta is None or self._optimizer is None:
            self._theta = torch.zeros_like(like, requires_grad=True)
            self._optimizer = self.optimizer([self._theta], lr=0.0)  # the rate is set before each step
        return self._theta, self._optimizer

    def state(self) -> dict[str, Tensor]:
        """The optimizer's moments, the spread and the factor: what there is of them, nothing before the first step."""
        own = {"spread": self._spread.to_tensor()} if self._spread.states else {}
        if self._factor != 1.0:
            own["factor"] = torch.tensor(self._factor, dtype=torch.float64)
        if self._optimizer is None:
            return own
        return own | {name: w.clone() for name, w in self._optimizer.state_dict()["state"].get(0, {}).items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        state = {name: w.clone() for name, w in state.items()}
        spread = state.pop("spread", None)
        factor = state.pop("factor", None)
        self._spread = RunningCostScale() if spread is None else RunningCostScale.from_tensor(spread)
        self._factor = 1.0 if factor is None else factor.item()
        self._theta = self._optimizer = None
        if not state:
            return
        _, optimizer = self._get_flat_optimizer(max(state.values(), key=Tensor.numel))
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": {0: state}, "param_groups": groups})


OPTIMIZERS = {"adam": Adam, "sgd": torch.optim.SGD}


@dataclass(frozen=True)
class RegularSettings(GradientSettings):
    """Regular gradient descent."""

    name = "regular"
    learning_rate: float = setting(
        0.01, "The step size of the regular update; with --target-kl only where it begins.", POSITIVE
    )
    optimizer: str = setting("adam", f"For the regular update: {' or '.join(OPTIMIZERS)}.", one_of(OPTIMIZERS))

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """A learning rate that was given on purpose stays as it is."""
        own = super().fill_defaults(iterations, given)
        return replace(own, target_kl=0.0) if "learning_rate" in given and "target_kl" not in given else own

    def build(self, seed: int) -> RegularUpdate:
        rate = self.schedule(self.learning_rate)
        target = self.schedule(self.target_kl)
        return RegularUpdate(rate, OPTIMIZERS[self.optimizer], target_kl=target, normalize_costs=self.normalize_costs)
