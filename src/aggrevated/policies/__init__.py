"""Base class of policies: torch modules that return action distributions for whole trajectories.

For single steps a policy returns an actor (`aggrevated.actors`), a NumPy copy of its present weights.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.func import functional_call, grad, vmap

from aggrevated.actors import Actor
from aggrevated.actors.window import get_previous_actions, update_history
from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.core.settings import LAYER_WIDTHS, Settings, setting
from aggrevated.core.spaces import SpaceAdapter
from aggrevated.policies.heads.base import Head
from aggrevated.storage import JsonDict


class Policy(nn.Module, ABC):
    """Base class of policies π_θ; parameters, `state_dict` and the rest are those of `torch.nn.Module`.

    Args:
    """

    head: Head
    memoryless: ClassVar[bool] = False  # whether actions depend on the present observation only
    registry_name: ClassVar[str] = ""  # the name of the class in files; without one it cannot be saved
    observe_actions: bool = False  # whether the previous action is a part of the inputs
    space_adapter: SpaceAdapter | None = None  # converts observations and actions of a custom environment
    _card: JsonDict | Callable[[], JsonDict] | None = None

    @abstractmethod
    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        """Return the action distributions at all steps of K trajectories.

        Args:
            observations: [K, T, ...], from `inputs`.
            mask: bool [K, T], true where a step was taken.
            legal: bool [K, T, A], true where an action may be taken; None allows all.

        Returns:
            A distribution with batch shape [K, T].
        """

    def inputs(self, observations: Array, actions: Array) -> Tensor:
        """Return the inputs of `distribution`: observations, and previous actions if they are observed.

        Args:
            observations: [K, T, ...].
            actions: [K, T] or [K, T, A].

        Returns:
            Inputs [K, T, ...].
        """
        if self.observe_actions:
            observations = np.concatenate(
                [observations, get_previous_actions(self.head.sampler().encode(actions))], axis=2
            )
        return torch.from_numpy(observations)

    @abstractmethod
    def actor(self) -> Actor:
        """Return a NumPy copy of the policy with its present weights, for single steps."""

    def forward(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        """Return `distribution(observations, mask, legal)`, under the name that torch expects."""
        return self.distribution(observations, mask, legal)

    def compute_scores(
        self, observations: Tensor, actions: Tensor, mask: Tensor, own: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """Return the gradient of Σ_t own · log π(a_t|s_t) for each trajectory, by one vectorized pass.

        Args:
            observations: [K, T, ...], from `inputs`.
            actions: [K, T] or [K, T, A].
            mask: bool [K, T], true where a step was taken.
            own: bool [K, T], true where the learner chose the action.
            legal: bool [K, T, A], true where an action may be taken; None allows all.

        Returns:
            Scores [K, d], for d parameters.
        """

        def log_likelihood(theta: dict[str, Tensor], *arrays: Tensor) -> Tensor:
            observations, actions, mask, own, *legal = (x[None] for x in arrays)
            distribution = functional_call(self, theta, (observations, mask, *legal))
            total: Tensor = (distribution.log_prob(actions) * own).sum()
            return total

        theta = {name: parameter.detach() for name, parameter in self.named_parameters()}
        arrays = [x for x in (observations, actions, mask, own, legal) if x is not None]
        scores = vmap(grad(log_likelihood), in_dims=(None, *[0] * len(arrays)))(theta, *arrays)
        return torch.cat([scores[name].flatten(1) for name in theta], dim=1)

    def auxiliary_loss(
        self, observations: Tensor, mask: Tensor, legal: Tensor | None, costs: Tensor | None = None
    ) -> Tensor | None:
        """Return an auxiliary loss, summed over the trajectories, or None if the policy has none.

        Updates that fit by gradients add it to their loss. They call this method right after `distribution`,
        with the same observations.

        Args:
            observations: [K, T, ...], from `inputs`.
            mask: bool [K, T], true where a step was taken.
            legal: bool [K, T, A], true where an action may be taken; None allows all.
            costs: A* [K, T, A], or None if it is unknown.
        """
        return None

    def clip_actions(self, actions: Array) -> Array:
        """Return the actions clipped to the action space."""
        return self.head.clip_actions(actions)

    def architecture(self) -> JsonDict:
        """Return the JSON from which `from_architecture` builds an equal policy; `observations` is a shape.

        Raises:
            UsageError: Policies of this class cannot be saved to a file.
        """
        raise UsageError(f"a {type(self).__name__} cannot be saved as a file: keep its run folder")

    @classmethod
    def from_architecture(cls, shape: JsonDict, head: Head) -> Self:
        """Return a policy of this architecture; its weights are loaded later.

        Args:
            shape: The JSON from `architecture`.
            head: The head of the policy.
        """
        raise NotImplementedError

    @property
    def metadata(self) -> JsonDict:
        """Return the model card, with origin and results of the policy as far as they are known."""
        if callable(self._card):
            self._card = self._card()
        return self._card or {}

    @metadata.setter
    def metadata(self, card: JsonDict | Callable[[], JsonDict]) -> None:
        self._card = card

    def save(self, path: Path | str, card: JsonDict | None = None) -> None:
        """Save the policy to one file, which `load_policy` loads.

        Args:
            path: The file, with the ending .safetensors by convention.
            card: Model card, JSON that describes the policy; by default `metadata`.

        Raises:
            UsageError: The class cannot be saved, or a weight is not finite.
        """
        from aggrevated.policies.serialization import save_policy

        save_policy(self, Path(path), self.metadata if card is None else card)

    def predict(
        self,
        observation: Any,
        state: Array | None = None,
        episode_start: Array | None = None,
        deterministic: bool = False,
        action_masks: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return actions and the next memory, as `predict` of Stable-Baselines3 does.

        Args:
            observation: One observation or a batch; with a `space_adapter`, as the environment returns it.
            state: Memory [n, M] from the last call; None at the start of episodes.
            episode_start: bool [n] or one bool, true where an episode begins and the memory is reset.
            deterministic: Whether to take the most likely action, instead of sampling.
            action_masks: bool [A] or [n, A], true where an action is legal; None allows all.

        Returns:
            The actions, clipped to the action space (one action for one observation), and the memory [n, M].

        Raises:
            UsageError: The observation is not in the environment's observation space.
        """
        actor = self.actor()
        batch, single = self._read(observation)
        memory = actor.memory(len(batch)) if state is None else state.copy()
        if episode_start is not None:
            starts = np.broadcast_to(episode_start, len(batch)).astype(bool)
            memory[starts] = actor.memory(int(starts.sum()))
        parameters, memory = actor.parameters(batch, memory)
        noise = 0.0 if deterministic else actor.noise([np.random.default_rng()], len(batch))[0]
        legal = None if action_masks is None else np.atleast_2d(action_masks).astype(bool)
        unclipped = actor.choose(parameters, noise, legal)
        action = self.clip_actions(unclipped)
        memory = update_history(actor, memory, unclipped)
        if self.space_adapter is not None:
            action = self.space_adapter.to_native_actions(action)
        return (action[0] if single else action), memory

    def _read(self, observation: Any) -> tuple[Array, bool]:
        """Return a batch of observations, and whether the argument was a single one."""
        if self.space_adapter is None:
            return np.atleast_2d(np.asarray(observation, np.float32)), np.ndim(observation) == 1
        try:
            return self.space_adapter.read(observation)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            space = self.space_adapter.observations
            raise UsageError(
                f"the observation is not in {space} ({error}); pass one that the environment returned"
            ) from error


