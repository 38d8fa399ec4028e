"""Batches of configurations of a transition-based parser, shared by both transition systems.

Symbols have the numbers 1 … n in reading order; 0 is ROOT. They enter the stack in that order, so the stack
is sorted and stored as flags. The buffer holds the symbols that have not entered the stack. A row of a
batch is int16 [2 + 2(N+1)]:

    n, b, N + 1 flags (is 0 … N on the stack?), the N + 1 heads of 0 … N (−1 where there is none yet)

where b is the first symbol of the buffer (n + 1 if it is empty) and N the length of the longest sentence.
"""

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array

NO_SYMBOL = -1
# indices of symbols in an observation: three symbols of the stack, then three of the buffer
STACK = 0
BELOW = 1
BUFFER = 3


@dataclass(frozen=True)
class ConfigurationView:
    """Views of the parts of a batch of configurations: writing to them changes the batch.

    Attributes:
        rows: configurations, int16 [batch, 2 + 2(N+1)].
    """

    rows: Array

    @property
    def width(self) -> int:
        """Return N + 1."""
        return int(self.rows.shape[1] - 2) // 2

    @property
    def n(self) -> Array:
        """Return the number of symbols of each sentence, [batch]."""
        return self.rows[:, 0]

    @property
    def b(self) -> Array:
        """Return the number of the first symbol of each buffer, [batch]."""
        return self.rows[:, 1]

    @property
    def on_stack(self) -> Array:
        """Return whether each symbol is on the stack, 0 or 1, [batch, N+1]."""
        return self.rows[:, 2 : 2 + self.width]

    @property
    def heads(self) -> Array:
        """Return the head of each symbol, −1 where it has none yet, [batch, N+1]."""
        return self.rows[:, 2 + self.width :]

    @property
    def is_buffer_empty(self) -> Array:
        """Return whether each buffer is empty, bool [batch]."""
        empty: Array = self.b > self.n
        return empty

    def find_top(self, below: Array | None = None) -> Array:
        """Return the topmost symbol of each stack, NO_SYMBOL if there is none, [batch].

        Args:
            below: symbol numbers [batch]; only symbols below them on the stack count. None: all count.

        Returns:
            Symbol numbers, [batch].
        """
        on_stack = self.on_stack.astype(bool)
        if below is not None:
            on_stack = on_stack & (np.arange(self.width) < below[:, None])
        highest = self.width - 1 - on_stack[:, ::-1].argmax(axis=1)
        return np.where(on_stack.any(axis=1), highest, NO_SYMBOL)

    def is_in_buffer(self, after: int = 0) -> Array:
        """Return which symbols are in the buffer, without its first `after` symbols, bool [batch, N+1]."""
        numbers = np.arange(self.width)
        inside: Array = (numbers >= self.b[:, None] + after) & (numbers <= self.n[:, None])
        return inside


def make_initial_configurations(lengths: Array, most: int) -> Array:
    """Return the first configurations of sentences of these lengths, with only ROOT on the stack.

    Args:
        lengths: numbers of symbols, int [batch].
        most: N, the largest number of symbols that a row has room for.

    Returns:
        Configurations, int16 [batch, 2 + 2(N+1)].
    """
    rows = np.zeros((len(lengths), 2 + 2 * (most + 1)), np.int16)
    rows[:, 0] = lengths
    rows[:, 1] = 1
    rows[:, 2] = 1
    ConfigurationView(rows).heads[:] = NO_SYMBOL
    return rows


def gather_entries(table: Array, index: Array, otherwise: int = NO_SYMBOL) -> Array:
    """Return table[i, index[i]] for each i, or `otherwise` where the index is outside the table, [batch]."""
    inside = (index >= 0) & (index < table.shape[1])
    values = table[np.arange(len(table)), np.where(inside, index, 0)]
    return np.where(inside, values, otherwise)


def set_entries(table: Array, where: Array, index: Array, value: Array | int) -> None:
    """Set table[i, index[i]] to value[i] for each i where `where` is true."""
    selected = np.flatnonzero(where)
    table[selected, index[selected]] = value if isinstance(value, int) else value[selected]


def count_dependents(gold: Array, head: Array, among: Array) -> Array:
    """Return how many of the symbols `among` [batch, N+1] have the gold head `head` [batch], int [batch]."""
    count: Array = ((gold == head[:, None]) & among & (head[:, None] != NO_SYMBOL)).sum(axis=1)
    return count


def add_root(heads: Array, most: int) -> Array:
    """Return gold heads by symbol number, NO_SYMBOL for ROOT and beyond the sentence, int [N+1]."""
    gold = np.full(most + 1, NO_SYMBOL)
    gold[1 : len(heads) + 1] = heads
    return gold


def count_wrong_heads(rows: Array, gold: Array) -> Array:
    """Return how many symbols do not have their gold head, int [batch]."""
    count: Array = ((ConfigurationView(rows).heads != gold) & (gold != NO_SYMBOL)).sum(axis=1)
    return count
