"""The world of sentences: treebanks or generated ones, an expert that knows their trees, others to report on."""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from gymnasium.spaces import Discrete, Space

from aggrevated.arrays import Array
from aggrevated.errors import IdleError, UsageError
from aggrevated.files import Facts
from aggrevated.parsing.parser import OBSERVATIONS, Corpus, GoldExpert, Parser
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.policies import Policy
from aggrevated.settings import SEED, SHARE, at_least, flag, one_of, setting
from aggrevated.text.library import Library, Names, Split, corrupted, library, refuse_untagged, split_of
from aggrevated.text.parses import narrowed
from aggrevated.text.policy import SentencePolicy
from aggrevated.text.scoring import Judge, diagrams, judged, score, score_of
from aggrevated.text.treebank import load
from aggrevated.worlds import EvaluationSettings, World, WorldSettings

ON_DEV = (
    "no --test: what is reported is measured on --dev, on which the policy is also chosen and made as sure as right"
)


@dataclass(frozen=True)
class OnSentences(EvaluationSettings):
    """Another treebank, or what the run reports."""

    conllu: str = setting("", "A treebank in CoNLL-U, with the true heads; default: what the run reports.")
    reliability: bool = setting(False, "Also bins of sureness: how sure in the mean, the share right, how many.")

    def measure(self, world: WorldSettings, policy: Policy) -> Facts:
        """UAS, LAS, tags, and how far the policy's sureness can be trusted."""
        assert isinstance(world, Text) and isinstance(policy, SentencePolicy)
        treebank = load(Path(self.conllu)) if self.conllu else None
        sentences = treebank.sentences if treebank else world.reported()
        names = Names(policy.label_names, policy.tag_names, policy.fine_tag_names)
        refuse_untagged(policy, sentences)
        given = Library.of(Split((), (), sentences), names)
        given.show(policy)
        found = judged(policy, given, given.test)
        facts = score_of(found, given).facts() | ({"reliability": diagrams(found)} if self.reliability else {})
        return facts | (treebank.facts() if treebank else {})


@dataclass(frozen=True, kw_only=True)
class Text(WorldSettings):
    """Sentences with dependency trees, from CoNLL-U or generated. What is measured is LAS."""

    name = "text"
    measured = "LAS"
    expert_name = "gold"
    digits = 3
    measured_on = ("data", "dev", "test", "sentences", "data_seed")
    evaluation: ClassVar[type[EvaluationSettings]] = OnSentences
    system: str = setting("arc-eager", f"The transition system: {' or '.join(SYSTEMS)}.", one_of(SYSTEMS))
    data: str = setting("", "A treebank in CoNLL-U to learn from; default: generated sentences.")
    dev: str = setting("", "Another to choose the policy on; default: a tenth of the data, and a tenth to report.")
    test: str = setting("", "Another to report; default: what --dev is.")
    sentences: int = setting(4000, "How many sentences are generated.", at_least(20))
    data_seed: int = setting(0, "The seed of generated sentences, and of what is wrong with a poor expert.", SEED)
    longest: int = setting(100, "How many words a sentence to learn from may have.", at_least(1, 500))
    corrupted: float = setting(
        0.0, "The share of heads that the expert has wrong: a poor one. The ratio stays that to gold trees.", SHARE
    )

    def completed(self, iterations: int, given: Container[str]) -> Self:
        """Files are found again from everywhere."""
        if self.dev and not self.data:
            raise UsageError("--dev needs --data, the treebank to learn from; give both, or neither")
        if self.test and not self.dev:
            raise UsageError("--test needs --dev, the treebank to choose on; give both, or let the data be split")
        if self.data and "sentences" in given:
            idle = f"{flag('sentences')} has no effect on a treebank; leave it out, or leave --data out"
            raise IdleError(idle, "sentences")
        if self.data and not self.corrupted and "data_seed" in given:
            raise IdleError(f"{flag('data_seed')} has no effect on a treebank; leave it out", "data_seed")
        files = {name: os.path.realpath(path) for name in ("data", "dev", "test") if (path := getattr(self, name))}
        return replace(self, **files)

    @property
    def steps(self) -> int:
        return 30  # two for each word

    @property
    def label(self) -> str:
        return f", expert wrong in {self.corrupted:.0%}" if self.corrupted else ""

    @property
    def notice(self) -> str:
        files = [load(Path(path)).notice for path in (self.data, self.dev, self.test) if path]
        return "\n".join([*filter(None, files), *([ON_DEV] if self.dev and not self.test else [])])

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        return OBSERVATIONS, Discrete(len(SYSTEMS[self.system].actions))

    def library(self) -> Library:
        """All of its sentences."""
        return library(self.data, self.dev, self.test, self.sentences, self.data_seed, self.longest)

    def reported(self) -> tuple[Any, ...]:
        """The sentences that a run reports."""
        found = split_of(self.data, self.dev, self.test, self.sentences, self.data_seed, self.longest)
        return found.test or found.validation

    def build(self, seed: int) -> World:
        given = self.library()
        corpus, believed = (narrowed(one, given.train) for one in (given.corpus, self.believed(given)))
        simulator = Parser(corpus, given.train, system=SYSTEMS[self.system], name="text")
        judge, heads = Judge(given), given.heads_by(believed) if self.corrupted else given.heads
        return World(
            simulator,
            GoldExpert(replace(simulator, corpus=believed)),
            validate=judge,
            test=lambda policy: score(read_by(policy), given, given.test),
            fingerprint={"sentences": torch.tensor(list(bytes.fromhex(given.key)), dtype=torch.uint8)},
            monitor=judge.monitor,
            prepare=lambda policy: prepare(read_by(policy), given, heads),
        )

    def believed(self, given: Library) -> Corpus:
        """The trees that the expert believes in: gold, or such as are wrong in places. What is lost is told by gold."""
        return corrupted(given.corpus, self.corrupted, self.data_seed) if self.corrupted else given.corpus


def read_by(policy: Policy) -> SentencePolicy:
    """The policy, which must be one that reads sentences."""
    assert isinstance(policy, SentencePolicy)
    return policy


def prepare(policy: SentencePolicy, given: Library, heads: Array) -> None:
    """Give a policy the sentences, the classes and the answers, and let it count the words that it will learn from."""
    refuse_untagged(policy, given.sentences)
    policy.with_names(*given.names)
    given.show(policy, heads)
    policy.encoder.meet(given.shown, given.shown.places(given.train))
