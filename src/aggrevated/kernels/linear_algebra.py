"""Affine maps x W + b by compiled loops with a fixed order of summation: the bits of a row depend on it alone.

The order of summation of a BLAS depends on the number of rows, the row's index, the threads and the processor.
Then a trajectory would depend on the others in its batch, and a result on the number of workers. Here each
output is b plus x_i W_i for i = 0, 1, … in this order; only the outputs are vectorized.
"""

import os

import numpy as np

from aggrevated.core.arrays import Array

os.environ.setdefault("NUMBA_DISABLE_INTEL_SVML", "1")  # bits must not depend on other installed packages

from numba import njit

# No fastmath, which could reorder sums. Division by zero follows IEEE 754: a check for errors would prevent
# vectorization.
njit_cached = njit(cache=True, nogil=True, error_model="numpy")

SIMD_LANES = 8  # float32 numbers in a vector register


def affine(x: Array, weight: Array, bias: Array) -> Array:
    """Return x W + b, [n, outputs], in the precision of b.

    Args:
        x: inputs [n, inputs].
        weight: W [inputs, outputs].
        bias: b [outputs].
    """
    out = np.empty((len(x), len(bias)), bias.dtype)
    out[:] = bias
    return add_product(out, x, weight)


def add_product(out: Array, x: Array, weight: Array) -> Array:
    """Add x W to `out` [n, outputs] in place, and return it."""
    if (*x.shape[1:], out.shape[1]) != weight.shape:  # compiled loops do not check bounds
        raise ValueError(f"rows of {x.shape[1:]} numbers do not fit weights of shape {weight.shape}")
    _add_product(out, np.ascontiguousarray(x), weight)
    return out


@njit_cached
def _add_product(out, x, weight):  # type: ignore[no-untyped-def]
    for row in range(x.shape[0]):
        add_row(out[row], x[row], weight)


@njit_cached
def add_row(out, x, weight):  # type: ignore[no-untyped-def]
    """Add x W to one row `out` [outputs] in place, for x [inputs] or longer, inside compiled loops.

    Four inputs at a time save most reads and writes of `out`, and the last few outputs are summed one by one.
    The order of each sum does not change.
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
    """Copy a row to `out`, ten times as fast as `out[:] = row` in compiled code."""
    for i in range(len(row)):
        out[i] = row[i]
