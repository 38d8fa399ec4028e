"""Reading of Stable-Baselines3 zips, tensors and settings, without executing the pickles in them."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from gymnasium.spaces import Box
from torch import Tensor

from aggrevated.actors.activations import find_activation_name
from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.experts.environment_view import EnvironmentView
from aggrevated.experts.network_layouts import FUNCTION, detect_layout
from aggrevated.experts.signatures import split_rows
from aggrevated.storage import (
    MAX_JSON,
    JsonDict,
    decode_utf8,
    open_regular_file,
    open_zip,
    parse_json,
    read_chunks,
    read_state_dict,
    truncate_message,
)

MAX_WEIGHTS = 192 << 20  # bytes, 50 million float32; reading needs twice the memory
SB3_MODULES = re.compile(r"(stable_baselines3|sb3_contrib)\b")  # whose policies this module knows
FLATTENING_EXTRACTORS = ("FlattenExtractor'>", "CombinedExtractor'>")


def load_sb3_zip(path: Path) -> tuple[dict[str, Tensor], JsonDict]:
    """Return the weights in a Stable-Baselines3 zip, and the settings that a network needs."""
    tensors, settings = read_zip(path)
    policy_kwargs = settings.get("policy_kwargs") or {}
    if not isinstance(policy_kwargs, dict):
        raise DataError(f"the expert {path} has policy_kwargs that are not an object; save it again with model.save")
    check_native_file(path, settings.get("policy_class"), policy_kwargs)
    return tensors, {
        "activation": detect_activation(path, tensors, policy_kwargs),
        "gamma": read_discount(path, settings),
        "finite": "log_std" not in tensors if "action_net.weight" in tensors else None,
        "squash": policy_kwargs.get("squash_output") is True,
        "clip_mean": detect_clipping(path, policy_kwargs),
    }


def read_zip(path: Path) -> tuple[dict[str, Tensor], JsonDict]:
    """Return the tensors in a zip by name, and its settings, which are JSON."""
    with open_regular_file(path, "a Stable-Baselines3 model") as file:
        try:
            policy, data = extract_members(file)
            tensors = read_state_dict(policy, MAX_WEIGHTS)
            settings = parse_json(decode_utf8(data))
            if not isinstance(settings, dict):
                raise DataError("its data is not a JSON object")
        except OSError:
            raise
        except Exception as error:  # decoders may raise any exception for hostile bytes
            raise DataError(
                f"{path} is not a Stable-Baselines3 model ({truncate_message(error)}); save it again with model.save"
            ) from error
    return tensors, settings


def extract_members(file: BinaryIO) -> tuple[BinaryIO, bytes]:
    """Return the members policy.pth and data, in memory."""
    with open_zip(file) as archive:
        policy = io.BytesIO()
        policy.writelines(read_chunks(archive, archive.getinfo("policy.pth"), MAX_WEIGHTS))
        return policy, b"".join(read_chunks(archive, archive.getinfo("data"), MAX_JSON))


def check_native_file(path: Path, policy: Any, policy_kwargs: JsonDict) -> None:
    """Raise a `DataError` if the policy or its feature extractor is of a custom class."""
    module = policy.get("__module__") if isinstance(policy, dict) else None
    if module is not None and not SB3_MODULES.match(str(module)):
        raise DataError(f"the expert {path} has a custom policy class, in {truncate_message(module, 60)}; {FUNCTION}")
    extractor = policy_kwargs.get("features_extractor_class")
    if extractor is not None and not (
        str(extractor).endswith(FLATTENING_EXTRACTORS) and SB3_MODULES.search(str(extractor))
    ):
        raise DataError(
            f"the expert {path} has the feature extractor {truncate_message(extractor, 80)}, which is not supported; "
            f"{FUNCTION}"
        )


def detect_activation(path: Path, tensors: dict[str, Tensor], policy_kwargs: JsonDict) -> str:
    """Return the activation that the zip names, or Stable-Baselines3's default for this kind of model."""
    activation_fn = str(policy_kwargs.get("activation_fn", ""))
    if not activation_fn:
        layout = detect_layout(tensors)
        return layout.default_activation if layout else "relu"
    activation = find_activation_name(activation_fn)
    if activation is None:
        raise DataError(
            f"the expert {path} uses {truncate_message(activation_fn)}; pass one with an activation of torch.nn "
            "that has no parameters"
        )
    return activation


def read_discount(path: Path, settings: JsonDict) -> float:
    """Return the discount γ of the settings, or raise a `DataError` if it is not in [0, 1]."""
    gamma: Any = settings.get("gamma", 0.99)
    if not isinstance(gamma, int | float) or isinstance(gamma, bool) or not 0 <= gamma <= 1:
        raise DataError(
            f"the expert {path} has gamma {truncate_message(gamma, 40)}; pass one with a number from 0 to 1"
        )
    return float(gamma)


def detect_clipping(path: Path, policy_kwargs: JsonDict) -> float:
    """Return the bound to which a SAC with state-dependent exploration clips its mean."""
    clip: Any = policy_kwargs.get("clip_mean", 2.0)
    if not isinstance(clip, int | float) or isinstance(clip, bool) or not 0 <= clip < 1e30:
        raise DataError(
            f"the expert {path} has clip_mean {truncate_message(clip, 40)}; pass one with a number of at least 0"
        )
    return float(clip)


@dataclass(frozen=True)
class SB3PredictExpert:
    """A Stable-Baselines3 model that acts by `predict(observation, deterministic=True)`.

    `predict` receives a batch if observations are a Box, else one observation at a time.
    """

    name: str
    model: Any
    environment: EnvironmentView

    def act(self, states: Array, t: int) -> Array:
        from aggrevated.experts.torch_modules import single_torch_thread

        part = f"the expert {self.name}"
        n = len(states)
        with single_torch_thread():
            if isinstance(self.environment.space_adapter.observations, Box):
                actions = split_rows(self._predict(self.environment.batch(states)), n, part) if n else []
            else:
                actions = [self._predict(observation) for observation in self.environment.observations(states)]
        return self.environment.to_simulator_actions(part, actions)

    def _predict(self, observations: Any) -> Any:
        action, memory = self.model.predict(observations, deterministic=True)
        if memory is not None and np.size(memory):
            raise UsageError(
                f"the expert {self.name} has a recurrent policy, but an expert's action must depend on the state "
                "alone; pass one without a recurrent policy"
            )
        return action
