"""The reader that is in the package, to go on with: a policy of its sizes, and a start from its weights."""

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
    """The policy in the package, for all who only look at it."""
    return ReadingPolicy.load(BUILTIN_READER_FILE)


@dataclass(frozen=True)
class BuiltinReaderSettings(PolicySettings):
    """As `reading`, with the sizes of the reader that is in the package."""

    name = "builtin"
    supports_mixture = False  # each would read the pages for itself
    dropout: float = setting(0.0, "The share of what it reads of a symbol that is left out while it learns.", BELOW_1)
    name_weight: float = setting(1.0, "The weight of the symbols' names in what is learned.", NON_NEGATIVE)
    expected_cost_weight: float = setting(0.25, "The weight of expected costs in what is learned.", NON_NEGATIVE)

    def build(self, observations: Space[Any], head: Head, seed: int) -> ReadingPolicy:
        """With random weights, and without pages."""
        known = load_builtin_reader()
        return ReadingPolicy(
            make_blank_projection(),
            known.system,
            hidden=known.kind.hidden,
            embedding=known.embedding,
            layers=known.layers,
            dropout=self.dropout,
            name_weight=self.name_weight,
            expected_cost_weight=self.expected_cost_weight,
            seed=derive_initial_seed(seed),
        )


@dataclass(frozen=True)
class BuiltinReaderStart(StartSettings):
    """The weights of the reader that is in the package, for no simulator step and no query."""

    name = "builtin"

    def check(self, chosen: SelectedComponents) -> None:
        check_setting(
            chosen.policy.name == "builtin", "start", self.name, "another: its weights fit --policy builtin only"
        )

    def begin(self, policy: Policy, simulator: Simulator, expert: Expert, seed: int, k: int) -> tuple[int, int]:
        assert isinstance(policy, ReadingPolicy)
        names = policy.names  # the world's: those of the reader come first, and keep their places
        policy.load_state_dict(load_builtin_reader().state_dict() | {"names": names})
        return 0, 0
