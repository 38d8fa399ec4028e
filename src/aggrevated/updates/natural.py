"""Natural gradient descent: with the paper's low-rank Fisher matrix S_n S_nᵀ, first derivatives only, or per state."""

from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor

from aggrevated.core.schedules import Schedule, evaluate_schedule
from aggrevated.core.settings import NON_NEGATIVE, SelectedComponents, at_least, check_setting, one_of, setting
from aggrevated.losses import Loss
from aggrevated.losses.fisher import compute_trajectory_scores, make_fisher_product
from aggrevated.oracles import CostToGo
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import GradientSettings, UpdateResult, compute_gradient_norm, compute_loss_and_gradient
from aggrevated.updates.cost_scale import RunningCostScale
from aggrevated.updates.fisher_solvers import SOLVERS, Solver, solve_closed_form, solve_krylov
from aggrevated.updates.safe_step import (
    KL_TOLERANCE_FACTOR,
    MAX_HALVINGS,
    count_halvings,
    is_all_finite,
    search_step_to_kl,
    take_safe_step,
)

PER_STATE = "per-state"  # the solver that needs no scores
PAPERS = ("closed-form", "conjugate-gradient")  # one system, with the damping that a task tuned for it
USUAL_DAMPING = 0.01
TINY = 1e-300  # for a gradient of zero


@dataclass
class NaturalUpdate:
    """θ_{n+1} = θ_n − η δ with (S_n S_nᵀ + λI) δ = ∇ℓ_n and η = √(δ_KL / ∇ℓ_nᵀ δ).

    `delta_kl` is the paper's, on the scale of Eq. 9: score cross-terms vanish in expectation, so S_n S_nᵀ is the
    Fisher matrix per state divided by H, and the mean KL per state of a step is at most about H·δ_KL/2, less with
    damping. What it really was is measured after the step, and a step beyond `max_kl` per state is halved. With a
    `target_kl` the step is as long as makes that measured KL the target.
    λ is relative to the mean squared length of S_n's columns: rank(S_n) ≤ K ≪ d, so without damping the system
    has no solution for most g. With `per_state` iterations of conjugate gradient, the Fisher matrix per state, whose
    rank no K bounds, takes the place of S_n S_nᵀ; λ is then relative to the curvature along the gradient.
    """

    delta_kl: float | Schedule = 1e-2
    damping: float = 10.0
    max_kl: float = 0.5
    solver: Solver = solve_closed_form
    per_state: int = 0
    target_kl: float | Schedule = 0.0
    normalize_costs: bool = False  # whether A* is divided by its spread
    _spread: RunningCostScale = field(default_factory=RunningCostScale, init=False, repr=False)

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        if self.normalize_costs:
            self._spread = self._spread.include(cost_to_go, trajectories)
            cost_to_go = self._spread.divide(cost_to_go)
        value, gradient = compute_loss_and_gradient(policy, loss, trajectories, cost_to_go)
        displacement = self._compute_displacement(policy, trajectories, gradient)
        if not is_all_finite(displacement):
            return UpdateResult(value, compute_gradient_norm(gradient), 0.0, MAX_HALVINGS)
        if target := evaluate_schedule(self.target_kl, trajectories.n):
            kl, far = search_step_to_kl(
                policy, trajectories, displacement, min(target, self.max_kl / KL_TOLERANCE_FACTOR)
            )
            return UpdateResult(value, compute_gradient_norm(gradient), kl, count_halvings(far))
        kl, halvings = take_safe_step(policy, trajectories, displacement, self.max_kl)
        return UpdateResult(value, compute_gradient_norm(gradient), kl, halvings)

    def _compute_displacement(self, policy: Policy, trajectories: Trajectories, gradient: Tensor) -> Tensor:
        """−η_n δ, where the quadratic model of the KL has the target if there is one."""
        delta_kl = 2 * evaluate_schedule(self.target_kl, trajectories.n) / trajectories.horizon or evaluate_schedule(
            self.delta_kl, trajectories.n
        )
        if self.per_state:
            return scale_to_kl(self._solve_per_state(policy, trajectories, gradient), gradient, delta_kl)
        # With mixing only 1 − α of the steps have a score, so that S_n S_nᵀ would be too small by as much.
        s = compute_trajectory_scores(policy, trajectories).T.div_(max(1.0 - trajectories.alpha, 1e-9) ** 0.5)
        return scale_to_kl(self.compute_direction(s, gradient), gradient, delta_kl)

    def _solve_per_state(self, policy: Policy, trajectories: Trajectories, gradient: Tensor) -> Tensor:
        """δ with (F + λI)/H δ = ∇ℓ_n: F/H is what S_n S_nᵀ estimates."""
        length = max(compute_gradient_norm(gradient), TINY)
        g = gradient.double() / length  # products are in float32, whatever the unit of cost
        fisher = make_fisher_product(policy, trajectories)
        horizon = trajectories.horizon
        damping = self.damping * (g @ fisher(g))
        return length * solve_krylov(lambda v: (fisher(v) + damping * v) / horizon, g, self.per_state)

    def compute_direction(self, s: Tensor, gradient: Tensor) -> Tensor:
        """δ for S_n [d, K] and the gradient [d]; zero where there is none of either."""
        # column by column: a float64 copy of all of S_n would cost as much as half a gradient
        squared_length = float(torch.stack([column.double().square().sum() for column in s.unbind(1)]).mean())
        if squared_length == 0.0 or not gradient.any():
            return torch.zeros_like(gradient)
        return self.solver(s, gradient, self.damping * squared_length)

    def compute_displacement(self, s: Tensor, gradient: Tensor, n: int = 1) -> Tensor:
        """−η_n δ for S_n [d, K] and the gradient [d], by the paper's δ_KL."""
        return scale_to_kl(self.compute_direction(s, gradient), gradient, evaluate_schedule(self.delta_kl, n))

    def state(self) -> dict[str, Tensor]:
        """The spread, once there is one."""
        return {"spread": self._spread.to_tensor()} if self._spread.states else {}

    def restore(self, state: dict[str, Tensor]) -> None:
        assert set(state) <= ({"spread"} if self.normalize_costs else set()), (
            "the natural update remembers its spread only"
        )
        self._spread = RunningCostScale.from_tensor(state["spread"]) if state else RunningCostScale()


