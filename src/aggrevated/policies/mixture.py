"""Mixture of policies for SEARN and SMILe: at every step, one of them is sampled and acts."""

from copy import deepcopy
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution
from torch.func import functional_call
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from aggrevated.actors.mixture import MixtureActor
from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.policies import Policy
from aggrevated.policies.heads import CategoricalHead, Head
from aggrevated.storage import JsonDict


class MixturePolicy(Policy):
    """Σ_j w_j π_j(a|o₁ … o_t), of J policies of one class for a finite set of actions.

    Only the newest policy is a module, with parameters. The weights of the older ones are rows of one buffer,
    so that a checkpoint holds them all. Illegal actions are excluded from the mixture, not from each policy.

    Args:
        newest: The first policy; each one that `renew` adds starts from the weights it has at that time.
        head: A `CategoricalHead` like that of `newest`, but another object.

    Raises:
        UsageError: The actions are vectors.
    """

    registry_name = "mixture"
    older: Tensor  # [J − 1, d], weights of the older policies
    shares: Tensor  # w, float64 [J]: weights in the mixture, of the older policies and then of the newest
    learned: Tensor  # int64 [1]: number of learned policies; 0 at first
    blank: Tensor  # [d]: initial weights of every policy

    def __init__(self, newest: Policy, head: Head) -> None:
        super().__init__()
        if not isinstance(head, CategoricalHead):
            raise UsageError("a mixture of policies needs a finite set of actions; use another update")
        self.newest = newest
        self.head = head
        self.observe_actions = newest.observe_actions
        vector = parameters_to_vector(newest.parameters()).detach()
        self.register_buffer("older", vector.new_zeros(0, len(vector)))
        self.register_buffer("shares", torch.ones(1, dtype=torch.float64))
        self.register_buffer("learned", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("blank", vector.clone())

    @torch.no_grad()
    def renew(self, shares: Array) -> None:
        """Add a policy with the initial weights, to be learned next.

        Args:
            shares: w [J], the weights of all policies in the mixture, the new one last.
        """
        if self.learned > 0:
            self.older = torch.cat([self.older, parameters_to_vector(self.newest.parameters())[None]])
        self.learned = self.learned + 1
        assert len(shares) == len(self.older) + 1 == self.learned, (len(shares), self.learned)
        self.shares = torch.as_tensor(shares, dtype=torch.float64)
        for name, weight in self._split_weights(self.blank).items():
            self.newest.get_parameter(name).copy_(weight)

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        older = [
            functional_call(self.newest, self._split_weights(vector), (observations, mask)) for vector in self.older
        ]
        distributions = (*older, self.newest(observations, mask))
        logits = torch.stack([compute_mixture_logits(one) for one in distributions])  # [J, K, T, A]
        shares = self.shares.log().to(logits.dtype)[:, None, None, None]
        return self.head.distribution(torch.logsumexp(logits + shares, dim=0), legal)

    def clip_actions(self, actions: Array) -> Array:
        return self.newest.clip_actions(actions)

    def actor(self) -> MixtureActor:
        policy = deepcopy(self.newest)
        actors = []
        for vector in self.older:
            vector_to_parameters(vector, policy.parameters())
            actors.append(policy.actor())
        with np.errstate(divide="ignore"):  # a share may be 0
            shares = np.log(self.shares.numpy()).astype(np.float32)
        return MixtureActor((*actors, self.newest.actor()), shares)

    def _split_weights(self, vector: Tensor) -> dict[str, Tensor]:
        """Return the weights of a policy by name, from a vector [d]."""
        parameters = dict(self.newest.named_parameters())
        parts = torch.split(vector, [parameter.numel() for parameter in parameters.values()])
        return {name: part.view_as(like) for (name, like), part in zip(parameters.items(), parts, strict=True)}

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        for name in ("older", "shares"):  # the number of policies comes from the state dict
            if prefix + name in state_dict:
                setattr(self, name, torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if self.older.shape != (len(self.shares) - 1, len(self.blank)) or not (self.shares >= 0).all():
            rest[-1].append("the numbers of policies and shares differ, or a share is negative")

    def architecture(self) -> JsonDict:
        """Return the JSON from which `from_architecture` builds a mixture of such policies."""
        return {**self.newest.architecture(), "of": self.newest.registry_name}

    @classmethod
    def from_architecture(cls, shape: JsonDict, head: Head) -> Self:
        from aggrevated.policies.serialization import list_policy_classes

        return cls(list_policy_classes()[shape["of"]].from_architecture(shape, deepcopy(head)), head)


def compute_mixture_logits(distribution: Distribution) -> Tensor:
    """Return log π(a)."""
    assert isinstance(distribution, Categorical)
    logits: Tensor = distribution.logits
    return logits
