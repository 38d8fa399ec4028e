"""Policy of a reader: it parses, names symbols, and predicts its own costs.

It differs from the contextual policy in three ways. It sees more features of a symbol
(`extract_detailed_features`). The position of a symbol also bypasses the encoder, so that a transition sees
the relative position of two symbols. Two more heads on the shared encoder and decoder learn together with the
policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Space
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import cross_entropy

from aggrevated.actors.feed_forward import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.core.settings import (
    BELOW_1,
    NON_NEGATIVE,
    SelectedComponents,
    at_least,
    between,
    check_recurrent_width,
    check_setting,
    setting,
)
from aggrevated.parsing.features.layout import LAYOUT, PLACE
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.features.symbols import DETAILED, DETAILED_PIXELS, extract_detailed_features
from aggrevated.parsing.learners.actors import ReaderActor
from aggrevated.parsing.learners.parser_policies import ParsingPolicy
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.policies import HiddenSettings, derive_initial_seed
from aggrevated.policies.heads import Head
from aggrevated.policies.recurrent_cells import CELLS
from aggrevated.storage import JsonDict
from aggrevated_reader.learners.expected_cost import ExpectedCostEstimates, ExpectedCosts, compute_arc_error_targets
from aggrevated_reader.learners.serialization import read, write
from aggrevated_reader.learners.symbol_names import CLASSES, UNKNOWN, names_from_bytes, names_to_bytes

COMPONENTS = 200  # of the projection of a symbol's picture
FITTED = 30_000  # approximate number of symbols to fit the projection to
SURENESS = tuple(float(2 ** (power / 4)) for power in range(-8, 9))  # factors from 1/4 to 4
UNSEEN = -1e4  # logit of an unused class


class Answers(NamedTuple):
    """Gold names and heads of pages, one symbol after the other."""

    names: Tensor  # int64 [Σn]: classes, UNKNOWN for labels without a class
    heads: Tensor  # int64 [Σn]: gold heads
    starts: Tensor  # int64 [P]: the index of each page's first symbol


class ReadingOutputs(NamedTuple):
    """Encoder and decoder outputs of trajectories."""

    observations: Tensor  # [K, T, O]
    read: Tensor  # [K, N, R]: inputs of the naming head for each symbol
    state: Tensor  # [K, T, H]: states of the decoder


class ReadingPolicy(ParsingPolicy):
    """Policy π(·|o₁ … o_t, τ) that also predicts the names of τ's symbols and its own costs."""

    names: Tensor  # uint8 [CLASSES, BYTES]
    sureness: Tensor  # factor of the logits of names that calibrates their probabilities
    answers: Answers | None = None
    _latest: ReadingOutputs | None = None

    def __init__(
        self,
        projection: Projection,
        system: TransitionSystem,
        *,
        hidden: int = 128,
        embedding: int = 128,
        layers: int = 1,
        dropout: float = 0.0,
        name_weight: float = 1.0,
        expected_cost_weight: float = 0.25,
        seed: int = 0,
    ) -> None:
        """Create a policy with random weights, without pages.

        Args:
            projection: The projection of the features of symbols.
            system: The transition system.
            hidden: The width of the decoder; half of it is the width of each direction of the encoder.
            embedding: The size of a symbol's embedding.
            layers: The number of layers of the encoder.
            dropout: The dropout rate, 0 to below 1.
            name_weight: The weight of the naming loss.
            expected_cost_weight: The weight of the loss of expected costs.
            seed: The seed of the initial weights.
        """
        self.system = system
        self.layers = layers
        self.embedding = embedding
        self.name_weight = name_weight
        self.expected_cost_weight = expected_cost_weight
        actions = len(system.actions)
        super().__init__(
            projection, actions, "contextual", hidden=hidden, embedding=embedding, dropout=dropout, seed=seed
        )

    def _build(self, size: int, actions: int, embedding: int) -> None:
        hidden = self.kind.hidden
        wide = 2 * embedding
        self.embed = nn.Sequential(nn.Linear(size, wide), nn.ReLU(), nn.Linear(wide, embedding), nn.ReLU())
        self.encoder = nn.LSTM(embedding, hidden // 2, self.layers, batch_first=True, bidirectional=True)
        item = hidden + PLACE
        self.special = nn.Parameter(0.1 * torch.randn(2, item))
        self.decoder = nn.LSTM(item * len(self.kind.view), hidden, batch_first=True)
        self.between = nn.Identity()
        self.readout = nn.Linear(hidden, actions)
        read = embedding + hidden
        self.naming_head = nn.Sequential(nn.Linear(read, embedding), nn.ReLU(), nn.Linear(embedding, CLASSES))
        self.costs = ExpectedCosts(hidden, actions)
        self.register_buffer("names", names_to_bytes(()))
        self.register_buffer("sureness", torch.tensor(1.0))
        with torch.no_grad():
            self.readout.weight *= 0.1
            self.readout.bias.zero_()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_latest": None}  # torch cannot copy tensors with gradients

    def describe_sizes(self) -> JsonDict:
        """Return the sizes that a blank policy of this shape needs."""
        sizes = {"hidden": self.kind.hidden, "embedding": self.embedding, "layers": self.layers}
        return sizes | {"system": self.system.name}

    def save(self, path: Path | str, card: JsonDict | None = None) -> None:
        """Save the policy as one file.

        Args:
            path: The file to write.
            card: How the policy was made and how well it scores; None for the policy's metadata.
        """
        write(Path(path), self.state_dict(), self.describe_sizes(), self.metadata if card is None else card)

    @classmethod
    def load(cls, path: Path | str) -> ReadingPolicy:
        """Load a policy that `save` wrote.

        Args:
            path: The file to read.

        Raises:
            DataError: The file is not a reader.
        """
        return read(Path(path), cls._rebuild)

    @classmethod
    def _rebuild(cls, shape: JsonDict, weights: dict[str, Tensor], card: JsonDict) -> ReadingPolicy:
        sizes = {name: shape[name] for name in ("hidden", "embedding", "layers")}
        policy = cls(make_blank_projection(), SYSTEMS[shape["system"]], **sizes)
        dtypes = {name: tensor.dtype for name, tensor in policy.state_dict().items()}
        policy.load_state_dict({name: tensor.to(dtypes[name]) for name, tensor in weights.items()})
        if not policy.classes:
            raise ValueError("it has no symbol names")
        if not torch.equal(names_to_bytes(policy.classes), policy.names):
            raise ValueError("its symbol names have gaps between them")
        policy.metadata = card
        return policy

    # Inputs.

    def with_pages(self, features: Array, lengths: Array) -> ReadingPolicy:
        """Set the features [Σn, D] or [P, N, D] of the pages, drop old answers, and return the policy."""
        super().with_pages(features, lengths)
        self.answers = None
        self._latest = None
        return self

    def with_answers(self, names: Array, heads: Array) -> ReadingPolicy:
        """Set the classes and gold heads [Σn] of the pages' symbols to learn from, and return the policy."""
        starts = self.pages.value.starts
        self.answers = Answers(*(torch.from_numpy(array.astype(np.int64)) for array in (names, heads, starts)))
        return self

    def with_names(self, names: tuple[str, ...]) -> ReadingPolicy:
        """Set the names of the classes, and return the policy."""
        self.names = names_to_bytes(names)
        return self

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes of symbols."""
        return names_from_bytes(self.names)

    def encode_pages(self, pages: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs of the naming head for pages [B], [B, N, R], and the items of the decoder."""
        features, lengths = (torch.from_numpy(array) for array in self.pages.value.get_features(pages.numpy()))
        embedded = self.dropout(self.embed(features))
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        assert self.encoder is not None
        states = nn.utils.rnn.pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0]
        states = self.dropout(states)
        items = torch.cat([states, features[:, :, -PLACE:]], dim=2)
        special = self.special.expand(len(pages), -1, -1)
        return torch.cat([embedded, states], dim=2), torch.cat([special, items], dim=1)

    def encode_trajectories(self, observations: Tensor, mask: Tensor) -> ReadingOutputs:
        """Return the encoder and decoder outputs of trajectories."""
        read, items = self.encode_pages(observations[:, 0, 0].long())
        numbers = observations[:, :, 1:][:, :, self.kind.view].long() + 1  # [K, T, view]; item 0 is "none"
        rows = torch.arange(len(items))[:, None, None]
        inputs = items[rows, numbers.clamp_(0, items.shape[1] - 1)].flatten(2)
        lengths = mask.sum(dim=1).clamp(min=1)
        packed = nn.utils.rnn.pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        assert self.decoder is not None
        state = self.decoder(packed)[0]
        states = nn.utils.rnn.pad_packed_sequence(state, batch_first=True, total_length=mask.shape[1])[0]
        return ReadingOutputs(observations, read, states)

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        outputs = self.encode_trajectories(observations, mask)
        if torch.is_grad_enabled():
            self._latest = outputs  # for `auxiliary_loss`, which is called next
        return self.head.distribution(self.readout(outputs.state), legal)

    # Auxiliary losses.

    def auxiliary_loss(
        self, observations: Tensor, mask: Tensor, legal: Tensor | None, costs: Tensor | None = None
    ) -> Tensor | None:
        """Return the summed losses of names and expected costs, or None for pages without answers."""
        outputs = self._latest
        self._latest = None
        if self.answers is None:
            return None
        if outputs is None or outputs.observations.data_ptr() != observations.data_ptr():
            outputs = self.encode_trajectories(observations, mask)
        naming_loss = self.name_weight * self.compute_naming_loss(observations, outputs.read)
        if costs is None:
            return naming_loss
        known = mask[:, :, None].expand_as(costs) if legal is None else legal & mask[:, :, None]
        return naming_loss + self.expected_cost_weight * self.costs.loss(
            outputs.state, costs, self.compute_wrong_arcs(observations), known
        )

    def compute_naming_loss(self, observations: Tensor, read: Tensor) -> Tensor:
        """Return the cross-entropy of the names of all symbols of the pages."""
        assert self.answers is not None
        pages = observations[:, 0, 0].long()
        inside = torch.arange(read.shape[1]) < self.lengths[pages][:, None]
        rows = (self.answers.starts[pages][:, None] + torch.arange(read.shape[1]))[inside]
        logits = self.name_logits(read[inside])
        return cross_entropy(logits, self.answers.names[rows], ignore_index=UNKNOWN, reduction="sum")

    def name_logits(self, read: Tensor) -> Tensor:
        """Return the logits of all classes, [..., CLASSES]; classes without a name are impossible."""
        has_name = (self.names != 0).any(dim=1)
        logits: Tensor = self.naming_head(read)
        return logits.masked_fill(~has_name, UNSEEN)

    def compute_wrong_arcs(self, observations: Tensor) -> Tensor:
        """Return 1 for actions with a wrong arc, 0 for a right one, NO_ARC_TARGET without one, [K, T, A]."""
        assert self.answers is not None
        return compute_arc_error_targets(self.system, observations, self.answers.heads, self.answers.starts)

    # Predictions.

    @torch.no_grad()
    def predict_names(self, pages: Array) -> tuple[Array, Array]:
        """Return the class of each symbol of the pages and its probability, each [Σn]."""
        return self._predict_names(self.encode_pages(torch.from_numpy(pages))[0], pages)

    def _predict_names(self, read: Tensor, pages: Array) -> tuple[Array, Array]:
        inside = torch.arange(read.shape[1]) < self.lengths[pages][:, None]
        probabilities, classes = self.name_logits(read[inside]).mul(self.sureness).softmax(-1).max(-1)
        return classes.numpy(), probabilities.numpy()

    @torch.no_grad()
    def predict_all(
        self, observations: Array, mask: Array, actions: Array
    ) -> tuple[ExpectedCostEstimates, Array, Array]:
        """Return the cost estimates of actions [K, T] and the result of `predict_names`, in one pass."""
        outputs = self.encode_trajectories(torch.from_numpy(observations), torch.from_numpy(mask))
        names = self._predict_names(outputs.read, observations[:, 0, 0].astype(np.int64))
        return self.costs.estimate_costs(outputs.state, torch.from_numpy(actions)), *names

    @torch.no_grad()
    def calibrate_names(self, pages: Array) -> None:
        """Calibrate the probabilities of names on these pages, which must have answers."""
        assert self.answers is not None
        read, _ = self.encode_pages(torch.from_numpy(pages))
        inside = torch.arange(read.shape[1]) < self.lengths[pages][:, None]
        rows = (self.answers.starts[pages][:, None] + torch.arange(read.shape[1]))[inside]
        logits = self.name_logits(read[inside])
        names = self.answers.names[rows]
        losses = [cross_entropy(logits * factor, names, ignore_index=UNKNOWN).item() for factor in SURENESS]
        self.sureness = torch.tensor(SURENESS[int(np.argmin(losses))])

    @torch.no_grad()
    def estimate_costs(self, observations: Array, mask: Array, actions: Array) -> ExpectedCostEstimates:
        """Return the cost estimates of actions [K, T]."""
        outputs = self.encode_trajectories(torch.from_numpy(observations), torch.from_numpy(mask))
        return self.costs.estimate_costs(outputs.state, torch.from_numpy(actions))

    def reader(self) -> ReaderActor:
        """Return a NumPy copy of `encode_pages`."""
        assert self.encoder is not None and isinstance(self.embed, nn.Sequential)
        cells = [CELLS["lstm"].copy_of(self.encoder, index) for index in range(2 * self.layers)]
        special = self.special.detach().numpy().copy()
        start = 2 * self.kind.hidden
        embed = NumpyNetwork.copy_of(self.embed)
        return ReaderActor(special, embed, tuple(cells[:2]), True, start, upper=tuple(cells[2:]), appended=PLACE)


