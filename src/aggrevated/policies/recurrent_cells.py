"""LSTM and GRU cells: their recurrence in torch, for scores, and their NumPy copies.

The gates' pre-activations consist of y = W x + b, from the input, and m = U h + c, from the memory.
"""

from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from aggrevated.actors.recurrent import NumpyCell, NumpyGRU, NumpyLSTM
from aggrevated.core.arrays import Array
from aggrevated.kernels.elementary_functions import HALF, ONE, tanh_scalar
from aggrevated.kernels.linear_algebra import add_row, njit_cached

State: TypeAlias = tuple[Tensor, ...]  # h first, and for an LSTM its cell c


class RecurrentCell(Protocol):
    """A recurrent cell, LSTM or GRU."""

    @property
    def layer(self) -> type[nn.LSTM] | type[nn.GRU]:
        """Return the class of the layer in torch."""
        ...

    def make_initial_state(self, count: int, hidden: int, dtype: torch.dtype = torch.float32) -> State:
        """Return the state of `count` sequences before their first input."""
        ...

    def step(self, y: Tensor, m: Tensor, state: State) -> State:
        """Return the state after one step with the pre-activations y and m."""
        ...

    def copy_of(self, layer: nn.RNNBase, index: int = 0) -> NumpyCell:
        """Return a NumPy copy of sub-layer `index`: layers from below, forward before backward in each."""
        ...


class LSTM:
    """i, f, o = σ(·), g = tanh(·): c ← f c + i g, h = o tanh(c)."""

    layer = nn.LSTM

    def make_initial_state(self, count: int, hidden: int, dtype: torch.dtype = torch.float32) -> State:
        return torch.zeros(count, hidden, dtype=dtype), torch.zeros(count, hidden, dtype=dtype)

    def step(self, y: Tensor, m: Tensor, state: State) -> State:
        i, f, g, o = (y + m).chunk(4, 1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def copy_of(self, layer: nn.RNNBase, index: int = 0) -> "NumpyLSTM":
        w, u, b, c = extract_cell_weights(layer, index)
        hidden = layer.hidden_size
        # σ(x) = (1 + tanh(x/2)) / 2: with halved weights for i, f and o, one tanh serves all gates.
        half = np.repeat(np.array([0.5, 0.5, 1.0, 0.5], np.float32), hidden)
        return NumpyLSTM(transpose_weights(w, half), transpose_weights(u, half), (b + c) * half, hidden)


class GRU:
    """r, z = σ(·), n = tanh(y_n + r m_n): h ← (1 − z) n + z h."""

    layer = nn.GRU

    def make_initial_state(self, count: int, hidden: int, dtype: torch.dtype = torch.float32) -> State:
        return (torch.zeros(count, hidden, dtype=dtype),)

    def step(self, y: Tensor, m: Tensor, state: State) -> State:
        (y_r, y_z, y_n) = y.chunk(3, 1)
        (m_r, m_z, m_n) = m.chunk(3, 1)
        z = (y_z + m_z).sigmoid()
        n = (y_n + (y_r + m_r).sigmoid() * m_n).tanh()
        return (n + z * (state[0] - n),)

    def copy_of(self, layer: nn.RNNBase, index: int = 0) -> "NumpyGRU":
        w, u, b, c = extract_cell_weights(layer, index)
        half = np.repeat(np.array([0.5, 0.5, 1.0], np.float32), layer.hidden_size)
        return NumpyGRU(transpose_weights(w, half), transpose_weights(u, half), b * half, c * half, layer.hidden_size)


def extract_cell_weights(layer: nn.RNNBase, index: int) -> list[Array]:
    """Return W, U, b and c of a sub-layer."""
    return [p.detach().numpy() for p in layer.parameters()][4 * index :][:4]


def transpose_weights(weight: Array, scale: Array) -> Array:
    """Return the weight [inputs, gates] times the scale [gates], from torch's [gates, inputs]."""
    return np.ascontiguousarray(weight.T * scale)


CELLS: dict[str, RecurrentCell] = {"lstm": LSTM(), "gru": GRU()}


class CompiledLSTM:
    """An LSTM unrolled over K trajectories, with its backward pass, in compiled loops."""

    def __init__(self, y: Array, u: Array, lengths: Array) -> None:
        """Compute h_t from y = W x + b [K, T, 4 hidden] and U [hidden, 4 hidden], over lengths[k] steps."""
        count, length, width = y.shape
        self.u = u
        self.lengths = lengths
        self.gates = np.ascontiguousarray(y).copy()
        self.hidden = np.zeros((count, length + 1, width // 4), np.float32)  # h_0 first
        self.cells = np.zeros_like(self.hidden)
        _forward(self.gates, u, self.hidden, self.cells, lengths)

    def run_backward(self, by_hidden: Array) -> Array:
        """Return ∂/∂(W x_t + U h_{t−1} + b) [K, T, 4 hidden] from ∂/∂h_t [K, T, hidden]."""
        by_gates = np.zeros_like(self.gates)
        back = np.ascontiguousarray(self.u.T)
        _run_backward(self.gates, back, self.cells, np.ascontiguousarray(by_hidden), by_gates, self.lengths)
        return by_gates


@njit_cached
def _forward(gates, u, hidden, cells, lengths):  # type: ignore[no-untyped-def]
    n = len(u)
    for k in range(len(lengths)):
        for t in range(lengths[k]):
            gate = gates[k, t]
            add_row(gate, hidden[k, t], u)
            for j in range(4 * n):
                gate[j] = tanh_scalar(gate[j]) if 2 * n <= j < 3 * n else HALF * (ONE + tanh_scalar(HALF * gate[j]))
            for j in range(n):
                cells[k, t + 1, j] = gate[n + j] * cells[k, t, j] + gate[j] * gate[2 * n + j]
            for j in range(n):
                hidden[k, t + 1, j] = gate[3 * n + j] * tanh_scalar(cells[k, t + 1, j])


@njit_cached
def _run_backward(gates, back, cells, by_hidden, by_gates, lengths):  # type: ignore[no-untyped-def]
    n = by_hidden.shape[2]
    from_h = np.empty(n, np.float32)
    from_c = np.empty(n, np.float32)
    for k in range(len(lengths)):
        from_h[:] = 0
        from_c[:] = 0
        for t in range(lengths[k] - 1, -1, -1):
            for j in range(n):
                i = gates[k, t, j]
                f = gates[k, t, n + j]
                g = gates[k, t, 2 * n + j]
                o = gates[k, t, 3 * n + j]
                tanh_c = tanh_scalar(cells[k, t + 1, j])
                h = from_h[j] + by_hidden[k, t, j]
                c = from_c[j] + h * o * (ONE - tanh_c * tanh_c)
                by_gates[k, t, j] = c * g * i * (ONE - i)
                by_gates[k, t, n + j] = c * cells[k, t, j] * f * (ONE - f)
                by_gates[k, t, 2 * n + j] = c * i * (ONE - g * g)
                by_gates[k, t, 3 * n + j] = h * tanh_c * o * (ONE - o)
                from_c[j] = c * f
                from_h[j] = 0
            add_row(from_h, by_gates[k, t], back)
