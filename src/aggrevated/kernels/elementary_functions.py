"""Elementary functions of float32 in compiled loops, from +, −, ×, ÷ alone: bit-identical on every processor.

Math libraries round differently for scalars and for arrays, and on different processors.
"""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import njit_cached

LOG2_E = np.float32(1.4426950408889634)
LN2 = np.float32(0.6931471805599453)
# ln 2 = LN2_HIGH + LN2_LOW, where LN2_HIGH has few bits, so that its products are exact
LN2_HIGH = np.float32(0.693359375)
LN2_LOW = np.float32(-2.12194440e-4)
ZERO, HALF, ONE, TWO, TEN, EIGHTY, ROOT2 = (np.float32(c) for c in (0.0, 0.5, 1.0, 2.0, 10.0, 80.0, 2**0.5))
# coefficients 1/2!, …, 1/7! of the series of exp, and 1/3, …, 1/9 of that of artanh
E2, E3, E4, E5, E6, E7 = (np.float32(1 / f) for f in (2, 6, 24, 120, 720, 5040))
A3, A5, A7, A9 = (np.float32(1 / n) for n in (3, 5, 7, 9))
MANTISSA = np.int32(0x7FFFFF)
EXPONENT = np.int32(23)
BIAS = np.int32(127)
SHIFT = np.float32(1.5 * 2**23)
LEAST = np.float32(-np.inf)


@njit_cached
def tanh_scalar(x):  # type: ignore[no-untyped-def]
    """Return tanh x = −p / (p + 2), where p = exp(−2|x|) − 1, with a relative error below 4e-7."""
    y = -TWO * (TEN if abs(x) > TEN else abs(x))
    shifted = y * LOG2_E + SHIFT  # the last bits are the integer y / ln 2, rounded
    k = shifted - SHIFT
    r = y - k * LN2_HIGH - k * LN2_LOW
    q = r + r * r * (E2 + r * (E3 + r * (E4 + r * (E5 + r * (E6 + r * E7)))))  # exp(r) − 1
    power = np.int32((np.float32(shifted).view(np.int32) + BIAS) << EXPONENT).view(np.float32)  # 2^k
    p = power * q + (power - ONE)
    magnitude = -p / (p + TWO)
    return -magnitude if x < 0 else magnitude


@njit_cached
def exp_scalar(x):  # type: ignore[no-untyped-def]
    """Return exp x for x ≤ 0, at least exp(−80), with a relative error below 2e-7."""
    y = -EIGHTY if x < -EIGHTY else x
    shifted = y * LOG2_E + SHIFT
    k = shifted - SHIFT
    r = y - k * LN2_HIGH - k * LN2_LOW
    q = r + r * r * (E2 + r * (E3 + r * (E4 + r * (E5 + r * (E6 + r * E7)))))
    return np.int32((np.float32(shifted).view(np.int32) + BIAS) << EXPONENT).view(np.float32) * (ONE + q)


@njit_cached
def log_scalar(x):  # type: ignore[no-untyped-def]
    """Return log x of a normal number x > 0, with an error below 2e-7.

    log x = k ln 2 + 2 artanh((m − 1) / (m + 1)), where x = 2^k m.
    """
    bits = np.float32(x).view(np.int32)
    k = np.int32(bits >> EXPONENT) - BIAS
    m = np.int32((bits & MANTISSA) | (BIAS << EXPONENT)).view(np.float32)
    if m > ROOT2:
        m = HALF * m
        k = k + np.int32(1)
    s = (m - ONE) / (m + ONE)
    z = s * s
    return np.float32(k) * LN2 + TWO * s * (ONE + z * (A3 + z * (A5 + z * (A7 + z * A9))))


@njit_cached
def gumbel_scalar(u):  # type: ignore[no-untyped-def]
    """Return −log(−log u) of a number u in [0, 1)."""
    return -log_scalar(-log_scalar(u)) if u > 0 else LEAST


@njit_cached
def _tanh(x, out):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        out[i] = tanh_scalar(x[i])


@njit_cached
def _gumbel(u, out):  # type: ignore[no-untyped-def]
    for i in range(u.size):
        out[i] = gumbel_scalar(u[i])


def tanh(x: Array) -> Array:
    """Return tanh x of an array of any shape; by NumPy unless it is float32."""
    if x.dtype != np.float32:
        return np.asarray(np.tanh(x))
    x = np.ascontiguousarray(x)
    out = np.empty_like(x)
    _tanh(x.reshape(-1), out.reshape(-1))
    return out


def gumbel(uniforms: Array) -> Array:
    """Return Gumbel noise −log(−log u) from uniforms in [0, 1), float32 of any shape; −∞ for 0."""
    uniforms = np.ascontiguousarray(uniforms)
    out = np.empty_like(uniforms)
    _gumbel(uniforms.reshape(-1), out.reshape(-1))
    return out
