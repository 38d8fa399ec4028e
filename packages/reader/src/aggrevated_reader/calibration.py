"""Calibration of a policy: its confidence is corrected on some pages and measured on others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.engines import Engine
from aggrevated.parsing.parser import Parser
from aggrevated.parsing.scoring import parse_greedily
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.storage import JsonDict
from aggrevated.validation import ValidationScore
from aggrevated_reader.learners.expected_cost import NO_ARC_TARGET, ExpectedCostEstimates, ExpectedCosts
from aggrevated_reader.learners.reading_policy import ReadingPolicy

BINS = 10


class HasExpectedCosts(Protocol):
    """Policy that predicts the costs of its choices and has the answers to the pages that it reads."""

    @property
    def costs(self) -> ExpectedCosts: ...

    def compute_wrong_arcs(self, observations: Tensor) -> Tensor: ...

    def estimate_costs(self, observations: Array, mask: Array, actions: Array) -> ExpectedCostEstimates: ...


@dataclass(frozen=True)
class ChoiceLog:
    """All choices of greedy parses, one after the other, with their costs."""

    expected: ExpectedCostEstimates
    costs: Array  # [n]: A*(s_t, a_t)
    wrong: Array  # [n]: 1 if the arc that was made is wrong, 0 if it is right, NO_ARC_TARGET if none was made
    page: Array  # int [n]: the parse of each choice

    @classmethod
    def of(cls, policy: HasExpectedCosts, parser: Parser, trajectories: Trajectories) -> ChoiceLog:
        """Return the choices of these parses; the policy must have the answers to the parser's pages."""
        mask = trajectories.mask
        rows = trajectories.states[trajectories.mask]
        q = np.where(parser.action_mask(rows), parser.expert.q(rows), np.inf)
        actions = trajectories.actions[mask].astype(np.int64)
        costs = np.take_along_axis(q, actions[:, None], axis=1)[:, 0] - q.min(axis=1)
        wrong = policy.compute_wrong_arcs(torch.from_numpy(trajectories.observations)).numpy()[mask]
        expected = policy.estimate_costs(trajectories.observations, mask, trajectories.actions.astype(np.int64))
        expected_of_choices = ExpectedCostEstimates(
            expected.log_costs[mask], expected.doubt_logits[mask], expected.costs[mask], expected.doubts[mask]
        )
        return cls(
            expected_of_choices, costs, np.take_along_axis(wrong, actions[:, None], axis=1)[:, 0], np.nonzero(mask)[0]
        )

    @property
    def arcs(self) -> tuple[Array, Array]:
        """The policy's confidence in each arc that it made, and whether the arc is correct."""
        has_arc = self.wrong != NO_ARC_TARGET
        return 1 - self.expected.doubts[has_arc], self.wrong[has_arc] == 0

    @property
    def losses(self) -> tuple[Array, Array]:
        """The expected loss and the actual loss of each parse."""
        return np.bincount(self.page, self.expected.costs), np.bincount(self.page, self.costs)


def calibrate_policy(policy: ReadingPolicy, parser: Parser, trajectories: Trajectories) -> None:
    """Calibrate the policy's expected costs by these parses, and its names by these pages."""
    choices = ChoiceLog.of(policy, parser, trajectories)
    policy.costs.calibrate(choices.expected, choices.costs, choices.wrong)
    policy.calibrate_names(parser.chosen)


@dataclass(frozen=True)
class CalibratingEvaluator:
    """Evaluator of UAS by greedy parses, which also calibrate the policy."""

    parser: Parser

    def with_engine(self, engine: Engine) -> Self:
        """Return the evaluator itself: it calibrates a policy of this process."""
        return self

    def __call__(self, policy: Policy) -> ValidationScore:
        assert isinstance(policy, ReadingPolicy)
        trajectories = parse_greedily(policy, self.parser)
        calibrate_policy(policy, self.parser, trajectories)
        symbols = int(self.parser.corpus.lengths[self.parser.chosen].sum())
        return ValidationScore(float((symbols + trajectories.returns.sum()) / symbols), trajectories.simulator_steps)


@dataclass(frozen=True)
class Bin:
    """Choices of similar confidence."""

    sure: float  # mean confidence
    right: float  # share of correct choices
    count: int


def compute_reliability(sure: Array, right: Array) -> tuple[list[Bin], float]:
    """Return the reliability diagram of predictions and their expected calibration error.

    Args:
        sure: Confidences [n] between 0 and 1.
        right: Whether each prediction is correct, [n].

    Returns:
        The non-empty ones of ten bins of confidence, and the mean of |confidence − accuracy| over all
        predictions.
    """
    bin_numbers = np.minimum((sure * BINS).astype(int), BINS - 1)
    bins = [
        Bin(float(sure[bin_numbers == b].mean()), float(right[bin_numbers == b].mean()), int((bin_numbers == b).sum()))
        for b in np.unique(bin_numbers)
    ]
    return bins, sum(b.count * abs(b.sure - b.right) for b in bins) / max(len(sure), 1)


def compute_worst_tenth_share(expected: Array, lost: Array) -> float:
    """Return the share of all losses on the tenth of the pages with the highest expected losses."""
    order = np.argsort(-expected, kind="stable")[: max(1, len(expected) // 10)]
    return float(lost[order].sum() / max(lost.sum(), 1e-9))


def measure_calibration(policy: HasExpectedCosts, parser: Parser, trajectories: Trajectories) -> JsonDict:
    """Return how far the policy's confidence can be trusted, for JSON."""
    choices = ChoiceLog.of(policy, parser, trajectories)
    bins, error = compute_reliability(*choices.arcs)
    expected, lost = choices.losses
    return {
        "calibration_error": error,
        "reliability": [[b.sure, b.right, b.count] for b in bins],
        "expected_loss": float(expected.sum()),
        "loss": float(lost.sum()),
        "errors_in_most_doubtful_tenth": compute_worst_tenth_share(expected, lost),
    }
