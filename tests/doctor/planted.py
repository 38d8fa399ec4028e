"""Builtin experts and simulators with planted faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from aggrevated.config import Config
from aggrevated.config.resolver import resolve_config
from aggrevated.core.arrays import Array
from aggrevated.experts.loading import BUILTIN_WEIGHTS, load_expert
from aggrevated.problems.control import ControlProblem
from aggrevated.simulators import Simulator
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole
from aggrevated.storage import load_checksummed, save_checksummed
from aggrevated.tasks import Task, find_task


@dataclass(frozen=True)
class ChangedQExpert:
    """An expert with changed costs-to-go; it acts by them or as the original expert."""

    expert: Any
    change: Callable[[Array, Array], Array]  # from q [n, A] and states
    acts_by_changed_q: bool = True
    discount: float = 0.99
    name: str = "changed"

    def q(self, states: Array) -> Array:
        return self.change(self.expert.q(states), states)

    def act(self, states: Array, t: int) -> Array:
        return self.q(states).argmin(axis=1) if self.acts_by_changed_q else self.expert.act(states, t)


@dataclass(frozen=True)
class ChangedVExpert:
    """An expert with a changed critic or changed actions."""

    expert: Any
    change: Callable[[Array, Array], Array] = lambda v, states: v
    change_actions: Callable[[Array], Array] = lambda actions: actions
    discount: float = 0.99
    name: str = "changed critic"

    def v(self, states: Array) -> Array:
        return self.change(self.expert.v(states), states)

    def act(self, states: Array, t: int) -> Array:
        return self.change_actions(self.expert.act(states, t))


@dataclass(frozen=True)
class WorstActionExpert:
    """An expert that always takes the costliest action and has no costs-to-go."""

    expert: Any
    name: str = "contrary"

    def act(self, states: Array, t: int) -> Array:
        return np.asarray(self.expert.q(states).argmax(axis=1))


@dataclass(frozen=True)
class DiscountedQExpert:
    """An expert with exact costs discounted by `true`, from rollouts, that declares another `discount`."""

    expert: Any
    simulator: Simulator
    true: float
    discount: float
    steps: int
    name: str = "discounted"

    def act(self, states: Array, t: int) -> Array:
        return np.asarray(self.expert.act(states, t))

    def q(self, states: Array) -> Array:
        return np.stack([self.rollout_costs(states, np.full(len(states), a)) for a in range(2)], axis=1)

    def rollout_costs(self, states: Array, actions: Array) -> Array:
        total = np.zeros(len(states))
        running = np.arange(len(states))
        for k in range(self.steps):
            states, cost, done = self.simulator.step(states, actions)
            total[running] += self.true**k * cost
            running = running[~done]
            states = states[~done]
            if not len(running):
                break
            actions = self.expert.act(states, 0)
        return total


@dataclass
class HiddenCounterSimulator:
    """A simulator with a counter outside of its states: steps after the first `every` cost 1 more."""

    simulator: Simulator
    every: int = 150
    count: int = field(default=0, compare=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.simulator, name)

    def reset(self, seeds: Array) -> Array:
        self.count = 0
        return self.simulator.reset(seeds)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        self.count += 1
        following, cost, done = self.simulator.step(state, action)
        return following, cost + (self.count > self.every), done


def state_noise(states: Array, actions: int) -> Array:
    """Return noise [n, A] of variance 1, a function of the states."""
    sums = np.asarray(states, float) @ np.linspace(1, 2, states.shape[1]) * 1e4
    waves = np.sin(sums[:, None] + 7.3 * np.arange(actions)) * 1e4
    return np.asarray((waves - np.floor(waves) - 0.5) * np.sqrt(12))


def add_noise(q: Array, states: Array) -> Array:
    return q + 9.0 * state_noise(states, q.shape[1])  # V varies by 9 over states that the expert visits


def q_of_acrobot_expert(q: Array, states: Array) -> Array:
    """Return Q of Acrobot's expert at CartPole's states."""
    acrobot_states = np.concatenate([states, states[:, :2]], axis=1).astype(np.float32)
    return np.asarray(load_expert("acrobot", Acrobot(200)).q(acrobot_states)[:, :2])  # type: ignore[union-attr]


def swap_pole_and_cart(expert: Any) -> Callable[[Array, Array], Array]:
    """Return a change of Q: the expert's Q with the states of pole and cart swapped."""
    return lambda q, states: expert.q(np.ascontiguousarray(states[:, [2, 3, 0, 1]]))


