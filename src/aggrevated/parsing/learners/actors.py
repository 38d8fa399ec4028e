"""NumPy actors of the policies that read pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from aggrevated.actors.feed_forward import NumpyNetwork
from aggrevated.actors.recurrent import NumpyCell
from aggrevated.actors.samplers import Sampler
from aggrevated.core.arrays import Array
from aggrevated.engines.serialization import CachedObject


@dataclass(frozen=True)
class Pages:
    """Features of the pages that a policy can read.

    Attributes:
        features: float32 [P, N, D], zeros beyond a page, or [Σn, D], concatenated over the pages.
        lengths: number of symbols of each page, int [P].
    """

    features: Array
    lengths: Array

    def get_features(self, pages: Array) -> tuple[Array, Array]:
        """Return features [B, n, D] and lengths [B] of pages [B]; n is the length of the longest of them."""
        lengths = self.lengths[pages]
        most = int(lengths.max())
        if self.features.ndim == 3:
            return self.features[pages, :most], lengths
        rows = (self.starts[pages][:, None] + np.arange(most)).clip(max=len(self.features) - 1)
        inside = np.arange(most) < lengths[:, None]
        return self.features[rows] * inside[:, :, None], lengths

    @cached_property
    def starts(self) -> Array:
        """Return the row of the first symbol of each page in concatenated features, int [P]."""
        first: Array = np.cumsum(self.lengths) - self.lengths
        return first


@dataclass(frozen=True)
class ReaderActor:
    """NumPy copy of `ParsingPolicy.read`, whose bits for a page do not depend on the other pages of a batch.

    Attributes:
        special: vectors of "none" and ROOT, [2, D].
        embed: embedding of the features of a symbol; None: the features are used as they are.
        cells: cells of the encoder: none, one from the left, or one from the left and one from the right.
        keeps_states: whether the encoder's states represent the symbols; otherwise they start the decoder.
        start: M, the size of the decoder's first state.
        upper: cells of a second encoder layer.
        appended: number of a symbol's last features that are appended to its encoder state.
    """

    special: Array
    embed: NumpyNetwork | None
    cells: tuple[NumpyCell, ...]
    keeps_states: bool
    start: int
    upper: tuple[NumpyCell, ...] = ()
    appended: int = 0

    def read(self, features: Array, lengths: Array) -> tuple[Array, Array]:
        """Encode pages.

        Args:
            features: features of the symbols, zeros beyond a page, float32 [B, N, F].
            lengths: number of symbols of each page, int [B].

        Returns:
            The items "none", ROOT and the symbols of each page [B, 2 + N, D], and the decoder's first state
            [B, M].
        """
        count, most = features.shape[:2]
        items = features
        start = np.zeros((count, self.start), np.float32)
        if self.embed is not None:
            rows = self.embed(features.reshape(count * most, -1))
            items = np.maximum(rows, np.float32(0.0)).reshape(count, most, -1)
        for cells in filter(None, (self.cells, self.upper)):
            runs = [
                self._run_cell(cell, items, lengths, backward)
                for cell, backward in zip(cells, (False, True), strict=False)
            ]
            if self.keeps_states:
                items = np.concatenate([states for states, _ in runs], axis=2)
            else:
                start = runs[0][1]
        if self.appended:
            items = np.concatenate([items, features[:, :, -self.appended :]], axis=2)
        return np.concatenate([np.broadcast_to(self.special, (count, *self.special.shape)), items], axis=1), start

    @staticmethod
    def _run_cell(cell: NumpyCell, items: Array, lengths: Array, backward: bool) -> tuple[Array, Array]:
        """Return h at each symbol [B, N, hidden], zeros beyond a page, and the last memory [B, M]."""
        memory = np.zeros((len(items), cell.size), np.float32)
        hidden = np.zeros((*items.shape[:2], cell.size // 2), np.float32)
        for t in range(items.shape[1]):
            active = np.flatnonzero(lengths > t)
            position = lengths[active] - 1 - t if backward else np.full(len(active), t)
            hidden[active, position], memory[active] = cell.step(items[active, position], memory[active])
        return hidden, memory


class ParsingActor:
    """NumPy copy of a `ParsingPolicy` that steps through episodes and encodes each page at its first use."""

    def __init__(
        self,
        pages: CachedObject[Pages],
        reader: ReaderActor,
        view: tuple[int, ...],
        cell: NumpyCell | None,
        network: NumpyNetwork,
        sampler: Sampler,
    ) -> None:
        self.pages = pages
        self.reader = reader
        self.view = view
        self.cell = cell
        self.network = network
        self.sampler = sampler
        lengths = pages.value.lengths
        self.item_index = np.full(len(lengths), -1)  # index of each page in `items`; −1: not yet encoded
        self.items = np.zeros((0, int(lengths.max(initial=0)) + 2, reader.special.shape[1]), np.float32)
        self.starts = np.zeros((0, reader.start), np.float32)

    def memory(self, count: int) -> Array:
        """Return zeros [count, 1 + M]: a flag that the decoder has started, and the decoder's state."""
        return np.zeros((count, 1 + (self.cell.size if self.cell is not None else 0)), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Return the random numbers with which `choose` samples actions."""
        return self.sampler.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """Return the logits of the actions and the next memory."""
        pages = observation[:, 0].astype(np.int64)
        self._read(np.unique(pages[self.item_index[pages] < 0]))
        item_index = self.item_index[pages]
        numbers = observation[:, 1:][:, self.view].astype(np.int64) + 1
        read = self.items[item_index[:, None], numbers].reshape(len(pages), -1)
        if self.cell is None:
            return self.network(read), memory
        state = np.where(memory[:, :1] > 0, memory[:, 1:], self.starts[item_index])
        hidden, state = self.cell.step(read, state)
        return self.network(hidden), np.concatenate([np.ones((len(pages), 1), np.float32), state], axis=1)

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        """Return actions sampled with this noise."""
        return self.sampler.choose(parameters, noise, legal)

    def _read(self, pages: Array) -> None:
        """Encode these pages and add them to `items` and `starts`."""
        if not len(pages):
            return
        items, starts = self.reader.read(*self.pages.value.get_features(pages))
        padded = np.zeros((len(pages), *self.items.shape[1:]), np.float32)
        padded[:, : items.shape[1]] = items
        self.item_index[pages] = len(self.items) + np.arange(len(pages))
        self.items = np.concatenate([self.items, padded])
        self.starts = np.concatenate([self.starts, starts])
