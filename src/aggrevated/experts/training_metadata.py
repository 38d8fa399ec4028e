"""Metadata of training in a Stable-Baselines3 zip, read without executing the pickles in it."""

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

MIN_ENVIRONMENTS = 16  # for a meaningful standard deviation
# (prefix of a tensor's name, setting that only this algorithm has, algorithm)
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
    """Return the metadata of training in a zip, with None for what the zip does not contain.

    Returns:
        A dictionary with these keys. `algorithm`, `timesteps`, `gamma`. `returns` and `lengths` of the last
        episodes, and `observations` (the last ones), as mean, deviation and count. `mean_return` and
        `std_return` of the returns. `observation_mean` and `observation_std` of each component, if there were
        enough environments. `normalised`: whether observations passed a `VecNormalize`.
    """
    tensors, settings = read_zip(Path(path))
    last, original = (extract_last_observation(settings.get(key)) for key in ("_last_obs", "_last_original_obs"))
    episodes = extract_recent_episodes(settings.get("ep_info_buffer"))
    returns = summarize([r for r, _ in episodes])
    has_rows = last is not None and last.ndim > 1 and len(last) >= MIN_ENVIRONMENTS
    rows = last.reshape(len(last), -1) if last is not None and has_rows else None
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
    """Guess the algorithm from the names of tensors and settings."""
    for prefix, setting, name in ALGORITHMS:
        if any(key.startswith(prefix) for key in tensors) and (not setting or setting in settings):
            return name
    return None


def to_plain_number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value) else None


def parse_zip_pickle(value: Any) -> Any:
    """Return a pickled setting, parsed without executing it; None if it cannot be read."""
    text = value.get(":serialized:") if isinstance(value, dict) else None
    with suppress(DataError, binascii.Error, ValueError):
        return parse_pickle(base64.b64decode(text, validate=True)) if isinstance(text, str) else None
    return None


def extract_last_observation(value: Any) -> Array | None:
    """Return the last observation of each environment [n, ...], or all numbers of dictionary observations."""
    setting = parse_zip_pickle(value)
    entries = setting.entries if isinstance(setting, UnresolvedObject) else setting
    with suppress(DataError):
        if isinstance(entries, dict) and entries:
            return np.concatenate([array_from_pickle(part).ravel() for part in entries.values()])
        return array_from_pickle(setting)
    return None


def extract_recent_episodes(value: Any) -> list[tuple[float, float]]:
    """Return (return, length) of the last episodes of training."""
    buffer = parse_zip_pickle(value)
    episodes = []
    for episode in buffer.items if isinstance(buffer, UnresolvedObject) else []:
        with suppress(DataError, KeyError):
            if isinstance(episode, dict):
                episodes.append((number_from_pickle(episode["r"]), number_from_pickle(episode["l"])))
    return episodes


def summarize(numbers: Any) -> JsonDict | None:
    """Return mean, deviation and count of numbers; None if there are none or some are not finite."""
    array = np.asarray(numbers, np.float64).ravel()
    if not array.size or not np.isfinite(array).all():
        return None
    return {"mean": float(array.mean()), "deviation": float(array.std()), "count": array.size}


def is_normalized(settings: JsonDict, last: Array | None, original: Array | None) -> bool | None:
    """Return whether observations passed a `VecNormalize`; None if that cannot be decided.

    On-policy algorithms save the original observation only then. Off-policy algorithms always save it. There,
    other types of the two observations, or a last observation outside the space's bounds, show a `VecNormalize`.
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
            if last.dtype != np.float32:  # VecNormalize returns float32
                return False
    return None
