"""Imitation first, then reinforcement: LOKI (Cheng, Yan, Wagener and Boots, 2018)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.core.settings import COUNT, NON_NEGATIVE, SelectedComponents, Settings, check_setting, setting
from aggrevated.oracles import CostToGo, Feedback, Oracle
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.critic import GaeSettings
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.rollout.trajectories import Trajectories

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class LokiOracle:
    """Oracle that switches from `imitation` to `reinforcement` after iteration N_I.

    The reinforcement oracle is called in every iteration, so that its critic is trained when the switch
    comes.

    Args:
        imitation: oracle for n ≤ N_I.
        reinforcement: oracle for n > N_I.
        switch: N_I, the last iteration of imitation.
    """

    imitation: Oracle
    reinforcement: Oracle
    switch: int

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        learner_costs = self.reinforcement(trajectories, policy)
        return self.imitation(trajectories, policy) if trajectories.n <= self.switch else learner_costs


def sample_switch_iteration(minimum: int, maximum: int, power: float, seed: int) -> int:
    """Sample N_I from N_m = `minimum` … N_M = `maximum`, with probability ∝ n^d where d = `power`."""
    n = np.arange(minimum, maximum + 1)
    weights = (n / maximum) ** power
    generator = np.random.default_rng(int(derive_seeds(seed, SeedPurpose.SWITCH, 0, 1)[0]))
    return int(generator.choice(n, p=weights / weights.sum()))


@dataclass(frozen=True)
class ReinforcementSettings(Settings, ABC):
    """Base class of the settings of the reinforcement learning that follows imitation."""

    @abstractmethod
    def get_feedback(self, feedback: Feedback) -> Feedback:
        """Return the feedback that is available in all iterations.

        Args:
            feedback: feedback of the imitation oracle.

        Returns:
            The feedback that imitation and reinforcement have in common.
        """

    @abstractmethod
    def build(self, imitation: Oracle, seed: int) -> Oracle:
        """Build the oracle that starts with imitation.

        Args:
            imitation: oracle of the imitation phase.
            seed: seed of the run, from which the switch is drawn.

        Returns:
            The oracle for all iterations.
        """


@dataclass(frozen=True)
class NoReinforcementSettings(ReinforcementSettings):
    """No reinforcement: the expert is queried in all iterations."""

    name = "none"

    def get_feedback(self, feedback: Feedback) -> Feedback:
        return feedback

    def build(self, imitation: Oracle, seed: int) -> Oracle:
        return imitation


@dataclass(frozen=True)
class SwitchSettings(ReinforcementSettings):
    """The learner's own costs, from a randomly drawn iteration on."""

    imitation_min: int = setting(0, "N_m, least number of iterations of imitation; 0: half of N_M.", COUNT)
    imitation_max: int = setting(
        0, "N_M, largest number; 0: twice --imitation-min if set, else a tenth of all, from 1 to 10.", COUNT
    )
    imitation_power: float = setting(3.0, "d: imitation lasts n iterations with probability ~ n^d.", NON_NEGATIVE)

    @abstractmethod
    def make_learner_cost_oracle(self) -> Oracle:
        """Return the oracle of the learner's own costs."""

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        tenth = iterations // 10 if iterations else 10
        maximum = self.imitation_max or 2 * self.imitation_min or max(1, min(10, tenth))
        return replace(self, imitation_max=maximum, imitation_min=self.imitation_min or (maximum + 1) // 2)

    def check(self, chosen: SelectedComponents) -> None:
        minimum = self.imitation_min
        maximum = self.imitation_max
        rule = f"between 1 and --imitation-max, which is {maximum}"
        check_setting(1 <= minimum <= maximum, "imitation_min", minimum, rule)

    def get_feedback(self, feedback: Feedback) -> Feedback:
        return feedback if feedback is Feedback.BEST_ACTION else Feedback.TAKEN_ACTION

    def build(self, imitation: Oracle, seed: int) -> Oracle:
        switch = sample_switch_iteration(self.imitation_min, self.imitation_max, self.imitation_power, seed)
        return LokiOracle(imitation, self.make_learner_cost_oracle(), switch)


@dataclass(frozen=True)
class SwitchToRewardToGoSettings(SwitchSettings):
    """The learner's own reward-to-go, relative to the other trajectories."""

    name = "reward-to-go"

    def make_learner_cost_oracle(self) -> Oracle:
        return AdvantageOracle(RewardToGoOracle())


@dataclass(frozen=True)
class SwitchToCriticSettings(GaeSettings, SwitchSettings):
    """The learner's own costs, relative to a learned critic."""

    name = "critic"

    def make_learner_cost_oracle(self) -> Oracle:
        return self.build_critic()
