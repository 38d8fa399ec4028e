"""Policies that read a page: the paper's LSTM encoder–decoder and reactive network, and a contextual one beyond it.

All look up, by page and number, the features of the symbols that the parser points at. ROOT and "none" have vectors of
their own, which are learned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from gymnasium.spaces import Space
from torch import Tensor, nn
from torch.distributions import Distribution

from aggrevated.actors.feed_forward import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.core.settings import BELOW_1, SelectedComponents, check_recurrent_width, check_setting, setting
from aggrevated.engines.serialization import CachedObject
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.learners.actors import Pages, ParsingActor, ReaderActor
from aggrevated.parsing.parser import CONTEXT_SIZE
from aggrevated.policies import HiddenSettings, Policy, compute_scores_per_trajectory, derive_initial_seed
from aggrevated.policies.heads import CategoricalHead, Head
from aggrevated.policies.recurrent_cells import CELLS

EVERY = tuple(range(3 * CONTEXT_SIZE))  # of the numbers in an observation: three each of stack, buffer and arcs
FIRST = tuple(range(0, 3 * CONTEXT_SIZE, CONTEXT_SIZE))  # the latest of each


@dataclass(frozen=True)
class Kind:
    """A row of the table below."""

    reads: str  # "alone": a symbol is its own features; "summary": and the page's summary starts the decoder;
    # "context": a symbol is what a bidirectional encoder makes of it
    view: tuple[int, ...]  # which numbers of an observation it looks at
    remembers: bool  # a recurrent decoder, or a network of one hidden layer
    hidden: int


KINDS = {
    "reactive": Kind("alone", EVERY, remembers=False, hidden=1000),  # the paper's NN
    "lstm": Kind("summary", FIRST, remembers=True, hidden=128),  # the paper's LSTMs
    "contextual": Kind("context", EVERY, remembers=True, hidden=128),
}


class ParsingPolicy(Policy):
    """π(·|o₁ … o_t, τ), where τ is the page."""

    features: Tensor
    lengths: Tensor

    def __init__(
        self,
        projection: Projection,
        actions: int,
        kind: str = "lstm",
        *,
        hidden: int | None = None,
        embedding: int = 96,
        dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        """Without pages yet. `projection` makes features of raw ones: the policy does not use it, but is saved with it.

        `dropout` is of what is read of each symbol, while learning.
        """
        super().__init__()
        self.kind = KINDS[kind] if hidden is None else replace(KINDS[kind], hidden=hidden)
        self.projection = projection
        self.register_buffer("features", torch.zeros(0, 0, projection.width), persistent=False)
        self.register_buffer("lengths", torch.zeros(0, dtype=torch.int64), persistent=False)
        self.pages = CachedObject(Pages(self.features.numpy(), self.lengths.numpy()))  # the same, for actors
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._build(projection.width, actions, embedding)
        self.head = CategoricalHead(actions)
        self.dropout = nn.Dropout(dropout)
        self.eval()

    def _build(self, size: int, actions: int, embedding: int) -> None:
        kind = self.kind
        hidden = self.kind.hidden
        plain = kind.reads == "alone"
        self.embed = nn.Identity() if plain else nn.Sequential(nn.Linear(size, embedding), nn.ReLU())
        item = size if plain else embedding
        self.encoder: nn.LSTM | None = None
        if not plain:
            both = kind.reads == "context"
            self.encoder = nn.LSTM(embedding, hidden // 2 if both else hidden, batch_first=True, bidirectional=both)
            item = hidden if both else embedding
        self.special = nn.Parameter(0.1 * torch.randn(2, item))  # none, ROOT
        seen = item * len(kind.view)
        self.decoder = nn.LSTM(seen, hidden, batch_first=True) if kind.remembers else None
        self.between = nn.Identity() if kind.remembers else nn.Sequential(nn.Linear(seen, hidden), nn.ReLU())
        self.readout = nn.Linear(hidden, actions)
        with torch.no_grad():
            self.readout.weight *= 0.1
            self.readout.bias.zero_()

    def with_pages(self, features: Array, lengths: Array) -> ParsingPolicy:
        """The same policy, which now reads pages of these features [P, N, D] and lengths [P]; they are no weights."""
        self.features = torch.from_numpy(features).float()
        self.lengths = torch.from_numpy(lengths)
        self.pages = CachedObject(Pages(self.features.numpy(), lengths))
        return self

    def read(self, pages: Tensor) -> tuple[Tensor, Tensor]:
        """(the items of each page [B, 2 + N, D]: none, ROOT, and its symbols; the decoder's first state [B, M])."""
        lengths = self.lengths[pages]
        most = int(lengths.max())
        items = self.embed(self.features[pages, :most])
        start = items.new_zeros(len(pages), 2 * self.kind.hidden if self.kind.remembers else 0)
        if self.encoder is not None:
            packed = nn.utils.rnn.pack_padded_sequence(items, lengths, batch_first=True, enforce_sorted=False)
            states, (h, c) = self.encoder(packed)
            if self.kind.reads == "context":
                items = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=most)[0]
            else:
                start = torch.cat([h[0], c[0]], dim=1)
        return self.dropout(torch.cat([self.special.expand(len(pages), -1, -1), items], dim=1)), start

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        items, start = self.read(observations[:, 0, 0].long())
        numbers = observations[:, :, 1:][:, :, self.kind.view].long() + 1  # [K, T, view]; −1, none, comes first
        lanes = torch.arange(len(items))[:, None, None]
        seen = items[lanes, numbers.clamp_(0, items.shape[1] - 1)].flatten(2)
        if self.decoder is None:  # each step by itself: the padding is left out
            logits = seen.new_zeros(*mask.shape, self.head.outputs)
            logits[mask] = self.readout(self.between(seen[mask]))
        else:
            h, c = (part.contiguous() for part in start[None].chunk(2, dim=2))
            logits = self.readout(self.decoder(seen, (h, c))[0])
        return self.head.distribution(logits, legal)

    def compute_scores(
        self, observations: Tensor, actions: Tensor, mask: Tensor, own: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """[K, d], by a pass forward and back for each trajectory, no longer than it is."""
        return compute_scores_per_trajectory(self, observations, actions, mask, own, legal)

    def actor(self) -> ParsingActor:
        cell = CELLS["lstm"].copy_of(self.decoder) if self.decoder is not None else None
        layers = [] if cell is not None else list(self.between.children())
        network = NumpyNetwork.copy_of(nn.Sequential(*layers, self.readout))
        return ParsingActor(self.pages, self.reader(), self.kind.view, cell, network, self.head.sampler())

    def reader(self) -> ReaderActor:
        """`read`, on NumPy."""
        encoder = self.encoder
        ways = [] if encoder is None else [False, True] if encoder.bidirectional else [False]
        cells = tuple(CELLS["lstm"].copy_of(encoder, backward) for backward in ways if encoder is not None)
        embed = NumpyNetwork.copy_of(self.embed) if isinstance(self.embed, nn.Sequential) else None
        start = 2 * self.kind.hidden if self.kind.remembers else 0
        return ReaderActor(self.special.detach().numpy().copy(), embed, cells, self.kind.reads == "context", start)


@dataclass(frozen=True)
class ReaderSettings(HiddenSettings):
    """A kind of reader, by the name of its row."""

    supports_mixture = False  # each would read the pages for itself
    dropout: float = setting(0.0, "The share of what it reads of a symbol that is left out while it learns.", BELOW_1)
    use_geometry: bool = setting(False, "Tell the policy where a symbol stands.")

    def check(self, chosen: SelectedComponents) -> None:
        check_recurrent_width(self.hidden, self.name)

    def build(self, observations: Space[Any], head: Head, seed: int) -> ParsingPolicy:
        """Without pages, and with a projection to be fitted."""
        projection = Projection.blank(self.use_geometry)
        own = derive_initial_seed(seed)
        return ParsingPolicy(projection, head.outputs, self.name, hidden=self.hidden[0], dropout=self.dropout, seed=own)


@dataclass(frozen=True)
class ContextualSettings(ReaderSettings):
    """A symbol is what a bidirectional encoder makes of it."""

    name = "contextual"

    def check(self, chosen: SelectedComponents) -> None:
        super().check(chosen)
        check_setting(self.hidden[0] % 2 == 0, "hidden", self.hidden, "even: half of it reads forwards, half backwards")


@dataclass(frozen=True)
class PaperLstmSettings(ReaderSettings):
    """The paper's LSTMs: an encoder of the page, and a decoder."""

    name = "lstm"


@dataclass(frozen=True)
class ReactiveSettings(ReaderSettings):
    """The paper's NN, which remembers nothing."""

    name = "reactive"
