"""What a policy expects its choices to cost: A*(s, a) of every action, and whether the arc that it makes is wrong.

Transitions are deterministic, so the loss of a whole parse is Σ_t A*(s_t, a_t), but for what no parse can avoid. A head
over the decoder's state learns E[A*(s, a)] along with the policy, on the learner's own states; summed over a parse it
is the loss to be expected of it. Both outputs are calibrated on pages that nothing was learned from.
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

NO_ARC_TARGET = -1.0  # in the place of whether an arc is wrong, for actions that make none
HIGHEST = 4.0  # of a logarithm of costs: no transition loses more than some fifty arcs
ROUNDS = 30  # of Newton's method
FLATTEST = 0.05  # slope
RIDGE = 1.0  # how many examples' worth of belief there is that nothing has to be corrected


class ExpectedCosts(nn.Module):
    """From a state of the decoder [..., H]: log E[A*(s, a)] and the logit of "the arc is wrong", each [..., A]."""

    correction: Tensor  # [2, 2]: slope and level, of costs and of doubts

    def __init__(self, inputs: int, actions: int, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 2 * actions))
        self.register_buffer("correction", torch.tensor([[1.0, 0.0], [1.0, 0.0]]))

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """(logarithms of expected costs, logits of doubts), as they were learned."""
        costs, doubts = self.layers(state).chunk(2, dim=-1)
        return costs.clamp(max=HIGHEST), doubts

    def loss(self, state: Tensor, costs: Tensor, wrong: Tensor, known: Tensor) -> Tensor:
        """Summed over what is `known` [..., A]: the deviance of a Poisson count, and the cross-entropy of doubts.

        Both are least at the conditional mean, so that what is learned is an expectation; `wrong` is 0, 1 or NO_ARC.
        """
        log_costs, doubts = self(state)
        deviance = (log_costs.exp() - costs * log_costs) * known
        made = known & (wrong != NO_ARC_TARGET)
        crossed = binary_cross_entropy_with_logits(doubts, wrong.clamp(min=0.0), reduction="none") * made
        total: Tensor = deviance.sum() + crossed.sum()
        return total

    @torch.no_grad()
    def estimate_costs(self, state: Tensor, taken: Tensor) -> ExpectedCostEstimates:
        """Of the actions that were taken [...], corrected."""
        log_costs, doubts = (values.gather(-1, taken[..., None])[..., 0].numpy() for values in self(state))
        (a, b), (c, d) = self.correction.tolist()
        return ExpectedCostEstimates(log_costs, doubts, np.exp(a * log_costs + b), 1 / (1 + np.exp(-(c * doubts + d))))

    def calibrate(self, found: ExpectedCostEstimates, costs: Array, wrong: Array) -> None:
        """Correct it by choices of which is known what they did cost, and whether the arcs were wrong, all [n]."""
        made = wrong != NO_ARC_TARGET
        self.correction[0] = torch.tensor(fit_calibration(found.log_costs, costs, compute_poisson_moments))
        self.correction[1] = torch.tensor(
            fit_calibration(found.doubt_logits[made], wrong[made], compute_bernoulli_moments)
        )


def compute_arc_error_targets(system: TransitionSystem, observations: Tensor, heads: Tensor, starts: Tensor) -> Tensor:
    """[K, T, A]: 1 where the arc that an action would make is wrong, 0 where it is right, NO_ARC without one.

    `heads` [Σn] are the gold ones of all pages, one after the other; a page's first is at `starts` [P].
    """
    numbers = observations[:, :, 1:].long()
    first = starts[observations[:, 0, 0].long()][:, None]
    found = observations.new_full((*observations.shape[:2], len(system.actions)), NO_ARC_TARGET)
    for action, arc in enumerate(system.action_arcs):
        if arc is not None:
            dependent, head = (numbers[:, :, place] for place in arc)
            rows = (first + dependent - 1).clamp(0, len(heads) - 1)
            found[:, :, action] = torch.where(dependent >= 1, (heads[rows] != head).float(), NO_ARC_TARGET)
    return found


@dataclass(frozen=True)
class ExpectedCostEstimates:
    """Of choices [...] that were made."""

    log_costs: Array  # as learned
    doubt_logits: Array  # as learned
    costs: Array  # E[A*(s, a)], corrected
    doubts: Array  # P(the arc is wrong), corrected; without meaning where none was made


def compute_poisson_moments(linear: Array) -> tuple[Array, Array]:
    """(mean, variance) of a count whose mean's logarithm is that."""
    mean = np.exp(np.minimum(linear, HIGHEST))
    return mean, mean


def compute_bernoulli_moments(linear: Array) -> tuple[Array, Array]:
    """(mean, variance) of a yes or no with these log-odds."""
    mean = 1 / (1 + np.exp(-linear))
    return mean, mean * (1 - mean)


def fit_calibration(x: Array, y: Array, family: Callable[[Array], tuple[Array, Array]]) -> list[float]:
    """[slope, level] of the most likely mean of y [n] given the linear form of x [n], drawn to [1, 0] a little.

    By Newton's method; the slope stays positive, so that the order of doubts does not change.
    """
    design = np.stack([x.astype(np.float64), np.ones(len(x))], axis=1)
    usual = np.array([1.0, 0.0])
    weights = usual.copy()
    for _ in range(ROUNDS):
        mean, variance = family(design @ weights)
        gradient = design.T @ (y - mean) - RIDGE * (weights - usual)
        curvature = (design * variance[:, None]).T @ design + RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        if weights[0] == FLATTEST and step[0] < 0:  # the level goes on alone
            step = np.array([0.0, gradient[1] / curvature[1, 1]])
        weights = weights + step / max(1.0, float(np.abs(step).max()))  # at most 1 at a time
        weights[0] = max(weights[0], FLATTEST)
    return [float(weight) for weight in weights]
