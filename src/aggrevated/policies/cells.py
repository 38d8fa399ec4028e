"""The recurrences of LSTM and GRU, in torch for scores and in NumPy for single steps; whole sequences are torch's own.

y is the input's share of the gates, m the memory's: y = W x + b and m = U h + c.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from aggrevated.arrays import Array
from aggrevated.products import add_product, affine

State: TypeAlias = tuple[Tensor, ...]  # h first, and for an LSTM its cell c


class NumpyCell(Protocol):
    """A cell with the weights it had."""

    @property
    def size(self) -> int:
        """M: how many numbers it remembers."""
        ...

    def step(self, x: Array, memory: Array) -> tuple[Array, Array]:
        """(h [n, hidden], memory [n, M]) after the input x [n, inputs]."""
        ...


class Cell(Protocol):
    """One kind of recurrence."""

    @property
    def layer(self) -> type[nn.LSTM] | type[nn.GRU]:
        """Torch's layer of that kind."""
        ...

    def initial(self, count: int, hidden: int, dtype: torch.dtype = torch.float32) -> State:
        """The state of `count` sequences before their first input."""
        ...

    def step(self, y: Tensor, m: Tensor, state: State) -> State:
        """The state after an input."""
        ...

    def copy_of(self, layer: nn.RNNBase, backward: bool = False) -> NumpyCell:
        """The layer as it is now, on NumPy; of one that reads both ways, one of the two."""
        ...


class LSTM:
    """i, f, o = σ(·), g = tanh(·): c ← f c + i g, h = o tanh(c)."""

    layer = nn.LSTM

    def initial(self, count: int, hidden: int, dtype: torch.dtype = torch.float32) -> State:
        return torch.zeros(count, hidden, dtype=dtype), torch.zeros(count, hidden, dtype=dtype)

    def step(self, y: Tensor, m: Tensor, state: State) -> State:
        i, f, g, o = (y + m).chunk(4, 1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def copy_of(self, layer: nn.RNNBase, backward: bool = False) -> "NumpyLSTM":
        w, u, b, c = weights_of(layer, backward)
        hidden = layer.hidden_size
        # σ(x) = (1 + tanh(x/2)) / 2: with halved weights for i, f and o, one tanh serves all gates.
        half = np.repeat(np.array([0.5, 0.5, 1.0, 0.5], np.float32), hidden)
        return NumpyLSTM(transposed(w, half), transposed(u, half), (b + c) * half, hidden)


@dataclass(frozen=True)
class NumpyLSTM:
    """An LSTM on NumPy; the memory is [h, c]."""

    w: Array  # [inputs, 4 hidden]
    u: Array  # [hidden, 4 hidden]
    b: Array  # [4 hidden]
    hidden: int

    @property
    def size(self) -> int:
        return 2 * self.hidden

    def step(self, x: Array, memory: Array) -> tuple[Array, Array]:
        n, h = self.hidden, memory[:, : self.hidden]
        gates = add_product(affine(x, self.w, self.b), h, self.u)
        np.tanh(gates, out=gates)
        i, f, g, o = gates[:, :n], gates[:, n : 2 * n], gates[:, 2 * n : 3 * n], gates[:, 3 * n :]
        following = np.empty_like(memory)
        c = np.multiply(f + 1, memory[:, n:], out=following[:, n:])
        c += (i + 1) * g
        c *= 0.5
        np.multiply((o + 1) * 0.5, np.tanh(c), out=following[:, :n])
        return following[:, :n], following


class GRU:
    """r, z = σ(·), n = tanh(y_n + r m_n): h ← (1 − z) n + z h."""

    layer = nn.GRU

    def initial(self, count: int, hidden: int, dtype: torch.dtype = torch.float32) -> State:
        return (torch.zeros(count, hidden, dtype=dtype),)

    def step(self, y: Tensor, m: Tensor, state: State) -> State:
        (y_r, y_z, y_n), (m_r, m_z, m_n) = y.chunk(3, 1), m.chunk(3, 1)
        z, n = (y_z + m_z).sigmoid(), (y_n + (y_r + m_r).sigmoid() * m_n).tanh()
        return (n + z * (state[0] - n),)

    def copy_of(self, layer: nn.RNNBase, backward: bool = False) -> "NumpyGRU":
        w, u, b, c = weights_of(layer, backward)
        half = np.repeat(np.array([0.5, 0.5, 1.0], np.float32), layer.hidden_size)
        return NumpyGRU(transposed(w, half), transposed(u, half), b * half, c * half, layer.hidden_size)


@dataclass(frozen=True)
class NumpyGRU:
    """A GRU on NumPy; the memory is h."""

    w: Array  # [inputs, 3 hidden]
    u: Array  # [hidden, 3 hidden]
    b: Array  # [3 hidden]
    c: Array  # [3 hidden]
    size: int

    def step(self, x: Array, memory: Array) -> tuple[Array, Array]:
        n = 2 * self.size
        y, m = affine(x, self.w, self.b), affine(memory, self.u, self.c)
        gates = np.tanh(y[:, :n] + m[:, :n])
        gates += 1
        gates *= 0.5
        r, z = gates[:, : self.size], gates[:, self.size :]
        new = np.tanh(y[:, n:] + r * m[:, n:])
        h = new + z * (memory - new)
        return h, h


def weights_of(layer: nn.RNNBase, backward: bool) -> list[Array]:
    """W, U, b and c."""
    return [p.detach().numpy() for p in layer.parameters()][4 * backward :][:4]


def transposed(weight: Array, scale: Array) -> Array:
    """[inputs, gates], from torch's [gates, inputs]."""
    return np.ascontiguousarray(weight.T * scale)


CELLS: dict[str, Cell] = {"lstm": LSTM(), "gru": GRU()}
