"""Any Gymnasium environment as a simulator: a state is what the environment showed, and a way back to it.

The observation is in the state because Gymnasium has no way to ask an environment what it shows without stepping it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.spaces.utils import unflatten

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError, UserCodeError
from aggrevated.core.user_code import call_user_code
from aggrevated.simulators.gymnasium.determinism import (
    FEWEST,
    PROOF_STEPS,
    RecordedStep,
    check_deterministic,
    is_stochastic,
)
from aggrevated.simulators.gymnasium.make import (
    Environment,
    EnvironmentSource,
    make_environment,
    make_rendering_environment,
    read_time_limit,
    reset_environment,
    resolve_environment_source,
)
from aggrevated.simulators.gymnasium.pool import EnvironmentPool
from aggrevated.simulators.gymnasium.restore import ReplayRestorer, StateRestorer, find_state_restorers
from aggrevated.simulators.gymnasium.space_conversion import EnvironmentAdapter, make_environment_adapter
from aggrevated.simulators.gymnasium.states import EnvironmentState, HistoryPosition, stack_states

OWN = {
    "_made_by", "_border", "name", "horizon", "space_adapter", "observation_space", "action_space", "_pool", "_way",
    "_stepped", "_proof", "notes", "proof_steps", "action_mask", "reseed",
}  # fmt: skip


class GymnasiumSimulator:
    """An environment, given by its id or by a function that makes a new one, over a batch of independent episodes.

    Rewards become costs, `terminated` and `truncated` both end an episode, and `horizon` takes the place of the
    environment's time limit. It comes back to a state by `get_state(env)` and `set_state(env, ...)`, where they are
    given, by methods of its own, by what is known of Gymnasium's own environments, or else by replaying the episode;
    then up to `live` environments are kept where they stand, so that going forward costs one `env.step`.
    An environment that does not repeat itself exactly is refused. `said` is what was found out about it.
    """

    # Only where the environment says which actions are legal, and only where something is left to chance:
    action_mask: Callable[[Array], Array]
    reseed: Callable[[Array, Array], Array]

    def __init__(
        self,
        environment: EnvironmentSource | Environment,
        horizon: int | None = None,
        *,
        name: str | None = None,
        get_state: Callable[[Environment], Any] | None = None,
        set_state: Callable[[Environment, Any], Any] | None = None,
        live: int = 256,
    ) -> None:
        began = time.monotonic()
        source = resolve_environment_source(environment)
        self._made_by = source, horizon, name, get_state, set_state, live
        self._border = make_environment_adapter(source, horizon, name)
        self.name = self._border.name
        self.horizon = self._border.horizon
        self.space_adapter = self._border.space_adapter
        self.observation_space = self.space_adapter.observation_space
        self.action_space = self.space_adapter.action_space
        if (get_state is None) != (set_state is None):
            raise UsageError(f"{self.name}: get_state and set_state are of use only together; supply both or neither")
        self._pool = EnvironmentPool(self._border.make_reset_environment, live)
        self._stepped = 0
        if self._border.telling is not None:
            self.action_mask = self._get_action_mask
        ways = find_state_restorers(self._border, self._pool, get_state, set_state)
        self._way, self._proof, failed = self._choose_restorer(ways)
        if chance := self._is_stochastic():
            self.reseed = self._reseed
        self.proof_steps = self._stepped + sum(way.replayed for way in ways)  # on no bill
        self.notes = (
            *self._border.notes,
            *failed,
            f"{self._way.words}, which was tried and is exact",
            "the same actions may lead elsewhere with other luck" if chance else "nothing in it is left to chance",
            f"to know this took {self.proof_steps:,} steps, {time.monotonic() - began:.1f} seconds",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        added = {name: value for name, value in self.__dict__.items() if name not in OWN}
        return recreate_simulator, (
            type(self),
            added,
            self._made_by,
        )  # environments are made, and prove themselves, there

    def reset(self, seeds: Array) -> Array:
        """States [n]: the environment after `reset(seed=seed)`, for each of the seeds."""
        return stack_states([self._make_initial_state(int(seed)) for seed in seeds])

    def observe(self, state: Array) -> Array:
        """float32 [n, O] or pictures [n, H, W, ...]: what the environment showed."""
        seen = np.empty((len(state), *self.observation_space.shape), np.float32)
        for row, spot in zip(seen, state, strict=True):
            row[...] = spot.observation
        return seen

    def vectors(self, state: Array) -> Array:
        """The same in the type in which the environment showed it."""
        return np.stack([spot.observation for spot in state]) if len(state) else self.observe(state)

    def native_observations(self, state: Array) -> list[Any]:
        """What the environment showed in each of the states, as it did: copies."""
        space = self.space_adapter.observations
        if isinstance(space, Box):
            return [spot.observation.reshape(space.shape).copy() for spot in state]
        return [unflatten(space, spot.observation) for spot in state]

    def snapshot(self, state: Array) -> list[Any]:
        """[n]: what `get_state` returned, or where episodes are replayed, (the seed, the actions so far)."""
        backs = [spot.back for spot in state]
        return [(b.history.seed, b.collect_history()[0]) if isinstance(b, HistoryPosition) else b.value for b in backs]

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """(next state [n], cost [n], done [n]). A state in which the episode has ended cannot be stepped."""
        way = self._way
        border = self._border
        spots = state.tolist()
        if any(spot.ended for spot in spots):
            raise UsageError(f"{self.name}: an episode that has ended was stepped; drop it from the batch")
        actions = self.space_adapter.clip_actions(action)
        native = self.space_adapter.to_native_actions(actions)
        own = list(actions) if actions.ndim > 1 else actions.tolist()
        n = len(spots)
        following = np.empty(n, object)
        cost = np.empty(n)
        done = np.empty(n, bool)
        # All that stand ready are claimed, and used, before one is restored: restoring must not take them away.
        claimed = way.claim(spots)
        for i in sorted(range(n), key=lambda i: claimed[i] is None):
            spot = spots[i]
            env = claimed[i]
            try:
                if env is None:
                    env = way.restore(spot)
                shown, cost[i], ended = border.advance(env, native[i])
                back = way.record_step(spot, env, own[i])
            except UserCodeError as error:
                raise error.add_position(row=i) from error.__cause__
            done[i] = ended
            following[i] = now = EnvironmentState(shown.observation, ended, shown.action_mask, back)
            way.release(env, now)
        self._stepped += n
        return following, cost, done

    def replayed_steps(self) -> int:
        """How many steps of environments were replayed so far, to come back to a state."""
        return self._way.replayed

    @property
    def time_limit(self) -> int | None:
        """After how many steps the environment itself would cut its episodes, as far as it says."""
        env = make_environment(self._border.source)
        try:
            return read_time_limit(env)
        finally:
            env.close()

    def max_batch_size(self) -> int:
        """How many episodes can go forward together without a replay."""
        return self._pool.size if isinstance(self._way, ReplayRestorer) else sys.maxsize

    def fingerprint(self) -> dict[str, Array]:
        """What was seen and paid in the first steps of two random episodes: another environment has another."""
        few = self._proof[:FEWEST]
        return {
            "observations": np.concatenate([self.observe(moment.state) for moment in few]),
            "costs": np.concatenate([moment.cost for moment in few]),
        }

    def pictures(self, states: Array) -> list[Array]:
        """uint8 [h, w, 3] for each of the states, drawn by the environment; a whole episode in order costs one."""
        return render_states(self._border, self._way, states.tolist())

    def close(self) -> None:
        """Close the environments that are kept. The simulator stays usable: it makes new ones."""
        self._pool.clear()

    def _choose_restorer(self, ways: list[StateRestorer]) -> tuple[StateRestorer, list[RecordedStep], list[str]]:
        """(the first of the ways that is exact, its proof, what is to be said of those that are not)."""
        failed: list[str] = []
        for way in ways[:-1]:
            self._way = way
            try:
                return way, check_deterministic(self, self._pool, way.drift), failed
            except (DataError, AttributeError, TypeError, ValueError, KeyError):
                failed.append(f"{way.words}? that was tried and is not exact")
                self._pool.clear()
        self._way = ways[-1]
        return ways[-1], check_deterministic(self, self._pool, ways[-1].drift), failed

    @property
    def _affordable_steps(self) -> int:
        """How many steps an episode has to which there is time."""
        return PROOF_STEPS if self._proof[-1].done.all() else len(self._proof)

    def _is_stochastic(self) -> bool:
        try:
            return is_stochastic(self, self._pool, self._reseed, self._affordable_steps)
        except (AttributeError, TypeError):  # a generator that cannot be set
            return False
        finally:
            self._pool.forget()

    def _get_action_mask(self, state: Array) -> Array:
        """[n, A] bool: which actions may be taken."""
        legal = np.ones((len(state), self._border.actions), bool)
        for row, spot in zip(legal, state, strict=True):
            if spot.action_mask is not None:
                row[:] = spot.action_mask
        return legal

    def _reseed(self, state: Array, seeds: Array) -> Array:
        """The same states with other luck ahead, one seed for each."""
        way = self._way
        return stack_states(
            [
                EnvironmentState(spot.observation, spot.ended, spot.action_mask, way.reseed(spot.back, int(seed)))
                for spot, seed in zip(state, seeds, strict=True)
            ]
        )

    def _make_initial_state(self, seed: int) -> EnvironmentState:
        """Where the environment is after `reset(seed=seed)`."""
        env = self._pool.take()
        try:
            shown = self._border.reset(env, seed)
            spot = EnvironmentState(shown.observation, False, shown.action_mask, self._way.record_reset(env, seed))
        except UserCodeError as error:
            raise error.add_position(step=0, seed=seed) from error.__cause__
        self._way.release(env, spot)
        return spot


def recreate_simulator(
    kind: type[GymnasiumSimulator], state: dict[str, Any], made_by: tuple[Any, ...]
) -> GymnasiumSimulator:
    """The simulator that these arguments once made, with what a class of somebody's own added to it."""
    source: EnvironmentSource
    source, horizon, name, get_state, set_state, live = made_by
    simulator = kind.__new__(kind)
    simulator.__dict__.update(state)  # before it proves itself, for which it is stepped
    GymnasiumSimulator.__init__(
        simulator, source, horizon, name=name, get_state=get_state, set_state=set_state, live=live
    )
    return simulator


def render_states(border: EnvironmentAdapter, way: StateRestorer, spots: list[EnvironmentState]) -> list[Array]:
    """A picture uint8 [h, w, 3] of each, by one environment that goes from one to the next."""
    env = make_rendering_environment(border.source, border.name)
    at = None
    pictures = []
    try:
        call_user_code(border.name, "reset", lambda: reset_environment(env, 0, border.seeding))
        for spot in spots:
            at = way.move_to_state(env, spot.back, at)
            pictures.append(check_frame(border.name, call_user_code(border.name, "render", env.render)))
    finally:
        env.close()
    return pictures


def check_frame(name: str, given: Any) -> Array:
    """What `render` gave, if it is a picture."""
    if given is None or np.ndim(given) != 3 or np.shape(given)[2] not in (3, 4):
        raise UsageError(f"{name} cannot be drawn: let its render return arrays [height, width, 3]")
    return np.array(given, np.uint8)[:, :, :3]
