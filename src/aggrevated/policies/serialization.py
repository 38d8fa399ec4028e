"""Files of policies: weights, architecture, space adapter and model card. Loading needs no training code.

Classes of policies and heads that can be saved have a `registry_name`, `architecture` and
`from_architecture`.
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
LAYERS = 1000  # the most entries of a list in an architecture


def save_policy(policy: Policy, path: Path, card: JsonDict) -> None:
    """Save a policy as a checksummed file; `load_policy` loads it."""
    shape = policy.architecture()
    head: Any = policy.head  # a user-defined head may have no registry name
    if (
        list_policy_classes().get(policy.registry_name) is not type(policy)
        or type(head) not in list_head_classes().values()
    ):
        names = f"a {type(policy).__name__} with a {type(head).__name__}"
        raise UsageError(f"{names} is of a class of your own, which cannot be loaded: save its state_dict")
    try:
        check_saved_policy(policy, policy.state_dict())
    except ValueError as error:
        raise UsageError(f"this policy cannot be saved: {error}; fix that first") from error
    metadata = {
        "format": FORMAT,
        "version": __version__,
        "policy": {"kind": policy.registry_name, "shape": shape},
        "head": {"kind": head.registry_name, "shape": head.architecture()},
        "space_adapter": None if policy.space_adapter is None else policy.space_adapter.to_dict(),
        "card": card,
    }
    storage.save_checksummed(path, policy.state_dict(), metadata)


def load_policy(path: Path | str) -> Policy:
    """Load a policy from a file that `Policy.save` wrote.

    Args:
        path: The file.

    Returns:
        The policy, ready for `predict`.

    Raises:
        DataError: The file is damaged, or is not a policy of this version.

    Example:
        >>> from aggrevated import CategoricalHead, FeedForwardPolicy
        >>> FeedForwardPolicy(4, CategoricalHead(2)).save("policy.safetensors")
        >>> load_policy("policy.safetensors").architecture()
        {'observations': 4, 'hidden': [64]}
    """
    source = Path(path)
    weights, metadata = storage.load_checksummed(source)
    if metadata.get("format") != FORMAT:
        if "so_far" in metadata:
            raise DataError(f"{source} is part of a run; export it: 'aggrevated export {source.parent}'")
        raise DataError(f"{source} is not a policy; pass a file that policy.save wrote")
    try:
        policy = build_without_weights(metadata)
        dtypes = {name: tensor.dtype for name, tensor in policy.state_dict().items()}
        policy.load_state_dict({name: tensor.clone() for name, tensor in weights.items()}, assign=True)
        if any(tensor.dtype != dtypes[name] for name, tensor in weights.items()):
            raise ValueError("its weights are of another number type")
        if metadata["space_adapter"] is not None:
            policy.space_adapter = SpaceAdapter.from_dict(metadata["space_adapter"], source)
        check_saved_policy(policy, weights)
        policy.metadata = dict(metadata["card"])
    except DataError:
        raise
    except Exception as error:  # the file may come from anywhere, and hold anything
        raise DataError(
            f"{source} is not a policy that this version, {__version__}, can load "
            f"({truncate_message(error)}); save it again"
        ) from error
    return policy


def build_without_weights(metadata: JsonDict) -> Policy:
    """Build a policy from a file's metadata on torch's meta device, which allocates no memory for weights."""
    of_policy = metadata["policy"]
    of_head = metadata["head"]
    shape = of_policy["shape"]
    if any(len(value) > LAYERS for value in shape.values() if isinstance(value, list)):
        raise ValueError(f"it has more than {LAYERS} layers")
    observations = shape["observations"]
    if not 0 < (math.prod(observations) if isinstance(observations, list) else observations) <= MAX_VECTOR_SIZE:
        raise ValueError(f"the size of its observations is {observations}, not 1 to {MAX_VECTOR_SIZE:,}")
    with torch.device("meta"):
        head = find_class(of_head["kind"], list_head_classes()).from_architecture(of_head["shape"])
        policy: Policy = find_class(of_policy["kind"], list_policy_classes()).from_architecture(shape, head)
    return policy


def find_class(name: str, classes: dict[str, Any]) -> Any:
    """Return the class of that registry name."""
    if name not in classes:
        raise ValueError(f"it is of the class {name!r}, not one of {', '.join(classes)}")
    return classes[name]


def check_saved_policy(policy: Policy, weights: dict[str, Tensor]) -> None:
    """Raise a `ValueError` if weights are not finite, or if the space adapter does not fit the policy."""
    if not all(tensor.isfinite().all() for tensor in weights.values()):
        raise ValueError("some of its weights are not finite")
    if policy.space_adapter is None:
        return
    observations = policy.space_adapter.learner_observation_space
    actions = policy.space_adapter.action_space
    shape = get_observation_shape(policy)
    if observations.shape != shape:
        raise ValueError(f"it reads observations {shape}, those of its environment are {observations.shape}")
    count = actions.n if isinstance(actions, Discrete) else len(actions.low)
    if count != policy.head.outputs or isinstance(actions, Discrete) != has_discrete_actions(policy):
        raise ValueError(f"its actions are not those of its environment, {actions}")


def get_observation_shape(policy: Policy) -> tuple[int, ...]:
    """Return the shape of one observation."""
    shape = policy.architecture()["observations"]
    return (shape,) if isinstance(shape, int) else tuple(shape)


def has_discrete_actions(policy: Policy) -> bool:
    """Return whether the actions are a finite set."""
    return isinstance(policy.head, CategoricalHead)


@cache
def list_policy_classes() -> dict[str, type[Policy]]:
    """Return the policy classes that can be saved, by registry name."""
    classes = list_saveable_classes("aggrevated.policies")
    return {cls.registry_name: cls for cls in classes if issubclass(cls, Policy)}


@cache
def list_head_classes() -> dict[str, Any]:
    """Return the head classes that can be saved, by registry name."""
    classes: list[Any] = list_saveable_classes("aggrevated.policies.heads")
    return {cls.registry_name: cls for cls in classes if issubclass(cls, nn.Module)}


def list_saveable_classes(package: str) -> list[type]:
    """Return the classes of a package that have a registry name."""
    values = [value for name in list_modules(package) for value in vars(import_module(name)).values()]
    return [value for value in values if isinstance(value, type) and vars(value).get("registry_name")]
