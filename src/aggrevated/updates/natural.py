"""Natural gradient descent with the paper's low-rank Fisher matrix S_n S_nᵀ: first derivatives only."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from aggrevated.cost_to_go import CostToGo
from aggrevated.losses import Loss
from aggrevated.losses.scores import scores
from aggrevated.policies import Policy
from aggrevated.schedules import Schedule, at
from aggrevated.settings import POSITIVE, one_of, setting
from aggrevated.trajectories import Trajectories
from aggrevated.updates import AnnealedSettings, Step, loss_and_gradient, norm
from aggrevated.updates.safe_step import MOST_HALVINGS, safe_step
from aggrevated.updates.solvers import SOLVERS, closed_form


@dataclass
class Natural:
    """θ_{n+1} = θ_n − η δ with (S_n S_nᵀ + λI) δ = ∇ℓ_n and η = √(δ_KL / ∇ℓ_nᵀ δ).

    `delta_kl` is the paper's, on the scale of Eq. 9: score cross-terms vanish in expectation, so S_n S_nᵀ is the
    Fisher matrix per state divided by H, and the mean KL per state of a step is at most about H·δ_KL/2, less with
    damping. What it really was is measured after the step, and a step beyond `max_kl` per state is halved.
    λ is relative to the mean squared length of S_n's columns: rank(S_n) ≤ K ≪ d, so without damping the system
    has no solution for most g.
    """

    delta_kl: float | Schedule = 1e-2
    damping: float = 10.0
    max_kl: float = 0.5
    solver: Callable[[Tensor, Tensor, float], Tensor] = closed_form

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> Step:
        value, gradient = loss_and_gradient(policy, loss, trajectories, cost_to_go)
        # With mixing only 1 − α of the steps have a score, so that S_n S_nᵀ would be too small by as much.
        s = scores(policy, trajectories).T / max(1.0 - trajectories.mixing, 1e-9) ** 0.5
        displacement = self.displacement(s, gradient, trajectories.n)
        if not torch.isfinite(displacement).all():
            return Step(value, norm(gradient), 0.0, MOST_HALVINGS)
        kl, halvings = safe_step(policy, trajectories, displacement, self.max_kl)
        return Step(value, norm(gradient), kl, halvings)

    def displacement(self, s: Tensor, gradient: Tensor, n: int = 1) -> Tensor:
        """−η_n δ for S_n [d, K] and the gradient [d]; zero where there is no gradient."""
        # column by column: a float64 copy of all of S_n would cost as much as half a gradient
        squared_length = float(torch.stack([column.double().square().sum() for column in s.unbind(1)]).mean())
        if squared_length == 0.0 or not gradient.any():
            return torch.zeros_like(gradient)
        delta = self.solver(s, gradient, self.damping * squared_length)
        eta = torch.sqrt(at(self.delta_kl, n) / (gradient.double() @ delta))
        return (-eta * delta).to(gradient.dtype)

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        assert not state, "the natural update remembers nothing"


@dataclass(frozen=True)
class NaturalSettings(AnnealedSettings):
    """Natural gradient descent."""

    name = "natural"
    own_actions = True  # scores are of the learner's own actions
    delta_kl: float = setting(
        1e-4, "delta_KL of the natural update, on the paper's trajectory scale (see docs/guide.md).", POSITIVE
    )
    damping: float = setting(
        10.0, "What is added to the Fisher matrix, relative to the mean squared length of the scores.", POSITIVE
    )
    solver: str = setting("closed-form", f"For the natural update: {' or '.join(SOLVERS)}.", one_of(SOLVERS))

    def build(self, seed: int) -> Natural:
        return Natural(self.schedule(self.delta_kl), self.damping, solver=SOLVERS[self.solver])