@dataclass(frozen=True)
class ReadingSettings(HiddenSettings):
    """Recurrent policy that parses pages, names their symbols and predicts its own costs."""

    name = "reading"
    supports_mixture = False  # each policy would encode the pages again
    dropout: float = setting(0.0, "Dropout rate of the embeddings and encoder states of symbols.", BELOW_1)
    embedding_dim: int = setting(128, "Size of the embedding of a symbol's picture and position.", at_least(1))
    layers: int = setting(1, "Number of layers of the encoder, 1 or 2.", between(1, 2))
    name_weight: float = setting(1.0, "Weight of the loss of symbol names.", NON_NEGATIVE)
    expected_cost_weight: float = setting(0.25, "Weight of the loss of expected costs.", NON_NEGATIVE)

    def check(self, chosen: SelectedComponents) -> None:
        check_recurrent_width(self.hidden, self.name)
        check_setting(self.hidden[0] % 2 == 0, "hidden", self.hidden, "even: half of it reads forwards, half backwards")

    def build(self, observations: Space[Any], head: Head, seed: int) -> ReadingPolicy:
        """Return a policy without pages; its projection is still blank."""
        system = next(
            candidate for candidate in SYSTEMS.values() if len(candidate.actions) == head.outputs
        )  # systems differ in their number of actions
        return ReadingPolicy(
            make_blank_projection(), system, hidden=self.hidden[0], embedding=self.embedding_dim, layers=self.layers,
            dropout=self.dropout, name_weight=self.name_weight, expected_cost_weight=self.expected_cost_weight,
            seed=derive_initial_seed(seed),
        )  # fmt: skip


def fit_projection(pages: Sequence[Page]) -> Projection:
    """Fit the projection to the detailed features of these pages, or of a part of very many."""
    step = max(1, sum(map(len, pages)) // FITTED)
    return Projection.fit(extract_detailed_features(pages[::step]), DETAILED_PIXELS, COMPONENTS)


def make_blank_projection() -> Projection:
    """Return a projection of zeros to load values into."""
    return Projection(np.zeros(DETAILED), np.zeros((DETAILED, COMPONENTS + LAYOUT)))
