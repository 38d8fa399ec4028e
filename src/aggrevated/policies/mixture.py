"""A mixture of policies as one policy: at every step one of them is drawn anew, and acts. SEARN and SMILe make such."""

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
    """Σ_j w_j π_j(a|o₁ … o_t), of J policies of one kind for a finite set of actions.

    Only the newest is a module, and its weights are the mixture's own; of those before it the weights are kept as rows
    of one tensor, so that a checkpoint holds them all. Where actions are restricted, it is the mixture that is.
    """

    registry_name = "mixture"
    older: Tensor  # [J − 1, d]
    shares: Tensor  # w, float64 [J]: of the older ones, then of the newest
    learned: Tensor  # int64 [1]: how many of them were; none at first, when a blank one stands for them
    blank: Tensor  # [d]: what every one of them begins as

    def __init__(self, newest: Policy, head: Head) -> None:
        """The one policy alone, blank as those to come will begin; `head` is one like its own."""
        super().__init__()
        if not isinstance(head, CategoricalHead):
            raise UsageError("a mixture of policies is for a finite set of actions, not for vectors")
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
        """A blank policy joins those that were learned, to be learned now; `shares` [J] are those of all."""
        if self.learned > 0:
            self.older = torch.cat([self.older, parameters_to_vector(self.newest.parameters())[None]])
        self.learned = self.learned + 1
        assert len(shares) == len(self.older) + 1 == self.learned, (len(shares), self.learned)
        self.shares = torch.as_tensor(shares, dtype=torch.float64)
        for name, weight in self._split_weights(self.blank).items():
            self.newest.get_parameter(name).copy_(weight)

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        parts = [
            functional_call(self.newest, self._split_weights(vector), (observations, mask)) for vector in self.older
        ]
        logits = torch.stack(
            [compute_mixture_logits(part) for part in (*parts, self.newest(observations, mask))]
        )  # [J, K, T, A]
        shares = self.shares.log().to(logits.dtype)[:, None, None, None]
        return self.head.distribution(torch.logsumexp(logits + shares, dim=0), legal)

    def clip_actions(self, actions: Array) -> Array:
        return self.newest.clip_actions(actions)

    def actor(self) -> MixtureActor:
        part = deepcopy(self.newest)
        actors = []
        for vector in self.older:
            vector_to_parameters(vector, part.parameters())
            actors.append(part.actor())
        with np.errstate(divide="ignore"):  # a share may be 0
            shares = np.log(self.shares.numpy()).astype(np.float32)
        return MixtureActor((*actors, self.newest.actor()), shares)

    def _split_weights(self, vector: Tensor) -> dict[str, Tensor]:
        """A policy's weights by name, from a row."""
        named = dict(self.newest.named_parameters())
        parts = torch.split(vector, [parameter.numel() for parameter in named.values()])
        return {name: part.view_as(like) for (name, like), part in zip(named.items(), parts, strict=True)}

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        for name in ("older", "shares"):  # as many as were kept
            if prefix + name in state_dict:
                setattr(self, name, torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if self.older.shape != (len(self.shares) - 1, len(self.blank)) or not (self.shares >= 0).all():
            rest[-1].append("its policies are not as many as their shares")

    def architecture(self) -> JsonDict:
        return {**self.newest.architecture(), "of": self.newest.registry_name}

    @classmethod
    def from_architecture(cls, shape: JsonDict, head: Head) -> Self:
        from aggrevated.policies.serialization import list_policy_classes

        return cls(list_policy_classes()[shape["of"]].from_architecture(shape, deepcopy(head)), head)


def compute_mixture_logits(distribution: Distribution) -> Tensor:
    """log π(a)."""
    assert isinstance(distribution, Categorical)
    logits: Tensor = distribution.logits
    return logits
