"""Regular (online) gradient descent: plain SGD, or Adam as in the paper's experiments."""

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
    """θ_{n+1} = θ_n − η_n ∇ℓ_n, by an optimizer on θ as one vector.

    With a `target_kl`, each step is scaled until its KL is at most 1.5 times the target. The learning rate is
    multiplied by a factor, a part of the state, which follows these scales.

    Args:
        learning_rate: η, a number or a schedule; with a `target_kl`, only its initial value.
        optimizer: Called with parameters and `lr`, it returns an optimizer: `Adam`, or a class of
            `torch.optim`.
        max_kl: The largest mean KL per state, in nats; longer steps are halved.
        target_kl: Mean KL per state of each step, in nats, a number or a schedule; 0 disables it.
        normalize_costs: Whether A* is divided by its running scale.
    """

    learning_rate: float | Schedule = 0.01
    optimizer: Callable[..., Optimizer] = Adam
    max_kl: float = 0.5
    target_kl: float | Schedule = 0.0
    normalize_costs: bool = False
    _factor: float = field(default=1.0, init=False, repr=False)
    _cost_scale: RunningCostScale = field(default_factory=RunningCostScale, init=False, repr=False)
    _theta: Tensor | None = field(default=None, init=False, repr=False)
    _optimizer: Optimizer | None = field(default=None, init=False, repr=False)

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        unscaled = cost_to_go
        if self.normalize_costs:
            self._cost_scale = self._cost_scale.include(cost_to_go, trajectories)
            cost_to_go = self._cost_scale.divide(cost_to_go)
        value, gradient = compute_loss_and_gradient(policy, loss, trajectories, cost_to_go, along=unscaled)
        if not is_all_finite(gradient.square()):  # an infinite second moment would stop Adam forever
            return UpdateResult(value, compute_gradient_norm(gradient), 0.0, MAX_HALVINGS)
        displacement = self._compute_displacement(policy, gradient, trajectories.n)
        if target := evaluate_schedule(self.target_kl, trajectories.n):
            kl, scale = search_step_to_kl(
                policy, trajectories, displacement, min(target, self.max_kl / KL_TOLERANCE_FACTOR)
            )
            self._factor = min(self._factor * min(max(scale, 0.5), 2.0), 2.0**20)
            return UpdateResult(value, compute_gradient_norm(gradient), kl, count_halvings(scale))
        kl, halvings = take_safe_step(policy, trajectories, displacement, self.max_kl)
        return UpdateResult(value, compute_gradient_norm(gradient), kl, halvings)

    def _compute_displacement(self, policy: Policy, gradient: Tensor, n: int) -> Tensor:
        """Return the step of the optimizer from θ_n, [d]."""
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
            self._optimizer = self.optimizer([self._theta], lr=0.0)  # lr is set before each step
        return self._theta, self._optimizer

    def state(self) -> dict[str, Tensor]:
        """Return the optimizer's moments, the cost scale and the factor, as far as they are set."""
        state = {"cost_scale": self._cost_scale.to_tensor()} if self._cost_scale.states else {}
        if self._factor != 1.0:
            state["factor"] = torch.tensor(self._factor, dtype=torch.float64)
        if self._optimizer is None:
            return state
        return state | {name: w.clone() for name, w in self._optimizer.state_dict()["state"].get(0, {}).items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a state that `state` returned."""
        state = {name: w.clone() for name, w in state.items()}
        cost_scale = state.pop("cost_scale", None)
        factor = state.pop("factor", None)
        self._cost_scale = RunningCostScale() if cost_scale is None else RunningCostScale.from_tensor(cost_scale)
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
    """Regular gradient descent.

    Attributes:
        anneal_iterations: Iterations over which learning rate or target KL falls to 0; -1: all; 0: never.
        target_kl: Mean KL per visited state of each step, in nats; 0: the learning rate sets the step size.
        cost_scale: Unit of A* and the entropy bonus: "advantage-rms" or "raw".
        learning_rate: Step size; with a target KL, only its initial value.
        optimizer: "adam" or "sgd".
    """

    name = "regular"
    learning_rate: float = setting(
        0.01, "Step size of the regular update; with --target-kl, only its initial value.", POSITIVE
    )
    optimizer: str = setting("adam", f"Optimizer: {' or '.join(OPTIMIZERS)}.", one_of(OPTIMIZERS))

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """Return the settings with defaults filled in; an explicit learning rate disables the target KL."""
        filled = super().fill_defaults(iterations, given)
        return replace(filled, target_kl=0.0) if "learning_rate" in given and "target_kl" not in given else filled

    def build(self, seed: int) -> RegularUpdate:
        rate = self.schedule(self.learning_rate)
        target = self.schedule(self.target_kl)
        return RegularUpdate(rate, OPTIMIZERS[self.optimizer], target_kl=target, normalize_costs=self.normalize_costs)
