"""Recorded demonstrations: observations and actions of an expert that cannot be queried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from gymnasium.spaces import Box, Dict, Space, Tuple
from gymnasium.spaces.utils import flatten

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.spaces import SpaceAdapter
from aggrevated.storage import read_npz

LAYOUT = "observations [N, ...], actions [N, ...] and ends, a bool [N] that is true at the last step of an episode"
ArraysByKey: TypeAlias = Mapping[str, Array]  # [N, ...] by key: "" for one array, "a/b" in a Dict or Tuple


@dataclass(frozen=True)
class Demonstrations:
    """N recorded steps of consecutive episodes; pass it to `as_expert` for a clone of the demonstrator.

    Args:
        observations: observations before each step: one array [N, ...], or a mapping of arrays by key if the
            environment's observations are a Dict or Tuple.
        actions: actions [N, ...] as the environment takes them.
        ends: bool [N], true at the last step of each episode.
        rewards: rewards [N], used for the mean return only.
        source: how errors call the demonstrations.

    Raises:
        DataError: the shapes differ, or values are not finite numbers.

    Example:
        >>> import numpy as np
        >>> from aggrevated import Demonstrations
        >>> ends = np.array([0, 1, 0, 0, 1], bool)
        >>> recorded = Demonstrations(np.zeros((5, 2)), np.zeros(5, int), ends, rewards=np.ones(5))
        >>> recorded.episodes, recorded.mean_return
        (2, 2.5)
    """

    observations: ArraysByKey
    actions: Array
    ends: Array
    rewards: Array | None = None
    source: str = "the demonstrations"

    def __post_init__(self) -> None:
        if isinstance(self.observations, np.ndarray):
            object.__setattr__(self, "observations", {"": self.observations})
        n = len(self.actions) if self.actions.ndim else 0
        if not n:
            raise DataError(f"{self.source} have no actions; record at least one step")
        observations = {f"observations {name}".strip(): array for name, array in self.observations.items()}
        optional = {} if self.rewards is None else {"rewards": self.rewards}
        for name, array in {**observations, "actions": self.actions, "ends": self.ends, **optional}.items():
            if array.ndim < 1 or len(array) != n:
                raise DataError(f"{self.source} have {name} of shape {array.shape} for {n} actions; give one for each")
            if array.dtype.kind not in "fiub":
                raise DataError(f"{self.source} have {name} of type {array.dtype}; give numbers")
            if not np.isfinite(array).all():
                step = int(np.argwhere(~np.isfinite(array))[0][0])
                raise DataError(f"{self.source} have {name} that are not finite at step {step}; leave that episode out")
        if not self.observations or self.ends.shape != (n,) or (optional and optional["rewards"].shape != (n,)):
            raise DataError(f"{self.source} are not of the right shape; give {LAYOUT}")

    @property
    def steps(self) -> int:
        """Return the number N of steps."""
        return len(self.actions)

    @property
    def episode(self) -> Array:
        """Return the index of each step's episode, int [N], counted from 0."""
        index: Array = np.concatenate([[0], np.cumsum(self.ends.astype(bool))[:-1]])
        return index

    @property
    def episodes(self) -> int:
        """Return the number of episodes, including a last one that was cut off."""
        return int(self.episode[-1]) + 1

    @property
    def mean_return(self) -> float | None:
        """Return the mean sum of rewards of an episode; None if no rewards were recorded."""
        return None if self.rewards is None else float(self.rewards.sum()) / self.episodes

    def convert_observations(self, adapter: SpaceAdapter) -> Array:
        """Return the observations as a learner sees them, float32 [N, ...].

        Raises:
            DataError: the observations do not fit the environment of the adapter.
        """
        if adapter.is_image:
            return adapter.view(flatten_leaf(self, adapter.observations, ""))
        return adapter.view(stack_vectors(self, adapter.observations, ""))

    def convert_actions(self, adapter: SpaceAdapter) -> Array:
        """Return the actions as a learner's: [N] if they are discrete, else [N, A].

        Raises:
            DataError: the actions do not fit the environment of the adapter.
        """
        space = adapter.actions
        shape = (self.steps, *(space.shape or ()))
        if self.actions.shape != shape and self.actions.size != np.prod(shape):
            raise DataError(
                f"{self.source} have actions of shape {self.actions.shape[1:]}, but the environment's are of {space}; "
                "record them in this environment"
            )
        try:
            return adapter.to_learner_actions(self.actions.reshape(shape))
        except ValueError as error:
            raise DataError(
                f"{self.source} have actions that are not in {space} ({error}); record them in this environment"
            ) from error


