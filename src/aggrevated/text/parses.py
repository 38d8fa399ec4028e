"""Sentences parsed greedily: heads, relations, tags, and how much of that is expected to be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from aggrevated.arrays import Array
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import heads_of, numbers
from aggrevated.parsing.transitions.configurations import NONE
from aggrevated.roll_in import Mixture, roll_in
from aggrevated.text.acting import SentenceActor, Weights
from aggrevated.text.encoder import Read
from aggrevated.text.policy import TAGS, SentencePolicy
from aggrevated.trajectories import Trajectories

AT_ONCE = 256  # sentences
MOST_WORDS = 2048  # that are parsed together


@dataclass(frozen=True)
class Parsed:
    """Sentences, and all that was said of their words, one after the other [Σn]."""

    sentences: Array  # int [P]
    lengths: Array  # int [P]
    heads: Array  # int64
    labels: Array  # int64: classes
    tags: Array  # int64: classes
    head_right: Array  # how likely each head is right
    label_right: Array  # how likely each relation is right, if the head is
    left: Array  # bool: whether the word has its head from no transition of its own
    wrong_heads: Array  # [P]: how many are expected
    log_likelihood: Array  # [P]: of all transitions together

    @property
    def arc_right(self) -> Array:
        """How likely head and relation are right."""
        right: Array = self.head_right * self.label_right
        return right


def in_blocks(lengths: Array, sentences: Array) -> Iterator[Array]:
    """These sentences from the shortest to the longest, some at a time."""
    order = sentences[np.argsort(lengths[sentences], kind="stable")]
    first = 0
    while first < len(order):
        last = first + 1
        while last < min(len(order), first + AT_ONCE) and (last + 1 - first) * lengths[order[last]] <= MOST_WORDS:
            last += 1
        yield order[first:last]
        first = last


def parser_of(corpus: Corpus, sentences: Array, policy: SentencePolicy) -> Parser:
    """The parser of these."""
    return Parser(narrowed(corpus, sentences), sentences, True, policy.system, "text")


def narrowed(corpus: Corpus, sentences: Array) -> Corpus:
    """With room for the longest of these sentences and no more."""
    return Corpus(corpus.lengths, corpus.gold[:, : int(corpus.lengths[sentences].max()) + 1])


def parsed(
    policy: SentencePolicy, corpus: Corpus, sentences: Array, weights: Weights | None = None
) -> Iterator[tuple[Parsed, Parser, Trajectories]]:
    """Block by block: what is said of these sentences, their parser, and their parses; `weights` are the policy's."""
    weights = weights or Weights.copy_of(policy)
    for block in in_blocks(corpus.lengths, sentences):
        parser, actor = parser_of(corpus, block, policy), SentenceActor(weights, policy.sentences)
        found = roll_in(parser, Mixture(None, actor), numbers(parser), deterministic=True)
        yield said(policy, parser, found, actor), parser, found


@torch.no_grad()
def said(policy: SentencePolicy, parser: Parser, found: Trajectories, actor: SentenceActor) -> Parsed:
    """All that the policy says of these parses, of sentences that the actor has read."""
    mask, lengths = torch.from_numpy(found.mask), parser.corpus.lengths[parser.chosen]
    read = Read(*map(torch.from_numpy, (*actor.what_was_read(parser.chosen), lengths)))
    understood = policy.understand(torch.from_numpy(found.observations), mask, read)
    taken = torch.from_numpy(found.actions.astype(np.int64))[mask]
    expected = policy.costs.expected(understood.state, taken)
    lane, _ = np.nonzero(found.mask)
    made = np.zeros((len(lengths), parser.corpus.most), bool)  # by a transition, which is doubted or not
    given, sure = heads_of(found, parser), np.full((len(lengths), parser.corpus.most), float(policy.attached_right))
    for action, arc in enumerate(parser.system.makes):
        if arc is not None:
            steps = np.flatnonzero(taken.numpy() == action)
            dependent = found.observations[found.mask][steps, 1 + arc[0]].astype(np.int64)
            sure[lane[steps], dependent - 1], made[lane[steps], dependent - 1] = 1 - expected.doubts[steps], True
    inside = np.arange(parser.corpus.most) < lengths[:, None]
    heads = whole(given, sure, lengths)
    left = ~made | (given != heads)
    logits = policy.label_logits(understood.items, read.lengths, torch.from_numpy(heads[inside]))
    likely, label = logits.mul(policy.sureness).softmax(-1).max(-1)
    label_right = likely.numpy() if policy.label_names else np.ones(len(label))
    losses = np.minimum(np.bincount(lane, expected.costs, len(lengths)), lengths)
    chosen = policy.head.distribution(policy.readout(understood.state), torch.from_numpy(found.legal)[mask])
    return Parsed(
        parser.chosen, lengths, heads[inside], label.numpy(), read.tags[:, :TAGS].argmax(-1).numpy(),
        np.where(left, float(policy.attached_right), sure)[inside], label_right, left[inside], losses,
        np.bincount(lane, chosen.log_prob(taken).numpy(), len(lengths)),
    )  # fmt: skip


def whole(heads: Array, sure: Array, lengths: Array) -> Array:
    """The heads [P, N] of trees with one root: of several the surest one is it; who has no head depends on it."""
    heads = heads.astype(np.int64)
    inside = np.arange(heads.shape[1]) < lengths[:, None]
    for lane in np.flatnonzero(((heads == 0) & inside).sum(axis=1) != 1):
        own = heads[lane, : lengths[lane]]
        roots = np.flatnonzero(own == 0) if (own == 0).any() else np.flatnonzero(own == NONE)
        root = int(roots[sure[lane, roots].argmax()])
        own[own == 0] = 1 + root
        own[root] = 0
    for lane in np.flatnonzero(((heads == NONE) & inside).any(axis=1)):
        own = heads[lane, : lengths[lane]]
        own[own == NONE] = 1 + int(np.flatnonzero(own == 0)[0])
    return heads
