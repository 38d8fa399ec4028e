"""Faults, planted into builtin experts and simulators."""

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
class Changed:
    """An expert that says other costs; it does what these say, or what it did before."""

    expert: Any
    change: Callable[[Array, Array], Array]  # from q [n, A] and states
    acts_by_it: bool = True
    discount: float = 0.99
    name: str = "changed"

    def q(self, states: Array) -> Array:
        return self.change(self.expert.q(states), states)

    def act(self, states: Array, t: int) -> Array:
        return self.q(states).argmin(axis=1) if self.acts_by_it else self.expert.act(states, t)


@dataclass(frozen=True)
class ChangedCritic:
    """An expert with a critic that says something else, or who acts otherwise."""

    expert: Any
    change: Callable[[Array, Array], Array] = lambda v, states: v
    turn: Callable[[Array], Array] = lambda actions: actions
    discount: float = 0.99
    name: str = "changed critic"

    def v(self, states: Array) -> Array:
        return self.change(self.expert.v(states), states)

    def act(self, states: Array, t: int) -> Array:
        return self.turn(self.expert.act(states, t))


@dataclass(frozen=True)
class Contrary:
    """An expert that only acts, and never as it should."""

    expert: Any
    name: str = "contrary"

    def act(self, states: Array, t: int) -> Array:
        return np.asarray(self.expert.q(states).argmax(axis=1))


@dataclass(frozen=True)
class Discounted:
    """Exact costs of following an expert, discounted, by rollouts of its own; it says another discount."""

    expert: Any
    simulator: Simulator
    true: float
    discount: float
    steps: int
    name: str = "discounted"

    def act(self, states: Array, t: int) -> Array:
        return np.asarray(self.expert.act(states, t))

    def q(self, states: Array) -> Array:
        return np.stack([self.rolled(states, np.full(len(states), a)) for a in range(2)], axis=1)

    def rolled(self, states: Array, actions: Array) -> Array:
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
class Forgetful:
    """A simulator with a counter that its states do not hold: every so many steps of a batch cost more."""

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
    """[n, A], of variance 1, and always the same for a state."""
    sums = np.asarray(states, float) @ np.linspace(1, 2, states.shape[1]) * 1e4
    waves = np.sin(sums[:, None] + 7.3 * np.arange(actions)) * 1e4
    return np.asarray((waves - np.floor(waves) - 0.5) * np.sqrt(12))


def add_noise(q: Array, states: Array) -> Array:
    return q + 9.0 * state_noise(states, q.shape[1])  # V varies by 9 where the expert comes to


def q_of_acrobot_expert(q: Array, states: Array) -> Array:
    """What Acrobot's expert would say, who is shown a cart and a pole."""
    seen = np.concatenate([states, states[:, :2]], axis=1).astype(np.float32)
    return np.asarray(load_expert("acrobot", Acrobot(200)).q(seen)[:, :2])  # type: ignore[union-attr]


def swap_pole_and_cart(expert: Any) -> Callable[[Array, Array], Array]:
    """What it would say if pole and cart were taken for each other."""
    return lambda q, states: expert.q(np.ascontiguousarray(states[:, [2, 3, 0, 1]]))


def config_with_expert(make: Callable[[Simulator], Any], name: str = "cartpole", **settings: Any) -> Config:
    """The task with an expert that is made of its own one."""
    task = find_task(name)
    assert isinstance(task.problem, ControlProblem)
    builtin = task.problem.expert
    problem = replace(task.problem, expert="", make_expert=lambda sim: make(load_expert(builtin, sim)), **settings)
    return resolve_config(replace(task, problem=problem))


def config_with_simulator(make: Callable[[int], Simulator], **settings: Any) -> Config:
    """CartPole's task in another simulator."""
    task: Task = find_task("cartpole")
    assert isinstance(task.problem, ControlProblem)
    return resolve_config(replace(task, problem=replace(task.problem, make=make, **settings)))


def config_trained_on_normalized(folder: Path) -> Config:
    """CartPole's expert as if its training had normalized observations, and without what did."""
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
    """By name: the config of a patient, and which checks may find what ails it."""
    swapped = lambda q, states: q[:, ::-1]  # noqa: E731
    return {
        "negated Q": (lambda: config_with_expert(lambda e: Changed(e, lambda q, s: -q)), {"sign"}),
        "negated Q, acting well": (lambda: config_with_expert(lambda e: Changed(e, lambda q, s: -q, False)), {"sign"}),
        "Q of another environment": (
            lambda: config_with_expert(lambda e: Changed(e, q_of_acrobot_expert, False)),
            {"sign", "calibration"},
        ),
        "Q of another cart": (
            lambda: config_with_expert(lambda e: Changed(e, swap_pole_and_cart(e), False)),
            {"agreement", "calibration"},
        ),
        "discount 0.9 as 1": (
            lambda: config_with_expert(lambda e: Discounted(e, CartPole(500), 0.9, 1.0, 80)),
            {"discount"},
        ),
        "horizon halved": (lambda: resolve_config("cartpole", horizon=250), {"horizon"}),
        "horizon halved, few cut": (lambda: resolve_config("acrobot", horizon=100), {"horizon"}),
        "horizon half as long again": (lambda: resolve_config("hopper", horizon=150), {"horizon"}),
        "constant Q": (lambda: config_with_expert(lambda e: Changed(e, lambda q, s: 0 * q + 7.0)), {"noise"}),
        "noise as large as the signal": (lambda: config_with_expert(lambda e: Changed(e, add_noise)), {"noise"}),
        "noise, acting well": (lambda: config_with_expert(lambda e: Changed(e, add_noise, False)), {"noise"}),
        "wrong action order": (lambda: config_with_expert(lambda e: Changed(e, swapped)), {"actions"}),
        "wrong action order of three": (
            lambda: config_with_expert(lambda e: Changed(e, lambda q, s: q[:, [1, 2, 0]]), "acrobot"),
            {"actions"},
        ),
        "a snapshot that forgets a counter": (
            lambda: config_with_simulator(lambda h: Forgetful(CartPole(h))),
            {"snapshot"},
        ),
        "missing normalization": (lambda: config_trained_on_normalized(folder), {"training", "scales"}),
        "negated V": (
            lambda: config_with_expert(lambda e: ChangedCritic(e, lambda v, s: -v), "hopper"),
            {"sign"},
        ),
        "noisy V": (
            lambda: config_with_expert(
                lambda e: ChangedCritic(e, lambda v, s: v + 20 * state_noise(s, 1)[:, 0]), "hopper"
            ),
            {"noise"},
        ),
        "vectors turned": (
            lambda: config_with_expert(lambda e: ChangedCritic(e, turn=lambda a: -a), "hopper"),
            {"actions"},
        ),
        "worse than random": (lambda: config_with_expert(Contrary), {"return"}),
    }
