"""Prediction of a policy's own costs: A*(s, a) of every action, and whether the arc that it makes is wrong.

Transitions are deterministic, so the loss of a whole parse is Σ_t A*(s_t, a_t), except for what no parse can
avoid. A head on the decoder's state learns E[A*(s, a)] together with the policy, on the learner's own states;
its sum over a parse is the expected loss of the parse. Both outputs are calibrated on pages that are not used
for training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from aggrevated.core.arrays import Array
from aggrevated.parsing.transitions import TransitionSystem

NO_ARC_TARGET = -1.0  # target of actions that make no arc
HIGHEST = 4.0  # maximum logarithm of a cost: no transition loses more than about 50 arcs
ROUNDS = 30  # iterations of Newton's method
FLATTEST = 0.05  # minimum slope
RIDGE = 1.0  # weight of the prior that no correction is needed, in examples


class ExpectedCosts(nn.Module):
    """Head from a decoder state [..., H] to log E[A*(s, a)] and logits of a wrong arc, each [..., A]."""

    correction: Tensor  # [2, 2]: slope and level of costs, slope and level of doubts

    def __init__(self, inputs: int, actions: int, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 2 * actions))
        self.register_buffer("correction", torch.tensor([[1.0, 0.0], [1.0, 0.0]]))

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logarithms of expected costs and the logits of doubts, both without calibration."""
        costs, doubts = self.layers(state).chunk(2, dim=-1)
        return costs.clamp(max=HIGHEST), doubts

    def loss(self, state: Tensor, costs: Tensor, wrong: Tensor, known: Tensor) -> Tensor:
        """Return the Poisson deviance of costs and the cross-entropy of doubts, summed over `known` [..., A].

        Both are minimal at the conditional mean, so the head learns an expectation.

        Args:
            state: States of the decoder, [..., H].
            costs: A*(s, a), [..., A].
            wrong: 1 for actions with a wrong arc, 0 for a right one, NO_ARC_TARGET without one, [..., A].
            known: Whether the cost is known, bool [..., A].
        """
        log_costs, doubts = self(state)
        deviance = (log_costs.exp() - costs * log_costs) * known
        has_arc = known & (wrong != NO_ARC_TARGET)
        cross_entropies = binary_cross_entropy_with_logits(doubts, wrong.clamp(min=0.0), reduction="none") * has_arc
        total: Tensor = deviance.sum() + cross_entropies.sum()
        return total

    @torch.no_grad()
    def estimate_costs(self, state: Tensor, actions: Tensor) -> ExpectedCostEstimates:
        """Return the calibrated estimates of the actions taken [...]."""
        log_costs, doubts = (values.gather(-1, actions[..., None])[..., 0].numpy() for values in self(state))
        (a, b), (c, d) = self.correction.tolist()
        return ExpectedCostEstimates(log_costs, doubts, np.exp(a * log_costs + b), 1 / (1 + np.exp(-(c * doubts + d))))

    def calibrate(self, estimates: ExpectedCostEstimates, costs: Array, wrong: Array) -> None:
        """Calibrate both outputs by choices with known costs [n] and known arc errors [n]."""
        has_arc = wrong != NO_ARC_TARGET
        self.correction[0] = torch.tensor(fit_calibration(estimates.log_costs, costs, compute_poisson_moments))
        self.correction[1] = torch.tensor(
            fit_calibration(estimates.doubt_logits[has_arc], wrong[has_arc], compute_bernoulli_moments)
        )


def compute_arc_error_targets(system: TransitionSystem, observations: Tensor, heads: Tensor, starts: Tensor) -> Tensor:
    """Return whether the arc that an action would make is wrong, [K, T, A].

    Args:
        system: The transition system.
        observations: Observations of the trajectories, [K, T, O].
        heads: The gold heads of all pages, one page after the other, [Σn].
        starts: The index of each page's first symbol in `heads`, [P].

    Returns:
        1 for a wrong arc, 0 for a right one, NO_ARC_TARGET for actions without an arc.
    """
    numbers = observations[:, :, 1:].long()
    first = starts[observations[:, 0, 0].long()][:, None]
    targets = observations.new_full((*observations.shape[:2], len(system.actions)), NO_ARC_TARGET)
    for action, arc in enumerate(system.action_arcs):
        if arc is not None:
            dependent, head = (numbers[:, :, index] for index in arc)
            rows = (first + dependent - 1).clamp(0, len(heads) - 1)
            targets[:, :, action] = torch.where(dependent >= 1, (heads[rows] != head).float(), NO_ARC_TARGET)
    return targets


@dataclass(frozen=True)
class ExpectedCostEstimates:
    """Estimates of the costs of choices [...]."""

    log_costs: Array  # before calibration
    doubt_logits: Array  # before calibration
    costs: Array  # E[A*(s, a)], calibrated
    doubts: Array  # P(the arc is wrong), calibrated; meaningless for choices without an arc


def compute_poisson_moments(linear: Array) -> tuple[Array, Array]:
    """Return mean and variance of a Poisson count with this logarithm of the mean."""
    mean = np.exp(np.minimum(linear, HIGHEST))
    return mean, mean


def compute_bernoulli_moments(linear: Array) -> tuple[Array, Array]:
    """Return mean and variance of a Bernoulli variable with these log-odds."""
    mean = 1 / (1 + np.exp(-linear))
    return mean, mean * (1 - mean)


def fit_calibration(x: Array, y: Array, family: Callable[[Array], tuple[Array, Array]]) -> list[float]:
    """Return [slope, level] of a generalized linear model of y [n] given x [n], with a weak prior at [1, 0].

    The fit uses Newton's method. The slope stays positive, so that calibration does not change the order of
    doubts.
    """
    design = np.stack([x.astype(np.float64), np.ones(len(x))], axis=1)
    prior = np.array([1.0, 0.0])
    weights = prior.copy()
    for _ in range(ROUNDS):
        mean, variance = family(design @ weights)
        gradient = design.T @ (y - mean) - RIDGE * (weights - prior)
        curvature = (design * variance[:, None]).T @ design + RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        if weights[0] == FLATTEST and step[0] < 0:  # move only the level
            step = np.array([0.0, gradient[1] / curvature[1, 1]])
        weights = weights + step / max(1.0, float(np.abs(step).max()))  # at most 1 per iteration
        weights[0] = max(weights[0], FLATTEST)
    return [float(weight) for weight in weights]
