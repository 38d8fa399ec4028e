"""The record of demonstrations: what somebody saw and did, who cannot be asked any more."""

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
ArraysByKey: TypeAlias = Mapping[str, Array]  # arrays [N, ...] by their place in a Dict or Tuple: "" alone, or "a/b"


@dataclass(frozen=True)
class Demonstrations:
    """N steps of some episodes, one after the other."""

    observations: ArraysByKey  # an array alone is taken as {"": array}
    actions: Array  # [N, ...] as the environment takes them
    ends: Array  # bool [N]: the last steps of the episodes
    rewards: Array | None = None  # [N]
    source: str = "the demonstrations"

    def __post_init__(self) -> None:
        if isinstance(self.observations, np.ndarray):
            object.__setattr__(self, "observations", {"": self.observations})
        n = len(self.actions) if self.actions.ndim else 0
        if not n:
            raise DataError(f"{self.source} have no actions; record at least one step")
        named = {f"observations {name}".strip(): array for name, array in self.observations.items()}
        more = {} if self.rewards is None else {"rewards": self.rewards}
        for name, array in {**named, "actions": self.actions, "ends": self.ends, **more}.items():
            if array.ndim < 1 or len(array) != n:
                raise DataError(f"{self.source} have {name} of shape {array.shape} for {n} actions; give one for each")
            if array.dtype.kind not in "fiub":
                raise DataError(f"{self.source} have {name} of type {array.dtype}; give numbers")
            if not np.isfinite(array).all():
                step = int(np.argwhere(~np.isfinite(array))[0][0])
                raise DataError(f"{self.source} have {name} that are not finite at step {step}; leave that episode out")
        if not self.observations or self.ends.shape != (n,) or (more and more["rewards"].shape != (n,)):
            raise DataError(f"{self.source} are not of the right shape; give {LAYOUT}")

    @property
    def steps(self) -> int:
        """N."""
        return len(self.actions)

    @property
    def episode(self) -> Array:
        """[N]: which episode a step is of, from 0 on."""
        number: Array = np.concatenate([[0], np.cumsum(self.ends.astype(bool))[:-1]])
        return number

    @property
    def episodes(self) -> int:
        """How many there are; one that was cut off is one, too."""
        return int(self.episode[-1]) + 1

    @property
    def mean_return(self) -> float | None:
        """Of its episodes; None where no rewards were recorded."""
        return None if self.rewards is None else float(self.rewards.sum()) / self.episodes

    def convert_observations(self, translation: SpaceAdapter) -> Array:
        """What was seen, as a learner sees it: float32 [N, ...]; a `DataError` where it is of another environment."""
        if translation.is_image:
            return translation.view(flatten_leaf(self, translation.observations, ""))
        return translation.view(stack_vectors(self, translation.observations, ""))

    def convert_actions(self, translation: SpaceAdapter) -> Array:
        """What was done, as our actions: [N] of a finite set, or [N, A]."""
        space = translation.actions
        given = self.actions
        shape = (self.steps, *(space.shape or ()))
        if given.shape != shape and given.size != np.prod(shape):
            raise DataError(
                f"{self.source} have actions of shape {given.shape[1:]}, and the environment's are of {space}; record "
                "them in this environment"
            )
        try:
            return translation.to_learner_actions(given.reshape(shape))
        except ValueError as error:
            raise DataError(
                f"{self.source} have actions that are none of {space} ({error}); record them in this environment"
            ) from error


def stack_vectors(recorded: Demonstrations, space: Space[Any], place: str) -> Array:
    """The observations of a space, or of the part of it at that place, as flat vectors [N, O]."""
    if isinstance(space, Dict | Tuple):
        inside = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
        return np.concatenate(
            [stack_vectors(recorded, own, f"{place}/{name}".strip("/")) for name, own in inside], axis=1
        )
    given = flatten_leaf(recorded, space, place)
    if isinstance(space, Box):
        return given.reshape(recorded.steps, -1)
    try:
        return np.stack([np.asarray(flatten(space, one)) for one in given])
    except (ValueError, IndexError, TypeError) as error:
        raise DataError(
            f"{recorded.source} have observations {place} that are none of {space} ({error}); record them in this "
            "environment"
        ) from error


def flatten_leaf(recorded: Demonstrations, space: Space[Any], place: str) -> Array:
    """The array at a place, of the shape of its space."""
    called = f"observations{'/' if place else ''}{place}"
    if place not in recorded.observations:
        names = ", ".join(f"observations/{name}" if name else "observations" for name in recorded.observations)
        raise DataError(f"{recorded.source} have no {called}, but {names}; give one array for each part of {space}")
    given = recorded.observations[place]
    shape = (recorded.steps, *(space.shape or ()))
    if given.shape != shape and not (isinstance(space, Box) and given.size == np.prod(shape)):
        raise DataError(
            f"{recorded.source} have {called} of shape {given.shape[1:]}, and the environment shows {space}; record "
            "them in this environment"
        )
    return given.reshape(shape)


MINARI = "minari:"
MOST = 1 << 30  # bytes of an array
OBSERVATIONS = ("observations", "obs")
ACTIONS = ("actions", "acts")
REWARDS = ("rewards", "rews")
LAST_STEPS = ("ends", "dones", "terminals", "timeouts", "terminations", "truncations")
FIRST_STEPS = "episode_starts"


