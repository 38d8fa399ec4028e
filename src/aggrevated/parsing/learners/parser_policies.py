"""Policies that read pages: the paper's LSTM encoder–decoder and reactive network, and a contextual network.

Each policy looks up the features of the symbols in an observation by page and number. ROOT and "none" have
learned vectors.
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

EVERY = tuple(range(3 * CONTEXT_SIZE))  # all symbols of an observation: three each of stack, buffer and arcs
FIRST = tuple(range(0, 3 * CONTEXT_SIZE, CONTEXT_SIZE))  # the first symbol each of stack, buffer and arcs


@dataclass(frozen=True)
class Kind:
    """Architecture of a parsing policy.

    Attributes:
        reads: "alone": the features of a symbol are used alone; "summary": a summary of the page also
            starts the decoder; "context": the state of a bidirectional encoder represents a symbol.
        view: indices of the symbols of an observation that the policy reads.
        remembers: whether the decoder is recurrent; otherwise it is a network with one hidden layer.
        hidden: default number of hidden units.
    """

    reads: str
    view: tuple[int, ...]
    remembers: bool
    hidden: int


KINDS = {
    "reactive": Kind("alone", EVERY, remembers=False, hidden=1000),  # the paper's NN
    "lstm": Kind("summary", FIRST, remembers=True, hidden=128),  # the paper's LSTMs
    "contextual": Kind("context", EVERY, remembers=True, hidden=128),
}


class ParsingPolicy(Policy):
    """Policy π(·|o₁ … o_t, τ) of a parser, where τ is the page.

    Args:
        projection: projection of raw features, saved with the policy but not used by it.
        actions: number of actions.
        kind: name of the architecture in `KINDS`.
        hidden: number of hidden units; None: the default of the architecture.
        embedding: size of a symbol's embedding.
        dropout: share of the items of symbols that is dropped during learning, from 0 to below 1.
        seed: seed of the initial weights.
    """

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
        """Create a policy without pages."""
        super().__init__()
        self.kind = KINDS[kind] if hidden is None else replace(KINDS[kind], hidden=hidden)
        self.projection = projection
        self.register_buffer("features", torch.zeros(0, 0, projection.width), persistent=False)
        self.register_buffer("lengths", torch.zeros(0, dtype=torch.int64), persistent=False)
        self.pages = CachedObject(Pages(self.features.numpy(), self.lengths.numpy()))  # pages for actors
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._build(projection.width, actions, embedding)
        self.head = CategoricalHead(actions)
        self.dropout = nn.Dropout(dropout)
        self.eval()

    def _build(self, size: int, actions: int, embedding: int) -> None:
        kind = self.kind
        hidden = self.kind.hidden
        is_plain = kind.reads == "alone"
        self.embed = nn.Identity() if is_plain else nn.Sequential(nn.Linear(size, embedding), nn.ReLU())
        item = size if is_plain else embedding
        self.encoder: nn.LSTM | None = None
        if not is_plain:
            is_bidirectional = kind.reads == "context"
            self.encoder = nn.LSTM(
                embedding, hidden // 2 if is_bidirectional else hidden, batch_first=True, bidirectional=is_bidirectional
            )
            item = hidden if is_bidirectional else embedding
        self.special = nn.Parameter(0.1 * torch.randn(2, item))  # none, ROOT
        width = item * len(kind.view)
        self.decoder = nn.LSTM(width, hidden, batch_first=True) if kind.remembers else None
        self.between = nn.Identity() if kind.remembers else nn.Sequential(nn.Linear(width, hidden), nn.ReLU())
        self.readout = nn.Linear(hidden, actions)
        with torch.no_grad():
            self.readout.weight *= 0.1
            self.readout.bias.zero_()

    def with_pages(self, features: Array, lengths: Array) -> ParsingPolicy:
        """Set the pages that the policy reads, which are not part of its weights.

        Args:
            features: projected features, zeros beyond a page, float32 [P, N, D].
            lengths: number of symbols of each page, int [P].

        Returns:
            This policy.
        """
        self.features = torch.from_numpy(features).float()
        self.lengths = torch.from_numpy(lengths)
        self.pages = CachedObject(Pages(self.features.numpy(), lengths))
        return self

    def read(self, pages: Tensor) -> tuple[Tensor, Tensor]:
        """Encode pages.

        Args:
            pages: indices of the pages, int64 [B].

        Returns:
            The items "none", ROOT and the symbols of each page [B, 2 + N, D], and the decoder's first state
            [B, M].
        """
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
        """Return the distributions of the actions at observations [K, T, 10], where `mask` [K, T] is true."""
        items, start = self.read(observations[:, 0, 0].long())
        numbers = observations[:, :, 1:][:, :, self.kind.view].long() + 1  # [K, T, view]; −1 is item 0, "none"
        k = torch.arange(len(items))[:, None, None]
        read = items[k, numbers.clamp_(0, items.shape[1] - 1)].flatten(2)
        if self.decoder is None:  # steps are independent: skip the padding
            logits = read.new_zeros(*mask.shape, self.head.outputs)
            logits[mask] = self.readout(self.between(read[mask]))
        else:
            h, c = (part.contiguous() for part in start[None].chunk(2, dim=2))
            logits = self.readout(self.decoder(read, (h, c))[0])
        return self.head.distribution(logits, legal)

    def compute_scores(
        self, observations: Tensor, actions: Tensor, mask: Tensor, own: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """Return the scores [K, d], by one pass forward and back for each trajectory without its padding."""
        return compute_scores_per_trajectory(self, observations, actions, mask, own, legal)

    def actor(self) -> ParsingActor:
        """Return a NumPy copy that acts."""
        cell = CELLS["lstm"].copy_of(self.decoder) if self.decoder is not None else None
        layers = [] if cell is not None else list(self.between.children())
        network = NumpyNetwork.copy_of(nn.Sequential(*layers, self.readout))
        return ParsingActor(self.pages, self.reader(), self.kind.view, cell, network, self.head.sampler())

    def reader(self) -> ReaderActor:
        """Return a NumPy copy of `read`."""
        encoder = self.encoder
        directions = [] if encoder is None else [False, True] if encoder.bidirectional else [False]
        cells = tuple(CELLS["lstm"].copy_of(encoder, backward) for backward in directions if encoder is not None)
        embed = NumpyNetwork.copy_of(self.embed) if isinstance(self.embed, nn.Sequential) else None
        start = 2 * self.kind.hidden if self.kind.remembers else 0
        return ReaderActor(self.special.detach().numpy().copy(), embed, cells, self.kind.reads == "context", start)


@dataclass(frozen=True)
class ReaderSettings(HiddenSettings):
    """Settings of a policy that reads pages; its name selects the architecture in `KINDS`."""

    supports_mixture = False  # each policy of a mixture would encode the pages again
    dropout: float = setting(0.0, "Share of a symbol's features that is dropped at random during learning.", BELOW_1)
    use_geometry: bool = setting(False, "Add the position of each symbol on the page to the policy's features.")

    def check(self, chosen: SelectedComponents) -> None:
        """Raise a `UsageError` unless there is one hidden width."""
        check_recurrent_width(self.hidden, self.name)

    def build(self, observations: Space[Any], head: Head, seed: int) -> ParsingPolicy:
        """Return a policy without pages, with a projection of zeros that `prepare` replaces."""
        projection = Projection.blank(self.use_geometry)
        initial_seed = derive_initial_seed(seed)
        return ParsingPolicy(
            projection, head.outputs, self.name, hidden=self.hidden[0], dropout=self.dropout, seed=initial_seed
        )


@dataclass(frozen=True)
class ContextualSettings(ReaderSettings):
    """Network with a bidirectional encoder, whose states represent the symbols."""

    name = "contextual"

    def check(self, chosen: SelectedComponents) -> None:
        """Raise a `UsageError` unless there is one even hidden width."""
        super().check(chosen)
        check_setting(self.hidden[0] % 2 == 0, "hidden", self.hidden, "even: half of it reads forward, half backward")


@dataclass(frozen=True)
class PaperLstmSettings(ReaderSettings):
    """The paper's LSTM networks: an encoder of the page and a decoder."""

    name = "lstm"


@dataclass(frozen=True)
class ReactiveSettings(ReaderSettings):
    """The paper's feed-forward network, without memory."""

    name = "reactive"
