"""Policies are `nn.Module`s with two faces: `distribution` for whole sequences in torch, and `actor` for single steps.

The actor (`aggrevated.actors`) is a NumPy copy of the weights as they are now.
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
    """π_θ. Parameters, state_dict and the rest are torch's own."""

    head: Head
    memoryless: ClassVar[bool] = False  # whether each step of a trajectory may stand for itself
    registry_name: ClassVar[str] = ""  # what its file says it is; one without cannot be saved
    observe_actions: bool = False  # whether its inputs have the previous action beside each observation
    space_adapter: SpaceAdapter | None = None  # what an environment of one's own shows and takes, where it is for one
    _card: JsonDict | Callable[[], JsonDict] | None = None

    @abstractmethod
    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        """The action distributions of whole trajectories, from observations [K, T, ...], as `inputs` gives them.

        `mask` [K, T] is true where a step was taken; `legal` [K, T, A], if given, where an action may be taken.
        """

    def inputs(self, observations: Array, actions: Array) -> Tensor:
        """[K, T, ...]: what it sees of trajectories: the observations; if it sees actions, the previous one beside."""
        if self.observe_actions:
            observations = np.concatenate(
                [observations, get_previous_actions(self.head.sampler().encode(actions))], axis=2
            )
        return torch.from_numpy(observations)

    @abstractmethod
    def actor(self) -> Actor:
        """A NumPy copy of the policy as it is now."""

    def forward(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        """`distribution`, under the name that torch expects."""
        return self.distribution(observations, mask, legal)

    def compute_scores(
        self, observations: Tensor, actions: Tensor, mask: Tensor, own: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """[K, d]: each trajectory's gradient of Σ_t own · log π(a_t|s_t); one vectorised backward pass for all."""

        def log_likelihood(theta: dict[str, Tensor], *one: Tensor) -> Tensor:
            observations, actions, mask, own, *legal = (x[None] for x in one)
            distribution = functional_call(self, theta, (observations, mask, *legal))
            total: Tensor = (distribution.log_prob(actions) * own).sum()
            return total

        theta = {name: parameter.detach() for name, parameter in self.named_parameters()}
        arrays = [x for x in (observations, actions, mask, own, legal) if x is not None]
        each = vmap(grad(log_likelihood), in_dims=(None, *[0] * len(arrays)))(theta, *arrays)
        return torch.cat([each[name].flatten(1) for name in theta], dim=1)

    def auxiliary_loss(
        self, observations: Tensor, mask: Tensor, legal: Tensor | None, costs: Tensor | None = None
    ) -> Tensor | None:
        """What else it learns from the same trajectories, as a loss summed over them; None where there is nothing.

        `costs` are A* [K, T, A], where that is known. Updates that fit by gradients add this to their own loss; they
        ask for it after `distribution` of the same observations.
        """
        return None

    def clip_actions(self, actions: Array) -> Array:
        """The actions as an environment may be given them."""
        return self.head.clip_actions(actions)

    def architecture(self) -> JsonDict:
        """What `from_shape` makes a blank one like it of, besides a head; `observations` says what it reads."""
        raise UsageError(f"a {type(self).__name__} has no file of its own: keep its run folder, which holds it")

    @classmethod
    def from_architecture(cls, shape: JsonDict, head: Head) -> Self:
        """A blank policy; its weights are loaded next."""
        raise NotImplementedError

    @property
    def metadata(self) -> JsonDict:
        """What it is, from whom, how good, where that is known; a run's policy finds it out when it is asked."""
        if callable(self._card):
            self._card = self._card()
        return self._card or {}

    @metadata.setter
    def metadata(self, card: JsonDict | Callable[[], JsonDict]) -> None:
        self._card = card

    def save(self, path: Path | str, card: JsonDict | None = None) -> None:
        """Write one file that `aggrevated.load` reads, with a card that says what it is."""
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
        """(action, next state), as Stable-Baselines3's policies do, clipped to the action space where it was given.

        One observation or a batch of them; with a `translation` they and the actions are the environment's own.
        """
        actor = self.actor()
        batch, single = self._read(observation)
        memory = actor.memory(len(batch)) if state is None else state.copy()
        if episode_start is not None:
            fresh = np.broadcast_to(episode_start, len(batch)).astype(bool)
            memory[fresh] = actor.memory(int(fresh.sum()))
        parameters, memory = actor.parameters(batch, memory)
        noise = 0.0 if deterministic else actor.noise([np.random.default_rng()], len(batch))[0]
        legal = None if action_masks is None else np.atleast_2d(action_masks).astype(bool)
        chosen = actor.choose(parameters, noise, legal)
        action = self.clip_actions(chosen)
        memory = update_history(actor, memory, chosen)
        if self.space_adapter is not None:
            action = self.space_adapter.to_native_actions(action)
        return (action[0] if single else action), memory

    def _read(self, observation: Any) -> tuple[Array, bool]:
        """(a batch of what it sees, whether it is one observation alone)."""
        if self.space_adapter is None:
            return np.atleast_2d(np.asarray(observation, np.float32)), np.ndim(observation) == 1
        try:
            return self.space_adapter.read(observation)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            space = self.space_adapter.observations
            raise UsageError(
                f"the observation is none of {space} ({error}); give one that its environment shows"
            ) from error


def compute_scores_per_trajectory(
    policy: Policy, observations: Tensor, actions: Tensor, mask: Tensor, own: Tensor, legal: Tensor | None
) -> Tensor:
    """Return `Policy.compute_scores` by one forward and backward pass per trajectory, for networks without vmap."""
    parameters = list(policy.parameters())
    scores = torch.zeros(len(mask), sum(parameter.numel() for parameter in parameters))
    for k, length in enumerate(mask.sum(dim=1).tolist()):
        own_steps = (slice(k, k + 1), slice(length))
        restricted = None if legal is None else legal[own_steps]
        distribution = policy.distribution(observations[own_steps], mask[own_steps], restricted)
        total = (distribution.log_prob(actions[own_steps]) * own[own_steps]).sum()
        gradients = torch.autograd.grad(total, parameters, materialize_grads=True)
        torch.cat([gradient.flatten() for gradient in gradients], out=scores[k])
    return scores


@dataclass(frozen=True)
class PolicySettings(Settings, ABC):
    """A kind of policy."""

    supports_mixture: ClassVar[bool] = True  # whether several of them can be one policy

    @abstractmethod
    def build(self, observations: Space[Any], head: Head, seed: int) -> Policy:
        """A random policy for such observations; the same for the same seed."""


DEFAULT_WIDTHS = (64,)  # of hidden layers


@dataclass(frozen=True)
class HiddenSettings(PolicySettings):
    """One with hidden layers."""

    hidden: tuple[int, ...] = setting(DEFAULT_WIDTHS, "Widths of the policy's hidden layers.", LAYER_WIDTHS)


@dataclass(frozen=True)
class SequenceSettings(HiddenSettings):
    """One that sees more than the present."""

    observe_actions: bool = setting(False, "Let the policy see its previous actions beside what it observes.")


def get_input_size(observations: Space[Any]) -> int:
    """O, of observations that are vectors; others are refused in a sentence."""
    if isinstance(observations, Box) and len(observations.shape) == 1:
        return int(observations.shape[0])
    raise UsageError(
        f"this policy reads no observations of type {type(observations).__name__}{observations.shape or ''}: choose "
        "--policy cnn for pictures, or flatten them to one vector (gymnasium.wrappers.FlattenObservation)"
    )


def derive_initial_seed(run: int) -> int:
    """Where the random weights of a run's first policy come from."""
    return int(derive_seeds(run, SeedPurpose.INITIAL_POLICY, 0, 1)[0] >> 1)  # torch takes signed seeds


def make_initial_generator(run: int) -> torch.Generator:
    """The same, as torch's generator."""
    return torch.Generator().manual_seed(derive_initial_seed(run))
