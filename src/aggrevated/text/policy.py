"""A policy that parses sentences: transitions, relations of arcs, tags of words, and what it expects to lose.

A transition is chosen by what the encoder made of the words on top of the stack and in front of the buffer, and by how
likely each of them is to head another. That, and all else but the transitions themselves, is learned along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Space
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import cross_entropy

from aggrevated.arrays import Array
from aggrevated.engines.sending import Kept
from aggrevated.parsing.learners.expected import Expected, ExpectedCosts, wrong_arcs
from aggrevated.parsing.learners.names import UNKNOWN, decoded, encoded
from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.policies import HiddenSettings, Policy, initial_seed, scores_one_by_one
from aggrevated.policies.heads import CategoricalHead, Head
from aggrevated.settings import BELOW_1, NOT_NEGATIVE, Chosen, at_least, require_recurrent, setting
from aggrevated.text.acting import SentenceActor, Weights
from aggrevated.text.encoder import Encoder, Read
from aggrevated.text.heading import Heading
from aggrevated.text.words import SPELLED, Shown

VIEW = 6  # of the numbers in an observation: three words of the stack, three of the buffer
LABELS, TAGS, FINE_TAGS = 256, 32, 128  # classes that there is room for
BYTES = 32  # of a name in UTF-8
UNNAMED = -1e4  # the logit of a class that there is not
SURENESS = tuple(float(2 ** (power / 4)) for power in range(-8, 9))  # from a quarter to four times


class Answers(NamedTuple):
    """What sentences are learned from besides the costs of their trees, one word after the other."""

    labels: Tensor  # int64 [Σn]: classes, UNKNOWN where there is none
    tags: Tensor  # int64 [Σn]
    fine_tags: Tensor  # int64 [Σn]
    heads: Tensor  # int64 [Σn]: gold heads, as they are in the treebank
    starts: Tensor  # int64 [P]


class Understood(NamedTuple):
    """What the policy made of trajectories."""

    observations: Tensor  # [K, T, O]
    read: Read  # of each trajectory's sentence
    items: Tensor  # [2 + Σn, D]: none, ROOT and all words
    heads: Tensor  # [K, 1 + N, 1 + N]: the logarithm of how likely the second heads the first
    state: Tensor  # [M, W]: what the transitions at the M steps that were taken are chosen by


class SentencePolicy(Policy):
    """π(·|s, τ), where τ is the sentence."""

    labels: Tensor  # uint8 [LABELS, BYTES]: their names; likewise of the tags
    tags: Tensor
    fine_tags: Tensor
    sureness: Tensor  # what the logits of labels are multiplied by, so that they are as sure as they are right
    attached_right: Tensor  # how likely the head is right of a word that was left without one
    answers: Answers | None = None
    _latest: Understood | None = None

    def __init__(
        self, system: TransitionSystem, *, hidden: int = 128, word: int = 100, rows: int = 8192, width: int = 128,
        dropout: float = 0.0, sees_tags: bool = False, labelling: float = 4.0, tagging: float = 2.5,
        heading: float = 3.0, doubting: float = 0.5, seed: int = 0,
    ) -> None:  # fmt: skip
        """`labelling` and so on are the weights of what is learned along."""
        super().__init__()
        self.system, self.sees_tags = system, sees_tags
        self.labelling, self.tagging, self.heading_weight, self.doubting = labelling, tagging, heading, doubting
        self.sentences = Kept(Shown(*(np.zeros(shape, np.int64) for shape in ((0, SPELLED.stop), 0, 0, 0))))
        actions, size = len(system.actions), 2 * hidden
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = Encoder(rows, word, hidden, (TAGS, FINE_TAGS), sees_tags, dropout)
            self.special = nn.Parameter(0.1 * torch.randn(2, size))  # none, ROOT
            self.heading = Heading(size, width)
            self.places = nn.Linear(size, VIEW * width, bias=False)
            self.readout = nn.Linear(width, actions)
            self.of_dependent, self.of_head = nn.Linear(size, width), nn.Linear(size, width)
            self.label_readout = nn.Linear(width, LABELS)
            self.costs = ExpectedCosts(width, actions)
        self.width, self.head, self.dropout = width, CategoricalHead(actions), nn.Dropout(dropout)
        self.register_buffer("labels", encoded((), LABELS, BYTES))
        self.register_buffer("tags", encoded((), TAGS, BYTES))
        self.register_buffer("fine_tags", encoded((), FINE_TAGS, BYTES))
        self.register_buffer("sureness", torch.tensor(1.0))
        self.register_buffer("attached_right", torch.tensor(0.5))
        with torch.no_grad():
            self.places.weight *= 0.5
            self.readout.weight *= 0.1
            self.readout.bias.zero_()
        self.eval()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_latest": None}  # what torch cannot copy

    # What it reads.

    def with_sentences(self, shown: Shown) -> SentencePolicy:
        """The same policy, which now reads these sentences, and has no answers to them; they are no weights."""
        self.sentences = Kept(shown)
        self.answers, self._latest = None, None
        return self

    def with_answers(self, labels: Array, tags: Array, fine_tags: Array, heads: Array) -> SentencePolicy:
        """The same, which is told the classes and gold heads [Σn] of the words of its sentences, to learn from."""
        arrays = (labels, tags, fine_tags, heads, self.sentences.value.starts)
        self.answers = Answers(*(torch.from_numpy(array.astype(np.int64)) for array in arrays))
        return self

    def with_names(
        self, labels: Sequence[str], tags: Sequence[str] = (), fine_tags: Sequence[str] = ()
    ) -> SentencePolicy:
        """The same, whose classes have these names."""
        self.labels = encoded(labels, LABELS, BYTES)
        self.tags, self.fine_tags = encoded(tags, TAGS, BYTES), encoded(fine_tags, FINE_TAGS, BYTES)
        return self

    @property
    def label_names(self) -> tuple[str, ...]:
        return decoded(self.labels)

    @property
    def tag_names(self) -> tuple[str, ...]:
        return decoded(self.tags)

    @property
    def fine_tag_names(self) -> tuple[str, ...]:
        return decoded(self.fine_tags)

    # What it makes of them.

    def look(self, sentences: Array) -> Read:
        """What is read of these sentences [B]."""
        read: Read = self.encoder(self.sentences.value, sentences)
        return read

    def items(self, read: Read) -> Tensor:
        """[2 + Σn, D]: none, ROOT and all words."""
        return torch.cat([self.special, read.words])

    def understand(self, observations: Tensor, mask: Tensor, read: Read | None = None) -> Understood:
        """All that the heads need to know of these trajectories, whose sentences may have been read already."""
        read = self.look(observations[:, 0, 0].long().numpy()) if read is None else read
        items = self.items(read)
        heads = self.heading(items, read.lengths, self.dropout)
        lane, numbers = mask.nonzero()[:, 0], observations[mask][:, 1 : 1 + VIEW].long()
        hidden = self.heading.seen(heads, read.lengths, lane, numbers)
        projected, rows = self.places(items).unflatten(1, (VIEW, self.width)), rows_of(read.lengths, lane, numbers)
        for place in range(VIEW):
            hidden = hidden + projected[rows[:, place], place]
        return Understood(observations, read, items, heads, self.dropout(hidden.relu()))

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        found = self.understand(observations, mask)
        if torch.is_grad_enabled():
            self._latest = found  # for `along`, which is asked next
        logits = found.state.new_zeros(*mask.shape, self.head.outputs)
        logits[mask] = self.readout(found.state)
        return self.head.distribution(logits, legal)

    def scores(
        self, observations: Tensor, actions: Tensor, mask: Tensor, own: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        return scores_one_by_one(self, observations, actions, mask, own, legal)

    def label_logits(self, items: Tensor, lengths: Tensor, heads: Tensor) -> Tensor:
        """[Σn, LABELS], for these heads [Σn] of the words; classes without a name are out of the question."""
        sentence = torch.arange(len(lengths)).repeat_interleave(lengths)
        governing = self.of_head(items)[rows_of(lengths, sentence, heads[:, None])[:, 0]]
        logits: Tensor = self.label_readout(self.dropout((self.of_dependent(items[2:]) + governing).relu()))
        return logits.masked_fill(~(self.labels != 0).any(dim=1), UNNAMED)

    # What it learns along.

    def along(
        self, observations: Tensor, mask: Tensor, legal: Tensor | None, costs: Tensor | None = None
    ) -> Tensor | None:
        """The cross-entropies of labels, tags and heads, and the deviance of expected costs, summed."""
        found, self._latest = self._latest, None
        if self.answers is None:
            return None
        if found is None or not found.observations.is_set_to(observations):
            found = self.understand(observations, mask)
        total = self.misread(found)
        if costs is None:
            return total
        known = mask[:, :, None].expand_as(costs) if legal is None else legal & mask[:, :, None]
        doubted = self.costs.loss(found.state, costs[mask], self.wrong(observations)[mask], known[mask])
        return total + self.doubting * doubted

    def misread(self, found: Understood) -> Tensor:
        """What labels, tags and heads of the words of these sentences lack."""
        assert self.answers is not None
        places = torch.from_numpy(self.sentences.value.places(found.observations[:, 0, 0].long().numpy()))
        labels, tags, fine_tags, heads = (told[places] for told in self.answers[:4])
        labelled = crossed(self.label_logits(found.items, found.read.lengths, heads), labels)
        coarse, fine = torch.split(found.read.tags, [TAGS, FINE_TAGS], 1)
        inside = torch.arange(1, found.heads.shape[1]) <= found.read.lengths[:, None]
        headed = crossed(found.heads[:, 1:][inside], heads)
        tagged = crossed(coarse, tags) + crossed(fine, fine_tags)
        return self.labelling * labelled + self.tagging * tagged + self.heading_weight * headed

    def wrong(self, observations: Tensor) -> Tensor:
        """[K, T, A]: 1 where the arc that an action would make is wrong, 0 where it is right, NO_ARC without one."""
        assert self.answers is not None
        return wrong_arcs(self.system, observations, self.answers.heads, self.answers.starts)

    # What it says.

    @torch.no_grad()
    def expected(self, observations: Array, mask: Array, actions: Array) -> Expected:
        """What it expects of these actions [K, T]."""
        taken = torch.from_numpy(mask)
        found = self.understand(torch.from_numpy(observations), taken)
        of_steps = self.costs.expected(found.state, torch.from_numpy(actions)[taken])
        return Expected(*(spread(values, mask) for values in vars(of_steps).values()))

    def actor(self) -> SentenceActor:
        return SentenceActor(Weights.copy_of(self), self.sentences)


def rows_of(lengths: Tensor, lane: Tensor, numbers: Tensor) -> Tensor:
    """Where the words `numbers` [M, V] of the sentences `lane` [M] stand among the items; −1 is none, 0 is ROOT."""
    first = lengths.cumsum(0) - lengths
    return torch.where(numbers > 0, 1 + first[lane][:, None] + numbers, 1 + numbers)


def crossed(logits: Tensor, classes: Tensor) -> Tensor:
    """The cross-entropy, summed over what is known."""
    return cross_entropy(logits, classes, ignore_index=UNKNOWN, reduction="sum")


def spread(values: Array, mask: Array) -> Array:
    """[K, T] of values at the steps that were taken, one after the other; 0 elsewhere."""
    whole = np.zeros(mask.shape, values.dtype)
    whole[mask] = values
    return whole


@dataclass(frozen=True)
class SentenceSettings(HiddenSettings):
    """Reads sentences both ways, and parses, labels, tags and doubts."""

    name = "sentence"
    mixes = False  # each would read the sentences for itself
    dropout: float = setting(0.0, "The share of what it makes of words that is left out while it learns.", BELOW_1)
    word: int = setting(100, "How many numbers stand for a word, besides its letters.", at_least(1))
    rows: int = setting(8192, "Rows of the table of words; those of more words are shared.", at_least(1))
    width: int = setting(128, "The width of the layer that transitions are chosen by.", at_least(2))
    see_tags: bool = setting(False, "Show it the gold UPOS tags, here and when it parses.")
    labelling: float = setting(4.0, "The weight of the relations' names in what is learned.", NOT_NEGATIVE)
    tagging: float = setting(2.5, "The weight of the words' tags.", NOT_NEGATIVE)
    heading: float = setting(3.0, "The weight of which word heads which, told before the parse begins.", NOT_NEGATIVE)
    doubting: float = setting(0.5, "The weight of expected costs.", NOT_NEGATIVE)

    def check(self, chosen: Chosen) -> None:
        require_recurrent(self.hidden, self.name)

    def build(self, observations: Space[Any], head: Head, seed: int) -> SentencePolicy:
        """Without sentences."""
        system = next(one for one in SYSTEMS.values() if len(one.actions) == head.outputs)  # they differ in that
        return SentencePolicy(
            system, hidden=self.hidden[0], word=self.word, rows=self.rows, width=self.width, dropout=self.dropout,
            sees_tags=self.see_tags, labelling=self.labelling, tagging=self.tagging, heading=self.heading,
            doubting=self.doubting, seed=initial_seed(seed),
        )  # fmt: skip
