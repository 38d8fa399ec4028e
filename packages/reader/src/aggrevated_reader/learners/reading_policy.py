"""A policy that reads and understands: it parses, says what each symbol is, and how much it expects to get wrong.

It differs from the contextual policy in what it is told of a symbol (`features.symbols.detailed`), in that the place of
a symbol goes past the encoder, too, so that a transition sees how two symbols stand to each other, and in two heads
that learn along with the policy, over the same encoder and decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Space
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import cross_entropy

from aggrevated.actors.feed_forward import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.core.settings import (
    BELOW_1,
    NON_NEGATIVE,
    SelectedComponents,
    at_least,
    between,
    check_recurrent_width,
    check_setting,
    setting,
)
from aggrevated.parsing.features.layout import LAYOUT, PLACE
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.features.symbols import DETAILED, DETAILED_PIXELS, extract_detailed_features
from aggrevated.parsing.learners.actors import ReaderActor
from aggrevated.parsing.learners.parser_policies import ParsingPolicy
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.policies import HiddenSettings, derive_initial_seed
from aggrevated.policies.heads import Head
from aggrevated.policies.recurrent_cells import CELLS
from aggrevated.storage import JsonDict
from aggrevated_reader.learners.expected_cost import ExpectedCostEstimates, ExpectedCosts, compute_arc_error_targets
from aggrevated_reader.learners.serialization import read, write
from aggrevated_reader.learners.symbol_names import CLASSES, UNKNOWN, names_from_bytes, names_to_bytes

COMPONENTS = 200  # of a symbol's picture
FITTED = 30_000  # symbols are enough to fit them to
SURENESS = tuple(float(2 ** (power / 4)) for power in range(-8, 9))  # from a quarter to four times
UNSEEN = -1e4  # the logit of a class that there is not


class Answers(NamedTuple):
    """What pages are learned from besides their trees' costs, one symbol after the other."""

    names: Tensor  # int64 [Σn]: classes, UNKNOWN where there is none
    heads: Tensor  # int64 [Σn]: gold heads
    starts: Tensor  # int64 [P]: the row of each page's first symbol


class ReadingOutputs(NamedTuple):
    """What the policy made of trajectories."""

    observations: Tensor  # [K, T, O]
    read: Tensor  # [K, N, R]: of each symbol, what its name is told by
    state: Tensor  # [K, T, H]: of the decoder


