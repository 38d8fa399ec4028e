"""Which word heads which, told from the sentence alone, and what that says of a configuration.

P[i, h] is how likely word h heads word i (0 is ROOT). What a transition costs is a count of arcs that it takes out of
reach (`TransitionSystem.lost`), and its expectation a sum of these P: the sums that such costs are made of are what the
choice of a transition is told. Sums over the buffer are exact; of the stack only the three on top can be told apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

NEVER = -1e4  # the logit of what cannot be a head
TOLD = 16  # sums of P that a configuration is told by
WITHIN_STACK = (10, 11, 12)  # of these, those that the buffer has no part in
LOUDER = 4.0  # they are multiplied by, as probabilities are smaller than what a layer usually reads


class Heading(nn.Module):
    """P, by a bilinear form of dependents and heads."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.dependent, self.governor = nn.Linear(size, width // 2), nn.Linear(size, width // 2)
        self.between = nn.Parameter(torch.zeros(width // 2 + 1, width // 2))
        self.told = nn.Linear(TOLD, width)

    def forward(self, items: Tensor, lengths: Tensor, dropout: Callable[[Tensor], Tensor]) -> Tensor:
        """log P [B, 1 + N, 1 + N] from items [2 + Σn, D], none, ROOT and all words; no word heads itself."""
        dependents, governors = dropout(self.dependent(items).relu()), dropout(self.governor(items).relu())
        linked = pad(dependents, (0, 1), value=1.0) @ self.between
        number = torch.arange(1 + int(lengths.max()))
        inside = number <= lengths[:, None]  # [B, 1 + N]
        first = (lengths.cumsum(0) - lengths)[:, None]
        rows = torch.where((number > 0) & inside, 1 + first + number, 1)
        scores = linked[rows] @ governors[rows].transpose(1, 2)
        may = inside[:, None, :] & (number[:, None] != number)
        return scores.masked_fill(~may, NEVER).log_softmax(-1)

    def seen(self, log_heads: Tensor, lengths: Tensor, lane: Tensor, numbers: Tensor) -> Tensor:
        """[M, W]: what the words `numbers` [M, VIEW] on the stack and in the buffer of `lane` [M] are told by P."""
        told: Tensor = self.told(LOUDER * sums_of(tables_of(log_heads.exp(), lengths), lane, numbers))
        return told


class Tables(NamedTuple):
    """P and its sums, each [B, …, …]."""

    heads: Tensor  # P[i, h]
    before: Tensor  # Σ_{g < h} P[i, g]
    behind: Tensor  # Σ_{g ≥ h} P[i, g]
    dependents: Tensor  # Σ_{j ≥ i} P[j, h]


def tables_of(heads: Tensor, lengths: Tensor) -> Tables:
    """All sums that can be asked for; ROOT has no head, and behind the last word there is nothing."""
    number = torch.arange(heads.shape[1])
    heads = heads * ((number > 0) & (number <= lengths[:, None]))[:, :, None]
    before = pad(heads.cumsum(2), (1, 0))
    behind = pad(heads.flip(2).cumsum(2).flip(2), (0, 2))
    return Tables(heads, before, behind, pad(heads.flip(1).cumsum(1).flip(1), (0, 0, 0, 2)))


def sums_of(tables: Tables, lane: Tensor, numbers: Tensor) -> Tensor:
    """[M, TOLD]: the words are those on top of the stack, s, t, u, and the first of the buffer, b; −1 is none."""
    heads, before, behind, dependents = tables
    has_t, has_u, has_b = ((numbers[:, place] >= 0).float() for place in (1, 2, 3))
    s, t, u, b = (numbers[:, place].clamp(min=0) for place in (0, 1, 2, 3))
    sums = torch.stack(
        [
            heads[lane, s, b], heads[lane, b, s], behind[lane, s, b + 1], dependents[lane, b, s],
            behind[lane, b, b + 1], heads[lane, b, t] * has_t, heads[lane, b, u] * has_u, before[lane, b, u] * has_u,
            heads[lane, t, b] * has_t, heads[lane, u, b] * has_u, heads[lane, s, t] * has_t, heads[lane, t, s] * has_t,
            before[lane, s, s], dependents[lane, b + 1, s], behind[lane, t, b] * has_t, before[lane, b, s],
        ], dim=1,
    )  # fmt: skip
    within_stack = torch.isin(torch.arange(TOLD), torch.tensor(WITHIN_STACK))
    return torch.where(within_stack | (has_b > 0)[:, None], sums, 0.0)
