"""Policies that read a page, one step at a time on NumPy."""

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
    """What can be read."""

    features: Array  # float32 [P, N, D], zeros beyond a page, or [Σn, D], one page after the other
    lengths: Array  # int [P]

    def get_features(self, pages: Array) -> tuple[Array, Array]:
        """(features [B, n, D], n the most symbols of these pages [B]; their lengths [B])."""
        lengths = self.lengths[pages]
        most = int(lengths.max())
        if self.features.ndim == 3:
            return self.features[pages, :most], lengths
        rows = (self.starts[pages][:, None] + np.arange(most)).clip(max=len(self.features) - 1)
        inside = np.arange(most) < lengths[:, None]
        return self.features[rows] * inside[:, :, None], lengths

    @cached_property
    def starts(self) -> Array:
        """[P]: the row of the first symbol of each page, where they stand one after the other."""
        first: Array = np.cumsum(self.lengths) - self.lengths
        return first


@dataclass(frozen=True)
class ReaderActor:
    """`ParsingPolicy.read` on NumPy, where a page is read alone and in company with the same bits."""

    special: Array  # [2, D]
    embed: NumpyNetwork | None
    cells: tuple[NumpyCell, ...]  # of the encoder: none, one from the left, or also one from the right
    keeps_states: bool  # whether these stand for the symbols, rather than start the decoder
    start: int  # M: how many numbers the decoder starts from
    upper: tuple[NumpyCell, ...] = ()  # the same of a second layer
    beside: int = 0  # how many of a symbol's last features stand beside what was read of it

    def read(self, features: Array, lengths: Array) -> tuple[Array, Array]:
        """(items [B, 2 + N, D], the decoder's first state [B, M]) of pages of features [B, N, F]."""
        count, most = features.shape[:2]
        items = features
        start = np.zeros((count, self.start), np.float32)
        if self.embed is not None:
            rows = self.embed(features.reshape(count * most, -1))
            items = np.maximum(rows, np.float32(0.0)).reshape(count, most, -1)
        for cells in filter(None, (self.cells, self.upper)):
            found = [self._run_cell(cell, items, lengths, way) for cell, way in zip(cells, (False, True), strict=False)]
            if self.keeps_states:
                items = np.concatenate([states for states, _ in found], axis=2)
            else:
                start = found[0][1]
        if self.beside:
            items = np.concatenate([items, features[:, :, -self.beside :]], axis=2)
        return np.concatenate([np.broadcast_to(self.special, (count, *self.special.shape)), items], axis=1), start

    @staticmethod
    def _run_cell(cell: NumpyCell, items: Array, lengths: Array, backward: bool) -> tuple[Array, Array]:
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
        self.place = np.full(len(lengths), -1)  # of each page among those that were read
        self.items = np.zeros((0, int(lengths.max(initial=0)) + 2, reader.special.shape[1]), np.float32)
        self.starts = np.zeros((0, reader.start), np.float32)

    def memory(self, count: int) -> Array:
        """[count, 1 + M]: whether the page has been read by the decoder, and the decoder's state."""
        return np.zeros((count, 1 + (self.cell.size if self.cell is not None else 0)), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.sampler.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        pages = observation[:, 0].astype(np.int64)
        self._read(np.unique(pages[self.place[pages] < 0]))
        place = self.place[pages]
        numbers = observation[:, 1:][:, self.view].astype(np.int64) + 1
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
        items, starts = self.reader.read(*self.pages.value.get_features(pages))
        room = np.zeros((len(pages), *self.items.shape[1:]), np.float32)
        room[:, : items.shape[1]] = items
        self.place[pages] = len(self.items) + np.arange(len(pages))
        self.items = np.concatenate([self.items, room])
        self.starts = np.concatenate([self.starts, starts])
