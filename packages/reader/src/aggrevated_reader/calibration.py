"""Whether a policy is as sure as it is right: corrected on some pages, measured on others."""

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
    """A policy that says what it expects of its choices, and has the answers to the pages that it reads."""

    @property
    def costs(self) -> ExpectedCosts: ...

    def compute_wrong_arcs(self, observations: Tensor) -> Tensor: ...

    def estimate_costs(self, observations: Array, mask: Array, actions: Array) -> ExpectedCostEstimates: ...


@dataclass(frozen=True)
class ChoiceLog:
    """The choices of greedy parses, one after the other, with what came of them."""

    expected: ExpectedCostEstimates
    costs: Array  # [n]: A*(s_t, a_t)
    wrong: Array  # [n]: whether the arc that was made is wrong, 0 or 1, NO_ARC where none was made
    page: Array  # int [n]: which parse they belong to

    @classmethod
    def of(cls, policy: HasExpectedCosts, parser: Parser, found: Trajectories) -> ChoiceLog:
        """Of these parses; the policy must have the answers to the parser's pages."""
        mask = found.mask
        rows = found.states[found.mask]
        q = np.where(parser.action_mask(rows), parser.expert.q(rows), np.inf)
        taken = found.actions[mask].astype(np.int64)
        costs = np.take_along_axis(q, taken[:, None], axis=1)[:, 0] - q.min(axis=1)
        wrong = policy.compute_wrong_arcs(torch.from_numpy(found.observations)).numpy()[mask]
        expected = policy.estimate_costs(found.observations, mask, found.actions.astype(np.int64))
        of_steps = ExpectedCostEstimates(
            expected.log_costs[mask], expected.doubt_logits[mask], expected.costs[mask], expected.doubts[mask]
        )
        return cls(of_steps, costs, np.take_along_axis(wrong, taken[:, None], axis=1)[:, 0], np.nonzero(mask)[0])

    @property
    def arcs(self) -> tuple[Array, Array]:
        """(how sure the policy was of each arc that it made; whether it is right)."""
        made = self.wrong != NO_ARC_TARGET
        return 1 - self.expected.doubts[made], self.wrong[made] == 0

    @property
    def losses(self) -> tuple[Array, Array]:
        """(the expected loss of each parse; its loss)."""
        return np.bincount(self.page, self.expected.costs), np.bincount(self.page, self.costs)


def calibrate_policy(policy: ReadingPolicy, parser: Parser, found: Trajectories) -> None:
    """Make it as sure as it was right in these parses, and about the names on these pages."""
    choices = ChoiceLog.of(policy, parser, found)
    policy.costs.calibrate(choices.expected, choices.costs, choices.wrong)
    policy.calibrate_names(parser.chosen)


@dataclass(frozen=True)
class CalibratingEvaluator:
    """The UAS of greedy parses of the parser's pages, by which the policy is corrected on the way."""

    parser: Parser

    def with_engine(self, engine: Engine) -> Self:
        """Itself: what it corrects is here."""
        return self

    def __call__(self, policy: Policy) -> ValidationScore:
        assert isinstance(policy, ReadingPolicy)
        found = parse_greedily(policy, self.parser)
        calibrate_policy(policy, self.parser, found)
        symbols = int(self.parser.corpus.lengths[self.parser.chosen].sum())
        return ValidationScore(float((symbols + found.returns.sum()) / symbols), found.simulator_steps)


@dataclass(frozen=True)
class Bin:
    """Those of about the same sureness."""

    sure: float  # in the mean
    right: float  # the share
    count: int


def compute_reliability(sure: Array, right: Array) -> tuple[list[Bin], float]:
    """(ten bins of sureness, those that hold something; the expected calibration error: the mean of |sure − right|)."""
    places = np.minimum((sure * BINS).astype(int), BINS - 1)
    bins = [
        Bin(float(sure[places == b].mean()), float(right[places == b].mean()), int((places == b).sum()))
        for b in np.unique(places)
    ]
    return bins, sum(b.count * abs(b.sure - b.right) for b in bins) / max(len(sure), 1)


def compute_worst_tenth_share(expected: Array, lost: Array) -> float:
    """The share of all losses that the tenth of the pages with the highest expected losses holds."""
    order = np.argsort(-expected, kind="stable")[: max(1, len(expected) // 10)]
    return float(lost[order].sum() / max(lost.sum(), 1e-9))


def measure_calibration(policy: HasExpectedCosts, parser: Parser, found: Trajectories) -> JsonDict:
    """How far its sureness can be trusted, for JSON."""
    choices = ChoiceLog.of(policy, parser, found)
    bins, error = compute_reliability(*choices.arcs)
    expected, lost = choices.losses
    return {
        "calibration_error": error,
        "reliability": [[b.sure, b.right, b.count] for b in bins],
        "expected_loss": float(expected.sum()),
        "loss": float(lost.sum()),
        "errors_in_most_doubtful_tenth": compute_worst_tenth_share(expected, lost),
    }
