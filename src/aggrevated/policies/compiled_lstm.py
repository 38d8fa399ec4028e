"""An LSTM over whole trajectories and back again, in compiled loops that stop where a trajectory does.

Torch's own layer gives the gradient of all trajectories together; scores are wanted of each alone.
"""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.kernels.elementary_functions import HALF, ONE, tanh_scalar
from aggrevated.kernels.linear_algebra import add_row, njit_cached


class CompiledLSTM:
    """h_t of every trajectory, and from ∂/∂h_t the ∂/∂(W x_t + U h_{t−1} + b): all that weights need."""

    def __init__(self, y: Array, u: Array, lengths: Array) -> None:
        """From y = W x + b [K, T, 4 hidden] and U as [hidden, 4 hidden]; trajectory k has lengths[k] steps."""
        count, length, width = y.shape
        self.u, self.lengths = u, lengths
        self.gates = np.ascontiguousarray(y).copy()
        self.hidden = np.zeros((count, length + 1, width // 4), np.float32)  # h_0 first
        self.cells = np.zeros_like(self.hidden)
        _forward(self.gates, u, self.hidden, self.cells, lengths)

    def back(self, by_hidden: Array) -> Array:
        """∂/∂ of what goes into the gates, [K, T, 4 hidden], from ∂/∂h_t [K, T, hidden]."""
        found = np.zeros_like(self.gates)
        _backward(
            self.gates, np.ascontiguousarray(self.u.T), self.cells, np.ascontiguousarray(by_hidden), found, self.lengths
        )
        return found


@njit_cached
def _forward(gates, u, hidden, cells, lengths):  # type: ignore[no-untyped-def]
    n = len(u)
    for k in range(len(lengths)):
        for t in range(lengths[k]):
            now = gates[k, t]
            add_row(now, hidden[k, t], u)
            for j in range(4 * n):
                now[j] = tanh_scalar(now[j]) if 2 * n <= j < 3 * n else HALF * (ONE + tanh_scalar(HALF * now[j]))
            for j in range(n):
                cells[k, t + 1, j] = now[n + j] * cells[k, t, j] + now[j] * now[2 * n + j]
            for j in range(n):
                hidden[k, t + 1, j] = now[3 * n + j] * tanh_scalar(cells[k, t + 1, j])


@njit_cached
def _backward(gates, back, cells, by_hidden, found, lengths):  # type: ignore[no-untyped-def]
    n = by_hidden.shape[2]
    of_h, of_c = np.empty(n, np.float32), np.empty(n, np.float32)
    for k in range(len(lengths)):
        of_h[:] = 0
        of_c[:] = 0
        for t in range(lengths[k] - 1, -1, -1):
            for j in range(n):
                i, f, g, o = gates[k, t, j], gates[k, t, n + j], gates[k, t, 2 * n + j], gates[k, t, 3 * n + j]
                bent = tanh_scalar(cells[k, t + 1, j])
                h = of_h[j] + by_hidden[k, t, j]
                c = of_c[j] + h * o * (ONE - bent * bent)
                found[k, t, j] = c * g * i * (ONE - i)
                found[k, t, n + j] = c * cells[k, t, j] * f * (ONE - f)
                found[k, t, 2 * n + j] = c * i * (ONE - g * g)
                found[k, t, 3 * n + j] = h * bent * o * (ONE - o)
                of_c[j], of_h[j] = c * f, 0
            add_row(of_h, found[k, t], back)
