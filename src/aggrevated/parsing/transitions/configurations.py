"""Configurations of a transition-based parser, batched: what both transition systems share.

Symbols are numbered 1 … n in reading order, 0 is ROOT. They enter the stack in that order, so the stack is sorted, and
is kept as flags; the buffer is all that has not entered yet. A row of a batch is int16 [2 + 2(N+1)]:

    n, b, is 0 … N on the stack?, the heads of 0 … N (−1 where there is none yet)

where b is the first symbol of the buffer (n + 1 when it is empty) and N the most symbols of any sentence in the batch.
"""

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array

NO_SYMBOL = -1
# places in what a learner sees: three symbols of the stack, then three of the buffer
STACK = 0
BELOW = 1
BUFFER = 3


@dataclass(frozen=True)
class ConfigurationView:
    """The parts of a batch of configurations, as views of its rows: changing them changes the batch."""

    rows: Array  # int16 [batch, 2 + 2(N+1)]

    @property
    def width(self) -> int:
        """N + 1."""
        return int(self.rows.shape[1] - 2) // 2

    @property
    def n(self) -> Array:
        return self.rows[:, 0]

    @property
    def b(self) -> Array:
        return self.rows[:, 1]

    @property
    def on_stack(self) -> Array:
        """[batch, N+1], 0 or 1."""
        return self.rows[:, 2 : 2 + self.width]

    @property
    def heads(self) -> Array:
        """[batch, N+1]."""
        return self.rows[:, 2 + self.width :]

    @property
    def is_buffer_empty(self) -> Array:
        empty: Array = self.b > self.n
        return empty

    def find_top(self, below: Array | None = None) -> Array:
        """[batch] the topmost symbol of the stack, or the topmost one below those given; NONE where there is none."""
        on = self.on_stack.astype(bool)
        if below is not None:
            on = on & (np.arange(self.width) < below[:, None])
        highest = self.width - 1 - on[:, ::-1].argmax(axis=1)
        return np.where(on.any(axis=1), highest, NO_SYMBOL)

    def is_in_buffer(self, after: int = 0) -> Array:
        """[batch, N+1] bool: in the buffer; with `after` = 1 behind its first symbol."""
        numbers = np.arange(self.width)
        inside: Array = (numbers >= self.b[:, None] + after) & (numbers <= self.n[:, None])
        return inside


def make_initial_configurations(lengths: Array, most: int) -> Array:
    """The first configurations of sentences of these lengths: only ROOT on the stack."""
    rows = np.zeros((len(lengths), 2 + 2 * (most + 1)), np.int16)
    rows[:, 0] = lengths
    rows[:, 1] = 1
    rows[:, 2] = 1
    ConfigurationView(rows).heads[:] = NO_SYMBOL
    return rows


def gather_entries(table: Array, index: Array, otherwise: int = NO_SYMBOL) -> Array:
    """[batch] table[i, index[i]], or `otherwise` where the index is outside of the table."""
    inside = (index >= 0) & (index < table.shape[1])
    values = table[np.arange(len(table)), np.where(inside, index, 0)]
    return np.where(inside, values, otherwise)


def set_entries(table: Array, where: Array, index: Array, value: Array | int) -> None:
    """table[i, index[i]] = value[i] wherever `where`."""
    lanes = np.flatnonzero(where)
    table[lanes, index[lanes]] = value if isinstance(value, int) else value[lanes]


def count_dependents(gold: Array, head: Array, among: Array) -> Array:
    """[batch] how many of those `among` [batch, N+1] have `head` [batch] as their gold head."""
    count: Array = ((gold == head[:, None]) & among & (head[:, None] != NO_SYMBOL)).sum(axis=1)
    return count


def add_root(heads: Array, most: int) -> Array:
    """[N+1]: gold heads by symbol number, NONE for ROOT and beyond the sentence."""
    gold = np.full(most + 1, NO_SYMBOL)
    gold[1 : len(heads) + 1] = heads
    return gold


def count_wrong_heads(rows: Array, gold: Array) -> Array:
    """[batch] how many symbols do not have their gold head."""
    count: Array = ((ConfigurationView(rows).heads != gold) & (gold != NO_SYMBOL)).sum(axis=1)
    return count
