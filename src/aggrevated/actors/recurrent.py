"""LSTM and GRU on NumPy, one step at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

from aggrevated.actors.samplers import Sampler
from aggrevated.core.arrays import Array
from aggrevated.kernels.elementary_functions import HALF, ONE, tanh, tanh_scalar
from aggrevated.kernels.linear_algebra import add_row, affine, copy_row, njit_cached


class NumpyCell(Protocol):
    """NumPy copy of a recurrent cell."""

    @property
    def size(self) -> int:
        """Return M, the size of the memory."""
        ...

    def step(self, x: Array, memory: Array) -> tuple[Array, Array]:
        """Return h [n, hidden] and the memory [n, M] after the input x [n, inputs]."""
        ...


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
        following = np.array(memory, order="C")
        _update_lstm_rows(np.ascontiguousarray(x), following, self.w, self.u, self.b)
        return following[:, : self.hidden], following


@njit_cached
def update_lstm_row(x, memory, w, u, b, gates):  # type: ignore[no-untyped-def]
    """Update one row of memory [2 hidden] by the input x [inputs]; `gates` [4 hidden] is a buffer."""
    n = len(memory) // 2
    copy_row(gates, b)
    add_row(gates, x, w)
    add_row(gates, memory[:n], u)
    for j in range(4 * n):
        gates[j] = tanh_scalar(gates[j])
    for j in range(n):  # σ(y) = (1 + tanh(y/2)) / 2; the weights of i, f and o are halved already
        i = gates[j]
        f = gates[n + j]
        g = gates[2 * n + j]
        memory[n + j] = HALF * ((f + ONE) * memory[n + j] + (i + ONE) * g)
    for j in range(n):
        memory[j] = HALF * (gates[3 * n + j] + ONE) * tanh_scalar(memory[n + j])


@njit_cached
def _update_lstm_rows(x, memory, w, u, b):  # type: ignore[no-untyped-def]
    gates = np.empty_like(b)
    for row in range(len(x)):
        update_lstm_row(x[row], memory[row], w, u, b, gates)


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
        y = affine(x, self.w, self.b)
        m = affine(memory, self.u, self.c)
        gates = tanh(y[:, :n] + m[:, :n])
        gates += 1
        gates *= 0.5
        r = gates[:, : self.size]
        z = gates[:, self.size :]
        new = tanh(y[:, n:] + r * m[:, n:])
        h = new + z * (memory - new)
        return h, h


@dataclass(frozen=True)
class RecurrentActor:
    """NumPy copy of a recurrent policy."""

    cell: NumpyCell
    weight: Array  # [hidden, A]
    bias: Array  # [A]
    sampler: Sampler

    def memory(self, count: int) -> Array:
        return np.zeros((count, self.cell.size), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.sampler.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        h, memory = self.cell.step(observation, memory)
        return affine(h, self.weight, self.bias), memory

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.sampler.choose(parameters, noise, legal)
