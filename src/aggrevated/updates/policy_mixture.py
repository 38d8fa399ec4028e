"""SEARN and SMILe: each iteration learns a new policy from the newest data only, and adds it to a mixture.

π_n = (1 − β)^(n−1) π* + the learner's part; the expert's weight is the α_n of line 4. Only the learner's
part, with weights that sum to 1, is saved and validated.
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
    """Return SEARN's weights of h_1 … h_n, β (1 − β)^(n−j), normalized to sum to 1.

    They follow from π_{n+1} = (1 − β) π_n + β h_n, without π*.

    Args:
        n: Number of policies.
        beta: β, the weight of each new policy.

    Returns:
        Weights [n] that sum to 1.

    Example:
        >>> searn_weights(2, 0.5).round(3).tolist()
        [0.333, 0.667]
    """
    return normalize_weights(beta * (1 - beta) ** np.arange(n - 1, -1, -1.0))


def smile_weights(n: int, beta: float) -> Array:
    """Return SMILe's weights of h_1 … h_n, β (1 − β)^(j−1), normalized to sum to 1.

    Args:
        n: Number of policies.
        beta: β, the fraction of the expert's weight that each new policy takes.

    Returns:
        Weights [n] that sum to 1.

    Example:
        >>> smile_weights(2, 0.5).round(3).tolist()
        [0.667, 0.333]
    """
    return normalize_weights(beta * (1 - beta) ** np.arange(float(n)))


def normalize_weights(weights: Array) -> Array:
    """Return the weights divided by their sum."""
    shares: Array = weights / weights.sum()
    return shares


@dataclass
class MixtureUpdate:
    """An update that fits a new policy h_n to the newest data by Adam, and adds it to a `MixturePolicy`.

    Args:
        shares: Function from n and β to the weights [n] of the policies: `searn_weights` or `smile_weights`.
        beta: β.
        learning_rate: Initial step size of Adam; it falls linearly to 0.
        steps: Minibatches per iteration.
        seed: Determines the minibatches.
    """

    shares: Callable[[int, float], Array]
    beta: float = 0.1
    learning_rate: float = 0.01
    steps: int = 300
    seed: int = 0

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        if not isinstance(policy, MixturePolicy):
            raise UsageError("this update needs a MixturePolicy; wrap the policy in one")
        with torch.no_grad():
            old_distribution = compute_policy_distribution(policy, trajectories)
            value = loss(policy, trajectories, cost_to_go).item()
        n = int(policy.learned) + 1
        policy.renew(self.shares(n, self.beta))
        seed = int(derive_seeds(self.seed, SeedPurpose.UPDATE, n, 1)[0])
        fit = FollowTheLeaderUpdate(
            self.learning_rate, self.steps, buffer_size=trajectories.count, anneal=True, seed=seed
        )
        step = fit(policy.newest, loss, trajectories, cost_to_go)
        with torch.no_grad():
            kl = compute_kl(old_distribution, compute_policy_distribution(policy, trajectories))
            mean_kl = float(kl[torch.from_numpy(trajectories.mask)].mean())
        return UpdateResult(value, step.gradient_norm, mean_kl, step.step_halvings)

    def state(self) -> dict[str, Tensor]:
        """Return an empty state: all that is learned is in the policy."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Check that the state is empty."""
        assert not state, "the state of a mixture update is empty"


@dataclass(frozen=True)
class MixtureSettings(UpdateSettings, ABC):
    """Settings of an update that replaces the expert by a mixture of policies."""

    accepts = frozenset({Feedback.ALL_ACTIONS})
    beta: float = setting(
        0.3,
        "Weight of each new policy in the mixture; the expert's is alpha_n = (1 - beta)^(n-1).",
        Rule(lambda value: 0 < value <= 1, "above 0, and 1 at most"),
    )
    learning_rate: float = setting(0.01, "Initial step size of Adam for each policy; it falls to 0.", POSITIVE)
    fit_steps: int = setting(300, "Minibatches of the fit of each new policy.", at_least(1))

    def get_implied_settings(self) -> Mapping[str, Any]:
        """Return the roll-in schedule that the mixture implies: α_n is the expert's weight in it."""
        return {"alpha_start": 1.0, "alpha_schedule": "geometric", "alpha_decay": 1 - self.beta, "alpha_min": 0.0}

    def check(self, chosen: SelectedComponents) -> None:
        if not chosen.has_discrete_actions:
            raise UsageError(
                f"the update {self.name} mixes policies for finite actions; choose another --method or --update"
            )
        assert isinstance(chosen.policy, PolicySettings) and isinstance(chosen.loss, LossSettings)
        if not chosen.policy.supports_mixture:
            raise UsageError(f"{chosen.policy.name} policies cannot be mixed; choose another --update")
        reason = f"for the update {self.name}, which learns each policy from random weights"
        check_setting(chosen.start.name == "random", "start", chosen.start.name, f"random {reason}")
        check_setting(not chosen.loss.entropy, "entropy", chosen.loss.entropy, f"0 {reason}")

    def wrap_policy(self, policy: Policy, head: Head) -> Policy:
        return MixturePolicy(policy, head)


@dataclass(frozen=True)
class SearnSettings(MixtureSettings):
    """Mixture of policies in which each new one has the weight beta (SEARN)."""

    name = "searn"

    def build(self, seed: int) -> MixtureUpdate:
        return MixtureUpdate(searn_weights, self.beta, self.learning_rate, self.fit_steps, seed)


@dataclass(frozen=True)
class SmileSettings(MixtureSettings):
    """Mixture of policies in which each new one takes the fraction beta of the expert's weight (SMILe)."""

    name = "smile"

    def build(self, seed: int) -> MixtureUpdate:
        return MixtureUpdate(smile_weights, self.beta, self.learning_rate, self.fit_steps, seed)
