"""Products whose bits belong to a row alone: x W + b by loops of our own, in a fixed order of summation.

A BLAS sums in an order that depends on how many rows there are, on the place of a row among them, on threads and on the
processor. So a trajectory would depend on those beside it, and a result on how the work was shared out. Here each
output is b, and then x_i W_i for i = 0, 1, …, wherever its row stands; what is done at once is done over outputs only.
"""

import os

import numpy as np

from aggrevated.core.arrays import Array

os.environ.setdefault("NUMBA_DISABLE_INTEL_SVML", "1")  # bits must not depend on what else is installed

from numba import njit

# No fastmath: it would let sums be taken in another order. A division by zero gives what IEEE says, and no error, for
# which loops would have to be left.
njit_cached = njit(cache=True, nogil=True, error_model="numpy")

SIMD_LANES = 8  # how many float32 a processor works on at once


def affine(x: Array, weight: Array, bias: Array) -> Array:
    """x W + b, [n, outputs], for x [n, inputs], W [inputs, outputs] and b [outputs]; in the precision of b."""
    out = np.empty((len(x), len(bias)), bias.dtype)
    out[:] = bias
    return add_product(out, x, weight)


def add_product(out: Array, x: Array, weight: Array) -> Array:
    """`out` [n, outputs], after x W was added to it."""
    if (*x.shape[1:], out.shape[1]) != weight.shape:  # compiled loops do not look
        raise ValueError(f"rows of {x.shape[1:]} numbers do not fit weights of shape {weight.shape}")
    _add_product(out, np.ascontiguousarray(x), weight)
    return out


@njit_cached
def _add_product(out, x, weight):  # type: ignore[no-untyped-def]
    for row in range(x.shape[0]):
        add_row(out[row], x[row], weight)


@njit_cached
def add_row(out, x, weight):  # type: ignore[no-untyped-def]
    """The same for one row, [outputs] and [inputs] or longer, inside of compiled loops.

    Four inputs at a time spare most of the reading and writing of `out`, and the last few outputs are not worth a loop
    over them for each input; every sum is taken in the same order for all that.
    """
    inputs, outputs = weight.shape
    wide = outputs - outputs % SIMD_LANES
    fours = inputs - inputs % 4
    if wide:
        for i in range(0, fours, 4):
            a = x[i]
            b = x[i + 1]
            c = x[i + 2]
            d = x[i + 3]
            for j in range(wide):
                two = (out[j] + a * weight[i, j]) + b * weight[i + 1, j]
                out[j] = (two + c * weight[i + 2, j]) + d * weight[i + 3, j]
        for i in range(fours, inputs):
            a = x[i]
            for j in range(wide):
                out[j] += a * weight[i, j]
    for j in range(wide, outputs):
        total = out[j]
        for i in range(inputs):
            total += x[i] * weight[i, j]
        out[j] = total


@njit_cached
def copy_row(out, row):  # type: ignore[no-untyped-def]
    """`out[:] = row`, which takes compiled code ten times as long."""
    for i in range(len(row)):
        out[i] = row[i]
