"""What a Stable-Baselines3 zip holds: its tensors, and what it says in words. Nothing that is pickled in it is run."""

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
from aggrevated.experts.checkpoint_formats import FUNCTION, detect_format
from aggrevated.experts.environment_view import EnvironmentView
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

MAX_WEIGHTS = 192 << 20  # bytes, 50 million float32: reading takes twice as much
OWN = re.compile(r"(stable_baselines3|sb3_contrib)\b")  # modules whose policies do what the names of their tensors say
FLATTENING = ("FlattenExtractor'>", "CombinedExtractor'>")


def load_sb3_zip(path: Path) -> tuple[dict[str, Tensor], JsonDict]:
    """The weights in a Stable-Baselines3 zip, and of all that it says, what a network needs to be run."""
    tensors, settings = read_zip(path)
    layout = settings.get("policy_kwargs") or {}
    if not isinstance(layout, dict):
        raise DataError(f"the expert {path} has policy_kwargs that are no object; save it again with model.save")
    check_native_file(path, settings.get("policy_class"), layout)
    return tensors, {
        "activation": detect_activation(path, tensors, layout),
        "gamma": read_discount(path, settings),
        "finite": "log_std" not in tensors if "action_net.weight" in tensors else None,
        "squash": layout.get("squash_output") is True,
        "clip_mean": detect_clipping(path, layout),
    }


def read_zip(path: Path) -> tuple[dict[str, Tensor], JsonDict]:
    """(tensors by name, its JSON)."""
    with open_regular_file(path, "a Stable-Baselines3 model") as file:
        try:
            policy, data = extract_members(file)
            tensors = read_state_dict(policy, MAX_WEIGHTS)
            settings = parse_json(decode_utf8(data))
            if not isinstance(settings, dict):
                raise DataError("its data is no JSON object")
        except OSError:
            raise
        except Exception as error:  # what decoders may say about hostile bytes is not written down anywhere
            raise DataError(
                f"{path} is not a Stable-Baselines3 model ({truncate_message(error)}); save it again with model.save"
            ) from error
    return tensors, settings


def extract_members(file: BinaryIO) -> tuple[BinaryIO, bytes]:
    """(policy.pth, data), in memory."""
    with open_zip(file) as archive:
        policy = io.BytesIO()
        policy.writelines(read_chunks(archive, archive.getinfo("policy.pth"), MAX_WEIGHTS))
        return policy, b"".join(read_chunks(archive, archive.getinfo("data"), MAX_JSON))


def check_native_file(path: Path, policy: Any, layout: JsonDict) -> None:
    """Raise a `DataError` if its policy or its features are of a class that may do something else."""
    module = policy.get("__module__") if isinstance(policy, dict) else None
    if module is not None and not OWN.match(str(module)):
        raise DataError(
            f"the expert {path} has a policy of a class of its own, in {truncate_message(module, 60)}; {FUNCTION}"
        )
    features = layout.get("features_extractor_class")
    if features is not None and not (str(features).endswith(FLATTENING) and OWN.search(str(features))):
        raise DataError(f"the expert {path} sees by {truncate_message(features, 80)}, which is not read; {FUNCTION}")


def detect_activation(path: Path, tensors: dict[str, Tensor], layout: JsonDict) -> str:
    """What the zip says in words of its activation, or else Stable-Baselines3's usual one for such a model."""
    named = str(layout.get("activation_fn", ""))
    if not named:
        kind = detect_format(tensors)
        return kind.usual if kind else "relu"
    activation = find_activation_name(named)
    if activation is None:
        raise DataError(
            f"the expert {path} uses {truncate_message(named)}; give one with an activation of torch.nn that "
            "has no parameters"
        )
    return activation


def read_discount(path: Path, settings: JsonDict) -> float:
    """γ, if it is one."""
    gamma: Any = settings.get("gamma", 0.99)
    if not isinstance(gamma, int | float) or isinstance(gamma, bool) or not 0 <= gamma <= 1:
        raise DataError(
            f"the expert {path} has gamma {truncate_message(gamma, 40)}; give one with a number from 0 to 1"
        )
    return float(gamma)


def detect_clipping(path: Path, layout: JsonDict) -> float:
    """Where the mean of a SAC with noise on states is clipped."""
    clip: Any = layout.get("clip_mean", 2.0)
    if not isinstance(clip, int | float) or isinstance(clip, bool) or not 0 <= clip < 1e30:
        raise DataError(
            f"the expert {path} has clip_mean {truncate_message(clip, 40)}; give one with a number that is not negative"
        )
    return float(clip)


@dataclass(frozen=True)
class SB3PredictExpert:
    """By `predict(observation, deterministic=True)`: all at once where observations are a Box, else one by one."""

    name: str
    model: Any
    native: EnvironmentView

    def act(self, states: Array, t: int) -> Array:
        from aggrevated.experts.torch_modules import single_torch_thread

        part = f"the expert {self.name}"
        n = len(states)
        with single_torch_thread():
            if isinstance(self.native.space_adapter.observations, Box):
                chosen = split_rows(self._predict(self.native.batch(states)), n, part) if n else []
            else:
                chosen = [self._predict(one) for one in self.native.observations(states)]
        return self.native.ours(part, chosen)

    def _predict(self, observations: Any) -> Any:
        action, memory = self.model.predict(observations, deterministic=True)
        if memory is not None and np.size(memory):
            raise UsageError(
                f"the expert {self.name} remembers what it saw, and an expert is asked about states alone; give one "
                "without a recurrent policy"
            )
        return action