def stack_vectors(demonstrations: Demonstrations, space: Space[Any], key: str) -> Array:
    """Return the observations of the subspace at a key as flat vectors [N, O]."""
    if isinstance(space, Dict | Tuple):
        subspaces = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
        vectors = [stack_vectors(demonstrations, one, f"{key}/{name}".strip("/")) for name, one in subspaces]
        return np.concatenate(vectors, axis=1)
    observations = flatten_leaf(demonstrations, space, key)
    if isinstance(space, Box):
        return observations.reshape(demonstrations.steps, -1)
    try:
        return np.stack([np.asarray(flatten(space, observation)) for observation in observations])
    except (ValueError, IndexError, TypeError) as error:
        raise DataError(
            f"{demonstrations.source} have observations {key} that are not in {space} ({error}); record them in this "
            "environment"
        ) from error


def flatten_leaf(demonstrations: Demonstrations, space: Space[Any], key: str) -> Array:
    """Return the observations at a key, in the shape of their space."""
    source = demonstrations.source
    label = f"observations{'/' if key else ''}{key}"
    if key not in demonstrations.observations:
        names = ", ".join(f"observations/{name}" if name else "observations" for name in demonstrations.observations)
        raise DataError(f"{source} have no {label}, but {names}; give one array for each part of {space}")
    observations = demonstrations.observations[key]
    shape = (demonstrations.steps, *(space.shape or ()))
    if observations.shape != shape and not (isinstance(space, Box) and observations.size == np.prod(shape)):
        raise DataError(
            f"{source} have {label} of shape {observations.shape[1:]}, but the environment's are of {space}; record "
            "them in this environment"
        )
    return observations.reshape(shape)


MINARI = "minari:"
MAX_ARRAY_SIZE = 1 << 30  # bytes
OBSERVATIONS = ("observations", "obs")
ACTIONS = ("actions", "acts")
REWARDS = ("rewards", "rews")
LAST_STEPS = ("ends", "dones", "terminals", "timeouts", "terminations", "truncations")
FIRST_STEPS = "episode_starts"


def read_demonstrations(path: str | Path) -> Demonstrations:
    """Read demonstrations from an .npz file or a local Minari dataset.

    Args:
        path: `minari:NAME`, or the path of an .npz with these arrays: `observations` [N, ...] (or `obs`, or
            `observations/KEY`); `actions` [N, ...] (or `acts`); `ends` bool [N] (or `dones`, `terminals`,
            `episode_starts`, …); and optionally `rewards` [N] (or `rews`).

    Returns:
        The demonstrations.

    Raises:
        DataError: the file is damaged, or lacks one of these arrays.
        UsageError: Minari is not installed.

    Example:
        >>> import numpy as np
        >>> from aggrevated import read_demonstrations
        >>> np.savez("demos.npz", observations=np.zeros((3, 2)), actions=np.zeros(3, int), ends=[0, 0, 1])
        >>> read_demonstrations("demos.npz").episodes
        1
    """
    if str(path).startswith(MINARI):
        return read_minari(str(path).removeprefix(MINARI))
    arrays = read_npz(Path(path), "an .npz file of demonstrations", MAX_ARRAY_SIZE)
    source = f"the demonstrations in {path}"
    observations = {
        name.removeprefix(key).strip("/"): array
        for name, array in arrays.items()
        for key in OBSERVATIONS
        if name == key or name.startswith(f"{key}/")
    }
    actions, rewards = (next((arrays[key] for key in keys if key in arrays), None) for keys in (ACTIONS, REWARDS))
    ends = find_last_steps(arrays, source)
    if not observations or actions is None or ends is None:
        raise DataError(f"{source} are {', '.join(sorted(arrays)) or 'no arrays of numbers'}; give {LAYOUT}")
    return Demonstrations(observations, actions, ends, rewards, source)


