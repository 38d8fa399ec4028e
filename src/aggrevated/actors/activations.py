"""Activation functions of torch by their names in torch, with torch's default parameters.

They are compiled loops in float32, so that a row has the same bits alone and in a batch.
"""

from collections.abc import Callable

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.kernels.elementary_functions import exp_scalar, log_scalar, tanh, tanh_scalar
from aggrevated.kernels.linear_algebra import njit_cached

ZERO, HALF, ONE, THREE, SIX, TWENTY = (np.float32(c) for c in (0.0, 0.5, 1.0, 3.0, 6.0, 20.0))
# slopes of leaky_relu, and of rrelu in evaluation mode
SLOPE = np.float32(0.01)
MIDDLE = np.float32((1 / 8 + 1 / 3) / 2)
# constants of selu
ALPHA = np.float32(1.6732632423543772)
SCALE = np.float32(1.0507009873554805)
ROOT_HALF = np.float32(0.5**0.5)
P = np.float32(0.3275911)
E1, E2, E3, E4, E5 = (np.float32(c) for c in (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429))


@njit_cached
def sigmoid_of(x):  # type: ignore[no-untyped-def]
    e = exp_scalar(-abs(x))
    return (ONE if x >= ZERO else e) / (ONE + e)


@njit_cached
def softplus_of(x):  # type: ignore[no-untyped-def]
    return x if x > TWENTY else max(x, ZERO) + log_scalar(ONE + exp_scalar(-abs(x)))


@njit_cached
def relu6_of(x):  # type: ignore[no-untyped-def]
    return min(max(x, ZERO), SIX)


@njit_cached
def hardsigmoid_of(x):  # type: ignore[no-untyped-def]
    return relu6_of(x + THREE) / SIX


@njit_cached
def elu(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = xs[i] if xs[i] > ZERO else exp_scalar(xs[i]) - ONE


@njit_cached
def selu(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = SCALE * (xs[i] if xs[i] > ZERO else ALPHA * (exp_scalar(xs[i]) - ONE))


@njit_cached
def sigmoid(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = sigmoid_of(xs[i])


@njit_cached
def silu(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = xs[i] * sigmoid_of(xs[i])


@njit_cached
def softplus(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = softplus_of(xs[i])


@njit_cached
def logsigmoid(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = min(xs[i], ZERO) - log_scalar(ONE + exp_scalar(-abs(xs[i])))


@njit_cached
def mish(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = xs[i] * tanh_scalar(softplus_of(xs[i]))


@njit_cached
def gelu(xs):  # type: ignore[no-untyped-def]
    """Replace x by x Φ(x), to 2e-7: the error function is Abramowitz and Stegun's 7.1.26."""
    for i in range(xs.size):
        x = xs[i]
        z = abs(x) * ROOT_HALF
        t = ONE / (ONE + P * z)
        tail = HALF * t * (E1 + t * (E2 + t * (E3 + t * (E4 + t * E5)))) * exp_scalar(-z * z)
        xs[i] = x * (tail if x < ZERO else ONE - tail)


@njit_cached
def leaky_relu(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = xs[i] if xs[i] > ZERO else SLOPE * xs[i]


@njit_cached
def rrelu(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = xs[i] if xs[i] > ZERO else MIDDLE * xs[i]


@njit_cached
def relu6(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = relu6_of(xs[i])


@njit_cached
def hardtanh(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = min(max(xs[i], -ONE), ONE)


@njit_cached
def hardsigmoid(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = hardsigmoid_of(xs[i])


@njit_cached
def hardswish(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = xs[i] * hardsigmoid_of(xs[i])


@njit_cached
def hardshrink(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = ZERO if abs(xs[i]) <= HALF else xs[i]


@njit_cached
def softshrink(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = xs[i] - HALF if xs[i] > HALF else xs[i] + HALF if xs[i] < -HALF else ZERO


@njit_cached
def softsign(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = xs[i] / (ONE + abs(xs[i]))


@njit_cached
def tanhshrink(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.size):
        xs[i] = xs[i] - tanh_scalar(xs[i])


def apply_in_place(loop: Callable[[Array], None]) -> Callable[[Array], Array]:
    """Return a function that applies the loop in float32 to an array, which it may change."""

    def activation(x: Array) -> Array:
        single = np.ascontiguousarray(x, np.float32)
        loop(single.reshape(-1))
        return single.astype(x.dtype, copy=False)

    return activation


def relu(x: Array) -> Array:
    return np.maximum(x, ZERO, out=x)


def identity(x: Array) -> Array:
    return x


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": relu,
    "tanh": tanh,
    "identity": identity,
    "elu": apply_in_place(elu),
    "celu": apply_in_place(elu),  # equals elu with torch's default parameters
    "selu": apply_in_place(selu),
    "sigmoid": apply_in_place(sigmoid),
    "silu": apply_in_place(silu),
    "softplus": apply_in_place(softplus),
    "logsigmoid": apply_in_place(logsigmoid),
    "mish": apply_in_place(mish),
    "gelu": apply_in_place(gelu),
    "leaky_relu": apply_in_place(leaky_relu),
    "rrelu": apply_in_place(rrelu),
    "relu6": apply_in_place(relu6),
    "hardtanh": apply_in_place(hardtanh),
    "hardsigmoid": apply_in_place(hardsigmoid),
    "hardswish": apply_in_place(hardswish),
    "hardshrink": apply_in_place(hardshrink),
    "softshrink": apply_in_place(softshrink),
    "softsign": apply_in_place(softsign),
    "tanhshrink": apply_in_place(tanhshrink),
}


def find_activation_name(text: str) -> str | None:
    """Return the name of a torch class from its text, such as "<class 'torch.nn.modules.activation.ELU'>"."""
    for name in ACTIVATIONS:
        module = "linear" if name == "identity" else "activation"
        if text.lower() == f"<class 'torch.nn.modules.{module}.{name.replace('_', '')}'>":
            return name
    return None
