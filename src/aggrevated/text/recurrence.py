"""A recurrent layer that reads sentences both ways, one after the other and without padding, in loops of our own.

An LSTM (i, f, o = σ(·), g = tanh(·): c ← f c + i g, h = o tanh(c)) of which the inputs' share of the gates is one
product for all words, and only the memory's is made step by step. Torch has a layer for sequences of one length; with
those of many, packed or padded, an iteration of training took 2.3 s in place of 1.2, and the bits of a sentence hung on
those beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from aggrevated.arrays import Array
from aggrevated.elementary import tanh_of
from aggrevated.products import add_row, compiled

ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


class BothWays(nn.Module):
    """From the left, and from the right."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gates = nn.Linear(inputs, 8 * hidden)  # i, f, g and o from the left, and the same from the right
        self.memory = nn.Parameter(torch.empty(2, hidden, 4 * hidden))
        for weight in self.parameters():
            nn.init.uniform_(weight, -(hidden**-0.5), hidden**-0.5)

    def forward(self, x: Tensor, lengths: Array) -> Tensor:
        """[Σn, 2 hidden] from words [Σn, inputs], one sentence after the other."""
        found: Tensor = Recurrence.apply(self.gates(x), self.memory, lengths)  # type: ignore[no-untyped-call]
        return found


class Recurrence(torch.autograd.Function):
    """h [Σn, 2 hidden] from the inputs' share of the gates [Σn, 8 hidden] and U [2, hidden, 4 hidden]."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, memory: Tensor, lengths: Array) -> Tensor:
        h, c, gates = recur(inputs.detach().numpy(), memory.detach().numpy(), lengths)
        ctx.save_for_backward(inputs, memory, *map(torch.from_numpy, (h, c, gates)))
        ctx.lengths = lengths
        return torch.from_numpy(h)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None]:
        inputs, memory, h, c, gates = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants the gradient of the gradient
            found = step_by_step(inputs, memory, ctx.lengths)
            by_inputs, by_memory = torch.autograd.grad(found, (inputs, memory), upstream, create_graph=True)
            return by_inputs, by_memory, None
        turned = np.ascontiguousarray(memory.detach().numpy().swapaxes(1, 2))
        d = np.empty_like(gates.numpy())
        before = np.zeros_like(h.numpy())  # h of the word that was read before
        _back(
            np.ascontiguousarray(upstream.numpy()), turned, ctx.lengths, h.numpy(), c.numpy(), gates.numpy(), d, before
        )
        hidden, gradient = memory.shape[1], torch.from_numpy(d)
        left, right = torch.split(torch.from_numpy(before), hidden, 1)
        own, other = torch.split(gradient, 4 * hidden, 1)
        return gradient, torch.stack([left.T @ own, right.T @ other]), None


def step_by_step(inputs: Tensor, memory: Tensor, lengths: Array) -> Tensor:
    """The same by torch alone, of which there are higher derivatives; many times slower."""
    hidden, found = memory.shape[1], []
    for own in torch.split(inputs, lengths.tolist()):
        ways = []
        for way, gates in enumerate(torch.split(own, 4 * hidden, 1)):
            h = c = inputs.new_zeros(hidden)
            states = []
            for gate in gates.flip(0) if way else gates:
                i, f, g, o = (gate + h @ memory[way]).chunk(4)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
                states.append(h)
            ways.append(torch.stack(states[::-1] if way else states))
        found.append(torch.cat(ways, dim=1))
    return torch.cat(found)


def recur(inputs: Array, memory: Array, lengths: Array) -> tuple[Array, Array, Array]:
    """(h and c [Σn, 2 hidden], the gates [Σn, 8 hidden]): a sentence has the same bits alone and among others."""
    hidden = memory.shape[1]
    h, c = (np.empty((len(inputs), 2 * hidden), np.float32) for _ in range(2))
    gates = np.array(inputs, np.float32, order="C")
    _recur(gates, np.ascontiguousarray(memory), np.ascontiguousarray(lengths, np.int64), h, c)
    return h, c, gates


@compiled
def _recur(gates, memory, lengths, h, c):  # type: ignore[no-untyped-def]
    n = memory.shape[1]
    first = 0
    for length in lengths:
        for way in range(2):
            own = way * n
            for t in range(length):
                row = first + t if way == 0 else first + length - 1 - t
                before = row - 1 if way == 0 else row + 1
                gate = gates[row, 4 * own : 4 * own + 4 * n]
                if t:
                    add_row(gate, h[before, own : own + n], memory[way])
                for j in range(n):  # σ(y) = (1 + tanh(y/2)) / 2
                    gate[j] = HALF * (ONE + tanh_of(HALF * gate[j]))
                    gate[n + j] = HALF * (ONE + tanh_of(HALF * gate[n + j]))
                    gate[2 * n + j] = tanh_of(gate[2 * n + j])
                    gate[3 * n + j] = HALF * (ONE + tanh_of(HALF * gate[3 * n + j]))
                for j in range(n):
                    kept = gate[n + j] * c[before, own + j] if t else ZERO
                    c[row, own + j] = kept + gate[j] * gate[2 * n + j]
                for j in range(n):
                    h[row, own + j] = gate[3 * n + j] * tanh_of(c[row, own + j])
        first += length


@compiled
def _back(upstream, memory, lengths, h, c, gates, d, earlier):  # type: ignore[no-untyped-def]
    """The gradient of the gates' sums, into `d`; `memory` is U transposed, [2, 4 hidden, hidden]."""
    n = memory.shape[2]
    dh, dc = np.empty(n, np.float32), np.empty(n, np.float32)
    first = 0
    for length in lengths:
        for way in range(2):
            own = way * n
            dh[:] = ZERO
            dc[:] = ZERO
            for t in range(length - 1, -1, -1):
                row = first + t if way == 0 else first + length - 1 - t
                before = row - 1 if way == 0 else row + 1
                gate, out = gates[row, 4 * own : 4 * own + 4 * n], d[row, 4 * own : 4 * own + 4 * n]
                for j in range(n):
                    i, f, g, o = gate[j], gate[n + j], gate[2 * n + j], gate[3 * n + j]
                    squashed = tanh_of(c[row, own + j])
                    by_h = dh[j] + upstream[row, own + j]
                    by_c = dc[j] + by_h * o * (ONE - squashed * squashed)
                    old = c[before, own + j] if t else ZERO
                    out[j] = by_c * g * i * (ONE - i)
                    out[n + j] = by_c * old * f * (ONE - f)
                    out[2 * n + j] = by_c * i * (ONE - g * g)
                    out[3 * n + j] = by_h * squashed * o * (ONE - o)
                    dc[j] = by_c * f
                if t:
                    for j in range(n):
                        earlier[row, own + j] = h[before, own + j]
                        dh[j] = ZERO
                    add_row(dh, out, memory[way])
        first += length
