"""The networks among the tensors of a file: their layers by name, each checked before it is multiplied with."""

import re

import numpy as np
import torch
from torch import Tensor

from aggrevated.actors.activations import ACTIVATIONS
from aggrevated.actors.networks import NumpyNetwork
from aggrevated.arrays import Array
from aggrevated.errors import DataError
from aggrevated.files import in_short

Q_NETWORK, ACTOR, CRITIC = (  # the layers of each network, in order, by Stable-Baselines3's names
    r"(?:q_net\.)?q_net\.(\d{1,4})",
    r"mlp_extractor\.policy_net\.(\d{1,4})|action_net",
    r"mlp_extractor\.value_net\.(\d{1,4})|value_net",
)
DTYPES = (torch.float32, torch.float64)  # what our products are compiled for


def network(weights: dict[str, Tensor], layers: str, activation: str) -> NumpyNetwork:
    """The network of the layers whose names fit, hidden ones by their number, then the one without.

    `KeyError` if there are none or a bias is missing, `DataError` if they cannot be one network.
    """
    if activation not in ACTIVATIONS:
        raise DataError(f"uses {in_short(activation)}; give one with ReLU or Tanh")
    found = {match[0]: match for key in weights if (match := re.match(f"(?:{layers})(?=\\.weight$)", key, re.ASCII))}
    if not found:
        raise KeyError(layers)
    order = sorted(found, key=lambda name: float(found[name][1] or np.inf))
    matrices = tuple(numbers(weights, f"{name}.weight", 2).T for name in order)  # each [inputs, outputs]
    biases = tuple(numbers(weights, f"{name}.bias", 1) for name in order)
    gives = matrices[0].shape[0]
    for name, matrix, bias in zip(order, matrices, biases, strict=True):
        takes, outputs = matrix.shape
        if takes != gives or outputs != len(bias):
            raise DataError(
                f"has a layer {name} from {takes} to {outputs} with {len(bias)} biases, where {gives} come in; "
                "save the model again"
            )
        gives = outputs
    return NumpyNetwork(copied(matrices), copied(biases), activation)


def copied(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    """Contiguous copies, as the file that they are mapped from may change."""
    return tuple(np.array(array, order="C") for array in arrays)


def numbers(weights: dict[str, Tensor], name: str, rank: int) -> Array:
    """A tensor's finite numbers, if it is plain and of that rank."""
    tensor = weights[name].detach()
    kind = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
        raise DataError(f"has a {name} that is no plain tensor in memory; save the model again from a CPU")
    if tensor.dtype not in DTYPES:
        raise DataError(f"has a {name} of {kind}; save the model in float32")
    if tensor.ndim != rank or not tensor.numel():
        raise DataError(f"has a {name} of shape {list(tensor.shape)}, which is no layer's; save the model again")
    array: Array = tensor.numpy()
    if not np.isfinite([array.min(), array.max()]).all():
        raise DataError(f"has a {name} that is not finite; give an expert whose training did not diverge")
    return array
