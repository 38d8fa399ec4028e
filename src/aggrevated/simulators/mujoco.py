"""Gymnasium's MuJoCo robots as batched functions of values, bit for bit as Gymnasium steps them.

A state is MuJoCo's full physics state (time, positions, velocities) and the solver's warm start. Together
they are a complete snapshot: without the warm start a restored simulation would drift. Everything else in
MuJoCo's integration state is an input, which these tasks never set or set in every step. `mujoco.rollout`
steps a batch in one call but does not return the warm start of each episode. Here every episode is restored,
stepped and read separately, which adds 2 µs to the 80 to 110 µs in MuJoCo itself. Threads share the episodes
and run in parallel while MuJoCo computes.
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

UNSTABLE = 1e10  # mjMAXVAL: MuJoCo itself regards larger numbers as divergence
Healthy = Callable[[Array, Array], Array]  # from positions [n, nq] and velocities [n, nv] to bool [n]


@dataclass(frozen=True)
class Robot:
    """Rewards and observations that Gymnasium's environment adds to the physics.

    The reward is forward · speed + alive · healthy − effort · Σ a².
    """

    environment: str
    unseen: int = 1  # number of leading positions that observations leave out
    fastest: float = np.inf  # bound to which observations clip velocities
    forward: float = 1.0
    effort: float = 0.001
    alive: float = 0.0
    healthy: Healthy | None = None  # an unhealthy state ends the episode


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


# Ant and Reacher are missing: their rewards and observations read body positions and contact forces, which
# MuJoCo does not update in its last substep. They are therefore not functions of state, action and next
# state.
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
    """A MuJoCo robot of Gymnasium as a batched simulator; it needs `pip install 'aggrevated[mujoco]'`.

    The cost is −reward. A step that diverges costs NaN and ends the episode. Actions are clipped to the
    action space, as by Stable-Baselines3. A state is float64 [S]: time, positions, velocities and the
    solver's warm start.

    Args:
        name: the robot: hopper, walker, half-cheetah, swimmer or inverted-pendulum.
        horizon: H, the number of steps after which an episode is cut.
        threads: number of threads that step a batch; results do not depend on it.

    Raises:
        UsageError: the robot is unknown, or there are fewer than 1 threads.
    """

    name: str
    horizon: int = 100
    threads: int = field(default_factory=choose_thread_count)

    def __post_init__(self) -> None:
        if self.name not in ROBOTS:
            raise UsageError(f"unknown robot {self.name!r}; choose one of {', '.join(ROBOTS)}")
        if self.threads < 1:
            raise UsageError(f"{self.name} cannot be stepped by {self.threads} threads; pass threads=1 or more")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.horizon)  # the receiving process loads the physics

    @property
    def robot(self) -> Robot:
        """Rewards and observations of the robot."""
        return ROBOTS[self.name]

    @cached_property
    def physics(self) -> Physics:
        """MuJoCo's model of the robot, loaded on first use."""
        return Physics(self.robot.environment, self.threads)

    @cached_property
    def action_space(self) -> Box:
        """Space of the motors' controls, within the model's bounds."""
        bounds = self.physics.model.actuator_ctrlrange.astype(np.float32)
        return Box(bounds[:, 0], bounds[:, 1])

    @cached_property
    def observation_space(self) -> Box:
        """Space of positions and velocities, without bounds."""
        size = self.physics.model.nq - self.robot.unseen + self.physics.model.nv
        return Box(-np.inf, np.inf, (size,), np.float32)

    def reset(self, seeds: Array) -> Array:
        """Return the states after `reset(seed=seed)` in Gymnasium, bit for bit.

        Args:
            seeds: one seed per episode, [n].

        Returns:
            States, float64 [n, S].
        """
        return np.stack([self.physics.make_reset_state(int(seed)) for seed in seeds])

    def observe(self, state: Array) -> Array:
        """Return positions and clipped velocities.

        Args:
            state: states, float64 [n, S].

        Returns:
            Observations, float32 [n, O].
        """
        return self.observe_exactly(state).astype(np.float32)

    def observe_exactly(self, state: Array) -> Array:
        """Return the observations as Gymnasium computes them, float64 [n, O], of states [n, S]."""
        positions, velocities = self.physics.split_state(state)
        clipped = np.clip(velocities, -self.robot.fastest, self.robot.fastest)
        return np.concatenate([positions[:, self.robot.unseen :], clipped], axis=1)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Advance by one control step of Gymnasium's environment.

        Args:
            state: states, float64 [n, S].
            action: controls, [n, A].

        Returns:
            (next states [n, S], costs [n], done [n]).
        """
        robot = self.robot
        physics = self.physics
        action = np.clip(action, self.action_space.low, self.action_space.high)
        next_state = physics.advance(state, action)
        before, _ = physics.split_state(state)
        after, velocities = physics.split_state(next_state)
        speed = (after[:, 0] - before[:, 0]) / physics.dt
        healthy = robot.healthy(after, velocities) if robot.healthy else np.ones(len(state), bool)
        reward = robot.forward * speed + robot.alive * healthy - robot.effort * np.sum(np.square(action), axis=1)
        stable = (np.abs(next_state) < UNSTABLE).all(axis=1) & (next_state[:, 0] > state[:, 0])  # false for NaN
        return next_state, np.where(stable, -reward, np.nan), ~(healthy & stable)


class Physics:
    """One MuJoCo model, and a pool of threads with one `MjData` each."""

    def __init__(self, environment: str, threads: int) -> None:
        mujoco = self.mujoco = import_mujoco()
        import gymnasium

        self.environment: Any = cast(Any, gymnasium.make(environment).unwrapped)
        self.model = self.environment.model
        self.dt = self.environment.dt
        self.frames = self.environment.frame_skip
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET  # a diverged episode must not reset
        if hasattr(mujoco.mjtDisableBit, "mjDSBL_ISLAND"):  # a robot is one island; saves 10 % of the time
            self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND
        flags = mujoco.mjtState
        self.whole = int(flags.mjSTATE_FULLPHYSICS | flags.mjSTATE_WARMSTART)
        self.with_control = int(self.whole | flags.mjSTATE_CTRL)
        self.size = mujoco.mj_stateSize(self.model, self.whole)
        self.datas = [mujoco.MjData(self.model) for _ in range(threads)]
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def make_reset_state(self, seed: int) -> Array:
        """Return the state [S] of Gymnasium's environment after `reset(seed=seed)`."""
        self.environment.reset(seed=seed)
        state = np.empty(self.size)
        self.mujoco.mj_getState(self.model, self.environment.data, state, self.whole)
        return state

    def split_state(self, state: Array) -> tuple[Array, Array]:
        """Return (positions [n, nq], velocities [n, nv]) as views of the states."""
        nq = self.model.nq
        nv = self.model.nv
        return state[:, 1 : 1 + nq], state[:, 1 + nq : 1 + nq + nv]

    def advance(self, state: Array, control: Array) -> Array:
        """Return the states [n, S] one control step later."""
        rows = np.ascontiguousarray(np.concatenate([state, control], axis=1))
        next_state = np.empty(state.shape)
        if self.pool is None:
            self.run(self.datas[0], rows, next_state)
        else:  # interleaved, since neighboring episodes cost alike
            threads = len(self.datas)

            def run_share(i: int) -> None:
                self.run(self.datas[i], rows[i::threads], next_state[i::threads])

            list(self.pool.map(run_share, range(threads)))
        return next_state

    def run(self, data: Any, rows: Array, next_state: Array) -> None:
        """Restore, step and read each episode in turn."""
        set_state = self.mujoco.mj_setState
        step = self.mujoco.mj_step
        get_state = self.mujoco.mj_getState
        model = self.model
        frames = self.frames
        before = self.with_control
        after = self.whole
        for row, out in zip(rows, next_state, strict=True):
            set_state(model, data, row, before)
            step(model, data, frames)
            get_state(model, data, out, after)


def import_mujoco() -> Any:
    """Import MuJoCo, or raise a `UsageError` that says how to install it."""
    try:
        import imageio  # noqa: F401  # Gymnasium's MuJoCo environments import it
        import mujoco
    except ImportError as error:
        raise UsageError("this task needs MuJoCo: pip install 'aggrevated[mujoco]'") from error
    except (AttributeError, RuntimeError) as error:  # the renderer of MUJOCO_GL is missing
        renderer = os.environ.get("MUJOCO_GL")
        raise UsageError(
            f"MuJoCo cannot use MUJOCO_GL={renderer}; unset it, or install that renderer (Debian: libegl1, libosmesa6)"
        ) from error
    mujoco.set_mju_user_warning(lambda message: None)  # `step` detects divergence; write no MUJOCO_LOG.TXT
    return mujoco
