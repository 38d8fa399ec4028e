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
    """What `imitation` tells for n ≤ N_I, and then what `reinforcement` does, which sees all trajectories before, too.

    So a critic in it knows π_n when its turn comes.
    """

    imitation: Oracle
    reinforcement: Oracle
    switch: int  # N_I

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        own = self.reinforcement(trajectories, policy)
        return self.imitation(trajectories, policy) if trajectories.n <= self.switch else own


def sample_switch_iteration(least: int, most: int, power: float, seed: int) -> int:
    """N_I, drawn from N_m = `least` … N_M = `most`, each n with a probability ∝ n^d, where d = `power`."""
    n = np.arange(least, most + 1)
    chance = (n / most) ** power
    generator = np.random.default_rng(int(derive_seeds(seed, SeedPurpose.SWITCH, 0, 1)[0]))
    return int(generator.choice(n, p=chance / chance.sum()))


@dataclass(frozen=True)
class ReinforcementSettings(Settings, ABC):
    """What follows the imitation."""

    @abstractmethod
    def get_feedback(self, asked: Feedback) -> Feedback:
        """What can be told to the end, if it begins with an oracle that tells this."""

    @abstractmethod
    def build(self, imitation: Oracle, seed: int) -> Oracle:
        """The oracle that begins with this one; what is random in it comes from the seed."""


@dataclass(frozen=True)
class NoReinforcementSettings(ReinforcementSettings):
    """Nothing: the expert is asked to the end."""

    name = "none"

    def get_feedback(self, asked: Feedback) -> Feedback:
        return asked

    def build(self, imitation: Oracle, seed: int) -> Oracle:
        return imitation


@dataclass(frozen=True)
class SwitchSettings(ReinforcementSettings):
    """The learner's own costs, from an iteration on that is drawn at random."""

    imitation_min: int = setting(0, "N_m, the iterations of imitation at least; 0: half of the most.", COUNT)
    imitation_max: int = setting(
        0, "N_M, those at most; 0: ten, a tenth of all if that is less, or twice the least.", COUNT
    )
    imitation_power: float = setting(3.0, "d: n of them are drawn with a probability like n^d.", NON_NEGATIVE)

    @abstractmethod
    def make_learner_cost_oracle(self) -> Oracle:
        """The oracle of the learner's own costs."""

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        tenth = iterations // 10 if iterations else 10
        most = self.imitation_max or 2 * self.imitation_min or max(1, min(10, tenth))
        return replace(self, imitation_max=most, imitation_min=self.imitation_min or (most + 1) // 2)

    def check(self, chosen: SelectedComponents) -> None:
        least = self.imitation_min
        most = self.imitation_max
        check_setting(1 <= least <= most, "imitation_min", least, f"between 1 and --imitation-max, which is {most}")

    def get_feedback(self, asked: Feedback) -> Feedback:
        return asked if asked is Feedback.BEST_ACTION else Feedback.TAKEN_ACTION

    def build(self, imitation: Oracle, seed: int) -> Oracle:
        switch = sample_switch_iteration(self.imitation_min, self.imitation_max, self.imitation_power, seed)
        return LokiOracle(imitation, self.make_learner_cost_oracle(), switch)


@dataclass(frozen=True)
class SwitchToRewardToGoSettings(SwitchSettings):
    """What the learner itself paid, less what the other trajectories did."""

    name = "reward-to-go"

    def make_learner_cost_oracle(self) -> Oracle:
        return AdvantageOracle(RewardToGoOracle())


@dataclass(frozen=True)
class SwitchToCriticSettings(GaeSettings, SwitchSettings):
    """What the learner itself paid, against a learned critic."""

    name = "critic"

    def make_learner_cost_oracle(self) -> Oracle:
        return self.build_critic()
