"""Gymnasium's MuJoCo robots as batched functions of values, bit for bit as Gymnasium steps them.

A state row is MuJoCo's full physics state (time, positions, velocities) and the solver's warm start, and so a whole
snapshot: without the warm start a restored simulation would drift. Everything else in MuJoCo's integration state is
an input, which these tasks never set or set anew in every step. `mujoco.rollout` steps a batch in one call, but does
not give back the warm start of each lane; here every lane is restored, stepped and read in 2 µs besides its 80 to 110
in MuJoCo itself, and lanes are spread over threads, which run side by side while MuJoCo computes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
from gymnasium.spaces import Box

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.hardware import choose_thread_count

UNSTABLE = 1e10  # mjMAXVAL: what MuJoCo itself takes for the sign of a diverged simulation
Healthy = Callable[[Array, Array], Array]  # from positions [n, nq] and velocities [n, nv] to bool [n]


@dataclass(frozen=True)
class Robot:
    """What Gymnasium's environment adds to the physics. Reward: forward · speed + alive · healthy − effort · Σ a²."""

    environment: str
    unseen: int = 1  # of the positions, how many the observation leaves out
    fastest: float = np.inf  # velocities are clipped to this in the observation
    forward: float = 1.0
    effort: float = 0.001
    alive: float = 0.0
    healthy: Healthy | None = None  # where it is false the episode ends


def is_hopper_healthy(positions: Array, velocities: Array) -> Array:
    height = positions[:, 1]
    angle = positions[:, 2]
    bounded = (np.abs(positions[:, 2:]) < 100.0).all(axis=1) & (np.abs(velocities) < 100.0).all(axis=1)
    return bounded & (height > 0.7) & (np.abs(angle) < 0.2)


def is_walker_healthy(positions: Array, velocities: Array) -> Array:
    height = positions[:, 1]
    angle = positions[:, 2]
    return (height > 0.8) & (height < 2.0) & (np.abs(angle) < 1.0)


def is_pendulum_healthy(positions: Array, velocities: Array) -> Array:
    return np.abs(positions[:, 1]) <= 0.2


# Ant and Reacher are not here: their rewards and observations read body positions and contact forces, which MuJoCo
# leaves as they were before its last substep, so they are no function of state, action and next state.
ROBOTS = {
    "hopper": Robot("Hopper-v5", fastest=10.0, alive=1.0, healthy=is_hopper_healthy),
    "walker": Robot("Walker2d-v5", fastest=10.0, alive=1.0, healthy=is_walker_healthy),
    "half-cheetah": Robot("HalfCheetah-v5", effort=0.1),
    "swimmer": Robot("Swimmer-v5", unseen=2, effort=1e-4),
    "inverted-pendulum": Robot(
        "InvertedPendulum-v5", unseen=0, forward=0.0, effort=0.0, alive=1.0, healthy=is_pendulum_healthy
    ),
}


@dataclass(frozen=True)
class MuJoCo:
    """A robot over a batch. The cost is −reward; a simulation that diverged costs NaN and is done.

    Actions are clipped to the action space, as Stable-Baselines3 does.
    """

    name: str
    horizon: int = 100
    threads: int = field(default_factory=choose_thread_count)  # changes no bit

    def __post_init__(self) -> None:
        if self.name not in ROBOTS:
            raise UsageError(f"there is no robot {self.name!r}; those that there are: {', '.join(ROBOTS)}")
        if self.threads < 1:
            raise UsageError(f"{self.threads} threads cannot step {self.name}; give at least 1")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.horizon)  # physics is loaded, and threads are counted, where it arrives

    @property
    def robot(self) -> Robot:
        return ROBOTS[self.name]

    @cached_property
    def physics(self) -> Physics:
        """MuJoCo's model of the robot; loaded when it is first needed."""
        return Physics(self.robot.environment, self.threads)

    @cached_property
    def action_space(self) -> Box:
        bounds = self.physics.model.actuator_ctrlrange.astype(np.float32)
        return Box(bounds[:, 0], bounds[:, 1])

    @cached_property
    def observation_space(self) -> Box:
        size = self.physics.model.nq - self.robot.unseen + self.physics.model.nv
        return Box(-np.inf, np.inf, (size,), np.float32)

    def reset(self, seeds: Array) -> Array:
        """The states after `reset(seed=seed)` in Gymnasium, bit for bit."""
        return np.stack([self.physics.make_reset_state(int(seed)) for seed in seeds])

    def observe(self, state: Array) -> Array:
        """[n, O] float32."""
        return self.observe_exactly(state).astype(np.float32)

    def observe_exactly(self, state: Array) -> Array:
        """[n, O] float64, as Gymnasium has it."""
        positions, velocities = self.physics.split_state(state)
        seen = np.clip(velocities, -self.robot.fastest, self.robot.fastest)
        return np.concatenate([positions[:, self.robot.unseen :], seen], axis=1)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        robot = self.robot
        physics = self.physics
        action = np.clip(action, self.action_space.low, self.action_space.high)
        following = physics.advance(state, action)
        (before, _) = physics.split_state(state)
        (after, velocities) = physics.split_state(following)
        speed = (after[:, 0] - before[:, 0]) / physics.dt
        healthy = robot.healthy(after, velocities) if robot.healthy else np.ones(len(state), bool)
        reward = robot.forward * speed + robot.alive * healthy - robot.effort * np.sum(np.square(action), axis=1)
        sound = (np.abs(following) < UNSTABLE).all(axis=1) & (following[:, 0] > state[:, 0])  # false for NaN, too
        return following, np.where(sound, -reward, np.nan), ~(healthy & sound)


