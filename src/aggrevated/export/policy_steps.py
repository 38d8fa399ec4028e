"""ONNX graphs of one step of each kind of policy: from observation and memory to parameters of the action."""

from copy import deepcopy
from functools import singledispatch
from typing import TypeAlias

import numpy as np
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from aggrevated.actors.convolutional import WHITE
from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.export.graphs import Graph
from aggrevated.policies import Policy
from aggrevated.policies.convolutional import ConvolutionalPolicy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.mixture import MixturePolicy
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.recurrent_cells import LSTM
from aggrevated.policies.window import WindowPolicy

StepOutputs: TypeAlias = tuple[str, str]  # (parameters [batch, A], state [batch, M])
LEAST = -1e30  # stands for the logarithm of weight 0


@singledispatch
def add_policy_step(policy: Policy, graph: Graph, seen: str, state: str) -> StepOutputs:
    """Add one step of the policy, and return the names of the action's parameters and of the next state.

    Args:
        policy: the policy of the step.
        graph: the graph to extend.
        seen: name of the policy's observation [batch, ...].
        state: name of its memory [batch, M]; empty for a policy without memory.

    Raises:
        UsageError: policies of this kind cannot be written as ONNX.
    """
    raise UsageError(
        f"policies of type {type(policy).__name__} cannot be written as ONNX: save the policy by policy.save, or by "
        "'aggrevated export RUN'"
    )


@add_policy_step.register
def _(policy: FeedForwardPolicy, graph: Graph, seen: str, state: str) -> StepOutputs:
    return add_layers(graph, policy.network, seen), state


@add_policy_step.register
def _(policy: WindowPolicy, graph: Graph, seen: str, state: str) -> StepOutputs:
    window = graph.add("Concat", state, seen, axis=1) if state else seen
    following = graph.add_slice(window, policy.size, policy.size * policy.width) if state else state
    return add_layers(graph, policy.inner.network, window), following


@add_policy_step.register
def _(policy: ConvolutionalPolicy, graph: Graph, seen: str, state: str) -> StepOutputs:
    pictures = graph.add("Reshape", seen, graph.add_constant([-1, *policy.picture], np.int64))
    bright = graph.add("Transpose", graph.add("Div", pictures, graph.add_constant(WHITE)), perm=[0, 3, 1, 2])
    features = graph.add("Transpose", add_layers(graph, policy.convolutions, bright), perm=[0, 2, 3, 1])
    return add_layers(graph, policy.inner.network, graph.add("Flatten", features)), state


@add_policy_step.register
def _(policy: RecurrentPolicy, graph: Graph, seen: str, state: str) -> StepOutputs:
    w, u, b, c = (to_numpy(parameter) for parameter in policy.recurrent.parameters())
    step_of = add_lstm if isinstance(policy.cell, LSTM) else add_gru
    hidden, following = step_of(graph, graph.add_affine(seen, w, b), u, c, state)
    return graph.add_affine(hidden, to_numpy(policy.readout.weight), to_numpy(policy.readout.bias)), following


@add_policy_step.register
def _(policy: MixturePolicy, graph: Graph, seen: str, state: str) -> StepOutputs:
    """Add the step of a mixture of policies: log Σ_j w_j π_j."""
    members = []
    for row in policy.older:
        members.append(deepcopy(policy.newest))
        vector_to_parameters(row, members[-1].parameters())
    members.append(policy.newest)
    states = graph.add_outputs("Split", len(members), state, axis=1) if state else [""] * len(members)
    steps = [
        add_policy_step(member, graph, seen, member_state) for member, member_state in zip(members, states, strict=True)
    ]
    with np.errstate(divide="ignore"):
        log_weights = np.maximum(np.log(policy.shares.numpy()), LEAST)
    weighted = [
        graph.add("Add", graph.add("LogSoftmax", logits, axis=1), graph.add_constant(log_weight))
        for (logits, _), log_weight in zip(steps, log_weights, strict=True)
    ]
    axis = graph.add_constant([0], np.int64)
    stacked = graph.add("Concat", *(graph.add("Unsqueeze", x, axis) for x in weighted), axis=0)
    mixed = graph.add("ReduceLogSumExp", stacked, axes=[0], keepdims=0)
    return mixed, graph.add("Concat", *(next_state for _, next_state in steps), axis=1) if state else state


def add_layers(graph: Graph, network: nn.Sequential, x: str) -> str:
    """Add torch's layers in sequence, and return the name of the last result."""
    for layer in network:
        if isinstance(layer, nn.Linear):
            x = graph.add_affine(x, to_numpy(layer.weight), to_numpy(layer.bias))
        elif isinstance(layer, nn.Conv2d) and isinstance(layer.padding, tuple):
            weights = [graph.add_constant(to_numpy(p)) for p in (layer.weight, layer.bias) if p is not None]
            x = graph.add("Conv", x, *weights, strides=list(layer.stride), pads=[*layer.padding, *layer.padding])
        elif isinstance(layer, nn.ReLU | nn.Tanh):
            x = graph.add("Relu" if isinstance(layer, nn.ReLU) else "Tanh", x)
        else:
            raise UsageError(f"a layer of type {type(layer).__name__} cannot be written as ONNX; use another")
    return x


def add_lstm(graph: Graph, y: str, u: Array, c: Array, state: str) -> StepOutputs:
    """Add one step of `aggrevated.policies.recurrent_cells.LSTM`, and return (h, [h, c])."""
    h, cell = graph.add_outputs("Split", 2, state, axis=1)
    i, f, g, o = graph.add_outputs("Split", 4, graph.add("Add", y, graph.add_affine(h, u, c)), axis=1)
    retained = graph.add("Mul", graph.add("Sigmoid", f), cell)
    cell = graph.add("Add", retained, graph.add("Mul", graph.add("Sigmoid", i), graph.add("Tanh", g)))
    h = graph.add("Mul", graph.add("Sigmoid", o), graph.add("Tanh", cell))
    return h, graph.add("Concat", h, cell, axis=1)


def add_gru(graph: Graph, y: str, u: Array, c: Array, state: str) -> StepOutputs:
    """Add one step of `aggrevated.policies.recurrent_cells.GRU`, and return (h, h)."""
    y_r, y_z, y_n = graph.add_outputs("Split", 3, y, axis=1)
    m_r, m_z, m_n = graph.add_outputs("Split", 3, graph.add_affine(state, u, c), axis=1)
    r, z = (graph.add("Sigmoid", graph.add("Add", *pair)) for pair in ((y_r, m_r), (y_z, m_z)))
    n = graph.add("Tanh", graph.add("Add", y_n, graph.add("Mul", r, m_n)))
    h = graph.add("Add", n, graph.add("Mul", z, graph.add("Sub", state, n)))
    return h, h


def to_numpy(parameter: Tensor) -> Array:
    """Return the current values of a parameter."""
    return parameter.detach().numpy()
