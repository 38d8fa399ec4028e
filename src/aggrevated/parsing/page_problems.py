"""What all worlds of pages are built of: parsers to learn from, to choose on and to report, and what is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch

from aggrevated.engines import Engine
from aggrevated.parsing.dataset import Dataset
from aggrevated.parsing.learners.kernel import KernelPolicy
from aggrevated.parsing.learners.parser_policies import ParsingPolicy
from aggrevated.parsing.parser import Parser
from aggrevated.parsing.scoring import MicroUasEvaluator, parse_batch, score_heads
from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.policies import Policy
from aggrevated.problems import Problem
from aggrevated.validation import ValidationScore

Reader: TypeAlias = ParsingPolicy | KernelPolicy


def make_problem(
    pages: Dataset,
    system: TransitionSystem,
    validate: Callable[[Parser], Callable[[Policy], ValidationScore]],
    prepare: Callable[[Policy], None],
) -> Problem:
    """The parser of the pages to learn from, its expert, and the parsers of those to choose on and to report."""
    simulator = Parser(pages.corpus, pages.train, system=system)
    chosen_on, reported = (Parser(pages.corpus, part, True, system) for part in (pages.validation, pages.test))
    return Problem(
        simulator,
        simulator.expert,
        validate=validate(chosen_on),
        test=lambda policy: score_heads(parse_batch(policy, reported), reported),
        fingerprint={"pages": torch.tensor(list(bytes.fromhex(pages.key)), dtype=torch.uint8)},
        monitor=Monitor(MicroUasEvaluator(reported)),
        prepare=prepare,
    )


def attach_pages(policy: Policy, pages: Dataset) -> None:
    """Give a policy the pages, and the projection that made their features, with geometry if it is to see that."""
    assert isinstance(policy, Reader)
    whole, width = pages.projection, policy.projection.width
    policy.projection = whole if width == whole.width else whole.without_geometry()
    policy.with_pages(pages.features[:, :, :width], pages.corpus.lengths)


@dataclass(frozen=True)
class Monitor:
    """UAS on the test pages, which no choice looks at."""

    measure: MicroUasEvaluator

    def with_engine(self, engine: Engine) -> Monitor:
        """The same by another engine."""
        return Monitor(self.measure.with_engine(engine))

    def __call__(self, policy: Policy) -> dict[str, float]:
        return {"test_uas": float(self.measure(policy))}
