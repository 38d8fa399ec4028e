"""The fit of a small feed-forward network to a goal, all its minibatches in one compiled loop.

What torch does for a network of a thousand weights is mostly to call functions. It is the same fit: the same
minibatches, the gradient of the same distance, Adam with the same moments; only sums are taken in another order.
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

MAX_COMPILED_WEIGHTS = 3000  # from there on torch is as fast
# of Adam, as torch has them
BETA1 = 0.9
BETA2 = 0.999
EPSILON = np.float32(1e-8)


def supports_compiled_fit(policy: Policy, goal: ProjectionTarget, legal: Tensor) -> bool:
    """Whether there is a compiled fit for it."""
    if (
        type(policy) is not FeedForwardPolicy
        or not isinstance(goal, CategoricalTarget | GaussianTarget)
        or legal.shape[-1]
    ):
        return False
    if not all(isinstance(layer, nn.Linear | nn.ReLU) for layer in policy.network):
        return False
    weights = list(policy.network.parameters())
    return all(w.dtype == torch.float32 for w in weights) and sum(w.numel() for w in weights) <= MAX_COMPILED_WEIGHTS


def fit_mlp(
    policy: Policy, adam: Adam, seen: Tensor, goal: ProjectionTarget, minibatches: Tensor, longest: float
) -> None:
    """Step the weights by Adam, once for each row of `minibatches` [S, n], by steps `seen` [N, 1, O] and their goals.

    Gradients that are longer than `longest` are shortened.
    """
    assert isinstance(policy, FeedForwardPolicy)
    linear = [layer for layer in policy.network if isinstance(layer, nn.Linear)]
    own = [copy_moments(adam, layer) for layer in linear]
    sizes = [linear[0].in_features, *(layer.out_features for layer in linear)]
    state = [
        [transpose_weights(w) for w in group]
        for group in (
            [layer.weight.detach() for layer in linear], [layer.bias.detach() for layer in linear],
            [w[FIRST] for w, _ in own], [b[FIRST] for _, b in own],
            [w[SECOND] for w, _ in own], [b[SECOND] for _, b in own],
        )
    ]  # fmt: skip
    gradients = [np.zeros_like(w) for w in state[0]], [np.zeros_like(b) for b in state[1]]
    back = tuple(np.ascontiguousarray(w.T) for w in state[0])
    acts, pulls = (tuple(np.zeros(size, np.float32) for size in sizes) for _ in range(2))
    step = int(own[0][0]["step"])
    rate = float(adam.param_groups[0]["lr"])
    _fit(  # type: ignore[call-arg]
        *map(tuple, state), *map(tuple, gradients), back, acts, pulls, seen[:, 0].contiguous().numpy(),
        *make_target_arrays(goal, policy.head), minibatches.numpy(), step, rate, longest,
    )  # fmt: skip
    write_back(linear, own, state, step + len(minibatches))


def copy_moments(adam: Adam, layer: nn.Linear) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Adam's moments of a layer's weight and bias, made if there are none yet."""
    found = []
    for weight in (layer.weight, layer.bias):
        place = next(i for i, w in enumerate(adam.weights) if w is weight)
        found.append(adam.state.setdefault(place, init_moments(weight)))
    return found[0], found[1]


def transpose_weights(weight: Tensor) -> Array:
    """[inputs, outputs], from torch's [outputs, inputs]; a bias as it is. A copy."""
    return np.ascontiguousarray(weight.numpy().T).copy()


@torch.no_grad()
def write_back(linear: list[nn.Linear], own: list[Any], state: list[list[Array]], steps: int) -> None:
    """Give the layers and Adam what came out."""
    for i, (layer, (weight, bias)) in enumerate(zip(linear, own, strict=True)):
        places = (layer.weight, layer.bias, weight[FIRST], bias[FIRST], weight[SECOND], bias[SECOND])
        for place, group in zip(places, state, strict=True):
            place.copy_(torch.from_numpy(group[i].T))
        weight["step"].fill_(steps)
        bias["step"].fill_(steps)


def make_target_arrays(goal: ProjectionTarget, head: Head) -> tuple[Array, Array, Array, Array, float, float]:
    """(what is wanted [N, A], which of it is known [N, A], weight [N], unit [A], λ, scale), for both kinds of goal.

    λ < 0 says that it is of means, not of logits; what is wanted are then the outputs that the head makes them of.
    """
    if isinstance(goal, CategoricalTarget):
        wanted, known = (x[:, 0].contiguous().numpy() for x in (goal.logits, goal.known))
        unit = np.ones(wanted.shape[1], np.float32)
        exploring = goal.uniform_weight
        scale = goal.scale
    else:
        assert isinstance(goal, GaussianTarget) and isinstance(head, GaussianHead)
        wanted = ((goal.means[:, 0] - head.centre) / head.unit).contiguous().numpy()
        known = np.ones(wanted.shape, bool)
        exploring = -1.0
        scale = 1.0
        unit = (goal.deviation / head.unit).float().numpy()
    weight = goal.weight[:, 0].float().contiguous().numpy()
    return wanted.astype(np.float32, copy=False), known, weight, unit, exploring, scale


