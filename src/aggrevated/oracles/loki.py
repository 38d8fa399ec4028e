"""Imitation first, then reinforcement: LOKI (Cheng, Yan, Wagener and Boots, 2018)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from aggrevated.core.rng import Purpose, seeds
from aggrevated.core.settings import COUNT, NOT_NEGATIVE, Chosen, Settings, require, setting
from aggrevated.oracles import CostToGo, Oracle, Tells
from aggrevated.oracles.advantage import Advantage
from aggrevated.oracles.critic import GaeSettings
from aggrevated.oracles.reward_to_go import Realised
from aggrevated.rollout.trajectories import Trajectories

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class Loki:
    """What `imitation` tells for n ≤ N_I, and then what `reinforcement` does, which sees all trajectories before, too.

    So a critic in it knows π_n when its turn comes.
    """

    imitation: Oracle
    reinforcement: Oracle
    switch: int  # N_I

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        own = self.reinforcement(trajectories, policy)
        return self.imitation(trajectories, policy) if trajectories.n <= self.switch else own


def imitation_iterations(least: int, most: int, power: float, seed: int) -> int:
    """N_I, drawn from N_m = `least` … N_M = `most`, each n with a probability ∝ n^d, where d = `power`."""
    n = np.arange(least, most + 1)
    chance = (n / most) ** power
    generator = np.random.default_rng(int(seeds(seed, Purpose.SWITCH, 0, 1)[0]))
    return int(generator.choice(n, p=chance / chance.sum()))


@dataclass(frozen=True)
class ReinforcementSettings(Settings, ABC):
    """What follows the imitation."""

    @abstractmethod
    def tells(self, asked: Tells) -> Tells:
        """What can be told to the end, if it begins with an oracle that tells this."""

    @abstractmethod
    def build(self, imitation: Oracle, seed: int) -> Oracle:
        """The oracle that begins with this one; what is random in it comes from the seed."""


@dataclass(frozen=True)
class NoneSettings(ReinforcementSettings):
    """Nothing: the expert is asked to the end."""

    name = "none"

    def tells(self, asked: Tells) -> Tells:
        return asked

    def build(self, imitation: Oracle, seed: int) -> Oracle:
        return imitation


@dataclass(frozen=True)
class SwitchSettings(ReinforcementSettings):
    """The learner's own costs, from an iteration on that is drawn at random."""

    imitation_least: int = setting(0, "N_m, the iterations of imitation at least; 0: half of the most.", COUNT)
    imitation_most: int = setting(
        0, "N_M, those at most; 0: ten, a tenth of all if that is less, or twice the least.", COUNT
    )
    imitation_power: float = setting(3.0, "d: n of them are drawn with a probability like n^d.", NOT_NEGATIVE)

    @abstractmethod
    def own_costs(self) -> Oracle:
        """The oracle of the learner's own costs."""

    def completed(self, iterations: int, given: Container[str]) -> Self:
        tenth = iterations // 10 if iterations else 10
        most = self.imitation_most or 2 * self.imitation_least or max(1, min(10, tenth))
        return replace(self, imitation_most=most, imitation_least=self.imitation_least or (most + 1) // 2)

    def check(self, chosen: Chosen) -> None:
        least, most = self.imitation_least, self.imitation_most
        require(1 <= least <= most, "imitation_least", least, f"between 1 and --imitation-most, which is {most}")

    def tells(self, asked: Tells) -> Tells:
        return asked if asked is Tells.BEST_ACTION else Tells.TAKEN_ACTION

    def build(self, imitation: Oracle, seed: int) -> Oracle:
        switch = imitation_iterations(self.imitation_least, self.imitation_most, self.imitation_power, seed)
        return Loki(imitation, self.own_costs(), switch)


@dataclass(frozen=True)
class ThenRealisedSettings(SwitchSettings):
    """What the learner itself paid, less what the other trajectories did."""

    name = "realised"

    def own_costs(self) -> Oracle:
        return Advantage(Realised())


@dataclass(frozen=True)
class ThenCriticSettings(GaeSettings, SwitchSettings):
    """What the learner itself paid, against a learned critic."""

    name = "critic"

    def own_costs(self) -> Oracle:
        return self.critic()