def config_with_expert(make: Callable[[Simulator], Any], name: str = "cartpole", **settings: Any) -> Config:
    """Return the config of a task with an expert made from its builtin one."""
    task = find_task(name)
    assert isinstance(task.problem, ControlProblem)
    builtin = task.problem.expert
    problem = replace(task.problem, expert="", make_expert=lambda sim: make(load_expert(builtin, sim)), **settings)
    return resolve_config(replace(task, problem=problem))


def config_with_simulator(make: Callable[[int], Simulator], **settings: Any) -> Config:
    """Return the config of CartPole's task in another simulator."""
    task: Task = find_task("cartpole")
    assert isinstance(task.problem, ControlProblem)
    return resolve_config(replace(task, problem=replace(task.problem, make=make, **settings)))


def config_trained_on_normalized(folder: Path) -> Config:
    """Return CartPole's config with an expert that expects normalized observations and does not get them."""
    weights, metadata = load_checksummed(BUILTIN_WEIGHTS / "cartpole.safetensors")
    mean = np.array([0.3, -0.3, 0.0, 0.0])
    scale = np.array([0.9, 0.8, 0.05, 0.25])
    first = next(name for name in weights if name.endswith(".0.weight"))
    bias = first.replace("weight", "bias")
    matrix = weights[first].clone()
    weights[bias] = weights[bias] + matrix @ matrix.new_tensor(mean)
    weights[first] = matrix * matrix.new_tensor(scale)
    path = folder / "normalized.safetensors"
    save_checksummed(path, weights, metadata)
    return resolve_config("cartpole", expert=str(path))


def make_faults(folder: Path) -> dict[str, tuple[Callable[[], Config], set[str]]]:
    """Return, by name, a function that makes a faulty config, and the checks that may find the fault."""
    swap_actions = lambda q, states: q[:, ::-1]  # noqa: E731
    return {
        "negated Q": (lambda: config_with_expert(lambda e: ChangedQExpert(e, lambda q, s: -q)), {"sign"}),
        "negated Q, acting well": (
            lambda: config_with_expert(lambda e: ChangedQExpert(e, lambda q, s: -q, False)),
            {"sign"},
        ),
        "Q of another environment": (
            lambda: config_with_expert(lambda e: ChangedQExpert(e, q_of_acrobot_expert, False)),
            {"sign", "calibration"},
        ),
        "Q of another cart": (
            lambda: config_with_expert(lambda e: ChangedQExpert(e, swap_pole_and_cart(e), False)),
            {"agreement", "calibration"},
        ),
        "discount 0.9 as 1": (
            lambda: config_with_expert(lambda e: DiscountedQExpert(e, CartPole(500), 0.9, 1.0, 80)),
            {"discount"},
        ),
        "horizon halved": (lambda: resolve_config("cartpole", horizon=250), {"horizon"}),
        "horizon halved, few cut": (lambda: resolve_config("acrobot", horizon=100), {"horizon"}),
        "horizon half as long again": (lambda: resolve_config("hopper", horizon=150), {"horizon"}),
        "constant Q": (lambda: config_with_expert(lambda e: ChangedQExpert(e, lambda q, s: 0 * q + 7.0)), {"noise"}),
        "noise as large as the signal": (lambda: config_with_expert(lambda e: ChangedQExpert(e, add_noise)), {"noise"}),
        "noise, acting well": (lambda: config_with_expert(lambda e: ChangedQExpert(e, add_noise, False)), {"noise"}),
        "wrong action order": (lambda: config_with_expert(lambda e: ChangedQExpert(e, swap_actions)), {"actions"}),
        "wrong action order of three": (
            lambda: config_with_expert(lambda e: ChangedQExpert(e, lambda q, s: q[:, [1, 2, 0]]), "acrobot"),
            {"actions"},
        ),
        "a snapshot that forgets a counter": (
            lambda: config_with_simulator(lambda h: HiddenCounterSimulator(CartPole(h))),
            {"snapshot"},
        ),
        "missing normalization": (lambda: config_trained_on_normalized(folder), {"training", "scales"}),
        "negated V": (
            lambda: config_with_expert(lambda e: ChangedVExpert(e, lambda v, s: -v), "hopper"),
            {"sign"},
        ),
        "noisy V": (
            lambda: config_with_expert(
                lambda e: ChangedVExpert(e, lambda v, s: v + 20 * state_noise(s, 1)[:, 0]), "hopper"
            ),
            {"noise"},
        ),
        "vectors turned": (
            lambda: config_with_expert(lambda e: ChangedVExpert(e, change_actions=lambda a: -a), "hopper"),
            {"actions"},
        ),
        "worse than random": (lambda: config_with_expert(WorstActionExpert), {"return"}),
    }
