"""Statistics of a `VecNormalize` wrapper, which normalized the observations and rewards of an expert's training.

They are read from the file of `VecNormalize.save`, without executing its pickle, or from an .npz.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Dict
from gymnasium.spaces.utils import flatdim

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.simulators import Simulator
from aggrevated.storage import (
    MAX_PICKLE,
    UnresolvedObject,
    array_from_pickle,
    number_from_pickle,
    open_zip,
    parse_pickle,
    read_chunks,
    read_limited,
    truncate_message,
)

# defaults of VecNormalize
DEFAULT_EPSILON = 1e-8
DEFAULT_CLIP = 10.0
REMEDY = (
    "save them with vec_normalize.save(path), or as numpy.savez('stats.npz', mean=vec_normalize.obs_rms.mean, "
    "var=vec_normalize.obs_rms.var)"
)


@dataclass(frozen=True)
class VecNormalizeStats:
    """Running statistics of `VecNormalize`; call it to normalize observations [n, O]."""

    mean: Array  # float64 [O]
    var: Array
    epsilon: float
    clip: Array  # [O]; infinite if observations are not clipped
    reward_unit: float = 1.0  # divisor of the rewards

    @cached_property
    def deviation(self) -> Array:
        return np.sqrt(self.var + self.epsilon)

    def __call__(self, observations: Array) -> Array:
        normalized: Array = np.clip((observations - self.mean) / self.deviation, -self.clip, self.clip)
        return normalized.astype(np.float32)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Return the arrays that normalized observations depend on, for the expert fingerprint."""
        return self.mean, self.deviation, self.clip


@dataclass(frozen=True)
class NormalizedExpert:
    """The normalized observations of an expert, as a function of states."""

    observe: Callable[[Array], Array]
    stats: VecNormalizeStats

    def __call__(self, states: Array) -> Array:
        return self.stats(self.observe(states))


def load_vec_normalize(path: Path, simulator: Simulator) -> VecNormalizeStats:
    """Load the statistics of a file, and check that they fit the simulator's observations."""
    data = read_limited(path, MAX_PICKLE, "statistics of a VecNormalize", f"{MAX_PICKLE >> 20} MB; {REMEDY}")
    try:
        stats = stats_from_arrays(data) if data.startswith(b"PK") else stats_from_wrapper(parse_pickle(data), simulator)
        size = int(np.prod(simulator.observation_space.shape))
        if stats.mean.shape != (size,) or stats.var.shape != (size,):
            raise DataError(f"they are of {stats.mean.size} numbers, but observations of {simulator.name} have {size}")
        finite = all(np.isfinite(x).all() for x in (stats.mean, stats.var, stats.epsilon, stats.reward_unit))
        if not finite or not (stats.var + stats.epsilon > 0).all() or not (stats.clip > 0).all():
            raise DataError("they are not finite, or have negative variances")
    except OSError:
        raise
    except Exception as error:  # decoders may raise any exception for hostile bytes
        raise DataError(f"{path} holds no statistics for the expert ({truncate_message(error)}); {REMEDY}") from error
    return stats


def stats_from_wrapper(wrapper: Any, simulator: Simulator) -> VecNormalizeStats:
    """Return the statistics of a pickled `VecNormalize`."""
    state = wrapper.state if isinstance(wrapper, UnresolvedObject) else None
    if not isinstance(state, dict) or "norm_obs" not in state:
        raise DataError("it is not a VecNormalize")
    epsilon = number_from_pickle(state.get("epsilon", DEFAULT_EPSILON))
    clip = number_from_pickle(state.get("clip_obs", DEFAULT_CLIP))
    size = int(np.prod(simulator.observation_space.shape))
    if not number_from_pickle(state["norm_obs"]):
        mean, var, limits = make_identity_stats(size, epsilon)
    elif isinstance(state.get("obs_rms"), dict):
        mean, var, limits = concatenate_stats_by_key(state["obs_rms"], simulator, epsilon, clip)
    else:
        mean, var = read_mean_and_variance(state.get("obs_rms"))
        limits = np.full(len(mean), clip)
    return VecNormalizeStats(mean, var, epsilon, limits, compute_reward_scale(state, epsilon))


