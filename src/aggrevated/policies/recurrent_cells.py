"""The recurrences of LSTM and GRU in torch, for scores; whole sequences are torch's own, single steps NumPy's.

y is the input's share of the gates, m the memory's: y = W x + b and m = U h + c.
"""

from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from aggrevated.actors.cells import NumpyCell, NumpyGRU, NumpyLSTM
from aggrevated.core.arrays import Array

State: TypeAlias = tuple[Tensor, ...]  # h first, and for an LSTM its cell c


class RecurrentCell(Protocol):
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

    def copy_of(self, layer: nn.RNNBase, which: int = 0) -> NumpyCell:
        """The layer as it is now, on NumPy; of one that reads both ways the second reads backwards; so on upwards."""
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

    def copy_of(self, layer: nn.RNNBase, which: int = 0) -> "NumpyLSTM":
        w, u, b, c = cell_weights(layer, which)
        hidden = layer.hidden_size
        # σ(x) = (1 + tanh(x/2)) / 2: with halved weights for i, f and o, one tanh serves all gates.
        half = np.repeat(np.array([0.5, 0.5, 1.0, 0.5], np.float32), hidden)
        return NumpyLSTM(transpose_weights(w, half), transpose_weights(u, half), (b + c) * half, hidden)


class GRU:
    """r, z = σ(·), n = tanh(y_n + r m_n): h ← (1 − z) n + z h."""

    layer = nn.GRU

    def initial(self, count: int, hidden: int, dtype: torch.dtype = torch.float32) -> State:
        return (torch.zeros(count, hidden, dtype=dtype),)

    def step(self, y: Tensor, m: Tensor, state: State) -> State:
        (y_r, y_z, y_n), (m_r, m_z, m_n) = y.chunk(3, 1), m.chunk(3, 1)
        z, n = (y_z + m_z).sigmoid(), (y_n + (y_r + m_r).sigmoid() * m_n).tanh()
        return (n + z * (state[0] - n),)

    def copy_of(self, layer: nn.RNNBase, which: int = 0) -> "NumpyGRU":
        w, u, b, c = cell_weights(layer, which)
        half = np.repeat(np.array([0.5, 0.5, 1.0], np.float32), layer.hidden_size)
        return NumpyGRU(transpose_weights(w, half), transpose_weights(u, half), b * half, c * half, layer.hidden_size)


def cell_weights(layer: nn.RNNBase, which: int) -> list[Array]:
    """W, U, b and c."""
    return [p.detach().numpy() for p in layer.parameters()][4 * which :][:4]


def transpose_weights(weight: Array, scale: Array) -> Array:
    """[inputs, gates], from torch's [gates, inputs]."""
    return np.ascontiguousarray(weight.T * scale)


CELLS: dict[str, RecurrentCell] = {"lstm": LSTM(), "gru": GRU()}
