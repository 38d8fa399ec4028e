"""What exponentiated gradient asks of a policy at every step, for finite sets of actions and for vectors.

A goal is an array over steps [n, T, ...]; its `distance` from a policy's distributions is what a fit makes small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, Independent, Normal

from aggrevated.core.arrays import Array
from aggrevated.oracles import CostToGo
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates.dataset_aggregation import TrainingData

MAX_SCALED_COST = (
    5.0  # what a mistake counts at most, in mean costs: CartPole's doomed states cost a hundred times the usual
)
COSTED_STEP_WEIGHT = (
    2.0  # what all steps of a Gaussian count together of which a cost is known, the others together counting 1
)
MIN_DEVIATION = 1e-3  # of an action's unit: what is advised may be the same everywhere
LOWEST = -1e4  # a logit in place of −∞, where it does not count
CURVATURE_RIDGE = 0.01  # of the usual squared distance from the advice: nearer than that, no curvature can be told
EXPERT_ACTION_TEMPERATURE = (
    0.5  # tau of two actions, in mean costs: one that is so much better than the advised gets odds of e
)


class ProjectionTarget(Protocol):
    """What is asked of the policy at each step."""

    @property
    def weight(self) -> Tensor:
        """[n, T]: how much a step counts."""
        ...

    def take(self, rows: Tensor, length: int) -> ProjectionTarget:
        """Of these trajectories, the first `length` steps."""
        ...

    def select_steps(self, mask: Tensor) -> ProjectionTarget:
        """Of the steps in the mask, each as a trajectory of its own."""
        ...

    def compute_distance(self, distribution: Distribution) -> Tensor:
        """[n, T]: how far the policy is from it."""
        ...


@dataclass(frozen=True)
class CategoricalTarget:
    """log-probabilities to have, but for a constant per step: least squares over the actions that are known.

    An action a counts by (1 − λ) π(a) + λ/A. With λ = 0 that is the Fisher metric: the fit averages A* over the states
    that the policy cannot tell apart, weighted as Σ_a π(a) A*(a) weighs it, and a mistake that is hardly ever made does
    not disturb it; but a policy that is sure and wrong would stay so. With λ > 0 it does not.

    Where all but one are −∞, since nothing is known but what π* advises, the distance is cross-entropy: there is no
    cost to be averaged, and classes are told apart at their border, not by how far away from it a logit should be.
    """

    logits: Tensor  # [n, T, A]
    known: Tensor  # bool [n, T, A]
    weight: Tensor
    uniform_weight: float  # λ
    scale: float  # of the distance: τ, so that it is in units of cost
    all_known: bool = False  # which spares much of the work

    def take(self, rows: Tensor, length: int) -> CategoricalTarget:
        logits, known, weight = (truncate_steps(x, rows, length) for x in (self.logits, self.known, self.weight))
        return replace(self, logits=logits, known=known, weight=weight)

    def select_steps(self, mask: Tensor) -> CategoricalTarget:
        logits, known, weight = (x[mask][:, None] for x in (self.logits, self.known, self.weight))
        return CategoricalTarget(logits, known, weight, self.uniform_weight, self.scale, bool(known.all()))

    def is_complete(self) -> bool:
        """Whether all actions are known wherever any is, and none only by advice."""
        return bool((self.known.all(-1) | ~self.known.any(-1)).all() and self.logits.isfinite().all())

    def compute_distance(self, distribution: Distribution) -> Tensor:
        assert isinstance(distribution, Categorical)
        advised = self.logits.isneginf().any(-1)
        if not advised.any():
            return self._compute_squared_distance(distribution)
        votes = -torch.where(self.logits == 0, distribution.logits, 0.0).sum(-1)
        finite = replace(self, logits=self.logits.clamp(min=LOWEST))
        return torch.where(advised, votes, finite._compute_squared_distance(distribution))

    def _compute_squared_distance(self, distribution: Categorical) -> Tensor:
        apart = distribution.logits - self.logits
        measure = self._measure(distribution.logits.detach().softmax(-1))
        if not self.all_known:
            apart = torch.where(self.known, apart, 0.0)
        apart = apart - (measure * apart).sum(-1, keepdim=True)
        squared: Tensor = (measure * apart.square()).sum(-1)
        return self.scale * squared

    def _measure(self, pi: Tensor) -> Tensor:
        """How much each action counts; in all 1, over those that are known."""
        if self.all_known:
            return (1 - self.uniform_weight) * pi + self.uniform_weight / pi.shape[-1]
        share = self.known / self.known.sum(-1, keepdim=True).clamp(min=1)
        measure = ((1 - self.uniform_weight) * pi + self.uniform_weight * share) * self.known
        return measure / measure.sum(-1, keepdim=True).clamp(min=1e-12)


def truncate_steps(x: Tensor, rows: Tensor, length: int) -> Tensor:
    """Of the trajectories `rows` of x [n, T, ...] the first `length` steps."""
    return x.index_select(0, rows)[:, :length]


@dataclass(frozen=True)
class GaussianTarget:
    """Where a Gaussian is to be."""

    means: Tensor  # [n, T, A]
    weight: Tensor
    deviation: Tensor  # [A]: how much the goals vary, their unit

    def take(self, rows: Tensor, length: int) -> GaussianTarget:
        return GaussianTarget(
            truncate_steps(self.means, rows, length), truncate_steps(self.weight, rows, length), self.deviation
        )

    def select_steps(self, mask: Tensor) -> GaussianTarget:
        return GaussianTarget(self.means[mask][:, None], self.weight[mask][:, None], self.deviation)

    def compute_distance(self, distribution: Distribution) -> Tensor:
        assert isinstance(distribution, Independent) and isinstance(distribution.base_dist, Normal)
        squared: Tensor = ((distribution.base_dist.loc - self.means) / self.deviation).square().mean(-1)
        return squared


def compute_action_costs(data: TrainingData, actions: int, in_units: bool = True) -> tuple[Array, Array, Array]:
    """(cost [K, T, A], known [K, T, A], weight [K, T]): what is known of the actions at each step.

    Where only what π* advises is known of a step, any other action is taken to cost what mistakes cost on average: that
    is what DAgger makes of all steps.
    """
    trajectories, cost_to_go = data
    asked = (cost_to_go.weight > 0)[..., None]
    legal = (
        trajectories.action_mask
        if trajectories.action_mask.shape[2]
        else np.ones((*trajectories.mask.shape, actions), bool)
    )
    advised = None if cost_to_go.expert_actions is None else np.arange(actions) == cost_to_go.expert_actions[..., None]
    if cost_to_go.has_all_actions:
        cost = cost_to_go.values
        known = legal & asked
    else:
        assert advised is not None, "without advice the action taken is learned from by a natural step"
        taken = np.arange(actions) == trajectories.actions[..., None]
        cost = taken * cost_to_go.values[..., None]
        known = (taken | advised) & asked
    unit = np.float32(compute_mean_absolute_cost(cost, known))
    if in_units:
        cost = np.clip(cost / unit, -MAX_SCALED_COST, MAX_SCALED_COST)
        unit = np.float32(1.0)
    if advised is None:
        return cost, known, cost_to_go.weight
    only_advised = trajectories.mask[..., None] & ~asked
    cost = np.where(only_advised, ~advised * (unit * actions / max(actions - 1, 1)), cost)
    return cost, known | (only_advised & legal), trajectories.mask.astype(np.float32)


def make_expert_action_only_mask(data: TrainingData) -> Tensor:
    """bool [K, T]: at which steps nothing is known but what π* advises."""
    told = data.cost_to_go
    only = (
        data.trajectories.mask & (told.weight == 0)
        if told.expert_actions is not None
        else np.zeros_like(data.trajectories.mask)
    )
    return torch.from_numpy(only)


def compute_mean_absolute_cost(cost: Array, known: Array) -> float:
    """The unit of A*: its mean size over what is known; 1 where nothing costs anything."""
    return float(np.abs(cost[known], dtype=np.float64).mean()) if np.any(cost[known]) else 1.0


def make_gaussian_target(trajectories: Trajectories, cost_to_go: CostToGo, unit_of_actions: Array) -> GaussianTarget:
    """Towards what π* advises; where the action taken was better, the more so towards that the better it was.

    EG over the two actions that are known gives a_t the odds exp(−A*/τ). Actions are in units [A].
    """
    assert cost_to_go.expert_actions is not None, "without advice vectors are learned from by a natural step"
    better = (cost_to_go.weight > 0) & (cost_to_go.values < 0)
    unit = compute_mean_absolute_cost(cost_to_go.values, cost_to_go.weight > 0)
    share = np.where(
        better, 1 / (1 + np.exp(np.minimum(cost_to_go.values, 0) / (EXPERT_ACTION_TEMPERATURE * unit))), 0.0
    )[..., None]
    means = (share * trajectories.actions + (1 - share) * cost_to_go.expert_actions).astype(np.float32)
    deviation = np.maximum(means[trajectories.mask].std(axis=0), MIN_DEVIATION * unit_of_actions)
    weight = torch.from_numpy(compute_curvature_weights(trajectories, cost_to_go, unit_of_actions))
    return GaussianTarget(torch.from_numpy(means), weight, torch.from_numpy(deviation))


def compute_curvature_weights(trajectories: Trajectories, cost_to_go: CostToGo, unit_of_actions: Array) -> Array:
    """[K, T] float32: how much a distance from the advised vector counts at each step.

    Around a*, A*(s, a) ≈ κ_s ‖a − a*‖²/2, and exp(−A*/τ) is a Gaussian of precision κ_s/τ: that far off, in KL, is a
    mean that is not a*. What one action costs tells κ_s, as noisily as one can; of all other steps nothing is known.
    """
    assert cost_to_go.expert_actions is not None
    asked = cost_to_go.weight > 0
    weight = trajectories.mask.astype(np.float32)
    if not np.any(cost_to_go.values[asked]):
        return weight
    apart = np.square((trajectories.actions[asked] - cost_to_go.expert_actions[asked]) / unit_of_actions).sum(axis=-1)
    curvature = np.abs(cost_to_go.values[asked]) / np.maximum(apart + CURVATURE_RIDGE * np.median(apart), 1e-12)
    curvature = np.minimum(curvature / curvature.mean(), MAX_SCALED_COST)
    weight[asked] += COSTED_STEP_WEIGHT * weight.sum() / np.count_nonzero(asked) * curvature
    return weight
