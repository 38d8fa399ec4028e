"""Line 7 without a gradient step of π_n: a new policy, learned from the newest data alone, joins a mixture.

π_n = (1 − β)^(n−1) π* + the learner's part, and the expert's share is the α_n of line 4. What is kept, validated and
given away is the learner's part alone, its shares summing to 1: at the end π* is left out.
"""

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.core.settings import POSITIVE, Rule, SelectedComponents, at_least, check_setting, setting
from aggrevated.losses import Loss, LossSettings, compute_policy_distribution
from aggrevated.losses.fisher import compute_kl
from aggrevated.oracles import CostToGo, Feedback
from aggrevated.policies import Policy, PolicySettings
from aggrevated.policies.heads import Head
from aggrevated.policies.mixture import MixturePolicy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import UpdateResult, UpdateSettings
from aggrevated.updates.follow_the_leader import FollowTheLeaderUpdate


def searn_weights(n: int, beta: float) -> Array:
    """[n]: β (1 − β)^(n−j), normalised: the shares of h_1 … h_n when π_{n+1} = (1 − β) π_n + β h_n, without π*."""
    return normalize_weights(beta * (1 - beta) ** np.arange(n - 1, -1, -1.0))


def smile_weights(n: int, beta: float) -> Array:
    """[n]: β (1 − β)^(j−1), normalised: each new policy takes over a share β of what is still the expert's."""
    return normalize_weights(beta * (1 - beta) ** np.arange(float(n)))


def normalize_weights(weights: Array) -> Array:
    """Those weights, so that they sum to 1."""
    shares: Array = weights / weights.sum()
    return shares


@dataclass
class MixtureUpdate:
    """In iteration n a new policy h_n is fitted to the newest data by `steps` minibatches of Adam, and mixed in."""

    shares: Callable[[int, float], Array]  # `searn` or `smile`
    beta: float = 0.1
    learning_rate: float = 0.01
    steps: int = 300
    seed: int = 0

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        if not isinstance(policy, MixturePolicy):
            raise UsageError("this update mixes policies; give it a MixturePolicy around one of them")
        with torch.no_grad():
            before = compute_policy_distribution(policy, trajectories)
            value = loss(policy, trajectories, cost_to_go).item()
        n = int(policy.learned) + 1
        policy.renew(self.shares(n, self.beta))
        own = int(derive_seeds(self.seed, SeedPurpose.UPDATE, n, 1)[0])
        fit = FollowTheLeaderUpdate(
            self.learning_rate, self.steps, buffer_size=trajectories.count, anneal=True, seed=own
        )
        step = fit(policy.newest, loss, trajectories, cost_to_go)
        with torch.no_grad():
            apart = compute_kl(before, compute_policy_distribution(policy, trajectories))[
                torch.from_numpy(trajectories.mask)
            ]
        return UpdateResult(value, step.gradient_norm, float(apart.mean()), step.step_halvings)

    def state(self) -> dict[str, Tensor]:
        """Nothing: what was learned is the policy's."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        assert not state, "this update remembers nothing"


@dataclass(frozen=True)
class MixtureSettings(UpdateSettings, ABC):
    """A mixture of policies that takes the expert's place."""

    accepts = frozenset({Feedback.ALL_ACTIONS})
    beta: float = setting(
        0.3,
        "The share of each new policy in the mixture; the expert's falls by it, too: alpha_n = (1 - beta)^(n-1).",
        Rule(lambda value: 0 < value <= 1, "above 0, and 1 at most"),
    )
    learning_rate: float = setting(
        0.01, "The step size of Adam at first, for each new policy; it falls to 0.", POSITIVE
    )
    fit_steps: int = setting(300, "Minibatches that each new policy is fitted by.", at_least(1))

    def get_implied_settings(self) -> Mapping[str, Any]:
        """Line 4 is a part of the mixture: the expert begins, and has what the policies do not have yet."""
        return {"alpha_start": 1.0, "alpha_schedule": "geometric", "alpha_decay": 1 - self.beta, "alpha_min": 0.0}

    def check(self, chosen: SelectedComponents) -> None:
        if not chosen.has_discrete_actions:
            raise UsageError(
                f"the update {self.name} mixes policies for finite actions; choose another --method or --update"
            )
        assert isinstance(chosen.policy, PolicySettings) and isinstance(chosen.loss, LossSettings)
        if not chosen.policy.supports_mixture:
            raise UsageError(
                f"policies of the kind {chosen.policy.name} cannot be mixed; choose another --method or --update"
            )
        own = f"for the update {self.name}, whose policies begin anew"
        check_setting(chosen.start.name == "random", "start", chosen.start.name, f"random {own}")
        check_setting(not chosen.loss.entropy, "entropy", chosen.loss.entropy, f"0 {own}")

    def wrap_policy(self, policy: Policy, head: Head) -> Policy:
        return MixturePolicy(policy, head)


@dataclass(frozen=True)
class SearnSettings(MixtureSettings):
    """A mixture of policies in which each new one has the share beta (SEARN)."""

    name = "searn"

    def build(self, seed: int) -> MixtureUpdate:
        return MixtureUpdate(searn_weights, self.beta, self.learning_rate, self.fit_steps, seed)


@dataclass(frozen=True)
class SmileSettings(MixtureSettings):
    """A mixture of policies in which each new one takes over the share beta of what is the expert's (SMILe)."""

    name = "smile"

    def build(self, seed: int) -> MixtureUpdate:
        return MixtureUpdate(smile_weights, self.beta, self.learning_rate, self.fit_steps, seed)
