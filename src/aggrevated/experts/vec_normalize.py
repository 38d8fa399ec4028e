"""Statistics of a `VecNormalize` wrapper: what an expert that was trained behind one sees, and in which unit it judges.

They are read from the file of `VecNormalize.save` without running the pickle that it is, or from an .npz.
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

# of VecNormalize, where nothing else is said
EPSILON = 1e-8
CLIP = 10.0
REMEDY = (
    "save them with vec_normalize.save(path), or as numpy.savez('stats.npz', mean=vec_normalize.obs_rms.mean, "
    "var=vec_normalize.obs_rms.var)"
)


@dataclass(frozen=True)
class VecNormalizeStats:
    """Observations less their mean, divided by their deviation and clipped, as `VecNormalize` does it."""

    mean: Array  # float64 [O]
    var: Array
    epsilon: float
    clip: Array  # infinite where nothing is clipped
    reward_unit: float = 1.0  # by which rewards were divided

    @cached_property
    def deviation(self) -> Array:
        return np.sqrt(self.var + self.epsilon)

    def __call__(self, observations: Array) -> Array:
        seen: Array = np.clip((observations - self.mean) / self.deviation, -self.clip, self.clip)
        return seen.astype(np.float32)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All that it hangs on; the unit of rewards is in the networks."""
        return self.mean, self.deviation, self.clip


@dataclass(frozen=True)
class NormalizedExpert:
    """What an expert sees, normalised."""

    observe: Callable[[Array], Array]
    normalisation: VecNormalizeStats

    def __call__(self, states: Array) -> Array:
        return self.normalisation(self.observe(states))


def load_vec_normalize(path: Path, simulator: Simulator) -> VecNormalizeStats:
    """The statistics in the file, checked to fit the simulator's observations."""
    data = read_limited(path, MAX_PICKLE, "statistics of a VecNormalize", f"{MAX_PICKLE >> 20} MB; {REMEDY}")
    try:
        found = stats_from_arrays(data) if data.startswith(b"PK") else stats_from_wrapper(parse_pickle(data), simulator)
        needs = int(np.prod(simulator.observation_space.shape))
        if found.mean.shape != (needs,) or found.var.shape != (needs,):
            raise DataError(f"they are of {found.mean.size} numbers, where {simulator.name} shows {needs}")
        finite = all(np.isfinite(x).all() for x in (found.mean, found.var, found.epsilon, found.reward_unit))
        if not finite or not (found.var + found.epsilon > 0).all() or not (found.clip > 0).all():
            raise DataError("they are not finite, or have negative variances")
    except OSError:
        raise
    except Exception as error:  # what decoders may say about hostile bytes is not written down anywhere
        raise DataError(f"{path} holds no statistics for the expert ({truncate_message(error)}); {REMEDY}") from error
    return found


def stats_from_wrapper(wrapper: Any, simulator: Simulator) -> VecNormalizeStats:
    """Of a pickled `VecNormalize`."""
    state = wrapper.state if isinstance(wrapper, UnresolvedObject) else None
    if not isinstance(state, dict) or "norm_obs" not in state:
        raise DataError("it is no VecNormalize")
    epsilon, clip = (
        number_from_pickle(state.get(key, usual)) for key, usual in (("epsilon", EPSILON), ("clip_obs", CLIP))
    )
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
    """(mean, var, clip) of observations that are dictionaries, in the order in which they are made vectors."""
    space = getattr(getattr(simulator, "space_adapter", None), "observations", None)
    if not isinstance(space, Dict) or not statistics.keys() <= space.spaces.keys():
        raise DataError(f"they are of observations with other names than those of {simulator.name}")
    parts: list[tuple[Array, ...]] = []
    for key, own in space.spaces.items():
        size = int(flatdim(own))
        if key in statistics:
            mean, var = read_mean_and_variance(statistics[key])
            if len(mean) != size:
                raise DataError(f"they are of {len(mean)} numbers for {truncate_message(key)}, which has {size}")
            parts.append((mean, var, np.full(size, clip)))
        else:
            parts.append(make_identity_stats(size, epsilon))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def make_identity_stats(size: int, epsilon: float) -> tuple[Array, ...]:
    """(mean, var, clip) that change nothing."""
    return np.zeros(size), np.full(size, 1 - epsilon), np.full(size, np.inf)


def read_mean_and_variance(running: Any) -> tuple[Array, Array]:
    """(mean, var) of a pickled `RunningMeanStd`, flat."""
    state = running.state if isinstance(running, UnresolvedObject) else None
    if not isinstance(state, dict) or not {"mean", "var"} <= state.keys():
        raise DataError("it has no obs_rms with mean and var")
    mean, var = (array_from_pickle(state[key]).astype(np.float64).ravel() for key in ("mean", "var"))
    return mean, var


def compute_reward_scale(state: Mapping[str, Any], epsilon: float) -> float:
    """What rewards were divided by."""
    if not number_from_pickle(state.get("norm_reward", False)):
        return 1.0
    _, var = read_mean_and_variance(state.get("ret_rms"))
    return float(np.sqrt(var[0] + epsilon))


def stats_from_arrays(data: bytes) -> VecNormalizeStats:
    """Of an .npz: mean and var, and perhaps epsilon, clip and reward_unit."""
    with open_zip(io.BytesIO(data)) as archive:
        arrays = {
            member.filename.removesuffix(".npy"): to_plain_array(b"".join(read_chunks(archive, member, MAX_PICKLE)))
            for member in archive.infolist()
            if member.filename in {f"{name}.npy" for name in ("mean", "var", "epsilon", "clip", "reward_unit")}
        }
    mean, var = (arrays[name].astype(np.float64).ravel() for name in ("mean", "var"))
    epsilon, clip, unit = (
        float(arrays.get(name, np.asarray(usual)))
        for name, usual in (("epsilon", EPSILON), ("clip", CLIP), ("reward_unit", 1.0))
    )
    return VecNormalizeStats(mean, var, epsilon, np.full(len(mean), clip), unit)


def to_plain_array(data: bytes) -> Array:
    """The numbers of a .npy, if it is as large as it says."""
    file = io.BytesIO(data)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, fortran, dtype = read_header[np.lib.format.read_magic(file)](file)
    if dtype.kind not in "fiu":
        raise DataError("it holds something else than numbers")
    return np.frombuffer(file.read(), dtype).reshape(shape, order="F" if fortran else "C")
