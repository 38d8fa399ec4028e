"""The builtin reader as a pretrained policy: a policy of its sizes, and a start from its weights."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gymnasium.spaces import Space

from aggrevated.core.settings import BELOW_1, NON_NEGATIVE, SelectedComponents, check_setting, setting
from aggrevated.experts import Expert
from aggrevated.policies import Policy, PolicySettings, derive_initial_seed
from aggrevated.policies.heads import Head
from aggrevated.simulators import Simulator
from aggrevated.starts import StartSettings
from aggrevated_reader.learners.reading_policy import ReadingPolicy, make_blank_projection

BUILTIN_READER_FILE = Path(__file__).parents[1] / "readers" / "reader.safetensors"


@lru_cache(maxsize=1)
def load_builtin_reader() -> ReadingPolicy:
    """Load the builtin policy, which is shared: callers must not change it."""
    return ReadingPolicy.load(BUILTIN_READER_FILE)


@dataclass(frozen=True)
class BuiltinReaderSettings(PolicySettings):
    """Policy `reading` with the sizes of the builtin reader."""

    name = "builtin"
    supports_mixture = False  # each policy would encode the pages again
    dropout: float = setting(0.0, "Dropout rate of the embeddings and encoder states of symbols.", BELOW_1)
    name_weight: float = setting(1.0, "Weight of the loss of symbol names.", NON_NEGATIVE)
    expected_cost_weight: float = setting(0.25, "Weight of the loss of expected costs.", NON_NEGATIVE)

    def build(self, observations: Space[Any], head: Head, seed: int) -> ReadingPolicy:
        """Return a policy with random weights, without pages."""
        builtin = load_builtin_reader()
        return ReadingPolicy(
            make_blank_projection(),
            builtin.system,
            hidden=builtin.kind.hidden,
            embedding=builtin.embedding,
            layers=builtin.layers,
            dropout=self.dropout,
            name_weight=self.name_weight,
            expected_cost_weight=self.expected_cost_weight,
            seed=derive_initial_seed(seed),
        )


@dataclass(frozen=True)
class BuiltinReaderStart(StartSettings):
    """Start from the weights of the builtin reader, at no cost in simulator steps and queries."""

    name = "builtin"

    def check(self, chosen: SelectedComponents) -> None:
        check_setting(chosen.policy.name == "builtin", "start", self.name, "another one: it fits --policy builtin only")

    def begin(self, policy: Policy, simulator: Simulator, expert: Expert, seed: int, k: int) -> tuple[int, int]:
        assert isinstance(policy, ReadingPolicy)
        names = policy.names  # the problem's names begin with the reader's, in the same order
        policy.load_state_dict(load_builtin_reader().state_dict() | {"names": names})
        return 0, 0
