"""Projection targets of the exponentiated update, for finite sets of actions and for vectors.

A target is a set of arrays over steps, [n, T, ...]. A fit minimizes its distance from the policy's
distributions.
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

MAX_SCALED_COST = 5.0  # in mean costs; CartPole's states that are lost anyway cost a hundred times the mean
COSTED_STEP_WEIGHT = 2.0  # total weight of the steps with a known cost, relative to the weight of all steps
MIN_DEVIATION = 1e-3  # in units of the action, since all expert actions may be equal
LOWEST = -1e4  # a finite logit instead of −∞, at steps that are masked out
CURVATURE_RIDGE = 0.01  # relative to the median squared distance from the expert action
EXPERT_ACTION_TEMPERATURE = 0.5  # τ of `make_gaussian_target`, in mean costs


class ProjectionTarget(Protocol):
    """The target of a fit at each step of n trajectories."""

    @property
    def weight(self) -> Tensor:
        """Return the weights of the steps, [n, T]."""
        ...

    def take(self, rows: Tensor, length: int) -> ProjectionTarget:
        """Return the target of the first `length` steps of the trajectories `rows`."""
        ...

    def select_steps(self, mask: Tensor) -> ProjectionTarget:
        """Return the target of the steps in the mask [n, T], each as a trajectory of one step."""
        ...

    def compute_distance(self, distribution: Distribution) -> Tensor:
        """Return the distance of the policy's distributions from the target, [n, T]."""
        ...


@dataclass(frozen=True)
class CategoricalTarget:
    """Target log-probabilities up to a constant per step; least squares over known actions.

    An action a has the weight (1 − λ) π(a) + λ/A. λ = 0 is the Fisher metric: the fit averages A* over states
    that the policy cannot distinguish, with the weights of Σ_a π(a) A*(a), so that mistakes of small
    probability hardly matter. But a policy that is confident and wrong would then stay so; λ > 0 prevents
    this.

    If only the expert action is known, all other logits are −∞ and the distance is the cross-entropy.
    """

    logits: Tensor  # [n, T, A]
    known: Tensor  # bool [n, T, A]
    weight: Tensor  # [n, T]
    uniform_weight: float  # λ
    scale: float  # factor of the distance: τ, so that the distance is in units of cost
    all_known: bool = False  # a faster computation if all actions are known at all steps

    def take(self, rows: Tensor, length: int) -> CategoricalTarget:
        logits, known, weight = (truncate_steps(x, rows, length) for x in (self.logits, self.known, self.weight))
        return replace(self, logits=logits, known=known, weight=weight)

    def select_steps(self, mask: Tensor) -> CategoricalTarget:
        logits, known, weight = (x[mask][:, None] for x in (self.logits, self.known, self.weight))
        return CategoricalTarget(logits, known, weight, self.uniform_weight, self.scale, bool(known.all()))

    def is_complete(self) -> bool:
        """Return whether each step has the costs of all actions or of none, and no expert action alone."""
        return bool((self.known.all(-1) | ~self.known.any(-1)).all() and self.logits.isfinite().all())

    def compute_distance(self, distribution: Distribution) -> Tensor:
        assert isinstance(distribution, Categorical)
        is_label = self.logits.isneginf().any(-1)
        if not is_label.any():
            return self._compute_squared_distance(distribution)
        cross_entropy = -torch.where(self.logits == 0, distribution.logits, 0.0).sum(-1)
        finite = replace(self, logits=self.logits.clamp(min=LOWEST))
        return torch.where(is_label, cross_entropy, finite._compute_squared_distance(distribution))

    def _compute_squared_distance(self, distribution: Categorical) -> Tensor:
        difference = distribution.logits - self.logits
        measure = self._measure(distribution.logits.detach().softmax(-1))
        if not self.all_known:
            difference = torch.where(self.known, difference, 0.0)
        difference = difference - (measure * difference).sum(-1, keepdim=True)
        squared: Tensor = (measure * difference.square()).sum(-1)
        return self.scale * squared

    def _measure(self, pi: Tensor) -> Tensor:
        """Return the weights of the actions, which are 0 for unknown ones and sum to 1."""
        if self.all_known:
            return (1 - self.uniform_weight) * pi + self.uniform_weight / pi.shape[-1]
        uniform = self.known / self.known.sum(-1, keepdim=True).clamp(min=1)
        measure = ((1 - self.uniform_weight) * pi + self.uniform_weight * uniform) * self.known
        return measure / measure.sum(-1, keepdim=True).clamp(min=1e-12)


