"""Natural gradient descent, with the paper's Fisher matrix S_n S_nᵀ of rank K or the one per state."""

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

PER_STATE = "per-state"  # the solver that uses the Fisher matrix per state instead of scores
PAPER_SOLVERS = ("closed-form", "conjugate-gradient")  # they share the damping that is tuned for a task
DEFAULT_DAMPING = 0.01
TINY = 1e-300  # replaces the norm of a zero gradient


@dataclass
class NaturalUpdate:
    """θ_{n+1} = θ_n − η δ with (S_n S_nᵀ + λI) δ = ∇ℓ_n and η = √(δ_KL / ∇ℓ_nᵀ δ).

    δ_KL is the paper's, on the scale of Eq. 9. Cross terms of scores vanish in expectation: S_n S_nᵀ is the
    Fisher matrix per state divided by H. The mean KL per state of a step is at most about H·δ_KL/2, and less with
    damping. The real KL is measured after the step. Since rank(S_n) ≤ K ≪ d, the system has no
    solution for most gradients without damping.

    Args:
        delta_kl: δ_KL, a number or a schedule; unused with a `target_kl`.
        damping: λ, relative to the mean squared length of S_n's columns; with `per_state`, to the curvature
            along the gradient.
        max_kl: The largest mean KL per state, in nats; longer steps are halved.
        solver: Function from S_n [d, K], the gradient [d] and λ to δ [d].
        per_state: Iterations of conjugate gradient with the Fisher matrix per state, whose rank K does not
            bound, instead of S_n S_nᵀ; 0: use `solver`.
        target_kl: Mean KL per state of each step, in nats, a number or a schedule; 0: use `delta_kl`.
        normalize_costs: Whether A* is divided by its running scale.
    """

    delta_kl: float | Schedule = 1e-2
    damping: float = 10.0
    max_kl: float = 0.5
    solver: Solver = solve_closed_form
    per_state: int = 0
    target_kl: float | Schedule = 0.0
    normalize_costs: bool = False
    _cost_scale: RunningCostScale = field(default_factory=RunningCostScale, init=False, repr=False)

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        if self.normalize_costs:
            self._cost_scale = self._cost_scale.include(cost_to_go, trajectories)
            cost_to_go = self._cost_scale.divide(cost_to_go)
        value, gradient = compute_loss_and_gradient(policy, loss, trajectories, cost_to_go)
        displacement = self._compute_displacement(policy, trajectories, gradient)
        if not is_all_finite(displacement):
            return UpdateResult(value, compute_gradient_norm(gradient), 0.0, MAX_HALVINGS)
        if target := evaluate_schedule(self.target_kl, trajectories.n):
            kl, scale = search_step_to_kl(
                policy, trajectories, displacement, min(target, self.max_kl / KL_TOLERANCE_FACTOR)
            )
            return UpdateResult(value, compute_gradient_norm(gradient), kl, count_halvings(scale))
        kl, halvings = take_safe_step(policy, trajectories, displacement, self.max_kl)
        return UpdateResult(value, compute_gradient_norm(gradient), kl, halvings)

    def _compute_displacement(self, policy: Policy, trajectories: Trajectories, gradient: Tensor) -> Tensor:
        """Return −η_n δ; with a `target_kl`, the quadratic model of the KL equals the target."""
        delta_kl = 2 * evaluate_schedule(self.target_kl, trajectories.n) / trajectories.horizon or evaluate_schedule(
            self.delta_kl, trajectories.n
        )
        if self.per_state:
            return scale_to_kl(self._solve_per_state(policy, trajectories, gradient), gradient, delta_kl)
        # Only a fraction 1 − α_n of the steps has a score, so that S_n S_nᵀ is too small by this factor.
        s = compute_trajectory_scores(policy, trajectories).T.div_(max(1.0 - trajectories.alpha, 1e-9) ** 0.5)
        return scale_to_kl(self.compute_direction(s, gradient), gradient, delta_kl)

    def _solve_per_state(self, policy: Policy, trajectories: Trajectories, gradient: Tensor) -> Tensor:
        """Return δ with (F + λI)/H δ = ∇ℓ_n; S_n S_nᵀ is an estimate of F/H."""
        norm = max(compute_gradient_norm(gradient), TINY)
        g = gradient.double() / norm  # products are in float32, so the unit of cost must not matter
        fisher = make_fisher_product(policy, trajectories)
        horizon = trajectories.horizon
        damping = self.damping * (g @ fisher(g))
        return norm * solve_krylov(lambda v: (fisher(v) + damping * v) / horizon, g, self.per_state)

    def compute_direction(self, s: Tensor, gradient: Tensor) -> Tensor:
        """Return δ [d] for S_n [d, K] and the gradient [d]; zero if either is zero."""
        # by columns, since a float64 copy of S_n takes half as long as a gradient
        squared_length = float(torch.stack([column.double().square().sum() for column in s.unbind(1)]).mean())
        if squared_length == 0.0 or not gradient.any():
            return torch.zeros_like(gradient)
        return self.solver(s, gradient, self.damping * squared_length)

    def compute_displacement(self, s: Tensor, gradient: Tensor, n: int = 1) -> Tensor:
        """Return −η_n δ [d] for S_n [d, K] and the gradient [d], with the paper's δ_KL of iteration n."""
        return scale_to_kl(self.compute_direction(s, gradient), gradient, evaluate_schedule(self.delta_kl, n))

    def state(self) -> dict[str, Tensor]:
        """Return the cost scale, if there is one, for a checkpoint."""
        return {"cost_scale": self._cost_scale.to_tensor()} if self._cost_scale.states else {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a state that `state` returned."""
        assert set(state) <= ({"cost_scale"} if self.normalize_costs else set()), (
            "the state of a natural update is its cost scale only"
        )
        self._cost_scale = RunningCostScale.from_tensor(state["cost_scale"]) if state else RunningCostScale()


def scale_to_kl(delta: Tensor, gradient: Tensor, delta_kl: float) -> Tensor:
    """Return −η δ with η = √(δ_KL / ∇ℓᵀ δ); zero if δ is zero."""
    if not delta.any():
        return torch.zeros_like(gradient)
    eta = torch.sqrt(delta_kl / (gradient.double() @ delta))
    return (-eta * delta).to(gradient.dtype)


@dataclass(frozen=True)
class NaturalSettings(GradientSettings):
    """Natural gradient descent."""

    name = "natural"
    needs_learner_actions = True  # scores need actions that the learner chose
    delta_kl: float = setting(
        0.0, "The paper's delta_KL, for a trajectory (see docs/guide.md); 0: use --target-kl.", NON_NEGATIVE
    )
    damping: float = setting(
        DEFAULT_DAMPING,
        "Damping of the Fisher matrix, relative to the scores' mean squared length (per-state: to the "
        "curvature along the gradient); for held-out a minimum.",
        NON_NEGATIVE,
    )
    solver: str = setting(
        PER_STATE,
        f"Solver of the natural update: {', '.join(SOLVERS)} (by scores of trajectories), or {PER_STATE}.",
        one_of([*SOLVERS, PER_STATE]),
    )
    cg_iterations: int = setting(10, "Iterations of conjugate-gradient and per-state.", at_least(1))

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """Return the settings with defaults filled in.

        An explicit `delta_kl` disables `target_kl`, and the reverse. An explicit solver that is not the
        paper's gets the default damping instead of the task's.
        """
        filled = super().fill_defaults(iterations, given)
        if filled.delta_kl and "delta_kl" in given and "target_kl" not in given:
            filled = replace(filled, target_kl=0.0)
        if filled.target_kl and "target_kl" in given and "delta_kl" not in given:
            filled = replace(filled, delta_kl=0.0)
        if "solver" in given and "damping" not in given and self.solver not in PAPER_SOLVERS:
            filled = replace(filled, damping=DEFAULT_DAMPING)
        return filled

    def check(self, chosen: SelectedComponents) -> None:
        rule = "positive if --target-kl is 0, and 0 otherwise"
        check_setting((self.delta_kl > 0) != (self.target_kl > 0), "delta_kl", self.delta_kl, rule)
        is_solvable = self.damping > 0 or self.solver != "closed-form"
        check_setting(is_solvable, "damping", self.damping, f"a positive number for the solver {self.solver}")

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
