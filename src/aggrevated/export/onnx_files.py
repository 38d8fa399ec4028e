"""Export of a policy, from observation to action, as a checked ONNX file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.export.graphs import NUMBERS, Graph
from aggrevated.export.policy_steps import add_policy_step
from aggrevated.policies import Policy
from aggrevated.policies.serialization import get_observation_shape, has_discrete_actions
from aggrevated.storage import JsonDict, write_atomically

TOLERANCE = 1e-5  # relative to the largest number, or to 1
# of the check
STEPS = 8
BATCH = 5


def export_onnx(policy: Policy, path: Path | str, card: JsonDict | None = None) -> float | None:
    """Write a policy as an ONNX file and compare onnxruntime's outputs with the policy's.

    The model's inputs are `observation` [batch, ...], flattened as Gymnasium flattens it, and `state`
    [batch, M] of a policy with memory, zeros at the first step. Its outputs are `action`, then `logits` or
    both `mean` and `deviation`, and `state_out` of a policy with memory.

    Args:
        policy: the policy to export.
        path: the file to write.
        card: metadata to store in the model; None stores `policy.metadata`.

    Returns:
        The largest difference between onnxruntime and the policy, relative to the largest absolute value or
        to 1; None if onnxruntime is not installed.

    Raises:
        UsageError: `onnx` is not installed, or the policy cannot be written as ONNX.
        DataError: onnxruntime and the policy differ by more than `TOLERANCE`.
    """
    model = build_onnx_model(policy, policy.metadata if card is None else card).SerializeToString()
    difference = max_onnx_difference(policy, model)
    write_atomically(Path(path), model)
    return difference


def build_onnx_model(policy: Policy, card: JsonDict) -> Any:
    """Return the ONNX model of a policy with `card` as its metadata."""
    if policy.observe_actions:
        raise UsageError(
            "a policy that sees its previous actions cannot be written as ONNX: the model has no input for them; "
            "save it by policy.save instead, or train it without --observe-actions"
        )
    graph = Graph()
    memory_size = policy.actor().memory(1).shape[1]
    observation = graph.take_in("observation", get_environment_observation_shape(policy))
    state = graph.take_in("state", (memory_size,)) if memory_size else ""
    parameters, next_state = add_policy_step(policy, graph, add_observation_adapter(policy, graph, observation), state)
    if has_discrete_actions(policy):
        add_action_choice(policy, graph, parameters)
    else:
        add_clipping(policy, graph, parameters)
    if memory_size:
        graph.add_output("state_out", next_state, (memory_size,))
    return graph.build_model(
        {name: value if isinstance(value, str) else json.dumps(value) for name, value in card.items()}
    )


def get_environment_observation_shape(policy: Policy) -> tuple[int, ...]:
    """Return the shape of the environment's observation at one step: flat, except for images."""
    return (
        get_observation_shape(policy) if policy.space_adapter is None else policy.space_adapter.observation_space.shape
    )


def add_observation_adapter(policy: Policy, graph: Graph, environment_observation: str) -> str:
    """Add the selection of columns and the normalization, and return the policy's observation."""
    adapter = policy.space_adapter
    observation = environment_observation
    if adapter is None:
        return observation
    if adapter.columns is not None:
        observation = graph.add("Gather", observation, graph.add_constant(adapter.columns, np.int64), axis=1)
    if adapter.mean is not None and adapter.scale is not None:
        exact = graph.add("Cast", observation, to=NUMBERS["float64"])
        centered = graph.add("Sub", exact, graph.add_constant(adapter.mean, np.float64))
        scaled = graph.add("Div", centered, graph.add_constant(adapter.scale, np.float64))
        observation = graph.add("Cast", scaled, to=NUMBERS["float32"])
    return observation


def add_action_choice(policy: Policy, graph: Graph, logits: str) -> None:
    """Add the outputs `logits` and `action`: the likeliest action, in the environment's numbering.

    Environments with several discrete choices per step get one number for each.
    """
    graph.add_output("logits", logits, (policy.head.outputs,))
    action = graph.add("ArgMax", logits, axis=1, keepdims=0)
    shape = tuple[int, ...]()
    if policy.space_adapter is not None:
        native = policy.space_adapter.to_native_actions(np.arange(policy.head.outputs)).reshape(policy.head.outputs, -1)
        shape = () if isinstance(policy.space_adapter.actions, Discrete) else native.shape[1:]
        action = graph.add("Gather", graph.add_constant(native.reshape(-1, *shape), np.int64), action, axis=0)
    graph.add_output("action", action, shape, "int64")


