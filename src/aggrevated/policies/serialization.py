"""A policy as one file: weights, shape, what it reads and does outside, and a card. Reading needs no training code.

A class of `policies` announces itself by `registry_name`, with `architecture` and `from_architecture`; so does a head.
"""

import math
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from gymnasium.spaces import Discrete
from torch import Tensor, nn

from aggrevated import __version__, storage
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.registry import list_modules
from aggrevated.core.spaces import MAX_VECTOR_SIZE, SpaceAdapter
from aggrevated.policies import Policy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.storage import JsonDict, truncate_message

FORMAT = "aggrevated policy 1"
LAYERS = 1000  # in one list of a shape, at most


def save_policy(policy: Policy, path: Path, card: JsonDict) -> None:
    """Write it, sealed; `load` makes it again."""
    shape = policy.architecture()
    head: Any = policy.head  # one of somebody else's may be of no kind
    if (
        list_policy_classes().get(policy.registry_name) is not type(policy)
        or type(head) not in list_head_classes().values()
    ):
        names = f"a {type(policy).__name__} with a {type(head).__name__}"
        raise UsageError(f"{names} is of a class of your own, which no file can bring back: save its state_dict")
    try:
        check_saved_policy(policy, policy.state_dict())
    except ValueError as error:
        raise UsageError(f"this policy cannot be saved: {error}; mend that first") from error
    facts = {
        "format": FORMAT,
        "version": __version__,
        "policy": {"kind": policy.registry_name, "shape": shape},
        "head": {"kind": head.registry_name, "shape": head.architecture()},
        "space_adapter": None if policy.space_adapter is None else policy.space_adapter.to_dict(),
        "card": card,
    }
    storage.save_checksummed(path, policy.state_dict(), facts)


def load_policy(path: Path | str) -> Policy:
    """The policy that `policy.save` wrote, ready to `predict`; a `DataError` where the file is not that."""
    source = Path(path)
    weights, facts = storage.load_checksummed(source)
    if facts.get("format") != FORMAT:
        of_a_run = "so_far" in facts
        remedy = f"export it: 'aggrevated export {source.parent}'" if of_a_run else "give one that policy.save wrote"
        raise DataError(f"{source} is {'part of a run' if of_a_run else 'no policy'}; {remedy}")
    try:
        policy = build_without_weights(facts)
        kinds_of_numbers = {name: tensor.dtype for name, tensor in policy.state_dict().items()}
        policy.load_state_dict({name: tensor.clone() for name, tensor in weights.items()}, assign=True)
        if any(tensor.dtype != kinds_of_numbers[name] for name, tensor in weights.items()):
            raise ValueError("its weights are numbers of another type")
        if facts["space_adapter"] is not None:
            policy.space_adapter = SpaceAdapter.from_dict(facts["space_adapter"], source)
        check_saved_policy(policy, weights)
        policy.metadata = dict(facts["card"])
    except DataError:
        raise
    except Exception as error:  # it is anybody's file: what is wrong is noticed here and there
        raise DataError(
            f"{source} is no policy that this version, {__version__}, can make again "
            f"({truncate_message(error)}); save it again"
        ) from error
    return policy


def build_without_weights(facts: JsonDict) -> Policy:
    """Of the shape that the facts tell, and without memory for its weights, however many they say there are."""
    own = facts["policy"]
    of_head = facts["head"]
    if any(len(value) > LAYERS for value in own["shape"].values() if isinstance(value, list)):
        raise ValueError(f"it has more than {LAYERS} layers")
    seen = own["shape"]["observations"]
    if not 0 < (math.prod(seen) if isinstance(seen, list) else seen) <= MAX_VECTOR_SIZE:
        raise ValueError(f"it reads {seen} numbers")
    with torch.device("meta"):
        head = find_class(of_head["kind"], list_head_classes()).from_architecture(of_head["shape"])
        policy: Policy = find_class(own["kind"], list_policy_classes()).from_architecture(own["shape"], head)
    return policy


def find_class(kind: str, among: dict[str, Any]) -> Any:
    """The class of that kind."""
    if kind not in among:
        raise ValueError(f"of the kind {kind!r}, where there are {', '.join(among)}")
    return among[kind]


def check_saved_policy(policy: Policy, weights: dict[str, Tensor]) -> None:
    """A `ValueError` where weights are no numbers, or the translation is not between such a policy and its world."""
    if not all(tensor.isfinite().all() for tensor in weights.values()):
        raise ValueError("some of its weights are not finite")
    if policy.space_adapter is None:
        return
    seen = policy.space_adapter.learner_observation_space
    actions = policy.space_adapter.action_space
    if seen.shape != get_observation_shape(policy):
        raise ValueError(f"it reads {get_observation_shape(policy)}, and its environment shows {seen.shape}")
    count = actions.n if isinstance(actions, Discrete) else len(actions.low)
    if count != policy.head.outputs or isinstance(actions, Discrete) != has_discrete_actions(policy):
        raise ValueError(f"its actions are not those of its environment, {actions}")


def get_observation_shape(policy: Policy) -> tuple[int, ...]:
    """Of what it sees at one step."""
    said = policy.architecture()["observations"]
    return (said,) if isinstance(said, int) else tuple(said)


def has_discrete_actions(policy: Policy) -> bool:
    """Whether it chooses from a finite set."""
    return isinstance(policy.head, CategoricalHead)


@cache
def list_policy_classes() -> dict[str, type[Policy]]:
    """Every kind of policy in this folder, by what its file says."""
    return {
        found.registry_name: found
        for found in list_saveable_classes("aggrevated.policies")
        if issubclass(found, Policy)
    }


@cache
def list_head_classes() -> dict[str, Any]:
    """The same of heads."""
    classes: list[Any] = list_saveable_classes("aggrevated.policies.heads")
    return {found.registry_name: found for found in classes if issubclass(found, nn.Module)}


def list_saveable_classes(folder: str) -> list[type]:
    """Those with a kind of their own."""
    values = [value for name in list_modules(folder) for value in vars(import_module(name)).values()]
    return [value for value in values if isinstance(value, type) and vars(value).get("registry_name")]