class Physics:
    """MuJoCo for one model, and a pool of threads with one `MjData` each."""

    def __init__(self, environment: str, threads: int) -> None:
        mujoco = self.mujoco = import_mujoco()
        import gymnasium

        self.environment: Any = cast(Any, gymnasium.make(environment).unwrapped)
        self.model = self.environment.model
        self.dt = self.environment.dt
        self.frames = self.environment.frame_skip
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET  # a diverged lane must not begin again
        if hasattr(mujoco.mjtDisableBit, "mjDSBL_ISLAND"):  # a robot is one; to look for more takes a tenth of the time
            self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND
        parts = mujoco.mjtState
        self.whole = int(parts.mjSTATE_FULLPHYSICS | parts.mjSTATE_WARMSTART)
        self.with_control = int(self.whole | parts.mjSTATE_CTRL)
        self.size = mujoco.mj_stateSize(self.model, self.whole)
        self.datas = [mujoco.MjData(self.model) for _ in range(threads)]
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def make_reset_state(self, seed: int) -> Array:
        """[size]: where Gymnasium's environment is after `reset(seed=seed)`."""
        self.environment.reset(seed=seed)
        state = np.empty(self.size)
        self.mujoco.mj_getState(self.model, self.environment.data, state, self.whole)
        return state

    def split_state(self, state: Array) -> tuple[Array, Array]:
        """(positions [n, nq], velocities [n, nv]): views of the state."""
        nq = self.model.nq
        nv = self.model.nv
        return state[:, 1 : 1 + nq], state[:, 1 + nq : 1 + nq + nv]

    def advance(self, state: Array, control: Array) -> Array:
        """The states [n, size] one control step later."""
        rows = np.ascontiguousarray(np.concatenate([state, control], axis=1))
        following = np.empty(state.shape)
        if self.pool is None:
            self.run(self.datas[0], rows, following)
        else:  # each thread takes every so-manieth lane: lanes near each other cost alike, and those far apart do not
            threads = len(self.datas)

            def run_share(i: int) -> None:
                self.run(self.datas[i], rows[i::threads], following[i::threads])

            list(self.pool.map(run_share, range(threads)))
        return following

    def run(self, data: Any, rows: Array, following: Array) -> None:
        """Restore, step and read each lane in turn."""
        set_state = self.mujoco.mj_setState
        step = self.mujoco.mj_step
        get_state = self.mujoco.mj_getState
        model = self.model
        frames = self.frames
        before = self.with_control
        after = self.whole
        for row, out in zip(rows, following, strict=True):
            set_state(model, data, row, before)
            step(model, data, frames)
            get_state(model, data, out, after)


def import_mujoco() -> Any:
    """The package, or one sentence that says how to get it."""
    try:
        import imageio  # noqa: F401  # Gymnasium's MuJoCo environments import it
        import mujoco
    except ImportError as error:
        raise UsageError("this task needs MuJoCo: pip install 'aggrevated[mujoco]'") from error
    except (AttributeError, RuntimeError) as error:  # a renderer that is not there stops MuJoCo itself
        wanted = os.environ.get("MUJOCO_GL")
        raise UsageError(
            f"MuJoCo cannot use MUJOCO_GL={wanted}; unset it, or install what it names (Debian: libegl1, libosmesa6)"
        ) from error
    mujoco.set_mju_user_warning(lambda message: None)  # divergence is seen in the state; no MUJOCO_LOG.TXT is left
    return mujoco
