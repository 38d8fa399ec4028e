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
from aggrevated.core.errors import DataError
from aggrevated.experts.stable_baselines import read_zip
from aggrevated.storage import JsonDict, UnresolvedObject, array_from_pickle, number_from_pickle, parse_pickle

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


def read_training_metadata(path: str | Path) -> JsonDict:
    """What the zip says of its training; None where it does not say.

    `algorithm`, `timesteps`, `gamma`; `returns` and `lengths` of the last episodes and `observations` (the last that it
    saw) as mean, deviation and count; `mean_return` and `std_return` of these; `observation_mean` and `observation_std`
    of each number, if there were enough environments; `normalised`: whether a `VecNormalize` stood before it.
    """
    tensors, settings = read_zip(Path(path))
    last, original = (extract_last_observation(settings.get(key)) for key in ("_last_obs", "_last_original_obs"))
    episodes = extract_recent_episodes(settings.get("ep_info_buffer"))
    returns = summarize([r for r, _ in episodes])
    rows = last.reshape(len(last), -1) if last is not None and last.ndim > 1 and len(last) >= ENOUGH else None
    return {
        "algorithm": detect_algorithm(tensors, settings),
        "timesteps": to_plain_number(settings.get("num_timesteps")),
        "gamma": to_plain_number(settings.get("gamma")),
        "returns": returns,
        "mean_return": returns and returns["mean"],
        "std_return": returns and returns["deviation"],
        "lengths": summarize([length for _, length in episodes]),
        "observations": None if last is None else summarize(last),
        "observation_mean": None if rows is None else rows.mean(axis=0).tolist(),
        "observation_std": None if rows is None else rows.std(axis=0).tolist(),
        "normalised": is_normalized(settings, last, original),
    }


def detect_algorithm(tensors: dict[str, Tensor], settings: JsonDict) -> str | None:
    """A guess."""
    for begins, setting, name in ALGORITHMS:
        if any(key.startswith(begins) for key in tensors) and (not setting or setting in settings):
            return name
    return None


def to_plain_number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value) else None


def parse_zip_pickle(value: Any) -> Any:
    """What a pickled setting is, inert; None if it cannot be read."""
    text = value.get(":serialized:") if isinstance(value, dict) else None
    with suppress(DataError, binascii.Error, ValueError):
        return parse_pickle(base64.b64decode(text, validate=True)) if isinstance(text, str) else None
    return None


def extract_last_observation(value: Any) -> Array | None:
    """The numbers of the last observation of each environment, [n, ...] or, of a dictionary, all of them."""
    found = parse_zip_pickle(value)
    several = found.entries if isinstance(found, UnresolvedObject) else found
    with suppress(DataError):
        if isinstance(several, dict) and several:
            return np.concatenate([array_from_pickle(part).ravel() for part in several.values()])
        return array_from_pickle(found)
    return None


def extract_recent_episodes(value: Any) -> list[tuple[float, float]]:
    """(return, length) of the last episodes of training."""
    found = parse_zip_pickle(value)
    episodes = []
    for episode in found.items if isinstance(found, UnresolvedObject) else []:
        with suppress(DataError, KeyError):
            if isinstance(episode, dict):
                episodes.append((number_from_pickle(episode["r"]), number_from_pickle(episode["l"])))
    return episodes


def summarize(numbers: Any) -> JsonDict | None:
    """Mean, deviation and count of finite numbers; None if there are none."""
    array = np.asarray(numbers, np.float64).ravel()
    if not array.size or not np.isfinite(array).all():
        return None
    return {"mean": float(array.mean()), "deviation": float(array.std()), "count": array.size}


def is_normalized(settings: JsonDict, last: Array | None, original: Array | None) -> bool | None:
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
    bounds = parse_zip_pickle(settings.get("observation_space"))
    state = bounds.state if isinstance(bounds, UnresolvedObject) else None
    with suppress(DataError, ValueError):
        if isinstance(state, dict) and {"low", "high"} <= state.keys():
            low = array_from_pickle(state["low"])
            high = array_from_pickle(state["high"])
            if ((last < low) | (last > high)).any():
                return True
            if last.dtype != np.float32:  # which is what it makes of all
                return False
    return None