def read_demonstrations(path: str | Path) -> Demonstrations:
    """Those in an .npz file, or of Minari by `minari:NAME`; a `DataError` says what is wrong with them."""
    if str(path).startswith(MINARI):
        return read_minari(str(path).removeprefix(MINARI))
    arrays = read_npz(Path(path), "an .npz file of demonstrations", MOST)
    source = f"the demonstrations in {path}"
    places = {
        name.removeprefix(key).strip("/"): array
        for name, array in arrays.items()
        for key in OBSERVATIONS
        if name == key or name.startswith(f"{key}/")
    }
    actions, rewards = (next((arrays[key] for key in keys if key in arrays), None) for keys in (ACTIONS, REWARDS))
    ends = find_last_steps(arrays, source)
    if not places or actions is None or ends is None:
        raise DataError(f"{source} are {', '.join(sorted(arrays)) or 'no arrays of numbers'}; give {LAYOUT}")
    return Demonstrations(places, actions, ends, rewards, source)


def find_last_steps(arrays: Mapping[str, Array], source: str) -> Array | None:
    """Where episodes end, bool [N], by whatever name it goes; None where that is not recorded."""
    found = [arrays[name] for name in LAST_STEPS if name in arrays]
    if FIRST_STEPS in arrays and arrays[FIRST_STEPS].ndim == 1:
        found.append(np.append(arrays[FIRST_STEPS][1:], True))
    if len({array.shape for array in found}) > 1:
        raise DataError(f"{source} say where episodes end in arrays of different shapes; give ends alone")
    return np.any([array.astype(bool) for array in found], axis=0) if found else None


def demonstrations_from_list(episodes: Iterable[Sequence[Any]], source: str = "the demonstrations") -> Demonstrations:
    """Those of a list with (observations, actions) or (observations, actions, rewards) for each episode."""
    places: list[dict[str, Array]] = []
    actions: list[Array] = []
    ends: list[Array] = []
    rewards: list[Array] = []
    for number, episode in enumerate(episodes):
        if not isinstance(episode, list | tuple) or len(episode) not in (2, 3):
            raise UsageError(
                f"episode {number} of {source} is no (observations, actions) or (observations, actions, rewards); give "
                "one such for each episode"
            )
        done = to_numeric(episode[1], f"the actions of episode {number} of {source}")
        n = len(done) if done.ndim else 0
        if not n:
            raise DataError(f"episode {number} of {source} has no actions; leave it out")
        shown = {
            place: array[:-1] if array.ndim and len(array) == n + 1 else array  # what the last step led to
            for place, array in flatten_nested_observations(
                episode[0], f"the observations of episode {number} of {source}"
            ).items()
        }
        if wrong := [array.shape for array in shown.values() if array.shape[:1] != (n,)]:
            raise DataError(f"episode {number} of {source} has {n} actions and observations of shape {wrong[0]}")
        places.append(shown)
        actions.append(done)
        ends.append(np.arange(n) == n - 1)
        if len(episode) == 3:
            rewards.append(to_numeric(episode[2], f"the rewards of episode {number} of {source}"))
    if not actions:
        raise UsageError(f"{source} are empty; give (observations, actions) for each episode")
    if rewards and len(rewards) < len(actions):
        raise DataError(f"{source} have rewards for {len(rewards)} of {len(actions)} episodes; give all, or none")
    try:
        joined = {place: np.concatenate([one[place] for one in places]) for place in places[0]}
        return Demonstrations(
            joined, np.concatenate(actions), np.concatenate(ends), np.concatenate(rewards) if rewards else None, source
        )
    except (KeyError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the episodes of {source} are not alike ({error}); record them in one environment") from error


def flatten_nested_observations(given: Any, called: str) -> dict[str, Array]:
    """Observations of an episode as arrays by their place in a Dict or Tuple; as one where they are neither."""
    if isinstance(given, list) and given and isinstance(given[0], Mapping):
        given = {name: [one[name] for one in given] for name in given[0]}
    elif isinstance(given, list) and given and isinstance(given[0], tuple):
        given = tuple(list(part) for part in zip(*given, strict=True))
    if not isinstance(given, Mapping | tuple):
        return {"": to_numeric(given, called)}
    inside = given.items() if isinstance(given, Mapping) else enumerate(given)
    return {
        f"{name}/{place}".strip("/"): array
        for name, part in inside
        for place, array in flatten_nested_observations(part, called).items()
    }


def to_numeric(given: Any, called: str) -> Array:
    """An array; a `DataError` if it cannot be one."""
    try:
        return np.asarray(given)
    except (ValueError, TypeError) as error:
        raise DataError(f"{called} are no array ({error}); give one row for each step") from error


def read_minari(name: str) -> Demonstrations:
    """A dataset of Minari that is on this machine."""
    try:
        import minari
    except ImportError as error:
        raise UsageError(f"{MINARI}{name} needs Minari; run: pip install 'minari[hdf5]'") from error
    try:
        dataset = minari.load_dataset(name)
        episodes = [(one.observations, one.actions, one.rewards) for one in dataset.iterate_episodes()]
    except Exception as error:
        raise DataError(
            f"Minari has no dataset {name} that can be read here ({error}); run: minari download {name}"
        ) from error
    return demonstrations_from_list(episodes, f"the demonstrations {MINARI}{name}")