def compute_scores_per_trajectory(
    policy: Policy, observations: Tensor, actions: Tensor, mask: Tensor, own: Tensor, legal: Tensor | None
) -> Tensor:
    """Return `Policy.compute_scores` by one forward and one backward pass per trajectory, without vmap."""
    parameters = list(policy.parameters())
    scores = torch.zeros(len(mask), sum(parameter.numel() for parameter in parameters))
    for k, length in enumerate(mask.sum(dim=1).tolist()):
        steps = (slice(k, k + 1), slice(length))
        legal_actions = None if legal is None else legal[steps]
        distribution = policy.distribution(observations[steps], mask[steps], legal_actions)
        total = (distribution.log_prob(actions[steps]) * own[steps]).sum()
        gradients = torch.autograd.grad(total, parameters, materialize_grads=True)
        torch.cat([gradient.flatten() for gradient in gradients], out=scores[k])
    return scores


@dataclass(frozen=True)
class PolicySettings(Settings, ABC):
    """Settings of a policy class."""

    supports_mixture: ClassVar[bool] = True  # whether a `MixturePolicy` of such policies is possible

    @abstractmethod
    def build(self, observations: Space[Any], head: Head, seed: int) -> Policy:
        """Return a policy with random weights.

        Args:
            observations: The observation space.
            head: The head, for the action space.
            seed: Determines the weights.

        Raises:
            UsageError: The policy class cannot read such observations.
        """


DEFAULT_WIDTHS = (64,)  # units of the hidden layers


@dataclass(frozen=True)
class HiddenSettings(PolicySettings):
    """Settings of a policy with hidden layers.

    Attributes:
        hidden: Units of each hidden layer.
    """

    hidden: tuple[int, ...] = setting(DEFAULT_WIDTHS, "Units of each hidden layer.", LAYER_WIDTHS)


@dataclass(frozen=True)
class SequenceSettings(HiddenSettings):
    """Settings of a policy with memory."""

    observe_actions: bool = setting(False, "Let the policy observe its previous action at each step.")


def get_input_size(observations: Space[Any]) -> int:
    """Return the size of observations that are vectors; raise a `UsageError` for others."""
    if isinstance(observations, Box) and len(observations.shape) == 1:
        return int(observations.shape[0])
    raise UsageError(
        f"this policy cannot read observations of type {type(observations).__name__}{observations.shape or ''}: "
        "choose --policy cnn for pictures, or flatten them (gymnasium.wrappers.FlattenObservation)"
    )


def derive_initial_seed(seed: int) -> int:
    """Return the seed of the random weights of a run's initial policy."""
    return int(derive_seeds(seed, SeedPurpose.INITIAL_POLICY, 0, 1)[0] >> 1)  # torch takes signed seeds


def make_initial_generator(seed: int) -> torch.Generator:
    """Return the torch generator of the random weights of a run's initial policy."""
    return torch.Generator().manual_seed(derive_initial_seed(seed))
