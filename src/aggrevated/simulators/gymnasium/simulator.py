"""Any Gymnasium environment as a simulator: a state is an observation and a restore point.

The observation is part of the state because Gymnasium cannot return an observation without a step.
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

_ATTRIBUTES = {
    "_arguments", "_adapter", "name", "horizon", "space_adapter", "observation_space", "action_space", "_pool",
    "_restorer", "_stepped", "_recorded", "notes", "proof_steps", "action_mask", "reseed",
}  # fmt: skip


class GymnasiumSimulator:
    """A Gymnasium environment as a batched simulator.

    Rewards become costs, `terminated` and `truncated` both end an episode, and `horizon` replaces the
    environment's time limit. States are restored by the first of these ways that is exact: `get_state` and
    `set_state`, the environment's own methods, the known state of Gymnasium's own environments, or a replay
    of the episode.

    Args:
        environment: a Gymnasium id, a spec, an environment made by `gymnasium.make`, or a function that makes
            a new environment.
        horizon: H in steps; None: the environment's own time limit, or 1,000 where it declares none.
        name: name in messages and files; None: the environment's id or class.
        get_state: function from an environment to a snapshot; only together with `set_state`.
        set_state: function of (environment, snapshot) that restores it.
        live: number of environments that stay in recent states when episodes are replayed. Stepping one of
            them costs one `env.step`.

    Attributes:
        notes: sentences on what the checks at construction found.
        proof_steps: number of steps that these checks took.

    Raises:
        UsageError: the environment cannot be made, or is too slow.
        DataError: the environment does not repeat itself exactly.
        UserCodeError: one of its methods failed.

    Example:
        >>> simulator = GymnasiumSimulator("CartPole-v1", horizon=100)
        >>> states = simulator.reset(np.arange(3, dtype=np.uint64))
        >>> states, costs, done = simulator.step(states, np.array([0, 1, 1]))
        >>> costs
        array([-1., -1., -1.])
    """

    # Set only where the environment provides action masks, and only where it is stochastic:
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
        started_at = time.monotonic()
        source = resolve_environment_source(environment)
        self._arguments = source, horizon, name, get_state, set_state, live
        self._adapter = make_environment_adapter(source, horizon, name)
        self.name = self._adapter.name
        self.horizon = self._adapter.horizon
        self.space_adapter = self._adapter.space_adapter
        self.observation_space = self.space_adapter.observation_space
        self.action_space = self.space_adapter.action_space
        if (get_state is None) != (set_state is None):
            raise UsageError(f"{self.name}: get_state and set_state work only together; pass both or neither")
        self._pool = EnvironmentPool(self._adapter.make_reset_environment, live)
        self._stepped = 0
        if self._adapter.mask_source is not None:
            self.action_mask = self._get_action_mask
        restorers = find_state_restorers(self._adapter, self._pool, get_state, set_state)
        self._restorer, self._recorded, failures = self._choose_restorer(restorers)
        if stochastic := self._is_stochastic():
            self.reseed = self._reseed
        # These steps are not counted as simulator steps of a run.
        self.proof_steps = self._stepped + sum(restorer.replayed for restorer in restorers)
        self.notes = (
            *self._adapter.notes,
            *failures,
            f"states are restored {self._restorer.description}: a check found this exact",
            "it is stochastic" if stochastic else "it is deterministic",
            f"these checks took {self.proof_steps:,} steps and {time.monotonic() - started_at:.1f} seconds",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # The receiving process makes new environments and checks them. It also gets the attributes of a
        # subclass.
        added = {name: value for name, value in self.__dict__.items() if name not in _ATTRIBUTES}
        return recreate_simulator, (type(self), added, self._arguments)

    def reset(self, seeds: Array) -> Array:
        """Return the states of the environment after `reset(seed=seed)`.

        Args:
            seeds: one seed per episode, uint64 [n].

        Returns:
            States [n] of dtype object.
        """
        return stack_states([self._make_initial_state(int(seed)) for seed in seeds])

    def observe(self, state: Array) -> Array:
        """Return the environment's observations.

        Args:
            state: states [n].

        Returns:
            Vectors [n, O] or images [n, H, W, ...], float32.
        """
        observations = np.empty((len(state), *self.observation_space.shape), np.float32)
        for row, one in zip(observations, state, strict=True):
            row[...] = one.observation
        return observations

    def vectors(self, state: Array) -> Array:
        """Return the observations in the environment's own type, [n, O] or [n, H, W, ...], of states [n]."""
        return np.stack([saved.observation for saved in state]) if len(state) else self.observe(state)

    def native_observations(self, state: Array) -> list[Any]:
        """Return copies of the environment's unconverted observations, one per state.

        Args:
            state: states [n].

        Returns:
            n observations in the environment's own observation space.
        """
        space = self.space_adapter.observations
        if isinstance(space, Box):
            return [saved.observation.reshape(space.shape).copy() for saved in state]
        return [unflatten(space, saved.observation) for saved in state]

    def snapshot(self, state: Array) -> list[Any]:
        """Return the snapshots of the states; (seed, actions so far) where episodes are replayed.

        Args:
            state: states [n].

        Returns:
            n snapshots.
        """
        points = [saved.restore_point for saved in state]
        return [(p.history.seed, p.collect_history()[0]) if isinstance(p, HistoryPosition) else p.value for p in points]

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Step the environment from each state.

        Args:
            state: states [n] of episodes that have not ended.
            action: actions, integers [n] or vectors [n, A]; vectors are clipped to the action space.

        Returns:
            (next states [n], costs [n], done [n]).

        Raises:
            UsageError: an episode has ended already.
            DataError: a replayed episode differs from its first run.
            UserCodeError: the environment failed.
        """
        restorer = self._restorer
        adapter = self._adapter
        states = state.tolist()
        if any(saved.ended for saved in states):
            raise UsageError(f"{self.name}: an episode that has ended was stepped; drop it from the batch")
        actions = self.space_adapter.clip_actions(action)
        native = self.space_adapter.to_native_actions(actions)
        recorded = list(actions) if actions.ndim > 1 else actions.tolist()
        n = len(states)
        next_states = np.empty(n, object)
        cost = np.empty(n)
        done = np.empty(n, bool)
        # Environments that are in their states already are claimed and used first: restoring others must not
        # take them.
        claimed = restorer.claim(states)
        for i in sorted(range(n), key=lambda i: claimed[i] is None):
            env = claimed[i]
            try:
                if env is None:
                    env = restorer.restore(states[i])
                converted, cost[i], ended = adapter.advance(env, native[i])
                restore_point = restorer.record_step(states[i], env, recorded[i])
            except UserCodeError as error:
                raise error.add_position(row=i) from error.__cause__
            done[i] = ended
            next_state = EnvironmentState(converted.observation, ended, converted.action_mask, restore_point)
            next_states[i] = next_state
            restorer.release(env, next_state)
        self._stepped += n
        return next_states, cost, done

    def replayed_steps(self) -> int:
        """Return the number of environment steps replayed so far to restore states.

        Returns:
            The number of steps, 0 or more.
        """
        return self._restorer.replayed

    @property
    def time_limit(self) -> int | None:
        """Number of steps after which the environment itself cuts its episodes; None: it declares none."""
        env = make_environment(self._adapter.source)
        try:
            return read_time_limit(env)
        finally:
            env.close()

    def max_batch_size(self) -> int:
        """Return the largest number of episodes that can be stepped together without a replay.

        Returns:
            The number of episodes, `live` where episodes are replayed.
        """
        return self._pool.size if isinstance(self._restorer, ReplayRestorer) else sys.maxsize

    def fingerprint(self) -> dict[str, Array]:
        """Return arrays that identify the environment: observations and costs of two short random episodes.

        Returns:
            Arrays by name, the observations [n, O] and the costs [n].
        """
        first_steps = self._recorded[:FEWEST]
        return {
            "observations": np.concatenate([self.observe(step.state) for step in first_steps]),
            "costs": np.concatenate([step.cost for step in first_steps]),
        }

    def pictures(self, states: Array) -> list[Array]:
        """Return a picture of each state, drawn by the environment; states in order of time are fastest.

        Args:
            states: states [n].

        Returns:
            n pictures, uint8 [height, width, 3].

        Raises:
            UsageError: the environment cannot render RGB arrays.
        """
        return render_states(self._adapter, self._restorer, states.tolist())

    def close(self) -> None:
        """Close all pooled environments; the simulator stays usable and makes new ones."""
        self._pool.clear()

    def _choose_restorer(self, restorers: list[StateRestorer]) -> tuple[StateRestorer, list[RecordedStep], list[str]]:
        """Return (the first exact restorer, the steps of its check, notes on the inexact ones)."""
        failures: list[str] = []
        for restorer in restorers[:-1]:
            self._restorer = restorer
            try:
                return restorer, check_deterministic(self, self._pool, restorer.drift), failures
            except (DataError, AttributeError, TypeError, ValueError, KeyError):
                failures.append(f"states cannot be restored {restorer.description}: a check found this inexact")
                self._pool.clear()
        last = restorers[-1]
        self._restorer = last
        return last, check_deterministic(self, self._pool, last.drift), failures

    @property
    def _affordable_steps(self) -> int:
        """Number of steps per episode that the check had time for."""
        return PROOF_STEPS if self._recorded[-1].done.all() else len(self._recorded)

    def _is_stochastic(self) -> bool:
        try:
            return is_stochastic(self, self._pool, self._reseed, self._affordable_steps)
        except (AttributeError, TypeError):  # its generator cannot be replaced
            return False
        finally:
            self._pool.forget()

    def _get_action_mask(self, state: Array) -> Array:
        """Return which actions are legal, bool [n, A]."""
        legal = np.ones((len(state), self._adapter.actions), bool)
        for row, one in zip(legal, state, strict=True):
            if one.action_mask is not None:
                row[:] = one.action_mask
        return legal

    def _reseed(self, state: Array, seeds: Array) -> Array:
        """Return copies of the states with other random numbers to come, one seed for each."""
        reseed = self._restorer.reseed
        return stack_states(
            [
                EnvironmentState(one.observation, one.ended, one.action_mask, reseed(one.restore_point, int(seed)))
                for one, seed in zip(state, seeds, strict=True)
            ]
        )

    def _make_initial_state(self, seed: int) -> EnvironmentState:
        """Return the state of the environment after `reset(seed=seed)`."""
        env = self._pool.take()
        try:
            converted = self._adapter.reset(env, seed)
            restore_point = self._restorer.record_reset(env, seed)
            state = EnvironmentState(converted.observation, False, converted.action_mask, restore_point)
        except UserCodeError as error:
            raise error.add_position(step=0, seed=seed) from error.__cause__
        self._restorer.release(env, state)
        return state


def recreate_simulator(
    kind: type[GymnasiumSimulator], added: dict[str, Any], arguments: tuple[Any, ...]
) -> GymnasiumSimulator:
    """Return a simulator made from these arguments, with the attributes that a subclass added."""
    source: EnvironmentSource
    source, horizon, name, get_state, set_state, live = arguments
    simulator = kind.__new__(kind)
    simulator.__dict__.update(added)  # first, since the checks at construction step the simulator
    GymnasiumSimulator.__init__(
        simulator, source, horizon, name=name, get_state=get_state, set_state=set_state, live=live
    )
    return simulator


def render_states(adapter: EnvironmentAdapter, restorer: StateRestorer, states: list[EnvironmentState]) -> list[Array]:
    """Return a picture, uint8 [height, width, 3], of each state, drawn by one environment."""
    env = make_rendering_environment(adapter.source, adapter.name)
    current = None
    pictures = []
    try:
        call_user_code(adapter.name, "reset", lambda: reset_environment(env, 0, adapter.seeding))
        for state in states:
            current = restorer.move_to_state(env, state.restore_point, current)
            pictures.append(check_frame(adapter.name, call_user_code(adapter.name, "render", env.render)))
    finally:
        env.close()
    return pictures


def check_frame(name: str, frame: Any) -> Array:
    """Return a frame of `render` as uint8 [height, width, 3], or raise a `UsageError`."""
    if frame is None or np.ndim(frame) != 3 or np.shape(frame)[2] not in (3, 4):
        raise UsageError(f"{name} cannot be drawn: let its render return arrays [height, width, 3]")
    return np.array(frame, np.uint8)[:, :, :3]
