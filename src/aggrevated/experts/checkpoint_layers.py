"""Layers of checkpoints as NumPy networks, and scaling of actions to their bounds."""

import re
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from aggrevated.actors.activations import ACTIVATIONS
from aggrevated.actors.feed_forward import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.storage import truncate_message


def unscale_action(actions: Array, low: Array, high: Array) -> Array:
    """Map actions from [−1, 1] to [low, high]."""
    scaled: Array = low + 0.5 * (actions + 1.0) * (high - low)
    return scaled


def scale_action(actions: Array, low: Array, high: Array) -> Array:
    """Map actions from [low, high] to [−1, 1]."""
    scaled: Array = 2.0 * ((actions - low) / (high - low)) - 1.0
    return scaled


# Stable-Baselines3's names of the layers of each network: ordered by pattern, then by number
NUMBER = r"(\d{1,4})"
Q_NETWORK = (rf"(?:q_net\.)?q_net\.{NUMBER}",)
QUANTILES = (rf"quantile_net\.quantile_net\.{NUMBER}",)
SHARED = rf"mlp_extractor\.shared_net\.{NUMBER}"  # before Stable-Baselines3 1.8
ACTOR = (SHARED, rf"mlp_extractor\.policy_net\.{NUMBER}", "action_net()")
CRITIC = (SHARED, rf"mlp_extractor\.value_net\.{NUMBER}", "value_net()")
SQUASHED = (rf"actor\.latent_pi\.{NUMBER}", rf"actor\.mu(?:\.{NUMBER})?")
DTYPES = (torch.float32, torch.float64)  # of the compiled matrix products


def list_q_critic_layer_names(number: int | str) -> tuple[str, ...]:
    """Return the patterns of the layers of one Q-critic, whose input is observation and action."""
    return (rf"critic\.qf{number}\.{NUMBER}",)


def read_network(weights: dict[str, Tensor], layers: tuple[str, ...], activation: object) -> NumpyNetwork:
    """Return the network of the layers whose names match the patterns.

    Raises:
        KeyError: no name matches, or a bias is missing.
        DataError: the shapes or the activation do not make a network.
    """
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise DataError(
            f"uses {truncate_message(activation)}; pass one with an activation of torch.nn that has no parameters"
        )
    names = find_layer_names(weights, layers)
    if not names:
        raise KeyError(layers)
    matrices = tuple(read_layer_array(weights, f"{name}.weight", 2).T for name in names)  # [inputs, outputs]
    biases = tuple(read_layer_array(weights, f"{name}.bias", 1) for name in names)
    previous_outputs = matrices[0].shape[0]
    for name, matrix, bias in zip(names, matrices, biases, strict=True):
        inputs, outputs = matrix.shape
        if inputs != previous_outputs or outputs != len(bias):
            raise DataError(
                f"has a layer {name} from {inputs} to {outputs} with {len(bias)} biases, but its input has "
                f"{previous_outputs} numbers; save the model again"
            )
        previous_outputs = outputs
    return NumpyNetwork(copy_network(matrices), copy_network(biases), activation)


def find_layer_names(weights: dict[str, Tensor], layers: tuple[str, ...]) -> list[str]:
    """Return the names of the layers that match the patterns, in order."""
    matches = [
        (group, int(match[1] or 0), match[0])
        for group, layer in enumerate(layers)
        for key in weights
        if (match := re.match(f"{layer}(?=\\.weight$)", key, re.ASCII))
    ]
    return [name for _, _, name in sorted(matches)]


def get_layer_sizes(network: NumpyNetwork) -> tuple[int, int]:
    """Return the numbers of inputs and outputs of a network."""
    return network.weights[0].shape[0], network.weights[-1].shape[1]


def average_quantiles(network: NumpyNetwork, outputs: int) -> NumpyNetwork:
    """Return the network with its outputs [quantiles, outputs] averaged over the quantiles."""

    def average(array: Array) -> Array:
        mean: Array = array.reshape(*array.shape[:-1], -1, outputs).mean(axis=-2, dtype=np.float64)
        return mean.astype(array.dtype)

    return replace_last_layer(network, average(network.weights[-1]), average(network.biases[-1]))


def scale_outputs(network: NumpyNetwork, unit: float) -> NumpyNetwork:
    """Return the network with its outputs multiplied by `unit`."""
    if unit == 1:
        return network
    weight = network.weights[-1]
    bias = network.biases[-1]
    return replace_last_layer(network, (weight * unit).astype(weight.dtype), (bias * unit).astype(bias.dtype))


def binary_to_two_class_logits(network: NumpyNetwork) -> NumpyNetwork:
    """Return the network with a zero before each output: the logits of two options per binary choice."""

    def stack_with_zeros(array: Array) -> Array:
        return np.stack([np.zeros_like(array), array], axis=-1).reshape(*array.shape[:-1], -1)

    return replace_last_layer(network, stack_with_zeros(network.weights[-1]), stack_with_zeros(network.biases[-1]))


def replace_last_layer(network: NumpyNetwork, weight: Array, bias: Array) -> NumpyNetwork:
    """Return the network with another last layer."""
    return replace(
        network,
        weights=(*network.weights[:-1], np.ascontiguousarray(weight)),
        biases=(*network.biases[:-1], np.ascontiguousarray(bias)),
    )


def copy_network(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return contiguous copies of arrays, since the file that they are mapped from may change."""
    return tuple(np.array(array, order="C") for array in arrays)


def read_layer_array(weights: dict[str, Tensor], name: str, rank: int) -> Array:
    """Return a tensor as an array, or raise a `DataError` if it is not dense, finite and of that rank."""
    tensor = weights[name].detach()
    dtype_name = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
        raise DataError(f"has a {name} that is not a dense tensor on a CPU; save the model again from a CPU")
    if tensor.dtype not in DTYPES:
        raise DataError(f"has a {name} of {dtype_name}; save the model in float32")
    if tensor.ndim != rank or not tensor.numel():
        raise DataError(
            f"has a {name} of shape {list(tensor.shape)}, which no dense layer has; pass an expert with an MlpPolicy"
        )
    array: Array = tensor.numpy()
    if not np.isfinite([array.min(), array.max()]).all():
        raise DataError(f"has a {name} that is not finite; pass an expert whose training did not diverge")
    return array