def concatenate_stats_by_key(
    statistics: Mapping[str, Any], simulator: Simulator, epsilon: float, clip: float
) -> tuple[Array, ...]:
    """Return (mean, var, clip) of dictionary observations, in the order in which they are flattened."""
    space = getattr(getattr(simulator, "space_adapter", None), "observations", None)
    if not isinstance(space, Dict) or not statistics.keys() <= space.spaces.keys():
        raise DataError(f"they are of observations with other names than those of {simulator.name}")
    stats_by_key: list[tuple[Array, ...]] = []
    for key, subspace in space.spaces.items():
        size = int(flatdim(subspace))
        if key in statistics:
            mean, var = read_mean_and_variance(statistics[key])
            if len(mean) != size:
                raise DataError(f"they are of {len(mean)} numbers for {truncate_message(key)}, which has {size}")
            stats_by_key.append((mean, var, np.full(size, clip)))
        else:
            stats_by_key.append(make_identity_stats(size, epsilon))
    return tuple(np.concatenate(column) for column in zip(*stats_by_key, strict=True))


def make_identity_stats(size: int, epsilon: float) -> tuple[Array, ...]:
    """Return a (mean, var, clip) that leaves observations unchanged."""
    return np.zeros(size), np.full(size, 1 - epsilon), np.full(size, np.inf)


def read_mean_and_variance(running: Any) -> tuple[Array, Array]:
    """Return the flat (mean, var) of a pickled `RunningMeanStd`."""
    state = running.state if isinstance(running, UnresolvedObject) else None
    if not isinstance(state, dict) or not {"mean", "var"} <= state.keys():
        raise DataError("it has no obs_rms with mean and var")
    mean, var = (array_from_pickle(state[key]).astype(np.float64).ravel() for key in ("mean", "var"))
    return mean, var


def compute_reward_scale(state: Mapping[str, Any], epsilon: float) -> float:
    """Return the divisor of the rewards; 1 if they were not normalized."""
    if not number_from_pickle(state.get("norm_reward", False)):
        return 1.0
    _, var = read_mean_and_variance(state.get("ret_rms"))
    return float(np.sqrt(var[0] + epsilon))


def stats_from_arrays(data: bytes) -> VecNormalizeStats:
    """Return the statistics of an .npz with mean and var, and optionally epsilon, clip and reward_unit."""
    with open_zip(io.BytesIO(data)) as archive:
        arrays = {
            member.filename.removesuffix(".npy"): to_plain_array(b"".join(read_chunks(archive, member, MAX_PICKLE)))
            for member in archive.infolist()
            if member.filename in {f"{name}.npy" for name in ("mean", "var", "epsilon", "clip", "reward_unit")}
        }
    mean, var = (arrays[name].astype(np.float64).ravel() for name in ("mean", "var"))
    epsilon, clip, reward_unit = (
        float(arrays.get(name, np.asarray(default)))
        for name, default in (("epsilon", DEFAULT_EPSILON), ("clip", DEFAULT_CLIP), ("reward_unit", 1.0))
    )
    return VecNormalizeStats(mean, var, epsilon, np.full(len(mean), clip), reward_unit)


def to_plain_array(data: bytes) -> Array:
    """Return the numbers of a .npy file whose size agrees with its header."""
    file = io.BytesIO(data)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, fortran, dtype = read_header[np.lib.format.read_magic(file)](file)
    if dtype.kind not in "fiu":
        raise DataError("it contains values that are not numbers")
    return np.frombuffer(file.read(), dtype).reshape(shape, order="F" if fortran else "C")