class ReadingPolicy(ParsingPolicy):
    """π(·|o₁ … o_t, τ), the names of τ's symbols, and the expected costs of its own choices."""

    names: Tensor  # uint8 [CLASSES, BYTES]
    sureness: Tensor  # what the logits of names are multiplied by, so that they are as sure as they are right
    answers: Answers | None = None
    _latest: ReadingOutputs | None = None

    def __init__(
        self,
        projection: Projection,
        system: TransitionSystem,
        *,
        hidden: int = 128,
        embedding: int = 128,
        layers: int = 1,
        dropout: float = 0.0,
        name_weight: float = 1.0,
        expected_cost_weight: float = 0.25,
        seed: int = 0,
    ) -> None:
        """`name_weight` and `expected_cost_weight` are the weights of what is learned along: names, and "
        "expected costs."""
        self.system = system
        self.layers = layers
        self.embedding = embedding
        self.name_weight = name_weight
        self.expected_cost_weight = expected_cost_weight
        actions = len(system.actions)
        super().__init__(
            projection, actions, "contextual", hidden=hidden, embedding=embedding, dropout=dropout, seed=seed
        )

    def _build(self, size: int, actions: int, embedding: int) -> None:
        hidden = self.kind.hidden
        wide = 2 * embedding
        self.embed = nn.Sequential(nn.Linear(size, wide), nn.ReLU(), nn.Linear(wide, embedding), nn.ReLU())
        self.encoder = nn.LSTM(embedding, hidden // 2, self.layers, batch_first=True, bidirectional=True)
        item = hidden + PLACE
        self.special = nn.Parameter(0.1 * torch.randn(2, item))
        self.decoder = nn.LSTM(item * len(self.kind.view), hidden, batch_first=True)
        self.between = nn.Identity()
        self.readout = nn.Linear(hidden, actions)
        read = embedding + hidden
        self.naming_head = nn.Sequential(nn.Linear(read, embedding), nn.ReLU(), nn.Linear(embedding, CLASSES))
        self.costs = ExpectedCosts(hidden, actions)
        self.register_buffer("names", names_to_bytes(()))
        self.register_buffer("sureness", torch.tensor(1.0))
        with torch.no_grad():
            self.readout.weight *= 0.1
            self.readout.bias.zero_()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_latest": None}  # what torch cannot copy

    def describe_sizes(self) -> JsonDict:
        """What a blank one like it is made of."""
        sizes = {"hidden": self.kind.hidden, "embedding": self.embedding, "layers": self.layers}
        return sizes | {"system": self.system.name}

    def save(self, path: Path | str, card: JsonDict | None = None) -> None:
        """Write one file that `load` reads, with a card that says what it is."""
        write(Path(path), self.state_dict(), self.describe_sizes(), self.metadata if card is None else card)

    @classmethod
    def load(cls, path: Path | str) -> ReadingPolicy:
        """The policy that `save` wrote; a `DataError` where the file is not that."""
        return read(Path(path), cls._rebuild)

    @classmethod
    def _rebuild(cls, shape: JsonDict, weights: dict[str, Tensor], card: JsonDict) -> ReadingPolicy:
        sizes = {name: shape[name] for name in ("hidden", "embedding", "layers")}
        policy = cls(make_blank_projection(), SYSTEMS[shape["system"]], **sizes)
        kinds = {name: tensor.dtype for name, tensor in policy.state_dict().items()}
        policy.load_state_dict({name: tensor.to(kinds[name]) for name, tensor in weights.items()})
        if not policy.classes:
            raise ValueError("it has no names for symbols")
        if not torch.equal(names_to_bytes(policy.classes), policy.names):
            raise ValueError("there are gaps between its names for symbols")
        policy.metadata = card
        return policy

    # What it reads.

    def with_pages(self, features: Array, lengths: Array) -> ReadingPolicy:
        """The same policy, which now reads pages of these features [Σn, D] or [P, N, D], and has no answers to them."""
        super().with_pages(features, lengths)
        self.answers = None
        self._latest = None
        return self

    def with_answers(self, names: Array, heads: Array) -> ReadingPolicy:
        """The same, which is told the classes and gold heads [Σn] of the symbols of its pages, to learn from."""
        starts = self.pages.value.starts
        self.answers = Answers(*(torch.from_numpy(array.astype(np.int64)) for array in (names, heads, starts)))
        return self

    def with_names(self, names: tuple[str, ...]) -> ReadingPolicy:
        """The same, whose classes have these names."""
        self.names = names_to_bytes(names)
        return self

    @property
    def classes(self) -> tuple[str, ...]:
        """Their names."""
        return names_from_bytes(self.names)

    def encode_pages(self, pages: Tensor) -> tuple[Tensor, Tensor]:
        """(what the names of these pages' symbols are told by [B, N, R]; items as `read` gives them)."""
        features, lengths = (torch.from_numpy(array) for array in self.pages.value.get_features(pages.numpy()))
        embedded = self.dropout(self.embed(features))
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        assert self.encoder is not None
        states = nn.utils.rnn.pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0]
        states = self.dropout(states)
        items = torch.cat([states, features[:, :, -PLACE:]], dim=2)
        special = self.special.expand(len(pages), -1, -1)
        return torch.cat([embedded, states], dim=2), torch.cat([special, items], dim=1)

    def encode_trajectories(self, observations: Tensor, mask: Tensor) -> ReadingOutputs:
        """All that the heads need to know of these trajectories."""
        read, items = self.encode_pages(observations[:, 0, 0].long())
        numbers = observations[:, :, 1:][:, :, self.kind.view].long() + 1  # [K, T, view]; −1, none, comes first
        lanes = torch.arange(len(items))[:, None, None]
        seen = items[lanes, numbers.clamp_(0, items.shape[1] - 1)].flatten(2)
        lengths = mask.sum(dim=1).clamp(min=1)
        packed = nn.utils.rnn.pack_padded_sequence(seen, lengths, batch_first=True, enforce_sorted=False)
        assert self.decoder is not None
        state = self.decoder(packed)[0]
        whole = nn.utils.rnn.pad_packed_sequence(state, batch_first=True, total_length=mask.shape[1])[0]
        return ReadingOutputs(observations, read, whole)

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        found = self.encode_trajectories(observations, mask)
        if torch.is_grad_enabled():
            self._latest = found  # for `along`, which is asked next
        return self.head.distribution(self.readout(found.state), legal)

    # What it learns along.

    def auxiliary_loss(
        self, observations: Tensor, mask: Tensor, legal: Tensor | None, costs: Tensor | None = None
    ) -> Tensor | None:
        """The cross-entropy of the symbols' names, and the deviance of expected costs, summed."""
        found = self._latest
        self._latest = None
        if self.answers is None:
            return None
        if found is None or found.observations.data_ptr() != observations.data_ptr():
            found = self.encode_trajectories(observations, mask)
        named = self.name_weight * self.compute_naming_loss(observations, found.read)
        if costs is None:
            return named
        known = mask[:, :, None].expand_as(costs) if legal is None else legal & mask[:, :, None]
        return named + self.expected_cost_weight * self.costs.loss(
            found.state, costs, self.compute_wrong_arcs(observations), known
        )

    def compute_naming_loss(self, observations: Tensor, read: Tensor) -> Tensor:
        """The cross-entropy of the names of all symbols of the pages."""
        assert self.answers is not None
        pages = observations[:, 0, 0].long()
        inside = torch.arange(read.shape[1]) < self.lengths[pages][:, None]
        rows = (self.answers.starts[pages][:, None] + torch.arange(read.shape[1]))[inside]
        logits = self.name_logits(read[inside])
        return cross_entropy(logits, self.answers.names[rows], ignore_index=UNKNOWN, reduction="sum")

    def name_logits(self, read: Tensor) -> Tensor:
        """[..., CLASSES], of which those without a name are out of the question."""
        there = (self.names != 0).any(dim=1)
        logits: Tensor = self.naming_head(read)
        return logits.masked_fill(~there, UNSEEN)

    def compute_wrong_arcs(self, observations: Tensor) -> Tensor:
        """[K, T, A]: 1 where the arc that an action would make is wrong, 0 where it is right, NO_ARC without one."""
        assert self.answers is not None
        return compute_arc_error_targets(self.system, observations, self.answers.heads, self.answers.starts)

    # What it says.

    @torch.no_grad()
    def predict_names(self, pages: Array) -> tuple[Array, Array]:
        """(the class of every symbol of these pages, one after the other [Σn]; how likely it is [Σn])."""
        return self._predict_names(self.encode_pages(torch.from_numpy(pages))[0], pages)

    def _predict_names(self, read: Tensor, pages: Array) -> tuple[Array, Array]:
        inside = torch.arange(read.shape[1]) < self.lengths[pages][:, None]
        likely, number = self.name_logits(read[inside]).mul(self.sureness).softmax(-1).max(-1)
        return number.numpy(), likely.numpy()

    @torch.no_grad()
    def predict_all(
        self, observations: Array, mask: Array, actions: Array
    ) -> tuple[ExpectedCostEstimates, Array, Array]:
        """What it expects of these actions [K, T], and what `predict_names` says of the pages, by one look at them."""
        found = self.encode_trajectories(torch.from_numpy(observations), torch.from_numpy(mask))
        named = self._predict_names(found.read, observations[:, 0, 0].astype(np.int64))
        return self.costs.estimate_costs(found.state, torch.from_numpy(actions)), *named

    @torch.no_grad()
    def calibrate_names(self, pages: Array) -> None:
        """Make it as sure of names as it is right on these pages, to which it has the answers."""
        assert self.answers is not None
        read, _ = self.encode_pages(torch.from_numpy(pages))
        inside = torch.arange(read.shape[1]) < self.lengths[pages][:, None]
        rows = (self.answers.starts[pages][:, None] + torch.arange(read.shape[1]))[inside]
        logits = self.name_logits(read[inside])
        names = self.answers.names[rows]
        tried = [cross_entropy(logits * by, names, ignore_index=UNKNOWN).item() for by in SURENESS]
        self.sureness = torch.tensor(SURENESS[int(np.argmin(tried))])

    @torch.no_grad()
    def estimate_costs(self, observations: Array, mask: Array, actions: Array) -> ExpectedCostEstimates:
        """What it expects of these actions [K, T]."""
        found = self.encode_trajectories(torch.from_numpy(observations), torch.from_numpy(mask))
        return self.costs.estimate_costs(found.state, torch.from_numpy(actions))

    def reader(self) -> ReaderActor:
        """`encode_pages`, on NumPy."""
        assert self.encoder is not None and isinstance(self.embed, nn.Sequential)
        cells = [CELLS["lstm"].copy_of(self.encoder, which) for which in range(2 * self.layers)]
        special = self.special.detach().numpy().copy()
        start = 2 * self.kind.hidden
        embed = NumpyNetwork.copy_of(self.embed)
        return ReaderActor(special, embed, tuple(cells[:2]), True, start, upper=tuple(cells[2:]), beside=PLACE)