@njit_cached
def _fit(  # type: ignore[no-untyped-def]
    weights, biases, first_w, first_b, second_w, second_b, of_w, of_b, back, acts, pulls,
    seen, wanted, known, weight, unit, exploring, scale, minibatches, step, rate, longest,
):  # fmt: skip
    layers = len(weights)
    for rows in minibatches:
        total = 0.0
        for row in rows:
            total += weight[row]
        for i in range(layers):
            of_w[i][:] = 0
            of_b[i][:] = 0
        for row in rows:
            share = np.float32(weight[row] / max(total, 1e-9))
            if share == ZERO:
                continue
            copy_row(acts[0], seen[row])
            for i in range(layers):
                forward_mlp(acts[i], weights[i], biases[i], acts[i + 1], i + 1 < layers)
            out = acts[layers]
            pull = pulls[layers]
            if exploring < 0:
                compute_mean_loss_gradient(out, wanted[row], unit, share, pull)
            else:
                compute_logit_loss_gradient(
                    out, wanted[row], known[row], np.float32(exploring), np.float32(scale), share, pull
                )
            for i in range(layers - 1, -1, -1):
                add_layer_gradients(acts[i], pulls[i + 1], of_w[i], of_b[i], back[i], pulls[i], i > 0)
        length = 0.0
        for i in range(layers):
            for g in of_w[i].ravel():
                length += g * g
            for g in of_b[i]:
                length += g * g
        length = np.sqrt(length)
        shorter = np.float32(longest / length if length > longest else 1.0)
        step += 1
        size = np.float32(rate / (1 - BETA1**step))
        root = np.float32(np.sqrt(1 - BETA2**step))
        for i in range(layers):
            apply_adam_step(
                weights[i].ravel(), of_w[i].ravel(), first_w[i].ravel(), second_w[i].ravel(), shorter, size, root
            )
            apply_adam_step(biases[i], of_b[i], first_b[i], second_b[i], shorter, size, root)
            for j in range(back[i].shape[0]):
                for k in range(back[i].shape[1]):
                    back[i][j, k] = weights[i][k, j]


@njit_cached
def forward_mlp(x, weight, bias, out, bent):  # type: ignore[no-untyped-def]
    """Write x W + b, through a ReLU where it is `bent`."""
    copy_row(out, bias)
    add_row(out, x, weight)
    if bent:
        for j in range(len(out)):
            out[j] = max(out[j], ZERO)


@njit_cached
def add_layer_gradients(x, pull, of_weight, of_bias, back, before, further):  # type: ignore[no-untyped-def]
    """Add the gradients of a layer, and write that of its inputs x, which are what a ReLU gave, if it goes further."""
    for i in range(len(x)):
        own = x[i]
        if own != ZERO:
            for j in range(len(pull)):
                of_weight[i, j] += own * pull[j]
    for j in range(len(pull)):
        of_bias[j] += pull[j]
    if further:
        for i in range(len(x)):
            before[i] = ZERO
        add_row(before, pull, back)
        for i in range(len(x)):
            if x[i] <= ZERO:
                before[i] = ZERO


@njit_cached
def compute_logit_loss_gradient(out, wanted, known, exploring, scale, share, pull):  # type: ignore[no-untyped-def]
    """Write the gradient of `Logits.distance`, 2 m_a (z_a − g_a − Σ m (z − g)), where m is the measure of actions.

    Where goals are −∞ it is that of cross-entropy, π_a − 1 for the action that is not, and π_a for the others.
    """
    most = out[0]
    actions = len(out)
    advised = False
    for a in range(1, actions):
        most = max(most, out[a])
    total = ZERO
    some = ZERO
    for a in range(actions):
        pull[a] = exp_scalar(out[a] - most)
        total += pull[a]
        some += ONE if known[a] else ZERO
        advised = advised or wanted[a] == -np.inf
    if advised:
        for a in range(actions):
            pull[a] = share * (pull[a] / total - (ONE if wanted[a] == ZERO else ZERO))
        return
    measured = ZERO
    some = max(some, ONE)
    for a in range(actions):
        pull[a] = (ONE - exploring) * (pull[a] / total) + exploring / some if known[a] else ZERO
        measured += pull[a]
    mean = ZERO
    measured = max(measured, np.float32(1e-12))
    for a in range(actions):
        pull[a] /= measured
        mean += pull[a] * (out[a] - wanted[a] if known[a] else ZERO)
    for a in range(actions):
        pull[a] *= TWO * scale * share * ((out[a] - wanted[a] if known[a] else ZERO) - mean)


@njit_cached
def compute_mean_loss_gradient(out, wanted, unit, share, pull):  # type: ignore[no-untyped-def]
    """Write the gradient of `Means.distance`."""
    for a in range(len(out)):
        pull[a] = TWO * share * (out[a] - wanted[a]) / (unit[a] * unit[a] * np.float32(len(out)))


@njit_cached
def apply_adam_step(weight, gradient, first, second, shorter, size, root):  # type: ignore[no-untyped-def]
    """A step of Adam."""
    keep1 = np.float32(1 - BETA1)
    keep2 = np.float32(1 - BETA2)
    for i in range(len(weight)):
        g = gradient[i] * shorter
        first[i] += (g - first[i]) * keep1
        second[i] = np.float32(BETA2) * second[i] + keep2 * g * g
        weight[i] -= size * first[i] / (np.sqrt(second[i]) / root + EPSILON)
