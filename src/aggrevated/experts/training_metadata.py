"""What a Stable-Baselines3 zip tells of its training, read without running what is pickled in it."""

from __future__ import annotations

import base64
import binascii
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.errors import DataError
from aggrevated.experts.stable_baselines import unzipped
from aggrevated.storage import Facts, Inert, array_in, number_in, read_inert

ENOUGH = 16  # environments, for a deviation that tells something
# an algorithm by the beginning of a tensor's name and by a setting that only it has
ALGORITHMS = (
    ("q_net.", "", "DQN"),
    ("quantile_net.", "", "QR-DQN"),
    ("action_net.weight", "clip_range", "PPO"),
    ("action_net.weight", "cg_max_steps", "TRPO"),
    ("action_net.weight", "", "A2C"),
    ("actor.", "top_quantiles_to_drop_per_net", "TQC"),
    ("actor.log_std", "", "SAC"),
    ("critic.qf1.", "", "TD3"),
    ("critic.qf0.", "", "DDPG"),
)


def training_facts(path: str | Path) -> Facts:
    """What the zip says of its training; None where it does not say.

    `algorithm`, `timesteps`, `gamma`; `returns` and `lengths` of the last episodes and `observations` (the last that it
    saw) as mean, deviation and count; `mean_return` and `std_return` of these; `observation_mean` and `observation_std`
    of each number, if there were enough environments; `normalised`: whether a `VecNormalize` stood before it.
    """
    tensors, settings = unzipped(Path(path))
    last, original = (observation_in(settings.get(key)) for key in ("_last_obs", "_last_original_obs"))
    episodes = episodes_in(settings.get("ep_info_buffer"))
    returns = summary([r for r, _ in episodes])
    rows = last.reshape(len(last), -1) if last is not None and last.ndim > 1 and len(last) >= ENOUGH else None
    return {
        "algorithm": algorithm_in(tensors, settings),
        "timesteps": plain_number(settings.get("num_timesteps")),
        "gamma": plain_number(settings.get("gamma")),
        "returns": returns,
        "mean_return": returns and returns["mean"],
        "std_return": returns and returns["deviation"],
        "lengths": summary([length for _, length in episodes]),
        "observations": None if last is None else summary(last),
        "observation_mean": None if rows is None else rows.mean(axis=0).tolist(),
        "observation_std": None if rows is None else rows.std(axis=0).tolist(),
        "normalised": normalised(settings, last, original),
    }


def algorithm_in(tensors: dict[str, Tensor], settings: Facts) -> str | None:
    """A guess."""
    for begins, setting, name in ALGORITHMS:
        if any(key.startswith(begins) for key in tensors) and (not setting or setting in settings):
            return name
    return None


def plain_number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value) else None


def unpickled(value: Any) -> Any:
    """What a pickled setting is, inert; None if it cannot be read."""
    text = value.get(":serialized:") if isinstance(value, dict) else None
    with suppress(DataError, binascii.Error, ValueError):
        return read_inert(base64.b64decode(text, validate=True)) if isinstance(text, str) else None
    return None


def observation_in(value: Any) -> Array | None:
    """The numbers of the last observation of each environment, [n, ...] or, of a dictionary, all of them."""
    found = unpickled(value)
    several = found.entries if isinstance(found, Inert) else found
    with suppress(DataError):
        if isinstance(several, dict) and several:
            return np.concatenate([array_in(part).ravel() for part in several.values()])
        return array_in(found)
    return None


def episodes_in(value: Any) -> list[tuple[float, float]]:
    """(return, length) of the last episodes of training."""
    found = unpickled(value)
    episodes = []
    for episode in found.items if isinstance(found, Inert) else []:
        with suppress(DataError, KeyError):
            if isinstance(episode, dict):
                episodes.append((number_in(episode["r"]), number_in(episode["l"])))
    return episodes


def summary(numbers: Any) -> Facts | None:
    """Mean, deviation and count of finite numbers; None if there are none."""
    array = np.asarray(numbers, np.float64).ravel()
    if not array.size or not np.isfinite(array).all():
        return None
    return {"mean": float(array.mean()), "deviation": float(array.std()), "count": array.size}


def normalised(settings: Facts, last: Array | None, original: Array | None) -> bool | None:
    """Whether a `VecNormalize` stood before it; None where that cannot be told.

    Algorithms that learn from their own actions keep the original observation only then. The others always do, but
    theirs is then of another type, if the environment's is not float32; or what they saw lies outside of its bounds.
    """
    if last is None:
        return None
    if "rollout_buffer_class" in settings or "gae_lambda" in settings:
        return original is not None
    if original is not None and original.dtype != last.dtype:
        return True
    bounds = unpickled(settings.get("observation_space"))
    state = bounds.state if isinstance(bounds, Inert) else None
    with suppress(DataError, ValueError):
        if isinstance(state, dict) and {"low", "high"} <= state.keys():
            low, high = array_in(state["low"]), array_in(state["high"])
            if ((last < low) | (last > high)).any():
                return True
            if last.dtype != np.float32:  # which is what it makes of all
                return False
    return None