def find_last_steps(arrays: Mapping[str, Array], source: str) -> Array | None:
    """Return where episodes end, bool [N], from the arrays with known names, or None without any."""
    candidates = [arrays[name] for name in LAST_STEPS if name in arrays]
    if FIRST_STEPS in arrays and arrays[FIRST_STEPS].ndim == 1:
        candidates.append(np.append(arrays[FIRST_STEPS][1:], True))
    if len({array.shape for array in candidates}) > 1:
        raise DataError(f"{source} say where episodes end in arrays of different shapes; give ends alone")
    return np.any([array.astype(bool) for array in candidates], axis=0) if candidates else None


def demonstrations_from_list(episodes: Iterable[Sequence[Any]], source: str = "the demonstrations") -> Demonstrations:
    """Return demonstrations from (observations, actions) or (observations, actions, rewards) of each episode.

    An episode may have one observation more than actions: the last one is dropped.
    """
    observations: list[dict[str, Array]] = []
    actions: list[Array] = []
    ends: list[Array] = []
    rewards: list[Array] = []
    for number, episode in enumerate(episodes):
        label = f"episode {number} of {source}"
        if not isinstance(episode, list | tuple) or len(episode) not in (2, 3):
            raise UsageError(
                f"{label} is not (observations, actions) or (observations, actions, rewards); give one such tuple for "
                "each episode"
            )
        episode_actions = to_numeric(episode[1], f"the actions of {label}")
        n = len(episode_actions) if episode_actions.ndim else 0
        if not n:
            raise DataError(f"{label} has no actions; leave it out")
        episode_observations = {
            key: array[:-1] if array.ndim and len(array) == n + 1 else array
            for key, array in flatten_nested_observations(episode[0], f"the observations of {label}").items()
        }
        if wrong := [array.shape for array in episode_observations.values() if array.shape[:1] != (n,)]:
            raise DataError(
                f"{label} has {n} actions and observations of shape {wrong[0]}; give one observation for each action"
            )
        observations.append(episode_observations)
        actions.append(episode_actions)
        ends.append(np.arange(n) == n - 1)
        if len(episode) == 3:
            rewards.append(to_numeric(episode[2], f"the rewards of {label}"))
    if not actions:
        raise UsageError(f"{source} are empty; give (observations, actions) for each episode")
    if rewards and len(rewards) < len(actions):
        raise DataError(f"{source} have rewards for {len(rewards)} of {len(actions)} episodes; give all, or none")
    try:
        joined = {key: np.concatenate([observation[key] for observation in observations]) for key in observations[0]}
        return Demonstrations(
            joined, np.concatenate(actions), np.concatenate(ends), np.concatenate(rewards) if rewards else None, source
        )
    except (KeyError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"the episodes of {source} have different shapes or keys ({error}); record them in one environment"
        ) from error


def flatten_nested_observations(value: Any, label: str) -> dict[str, Array]:
    """Return the observations of an episode as arrays by key, which is "" if they are not nested."""
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        value = {name: [entry[name] for entry in value] for name in value[0]}
    elif isinstance(value, list) and value and isinstance(value[0], tuple):
        value = tuple(list(part) for part in zip(*value, strict=True))
    if not isinstance(value, Mapping | tuple):
        return {"": to_numeric(value, label)}
    parts = value.items() if isinstance(value, Mapping) else enumerate(value)
    return {
        f"{name}/{key}".strip("/"): array
        for name, part in parts
        for key, array in flatten_nested_observations(part, label).items()
    }


def to_numeric(value: Any, label: str) -> Array:
    """Return a value as an array, or raise a `DataError`."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise DataError(f"{label} are not an array ({error}); give one row for each step") from error


def read_minari(name: str) -> Demonstrations:
    """Read a local Minari dataset."""
    try:
        import minari
    except ImportError as error:
        raise UsageError(f"{MINARI}{name} needs Minari; run: pip install 'minari[hdf5]'") from error
    try:
        dataset = minari.load_dataset(name)
        episodes = [(episode.observations, episode.actions, episode.rewards) for episode in dataset.iterate_episodes()]
    except Exception as error:
        raise DataError(f"cannot read the Minari dataset {name} ({error}); run: minari download {name}") from error
    return demonstrations_from_list(episodes, f"the demonstrations {MINARI}{name}")