@dataclass(frozen=True)
class ReadingSettings(HiddenSettings):
    """Reads, names the symbols, and knows how much it expects to get wrong."""

    name = "reading"
    supports_mixture = False  # each would read the pages for itself
    dropout: float = setting(0.0, "The share of what it reads of a symbol that is left out while it learns.", BELOW_1)
    embedding_dim: int = setting(128, "How many numbers stand for a symbol's picture and place.", at_least(1))
    layers: int = setting(1, "Layers of the encoder, 1 or 2.", between(1, 2))
    name_weight: float = setting(1.0, "The weight of the symbols' names in what is learned.", NON_NEGATIVE)
    expected_cost_weight: float = setting(0.25, "The weight of expected costs in what is learned.", NON_NEGATIVE)

    def check(self, chosen: SelectedComponents) -> None:
        check_recurrent_width(self.hidden, self.name)
        check_setting(self.hidden[0] % 2 == 0, "hidden", self.hidden, "even: half of it reads forwards, half backwards")

    def build(self, observations: Space[Any], head: Head, seed: int) -> ReadingPolicy:
        """Without pages, and with a projection to be fitted."""
        system = next(one for one in SYSTEMS.values() if len(one.actions) == head.outputs)  # they differ in that
        return ReadingPolicy(
            make_blank_projection(), system, hidden=self.hidden[0], embedding=self.embedding_dim, layers=self.layers,
            dropout=self.dropout, name_weight=self.name_weight, expected_cost_weight=self.expected_cost_weight,
            seed=derive_initial_seed(seed),
        )  # fmt: skip


def fit_projection(pages: Sequence[Page]) -> Projection:
    """Fitted to the detailed features of these pages; of every so many, where there are very many."""
    step = max(1, sum(map(len, pages)) // FITTED)
    return Projection.fit(extract_detailed_features(pages[::step]), DETAILED_PIXELS, COMPONENTS)


def make_blank_projection() -> Projection:
    """One to load fitted numbers into."""
    return Projection(np.zeros(DETAILED), np.zeros((DETAILED, COMPONENTS + LAYOUT)))