def add_clipping(policy: Policy, graph: Graph, outputs: str) -> None:
    """Add the outputs `mean`, `deviation` and `action`, the mean clipped to the bounds."""
    head: Any = policy.head
    shape = (head.outputs,)
    scaled = graph.add("Mul", outputs, graph.add_constant(head.unit.numpy()))
    mean = graph.add("Add", scaled, graph.add_constant(head.centre.numpy()))
    graph.add_output("mean", mean, shape)
    deviation = graph.add_constant((head.unit * head.log_deviation.detach().exp()).numpy())
    graph.add_output("deviation", graph.add("Expand", deviation, graph.add("Shape", mean)), shape)
    action = mean
    bounds = [(head.low, head.high)]
    if policy.space_adapter is not None:
        space = policy.space_adapter.action_space
        assert isinstance(space, Box)
        bounds.append((space.low, space.high))
    for low, high in bounds:
        above = graph.add("Max", action, graph.add_constant(np.broadcast_to(low, shape)))
        action = graph.add("Min", above, graph.add_constant(np.broadcast_to(high, shape)))
    graph.add_output("action", action, shape)


def max_onnx_difference(policy: Policy, model: bytes) -> float | None:
    """Return the largest difference between onnxruntime and the policy over `STEPS` steps.

    None stands for a missing onnxruntime.

    Raises:
        DataError: the difference is larger than `TOLERANCE`.
    """
    try:
        from onnxruntime import InferenceSession, SessionOptions
    except ImportError:
        return None
    options = SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    actor = policy.actor()
    generator = np.random.default_rng(0)
    worst = 0.0
    memory = state = actor.memory(BATCH)
    for _ in range(STEPS):
        environment_observations = sample_observations(policy, generator)
        observations = (
            environment_observations
            if policy.space_adapter is None
            else policy.space_adapter.view(environment_observations)
        )
        parameters, memory = actor.parameters(observations, memory)
        inputs = {"observation": environment_observations} | ({"state": state} if state.shape[1] else {})
        outputs = dict(zip(names, session.run(names, inputs), strict=True))
        state = outputs.get("state_out", state)
        action_parameters = (
            (outputs["logits"], parameters)
            if has_discrete_actions(policy)
            else (outputs["mean"], actor.choose(parameters, 0.0))
        )
        pairs = [action_parameters, (state, memory)]
        pairs.append((outputs["action"], select_expected_action(policy, outputs, parameters)))
        worst = max(worst, *(compute_relative_difference(*pair) for pair in pairs))
    if not worst <= TOLERANCE:
        raise DataError(
            f"the outputs of the ONNX file differ from the policy's by {worst:.1e}, more than {TOLERANCE:.0e}: this "
            "is a bug of the export, please report it with the policy file"
        )
    return worst


def sample_observations(policy: Policy, generator: np.random.Generator) -> Array:
    """Return a batch of random observations in the range of the environment's."""
    observations = generator.normal(size=(BATCH, *get_environment_observation_shape(policy)))
    if observations.ndim > 2:  # images
        return generator.integers(0, 256, observations.shape).astype(np.float32)
    if policy.space_adapter is None:
        return observations.astype(np.float32)
    if policy.space_adapter.mean is not None and policy.space_adapter.scale is not None:
        columns = slice(None) if policy.space_adapter.columns is None else list(policy.space_adapter.columns)
        observations[:, columns] = observations[:, columns] * policy.space_adapter.scale + policy.space_adapter.mean
    return observations.astype(np.float32)


def select_expected_action(policy: Policy, outputs: dict[str, Array], parameters: Array) -> Array:
    """Return the policy's action; of actions within the tolerance of the best, the one that ONNX prefers."""
    decisive = parameters
    if has_discrete_actions(policy):
        best = parameters.max(axis=1, keepdims=True)
        tied = (parameters > best - 2 * TOLERANCE * np.maximum(1, abs(parameters).max())).sum(axis=1) > 1
        decisive = np.where(tied[:, None], outputs["logits"], parameters)
    action = policy.clip_actions(policy.actor().choose(decisive, 0.0))
    if policy.space_adapter is not None:
        action = policy.space_adapter.to_native_actions(action)
    return action.reshape(outputs["action"].shape)


def compute_relative_difference(actual: Array, expected: Array) -> float:
    """Return the largest difference, relative to the largest expected number or to 1.

    The result is infinite if a number is not finite.
    """
    if not actual.size:
        return 0.0
    if not np.isfinite(actual).all():
        return float("inf")
    return float(np.abs(actual - expected).max() / max(1.0, np.abs(expected).max()))
