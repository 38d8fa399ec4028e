"""A policy as an ONNX file, from what its environment shows to what it takes, checked against the policy itself."""

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
    """Write it, and give by how much onnxruntime differs from it at most; None where that is not installed.

    Inputs are `observation` [batch, ...], flattened as gymnasium does, and the `state` [batch, M] of a policy that
    remembers, zeros at first. Outputs are `action`, `logits` or `mean` and `deviation`, and `state_out`.
    """
    model = build_onnx_model(policy, policy.metadata if card is None else card).SerializeToString()
    difference = max_onnx_difference(policy, model)
    write_atomically(Path(path), model)
    return difference


def build_onnx_model(policy: Policy, card: JsonDict) -> Any:
    """The model, with the card as its metadata."""
    if policy.observe_actions:
        raise UsageError(
            "a policy that sees its previous actions cannot be written as ONNX, which is not told which were taken; "
            "save it by policy.save instead, or train it without --observe-actions"
        )
    graph = Graph()
    remembered = policy.actor().memory(1).shape[1]
    shown = graph.take_in("observation", get_environment_observation_shape(policy))
    state = graph.take_in("state", (remembered,)) if remembered else ""
    parameters, following = add_policy_step(policy, graph, add_observation_adapter(policy, graph, shown), state)
    if has_discrete_actions(policy):
        add_action_choice(policy, graph, parameters)
    else:
        add_clipping(policy, graph, parameters)
    if remembered:
        graph.add_output("state_out", following, (remembered,))
    return graph.build_model({name: said if isinstance(said, str) else json.dumps(said) for name, said in card.items()})


def get_environment_observation_shape(policy: Policy) -> tuple[int, ...]:
    """Of what the environment shows at one step, flattened but for pictures."""
    return (
        get_observation_shape(policy) if policy.space_adapter is None else policy.space_adapter.observation_space.shape
    )


def add_observation_adapter(policy: Policy, graph: Graph, shown: str) -> str:
    """What the policy sees of it: some columns, less their mean, by their scale."""
    translation = policy.space_adapter
    seen = shown
    if translation is None:
        return seen
    if translation.columns is not None:
        seen = graph.add("Gather", seen, graph.add_constant(translation.columns, np.int64), axis=1)
    if translation.mean is not None and translation.scale is not None:
        exact = graph.add("Cast", seen, to=NUMBERS["float64"])
        centred = graph.add("Sub", exact, graph.add_constant(translation.mean, np.float64))
        scaled = graph.add("Div", centred, graph.add_constant(translation.scale, np.float64))
        seen = graph.add("Cast", scaled, to=NUMBERS["float32"])
    return seen


def add_action_choice(policy: Policy, graph: Graph, logits: str) -> None:
    """`logits` and, as the environment counts, the likeliest `action`; of several choices at once one for each."""
    graph.add_output("logits", logits, (policy.head.outputs,))
    action = graph.add("ArgMax", logits, axis=1, keepdims=0)
    shape = tuple[int, ...]()
    if policy.space_adapter is not None:
        native = policy.space_adapter.to_native_actions(np.arange(policy.head.outputs)).reshape(policy.head.outputs, -1)
        shape = () if isinstance(policy.space_adapter.actions, Discrete) else native.shape[1:]
        action = graph.add("Gather", graph.add_constant(native.reshape(-1, *shape), np.int64), action, axis=0)
    graph.add_output("action", action, shape, "int64")


def add_clipping(policy: Policy, graph: Graph, outputs: str) -> None:
    """`mean`, `deviation` and, within the bounds, the `action`."""
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
    """Between onnxruntime and the policy over some steps; a `DataError` where they are not the same policy."""
    try:
        from onnxruntime import InferenceSession, SessionOptions
    except ImportError:
        return None
    quiet = SessionOptions()
    quiet.log_severity_level = 3
    quiet.intra_op_num_threads = 1
    session = InferenceSession(model, quiet, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    actor = policy.actor()
    generator = np.random.default_rng(0)
    worst = 0.0
    memory = state = actor.memory(BATCH)
    for _ in range(STEPS):
        shown = sample_observations(policy, generator)
        seen = shown if policy.space_adapter is None else policy.space_adapter.view(shown)
        parameters, memory = actor.parameters(seen, memory)
        given = {"observation": shown} | ({"state": state} if state.shape[1] else {})
        found = dict(zip(names, session.run(names, given), strict=True))
        state = found.get("state_out", state)
        told = (
            (found["logits"], parameters)
            if has_discrete_actions(policy)
            else (found["mean"], actor.choose(parameters, 0.0))
        )
        pairs = [told, (state, memory)]
        pairs.append((found["action"], select_expected_action(policy, found, parameters)))
        worst = max(worst, *(compute_relative_difference(*pair) for pair in pairs))
    if not worst <= TOLERANCE:
        raise DataError(
            f"as ONNX the policy differs by {worst:.1e}, more than {TOLERANCE:.0e}; report it with its file"
        )
    return worst


def sample_observations(policy: Policy, generator: np.random.Generator) -> Array:
    """A batch of numbers as the environment might show them."""
    drawn = generator.normal(size=(BATCH, *get_environment_observation_shape(policy)))
    if drawn.ndim > 2:  # pictures
        return generator.integers(0, 256, drawn.shape).astype(np.float32)
    if policy.space_adapter is None:
        return drawn.astype(np.float32)
    if policy.space_adapter.mean is not None and policy.space_adapter.scale is not None:
        columns = slice(None) if policy.space_adapter.columns is None else list(policy.space_adapter.columns)
        drawn[:, columns] = drawn[:, columns] * policy.space_adapter.scale + policy.space_adapter.mean
    return drawn.astype(np.float32)


def select_expected_action(policy: Policy, found: dict[str, Array], parameters: Array) -> Array:
    """The policy's own; where two are equally good within the tolerance, that of what was found."""
    sure = parameters
    if has_discrete_actions(policy):
        best = parameters.max(axis=1, keepdims=True)
        close = (parameters > best - 2 * TOLERANCE * np.maximum(1, abs(parameters).max())).sum(axis=1) > 1
        sure = np.where(close[:, None], found["logits"], parameters)
    action = policy.clip_actions(policy.actor().choose(sure, 0.0))
    if policy.space_adapter is not None:
        action = policy.space_adapter.to_native_actions(action)
    return action.reshape(found["action"].shape)


def compute_relative_difference(found: Array, expected: Array) -> float:
    """The largest, relative to the largest number or to 1; infinite where one of them is no number."""
    if not found.size:
        return 0.0
    if not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))