def scale_to_kl(delta: Tensor, gradient: Tensor, delta_kl: float) -> Tensor:
    """−η δ with η = √(δ_KL / ∇ℓᵀ δ); zero where δ is."""
    if not delta.any():
        return torch.zeros_like(gradient)
    eta = torch.sqrt(delta_kl / (gradient.double() @ delta))
    return (-eta * delta).to(gradient.dtype)


@dataclass(frozen=True)
class NaturalSettings(GradientSettings):
    """Natural gradient descent."""

    name = "natural"
    needs_learner_actions = True  # scores are of the learner's own actions
    delta_kl: float = setting(
        0.0, "The paper's delta_KL, on its trajectory scale (see docs/guide.md); 0: by --target-kl.", NON_NEGATIVE
    )
    damping: float = setting(
        USUAL_DAMPING,
        "What is added to the Fisher matrix, relative to the scores' mean squared length; for held-out at least that; "
        "for per-state relative to the matrix along the gradient.",
        NON_NEGATIVE,
    )
    solver: str = setting(
        PER_STATE,
        f"For the natural update: {', '.join(SOLVERS)} (by scores of trajectories), or {PER_STATE}.",
        one_of([*SOLVERS, PER_STATE]),
    )
    cg_iterations: int = setting(10, "The iterations of the solvers conjugate-gradient and per-state.", at_least(1))

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """What was given on purpose decides how a step is measured, and that the task's damping is not for it."""
        own = super().fill_defaults(iterations, given)
        if own.delta_kl and "delta_kl" in given and "target_kl" not in given:
            own = replace(own, target_kl=0.0)
        if own.target_kl and "target_kl" in given and "delta_kl" not in given:
            own = replace(own, delta_kl=0.0)
        if "solver" in given and "damping" not in given and self.solver not in PAPERS:
            own = replace(own, damping=USUAL_DAMPING)
        return own

    def check(self, chosen: SelectedComponents) -> None:
        one = "positive, or else --target-kl must be, and not both"
        check_setting((self.delta_kl > 0) != (self.target_kl > 0), "delta_kl", self.delta_kl, one)
        damped = self.damping > 0 or self.solver != "closed-form"
        check_setting(damped, "damping", self.damping, f"a positive number for the solver {self.solver}")

    def build(self, seed: int) -> NaturalUpdate:
        solver = SOLVERS.get(self.solver, SOLVERS["closed-form"])(self.cg_iterations)
        return NaturalUpdate(
            self.schedule(self.delta_kl),
            self.damping,
            solver=solver,
            per_state=self.cg_iterations if self.solver == PER_STATE else 0,
            target_kl=self.schedule(self.target_kl),
            normalize_costs=self.normalize_costs,
        )
