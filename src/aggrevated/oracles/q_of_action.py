"""Q* of an action from an expert that is asked about it, such as the critic of a SAC or a TD3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.experts import ActionValueExpert, Expert
from aggrevated.experts.checked import costs_of_each, costs_of_taken
from aggrevated.oracles import CostSettings, CostToGo, Oracle, Tells, placed_in, require_method, scatter
from aggrevated.oracles.advantage import Advantage
from aggrevated.oracles.zero_one import advice
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class QOfAction:
    """Q*(s_t, a_t), [K, T]; with `advantage` less Q*(s_t, π*(s_t)), so that the critic's own level cancels.

    The steps that π* took itself are left out.
    """

    expert: ActionValueExpert
    actions: Discrete | Box
    advantage: bool = True
    alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_method(self.expert, "q_of")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        mask, weight = trajectories.mask, trajectories.by_learner.astype(np.float32)
        states = trajectories.states[mask]
        with placed_in(trajectories):
            q = costs_of_taken(self.expert, states, trajectories.actions[mask])
        if self.advantage:
            own = advice(self.expert, trajectories, self.actions)[mask]
            with placed_in(trajectories):
                q = q - costs_of_taken(self.expert, states, own)
        return CostToGo(scatter(trajectories, q), weight, queries=trajectories.steps, advantage=self.advantage)


@dataclass(frozen=True)
class QOfEveryAction:
    """Q*(s_t, a) for all a of a finite set, [K, T, A]: the expert is asked about each."""

    expert: ActionValueExpert
    actions: Discrete
    alone: ClassVar[bool] = True
    every_action: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_method(self.expert, "q_of")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        with placed_in(trajectories):
            q = costs_of_each(self.expert, trajectories.states[trajectories.mask], int(self.actions.n))
        weight = trajectories.mask.astype(np.float32)
        return CostToGo(scatter(trajectories, q), weight, queries=trajectories.steps)


@dataclass(frozen=True)
class QOfActionSettings(CostSettings):
    """Q* of the actions that the expert is asked about: the one taken, or each of a finite set."""

    name = "q-of-action"

    def tells(self, finite: bool) -> Tells:
        return Tells.EVERY_ACTION if finite else Tells.TAKEN_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        if not isinstance(expert, ActionValueExpert):
            raise self.cannot_ask(expert, "q_of")
        if not isinstance(simulator.action_space, Discrete):
            return QOfAction(expert, simulator.action_space, self.advantage)
        every = QOfEveryAction(expert, simulator.action_space)
        return Advantage(every) if self.advantage else every
