"""Fit of a small feed-forward network to a projection target, with all minibatches in one compiled loop.

For a network of a thousand weights, torch spends most of its time on function calls. Minibatches, gradients and
Adam's moments equal those of torch up to the order of sums.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from aggrevated.core.arrays import Array
from aggrevated.kernels.adam import FIRST, SECOND, Adam, init_moments
from aggrevated.kernels.elementary_functions import ONE, TWO, ZERO, exp_scalar
from aggrevated.kernels.linear_algebra import add_row, copy_row, njit_cached
from aggrevated.policies import Policy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import GaussianHead, Head
from aggrevated.updates.projection_targets import CategoricalTarget, GaussianTarget, ProjectionTarget

MAX_COMPILED_WEIGHTS = 3000  # with more weights torch is as fast
# Adam's parameters, with torch's defaults
BETA1 = 0.9
BETA2 = 0.999
EPSILON = np.float32(1e-8)


def supports_compiled_fit(policy: Policy, target: ProjectionTarget, legal: Tensor) -> bool:
    """Return whether `fit_mlp` can fit the policy to the target."""
    if (
        type(policy) is not FeedForwardPolicy
        or not isinstance(target, CategoricalTarget | GaussianTarget)
        or legal.shape[-1]
    ):
        return False
    if not all(isinstance(layer, nn.Linear | nn.ReLU) for layer in policy.network):
        return False
    weights = list(policy.network.parameters())
    return all(w.dtype == torch.float32 for w in weights) and sum(w.numel() for w in weights) <= MAX_COMPILED_WEIGHTS


def fit_mlp(
    policy: Policy, adam: Adam, inputs: Tensor, target: ProjectionTarget, minibatches: Tensor, max_norm: float
) -> None:
    """Fit the policy to the target by one step of Adam per minibatch, a row of `minibatches` [S, n].

    `inputs` are [N, 1, O]. Gradients are clipped to the norm `max_norm`.
    """
    assert isinstance(policy, FeedForwardPolicy)
    linear = [layer for layer in policy.network if isinstance(layer, nn.Linear)]
    moments = [copy_moments(adam, layer) for layer in linear]
    sizes = [linear[0].in_features, *(layer.out_features for layer in linear)]
    state = [
        [transpose_weights(w) for w in group]
        for group in (
            [layer.weight.detach() for layer in linear], [layer.bias.detach() for layer in linear],
            [w[FIRST] for w, _ in moments], [b[FIRST] for _, b in moments],
            [w[SECOND] for w, _ in moments], [b[SECOND] for _, b in moments],
        )
    ]  # fmt: skip
    gradients = [np.zeros_like(w) for w in state[0]], [np.zeros_like(b) for b in state[1]]
    transposed = tuple(np.ascontiguousarray(w.T) for w in state[0])
    acts, act_gradients = (tuple(np.zeros(size, np.float32) for size in sizes) for _ in range(2))
    step = int(moments[0][0]["step"])
    rate = float(adam.param_groups[0]["lr"])
    _fit(  # type: ignore[call-arg]
        *map(tuple, state), *map(tuple, gradients), transposed, acts, act_gradients,
        inputs[:, 0].contiguous().numpy(), *make_target_arrays(target, policy.head), minibatches.numpy(), step, rate,
        max_norm,
    )  # fmt: skip
    write_back(linear, moments, state, step + len(minibatches))


def copy_moments(adam: Adam, layer: nn.Linear) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return Adam's moments of a layer's weight and bias; make them if there are none yet."""
    moments = []
    for weight in (layer.weight, layer.bias):
        index = next(i for i, w in enumerate(adam.weights) if w is weight)
        moments.append(adam.state.setdefault(index, init_moments(weight)))
    return moments[0], moments[1]


def transpose_weights(weight: Tensor) -> Array:
    """Return a copy [inputs, outputs] of torch's [outputs, inputs]; a bias keeps its shape."""
    return np.ascontiguousarray(weight.numpy().T).copy()


@torch.no_grad()
def write_back(linear: list[nn.Linear], moments: list[Any], state: list[list[Array]], steps: int) -> None:
    """Copy weights, moments and the number of steps into the layers and Adam."""
    for i, (layer, (weight, bias)) in enumerate(zip(linear, moments, strict=True)):
        tensors = (layer.weight, layer.bias, weight[FIRST], bias[FIRST], weight[SECOND], bias[SECOND])
        for tensor, group in zip(tensors, state, strict=True):
            tensor.copy_(torch.from_numpy(group[i].T))
        weight["step"].fill_(steps)
        bias["step"].fill_(steps)


def make_target_arrays(target: ProjectionTarget, head: Head) -> tuple[Array, Array, Array, Array, float, float]:
    """Return (target [N, A], known [N, A], weight [N], unit [A], λ, scale), for both kinds of targets.

    λ < 0 marks a target of means, as outputs of the network; else it is of logits.
    """
    if isinstance(target, CategoricalTarget):
        values, known = (x[:, 0].contiguous().numpy() for x in (target.logits, target.known))
        unit = np.ones(values.shape[1], np.float32)
        uniform_weight = target.uniform_weight
        scale = target.scale
    else:
        assert isinstance(target, GaussianTarget) and isinstance(head, GaussianHead)
        values = ((target.means[:, 0] - head.centre) / head.unit).contiguous().numpy()
        known = np.ones(values.shape, bool)
        uniform_weight = -1.0
        scale = 1.0
        unit = (target.deviation / head.unit).float().numpy()
    weight = target.weight[:, 0].float().contiguous().numpy()
    return values.astype(np.float32, copy=False), known, weight, unit, uniform_weight, scale


