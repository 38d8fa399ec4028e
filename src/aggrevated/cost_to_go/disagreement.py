"""What π* would have done instead: with it the loop is DAgger or, on the expert's states, supervised learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.arrays import Array
from aggrevated.cost_to_go import CostToGo, Oracle, OracleSettings, Tells
from aggrevated.experts import Expert
from aggrevated.simulators import Simulator
from aggrevated.trajectories import Trajectories

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class Disagreement:
    """0/1 disagreement: 1 for every action but π*(s_t), [K, T, A]."""

    expert: Expert
    actions: int  # A
    alone: ClassVar[bool] = True
    every_action: ClassVar[bool] = True

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        chosen = advice(self.expert, trajectories, np.zeros((*trajectories.mask.shape, 1), np.int64))
        values = (np.arange(self.actions) != chosen) & trajectories.mask[..., None]
        return CostToGo(values.astype(np.float32), trajectories.mask.astype(np.float32), queries=trajectories.steps)


@dataclass(frozen=True)
class Advice:
    """Where actions are vectors: π*(s_t) itself, [K, T, A]; that any other is a mistake says nothing there."""

    expert: Expert
    size: int  # A
    alone: ClassVar[bool] = True

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        mask = trajectories.mask.astype(np.float32)
        chosen = advice(self.expert, trajectories, np.zeros((*mask.shape, self.size), np.float32))
        return CostToGo(np.zeros_like(mask), mask, queries=trajectories.steps, advice=chosen)


def disagreement(expert: Expert, action_space: Discrete | Box) -> Oracle:
    """The one that fits the actions."""
    if isinstance(action_space, Discrete):
        return Disagreement(expert, int(action_space.n))
    return Advice(expert, int(action_space.shape[0]))


def advice(expert: Expert, trajectories: Trajectories, out: Array) -> Array:
    """`out` [K, T, A] with π*(s_t) wherever a step was taken. π* may depend on t, so it is asked once for each t."""
    for t in range(trajectories.mask.shape[1]):
        live = trajectories.mask[:, t]
        out[live, t] = expert.act(trajectories.states[live, t], t).reshape(-1, out.shape[2])
    return out


@dataclass(frozen=True)
class DisagreementSettings(OracleSettings):
    """What the expert would have done."""

    name = "disagreement"

    def tells(self, finite: bool) -> Tells:
        return Tells.EVERY_ACTION if finite else Tells.BEST_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        return disagreement(expert, simulator.action_space)