def truncate_steps(x: Tensor, rows: Tensor, length: int) -> Tensor:
    """Return the first `length` steps of the trajectories `rows` of x [n, T, ...]."""
    return x.index_select(0, rows)[:, :length]


@dataclass(frozen=True)
class GaussianTarget:
    """Target means of a Gaussian policy."""

    means: Tensor  # [n, T, A]
    weight: Tensor  # [n, T]
    deviation: Tensor  # [A]: standard deviation of the target means, the unit of the distance

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


def compute_action_costs(data: TrainingData, actions: int, scaled: bool = True) -> tuple[Array, Array, Array]:
    """Return cost [K, T, A], known [K, T, A] and weight [K, T] of the actions at each step.

    Costs are in units of their mean size if `scaled`. Where only the expert action is known, any other action
    gets the mean cost of a mistake, as DAgger assumes at all steps.
    """
    trajectories, cost_to_go = data
    queried = (cost_to_go.weight > 0)[..., None]
    legal = (
        trajectories.action_mask
        if trajectories.action_mask.shape[2]
        else np.ones((*trajectories.mask.shape, actions), bool)
    )
    expert_actions = cost_to_go.expert_actions
    is_expert = None if expert_actions is None else np.arange(actions) == expert_actions[..., None]
    if cost_to_go.has_all_actions:
        cost = cost_to_go.values
        known = legal & queried
    else:
        assert is_expert is not None, "costs of the taken action only need expert actions, or a natural step"
        is_taken = np.arange(actions) == trajectories.actions[..., None]
        cost = is_taken * cost_to_go.values[..., None]
        known = (is_taken | is_expert) & queried
    unit = np.float32(compute_mean_absolute_cost(cost, known))
    if scaled:
        cost = np.clip(cost / unit, -MAX_SCALED_COST, MAX_SCALED_COST)
        unit = np.float32(1.0)
    if is_expert is None:
        return cost, known, cost_to_go.weight
    expert_action_only = trajectories.mask[..., None] & ~queried
    cost = np.where(expert_action_only, ~is_expert * (unit * actions / max(actions - 1, 1)), cost)
    return cost, known | (expert_action_only & legal), trajectories.mask.astype(np.float32)


def make_expert_action_only_mask(data: TrainingData) -> Tensor:
    """Return the steps of which only the expert action is known, bool [K, T]."""
    cost_to_go = data.cost_to_go
    expert_action_only = (
        data.trajectories.mask & (cost_to_go.weight == 0)
        if cost_to_go.expert_actions is not None
        else np.zeros_like(data.trajectories.mask)
    )
    return torch.from_numpy(expert_action_only)


def compute_mean_absolute_cost(cost: Array, known: Array) -> float:
    """Return the unit of A*, its mean absolute value over known actions; 1 if all costs are 0."""
    return float(np.abs(cost[known], dtype=np.float64).mean()) if np.any(cost[known]) else 1.0


def make_gaussian_target(trajectories: Trajectories, cost_to_go: CostToGo, unit_of_actions: Array) -> GaussianTarget:
    """Return a target at the expert action, or between it and the action taken if that was better.

    EG over these two actions gives a_t the odds exp(−A*/τ). `unit_of_actions` is [A].
    """
    assert cost_to_go.expert_actions is not None, "a Gaussian target needs expert actions; use a natural step"
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
    """Return the weight of a distance from the expert action at each step, float32 [K, T].

    Near a*, A*(s, a) ≈ κ_s ‖a − a*‖²/2, and exp(−A*/τ) is a Gaussian of precision κ_s/τ, the weight of the
    squared distance in the KL. The cost of one action is a noisy estimate of κ_s; at other steps κ_s is
    unknown.
    """
    assert cost_to_go.expert_actions is not None
    queried = cost_to_go.weight > 0
    weight = trajectories.mask.astype(np.float32)
    if not np.any(cost_to_go.values[queried]):
        return weight
    difference = (trajectories.actions[queried] - cost_to_go.expert_actions[queried]) / unit_of_actions
    squared = np.square(difference).sum(axis=-1)
    curvature = np.abs(cost_to_go.values[queried]) / np.maximum(squared + CURVATURE_RIDGE * np.median(squared), 1e-12)
    curvature = np.minimum(curvature / curvature.mean(), MAX_SCALED_COST)
    weight[queried] += COSTED_STEP_WEIGHT * weight.sum() / np.count_nonzero(queried) * curvature
    return weight