@njit_cached
def _fit(  # type: ignore[no-untyped-def]
    weights, biases, first_w, first_b, second_w, second_b, grad_w, grad_b, transposed, acts, act_gradients,
    inputs, target, known, weight, unit, uniform_weight, scale, minibatches, step, rate, max_norm,
):  # fmt: skip
    layers = len(weights)
    for rows in minibatches:
        total = 0.0
        for row in rows:
            total += weight[row]
        for i in range(layers):
            grad_w[i][:] = 0
            grad_b[i][:] = 0
        for row in rows:
            share = np.float32(weight[row] / max(total, 1e-9))
            if share == ZERO:
                continue
            copy_row(acts[0], inputs[row])
            for i in range(layers):
                forward_mlp(acts[i], weights[i], biases[i], acts[i + 1], i + 1 < layers)
            out = acts[layers]
            gradient = act_gradients[layers]
            if uniform_weight < 0:
                compute_mean_loss_gradient(out, target[row], unit, share, gradient)
            else:
                compute_logit_loss_gradient(
                    out, target[row], known[row], np.float32(uniform_weight), np.float32(scale), share, gradient
                )
            for i in range(layers - 1, -1, -1):
                add_layer_gradients(
                    acts[i], act_gradients[i + 1], grad_w[i], grad_b[i], transposed[i], act_gradients[i], i > 0
                )
        norm = 0.0
        for i in range(layers):
            for g in grad_w[i].ravel():
                norm += g * g
            for g in grad_b[i]:
                norm += g * g
        norm = np.sqrt(norm)
        clip = np.float32(max_norm / norm if norm > max_norm else 1.0)
        step += 1
        size = np.float32(rate / (1 - BETA1**step))
        root = np.float32(np.sqrt(1 - BETA2**step))
        for i in range(layers):
            apply_adam_step(
                weights[i].ravel(), grad_w[i].ravel(), first_w[i].ravel(), second_w[i].ravel(), clip, size, root
            )
            apply_adam_step(biases[i], grad_b[i], first_b[i], second_b[i], clip, size, root)
            for j in range(transposed[i].shape[0]):
                for k in range(transposed[i].shape[1]):
                    transposed[i][j, k] = weights[i][k, j]


@njit_cached
def forward_mlp(x, weight, bias, out, relu):  # type: ignore[no-untyped-def]
    """Write x W + b into `out`, with a ReLU if `relu`."""
    copy_row(out, bias)
    add_row(out, x, weight)
    if relu:
        for j in range(len(out)):
            out[j] = max(out[j], ZERO)


@njit_cached
def add_layer_gradients(x, gradient, grad_w, grad_b, transposed, grad_x, relu):  # type: ignore[no-untyped-def]
    """Add the gradients of a layer's weight and bias; write that of its inputs x if they come from a ReLU."""
    for i in range(len(x)):
        value = x[i]
        if value != ZERO:
            for j in range(len(gradient)):
                grad_w[i, j] += value * gradient[j]
    for j in range(len(gradient)):
        grad_b[j] += gradient[j]
    if relu:
        for i in range(len(x)):
            grad_x[i] = ZERO
        add_row(grad_x, gradient, transposed)
        for i in range(len(x)):
            if x[i] <= ZERO:
                grad_x[i] = ZERO


@njit_cached
def compute_logit_loss_gradient(  # type: ignore[no-untyped-def]
    out, target, known, uniform_weight, scale, share, gradient
):
    """Write the gradient of `CategoricalTarget.compute_distance`.

    It is 2 m_a (z_a − g_a − Σ m (z − g)), where m is the measure over actions. For targets of −∞ it is the
    gradient of the cross-entropy: π_a − 1 for the expert action, and π_a for the others.
    """
    maximum = out[0]
    actions = len(out)
    is_label = False
    for a in range(1, actions):
        maximum = max(maximum, out[a])
    total = ZERO
    n_known = ZERO
    for a in range(actions):
        gradient[a] = exp_scalar(out[a] - maximum)
        total += gradient[a]
        n_known += ONE if known[a] else ZERO
        is_label = is_label or target[a] == -np.inf
    if is_label:
        for a in range(actions):
            gradient[a] = share * (gradient[a] / total - (ONE if target[a] == ZERO else ZERO))
        return
    measure = ZERO
    n_known = max(n_known, ONE)
    for a in range(actions):
        gradient[a] = (ONE - uniform_weight) * (gradient[a] / total) + uniform_weight / n_known if known[a] else ZERO
        measure += gradient[a]
    mean = ZERO
    measure = max(measure, np.float32(1e-12))
    for a in range(actions):
        gradient[a] /= measure
        mean += gradient[a] * (out[a] - target[a] if known[a] else ZERO)
    for a in range(actions):
        gradient[a] *= TWO * scale * share * ((out[a] - target[a] if known[a] else ZERO) - mean)


@njit_cached
def compute_mean_loss_gradient(out, target, unit, share, gradient):  # type: ignore[no-untyped-def]
    """Write the gradient of `GaussianTarget.compute_distance`."""
    for a in range(len(out)):
        gradient[a] = TWO * share * (out[a] - target[a]) / (unit[a] * unit[a] * np.float32(len(out)))


@njit_cached
def apply_adam_step(weight, gradient, first, second, clip, size, root):  # type: ignore[no-untyped-def]
    """Change the weights by one step of Adam, with the gradient times `clip`."""
    keep1 = np.float32(1 - BETA1)
    keep2 = np.float32(1 - BETA2)
    for i in range(len(weight)):
        g = gradient[i] * clip
        first[i] += (g - first[i]) * keep1
        second[i] = np.float32(BETA2) * second[i] + keep2 * g * g
        weight[i] -= size * first[i] / (np.sqrt(second[i]) / root + EPSILON)
