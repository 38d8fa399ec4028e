"""Products whose bits belong to a row alone: x W + b by loops of our own, in a fixed order of summation.

A BLAS sums in an order that depends on how many rows there are, on the place of a row among them, on threads and on the
processor. So a trajectory would depend on those beside it, and a result on how the work was shared out. Here each
output is b, and then x_i W_i for i = 0, 1, …, wherever its row stands; what is done at once is done over outputs only.
"""

import numpy as np
from numba import njit

from aggrevated.arrays import Array

compiled = njit(cache=True, nogil=True)  # no fastmath: it would let sums be taken in another order


def affine(x: Array, weight: Array, bias: Array) -> Array:
    """x W + b, [n, outputs], for x [n, inputs], W [inputs, outputs] and b [outputs]; in the precision of b."""
    out = np.empty((len(x), len(bias)), bias.dtype)
    out[:] = bias
    return add_product(out, x, weight)


def add_product(out: Array, x: Array, weight: Array) -> Array:
    """`out` [n, outputs], after x W was added to it."""
    _add_product(out, np.ascontiguousarray(x), weight)
    return out


@compiled
def _add_product(out, x, weight):  # type: ignore[no-untyped-def]
    for row in range(x.shape[0]):
        for i in range(x.shape[1]):
            factor = x[row, i]
            for j in range(weight.shape[1]):
                out[row, j] += factor * weight[i, j]
