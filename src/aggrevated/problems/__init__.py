"""What a task is made of: where it is acted in, who knows better, how good a policy is there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from gymnasium.spaces import Space
from torch import Tensor

from aggrevated.core.settings import Settings, check_setting
from aggrevated.core.spaces import SpaceAdapter
from aggrevated.engines import Engine
from aggrevated.experts import Expert
from aggrevated.policies import Policy
from aggrevated.simulators import Simulator
from aggrevated.storage import JsonDict
from aggrevated.validation import Validator

STEPS = 100_000_000  # of episodes that run at once, at most
BYTES = 100  # that a step takes, about


def check_enough_memory(name: str, episodes: int, steps: int) -> None:
    """A `UsageError` if so many episodes of so many steps cannot be run at once, before anybody tries."""
    size = f"{episodes * steps:,} steps, about {episodes * steps * BYTES / 1e9:,.0f} GB"
    rule = f"smaller: episodes of {steps:,} steps come to {size}, and {STEPS:,} steps are the most"
    check_setting(episodes * steps <= STEPS, name, episodes, rule)


@dataclass(frozen=True)
class Score:
    """How good a policy is on what it was not chosen by, beside its expert; a world may know more."""

    expert_return: float
    expert_standard_error: float | None = field(default=None, kw_only=True)  # None where it is not known
    test_return: float
    test_standard_error: float | None = field(default=None, kw_only=True)
    ratio: float | None  # 1 is as good as the expert; None where the expert earns nothing
    expert_diverged: int = field(default=0, kw_only=True)  # episodes that are in no mean, at most a tenth
    test_diverged: int = field(default=0, kw_only=True)
    expert_episodes: int | None = field(default=None, kw_only=True)  # where they were fewer than the policy's

    def to_dict(self) -> JsonDict:
        """All of it, for JSON."""
        found = asdict(self)
        return found if self.expert_episodes is not None else {n: v for n, v in found.items() if n != "expert_episodes"}


@dataclass(frozen=True)
class Problem:
    """The parts of Algorithm 1 that a task brings with it."""

    simulator: Simulator
    expert: Expert
    validate: Validator  # selects the best policy (line 9)
    test: Callable[[Policy], Score]  # on what no policy was chosen by
    fingerprint: Mapping[str, Tensor]  # of all that shapes the bits besides the settings
    monitor: Callable[[Policy], Mapping[str, float]] = lambda policy: {}  # for the metrics, when a policy is validated
    prepare: Callable[[Policy], None] = lambda policy: None  # give a policy what it reads besides observations
    expert_fingerprint: Mapping[str, Tensor] = field(
        default_factory=dict
    )  # by which an expert is told from one that begins alike
    validates_expert: bool = False  # whether `validate` also takes π*, and tells soon how good that is

    def with_engine(self, engine: Engine) -> Problem:
        """The same, of which those parts that have a method `over` do their work by that engine."""
        parts: dict[str, Any] = {name: getattr(self, name) for name in ("validate", "test", "monitor")}
        return replace(
            self, **{name: p.with_engine(engine) if hasattr(p, "with_engine") else p for name, p in parts.items()}
        )


@dataclass(frozen=True, kw_only=True)
class ProblemSettings(Settings, ABC):
    """A kind of world, with the parts that make it that of one task."""

    metric_name: ClassVar[str] = "return"  # what `validate` gives, in a word
    digits: ClassVar[int] = 1  # behind the point, when that is shown
    protocol_settings: ClassVar[
        tuple[str, ...]
    ] = ()  # settings that decide what `validate` means: they are never compared
    evaluation: ClassVar[type[EvaluationSettings]]  # how a policy can be tried again
    has_ratio: ClassVar[bool] = True  # whether returns have a ratio, from the lowest that there is
    selection_settings: ClassVar[tuple[str, ...]] = ()  # settings that `suits` hangs on
    expert_name: ClassVar[str] = ""  # of a world whose expert is always the same, and which takes long to build

    @abstractmethod
    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        """(observations, actions): what a policy is made for."""

    @abstractmethod
    def build(self, seed: int) -> Problem:
        """The world; validation and test episodes come from the seed."""

    def recommended_components(self) -> dict[str, str]:
        """Pieces that follow from what it is, by their places, where the task does not know them beforehand."""
        return {}

    @property
    def space_adapter(self) -> SpaceAdapter | None:
        """What policies read and give outside; None where that is what they read and give in here."""
        return None

    @property
    def steps(self) -> int:
        """How many steps an episode has, about."""
        return 100

    @property
    def label(self) -> str:
        """What a legend adds for these settings."""
        return ""

    @property
    def notice(self) -> str:
        """What people are told of these settings before a run."""
        return ""

    def expert_identity(self) -> object:
        """Two runs in which this is equal are measured against the same expert."""
        return self.name


@dataclass(frozen=True)
class EvaluationSettings(Settings, ABC):
    """A way to try a policy again."""

    @abstractmethod
    def measure(self, world: ProblemSettings, policy: Policy) -> JsonDict:
        """How good it is, for JSON."""
