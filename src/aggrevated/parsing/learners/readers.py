"""Policies that read a page: the paper's LSTM encoder–decoder and reactive network, and a contextual one beyond it.

All look up, by page and number, the features of the symbols that the parser points at. ROOT and "none" have vectors of
their own, which are learned.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Space
from numpy.random import Generator
from torch import Tensor, nn
from torch.distributions import Distribution

from aggrevated.actors.cells import NumpyCell
from aggrevated.actors.networks import NumpyNetwork
from aggrevated.arrays import Array
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.parser import LATEST
from aggrevated.policies import HiddenSettings, Policy, initial_seed
from aggrevated.policies.cells import CELLS
from aggrevated.policies.heads import CategoricalHead, Head
from aggrevated.settings import BELOW_1, Chosen, require, setting

EVERY = tuple(range(3 * LATEST))  # of the numbers in an observation: three each of stack, buffer and arcs
FIRST = tuple(range(0, 3 * LATEST, LATEST))  # the latest of each


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
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._build(projection.width, actions, embedding)
        self.head = CategoricalHead(actions)
        self.dropout = nn.Dropout(dropout)
        self.eval()

    def _build(self, size: int, actions: int, embedding: int) -> None:
        kind, hidden = self.kind, self.kind.hidden
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
        self.features, self.lengths = torch.from_numpy(features).float(), torch.from_numpy(lengths)
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

    def scores(
        self, observations: Tensor, actions: Tensor, mask: Tensor, own: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """[K, d], by a pass forward and back for each trajectory, no longer than it is."""
        parameters = list(self.parameters())
        scores = torch.zeros(len(mask), sum(parameter.numel() for parameter in parameters))
        for k, length in enumerate(mask.sum(dim=1).tolist()):
            own_steps = (slice(k, k + 1), slice(length))
            restricted = None if legal is None else legal[own_steps]
            distribution = self.distribution(observations[own_steps], mask[own_steps], restricted)
            total = (distribution.log_prob(actions[own_steps]) * own[own_steps]).sum()
            gradients = torch.autograd.grad(total, parameters, materialize_grads=True)
            torch.cat([gradient.flatten() for gradient in gradients], out=scores[k])
        return scores

    def actor(self) -> ParsingActor:
        shared = {id(table): table for table in (self.features, self.lengths)}  # the weights are copied, the pages not
        return ParsingActor(copy.deepcopy(self, shared).eval())


@dataclass(frozen=True)
class NumpyReader:
    """`ParsingPolicy.read` on NumPy, where a page is read alone and in company with the same bits."""

    special: Array  # [2, D]
    embed: NumpyNetwork | None
    cells: tuple[NumpyCell, ...]  # of the encoder: none, one from the left, or also one from the right
    keeps_states: bool  # whether these stand for the symbols, rather than start the decoder
    start: int  # M: how many numbers the decoder starts from

    @classmethod
    def copy_of(cls, policy: ParsingPolicy) -> NumpyReader:
        encoder, start = policy.encoder, 2 * policy.kind.hidden if policy.kind.remembers else 0
        ways = [] if encoder is None else [False, True] if encoder.bidirectional else [False]
        cells = tuple(CELLS["lstm"].copy_of(encoder, backward) for backward in ways if encoder is not None)
        embed = NumpyNetwork.copy_of(policy.embed) if isinstance(policy.embed, nn.Sequential) else None
        return cls(policy.special.detach().numpy().copy(), embed, cells, policy.kind.reads == "context", start)

    def read(self, features: Array, lengths: Array) -> tuple[Array, Array]:
        """(items [B, 2 + N, D], the decoder's first state [B, M]) of pages of features [B, N, F]."""
        count, most = features.shape[:2]
        items, start = features, np.zeros((count, self.start), np.float32)
        if self.embed is not None:
            rows = self.embed(features.reshape(count * most, -1))
            items = np.maximum(rows, np.float32(0.0)).reshape(count, most, -1)
        found = [self._through(cell, items, lengths, way) for cell, way in zip(self.cells, (False, True), strict=False)]
        if found and self.keeps_states:
            items = np.concatenate([states for states, _ in found], axis=2)
        elif found:
            start = found[0][1]
        return np.concatenate([np.broadcast_to(self.special, (count, *self.special.shape)), items], axis=1), start

    @staticmethod
    def _through(cell: NumpyCell, items: Array, lengths: Array, backward: bool) -> tuple[Array, Array]:
        """(h at each symbol [B, N, hidden], the last memory [B, M]); zeros after the end of a page."""
        memory = np.zeros((len(items), cell.size), np.float32)
        hidden = np.zeros((*items.shape[:2], cell.size // 2), np.float32)
        for t in range(items.shape[1]):
            lanes = np.flatnonzero(lengths > t)
            at = lengths[lanes] - 1 - t if backward else np.full(len(lanes), t)
            hidden[lanes, at], memory[lanes] = cell.step(items[lanes, at], memory[lanes])
        return hidden, memory


class ParsingActor:
    """The policy as it was, one step at a time on NumPy; a page is read when it is first met."""

    def __init__(self, policy: ParsingPolicy) -> None:
        self.policy, self.sampler, self.hidden = policy, policy.head.sampler(), policy.kind.hidden
        self.cell: NumpyCell | None = CELLS["lstm"].copy_of(policy.decoder) if policy.decoder is not None else None
        layers = [] if self.cell is not None else list(policy.between.children())
        self.network = NumpyNetwork.copy_of(nn.Sequential(*layers, policy.readout))
        self.reader = NumpyReader.copy_of(policy)
        self.place = np.full(len(policy.features), -1)  # of each page among those that were read
        self.items = np.zeros((0, int(policy.lengths.max()) + 2, policy.special.shape[1]), np.float32)
        self.starts = np.zeros((0, self.memory(1).shape[1] - 1), np.float32)

    def memory(self, count: int) -> Array:
        """[count, 1 + M]: whether the page has been read by the decoder, and the decoder's state."""
        return np.zeros((count, 1 + (2 * self.hidden if self.cell is not None else 0)), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.sampler.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        pages = observation[:, 0].astype(np.int64)
        self._read(np.unique(pages[self.place[pages] < 0]))
        place = self.place[pages]
        numbers = observation[:, 1:][:, self.policy.kind.view].astype(np.int64) + 1
        seen = self.items[place[:, None], numbers].reshape(len(pages), -1)
        if self.cell is None:
            return self.network(seen), memory
        state = np.where(memory[:, :1] > 0, memory[:, 1:], self.starts[place])
        hidden, state = self.cell.step(seen, state)
        return self.network(hidden), np.concatenate([np.ones((len(pages), 1), np.float32), state], axis=1)

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.sampler.choose(parameters, noise, legal)

    def _read(self, pages: Array) -> None:
        """Add these pages to those that were read."""
        if not len(pages):
            return
        lengths = self.policy.lengths[pages].numpy()
        items, starts = self.reader.read(self.policy.features[pages, : lengths.max()].numpy(), lengths)
        room = np.zeros((len(pages), *self.items.shape[1:]), np.float32)
        room[:, : items.shape[1]] = items
        self.place[pages] = len(self.items) + np.arange(len(pages))
        self.items, self.starts = np.concatenate([self.items, room]), np.concatenate([self.starts, starts])


@dataclass(frozen=True)
class ReaderSettings(HiddenSettings):
    """A kind of reader, by the name of its row."""

    mixes = False  # each would read the pages for itself
    dropout: float = setting(0.0, "The share of what it reads of a symbol that is left out while it learns.", BELOW_1)
    geometry: bool = setting(False, "Tell the policy where a symbol stands.")

    def check(self, chosen: Chosen) -> None:
        require(len(self.hidden) == 1, "hidden", self.hidden, f"one width for the policy {self.name}")

    def build(self, observations: Space[Any], head: Head, seed: int) -> ParsingPolicy:
        """Without pages, and with a projection to be fitted."""
        projection, own = Projection.blank(self.geometry), initial_seed(seed)
        return ParsingPolicy(projection, head.outputs, self.name, hidden=self.hidden[0], dropout=self.dropout, seed=own)


@dataclass(frozen=True)
class ContextualSettings(ReaderSettings):
    """A symbol is what a bidirectional encoder makes of it."""

    name = "contextual"

    def check(self, chosen: Chosen) -> None:
        super().check(chosen)
        require(self.hidden[0] % 2 == 0, "hidden", self.hidden, "even: half of it reads forwards, half backwards")


@dataclass(frozen=True)
class PaperLstmSettings(ReaderSettings):
    """The paper's LSTMs: an encoder of the page, and a decoder."""

    name = "lstm"


@dataclass(frozen=True)
class ReactiveSettings(ReaderSettings):
    """The paper's NN, which remembers nothing."""

    name = "reactive"
