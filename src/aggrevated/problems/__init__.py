"""Protocols of problems: a simulator, an expert, and how policies are scored."""

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

STEPS = 100_000_000  # maximum number of steps of episodes that run together
BYTES = 100  # memory per step, approximately


def check_enough_memory(name: str, episodes: int, steps: int) -> None:
    """Raise a `UsageError` if this many episodes cannot be stored together.

    Args:
        name: the setting that holds the number of episodes.
        episodes: number of episodes.
        steps: number of steps per episode.

    Raises:
        UsageError: there are more than `STEPS` steps in all.
    """
    size = f"{episodes * steps:,} steps, about {episodes * steps * BYTES / 1e9:,.0f} GB"
    rule = f"smaller: episodes of {steps:,} steps need {size}, and {STEPS:,} steps are the most"
    check_setting(episodes * steps <= STEPS, name, episodes, rule)


@dataclass(frozen=True)
class Score:
    """Test returns of a policy and its expert; a problem may define a subclass with more.

    Args:
        expert_return: mean return of the expert.
        expert_standard_error: standard error of that mean; None where it is unknown.
        test_return: mean return of the policy on episodes that were not used to select it.
        test_standard_error: standard error of that mean; None where it is unknown.
        ratio: the policy's return relative to the expert's; 1 equals the expert. None where the expert's is
            the lowest return.
        expert_diverged: number of diverged episodes of the expert, which the mean leaves out.
        test_diverged: number of diverged episodes of the policy, which the mean leaves out.
        expert_episodes: number of episodes of the expert if it differs from the policy's, else None.

    Example:
        >>> Score(expert_return=200.0, test_return=190.0, ratio=0.95).to_dict()["ratio"]
        0.95
    """

    expert_return: float
    expert_standard_error: float | None = field(default=None, kw_only=True)
    test_return: float
    test_standard_error: float | None = field(default=None, kw_only=True)
    ratio: float | None
    expert_diverged: int = field(default=0, kw_only=True)
    test_diverged: int = field(default=0, kw_only=True)
    expert_episodes: int | None = field(default=None, kw_only=True)

    def to_dict(self) -> JsonDict:
        """Return all fields for JSON, without `expert_episodes` where it is None.

        Returns:
            The fields by name.
        """
        fields = asdict(self)
        if self.expert_episodes is None:
            del fields["expert_episodes"]
        return fields


def report_no_metrics(policy: Policy) -> Mapping[str, float]:
    """Return no metrics."""
    return {}


def prepare_nothing(policy: Policy) -> None:
    """Leave the policy unchanged."""


@dataclass(frozen=True)
class Problem:
    """The inputs of Algorithm 1 that a task provides.

    Args:
        simulator: the simulator that the learner observes.
        expert: π*.
        validate: function of a policy that scores it, to select the best policy (line 9).
        test: function of a policy that scores it on episodes that no policy was selected by.
        fingerprint: tensors by name that identify everything, besides settings, that determines results.
        monitor: function of a policy that returns metrics for each validation.
        prepare: function that initializes what a policy reads besides observations, such as scales of
            actions.
        expert_fingerprint: tensors by name that identify an expert by its actions along random episodes.
        validates_expert: whether `validate` also accepts π* and is fast for it.
    """

    simulator: Simulator
    expert: Expert
    validate: Validator
    test: Callable[[Policy], Score]
    fingerprint: Mapping[str, Tensor]
    monitor: Callable[[Policy], Mapping[str, float]] = report_no_metrics
    prepare: Callable[[Policy], None] = prepare_nothing
    expert_fingerprint: Mapping[str, Tensor] = field(default_factory=dict)
    validates_expert: bool = False

    def with_engine(self, engine: Engine) -> Problem:
        """Return a copy whose `validate`, `test` and `monitor` run on an engine, where they support one.

        Args:
            engine: the engine.

        Returns:
            The copy.
        """
        functions: dict[str, Any] = {name: getattr(self, name) for name in ("validate", "test", "monitor")}
        return replace(
            self, **{name: f.with_engine(engine) if hasattr(f, "with_engine") else f for name, f in functions.items()}
        )


@dataclass(frozen=True, kw_only=True)
class ProblemSettings(Settings, ABC):
    """Settings of a problem, and what builds it.

    Attributes:
        metric_name: name of the score that `validate` returns.
        digits: number of decimals that displays of the score have.
        protocol_settings: names of settings that define the score; runs that differ in them are not compared.
        evaluation: settings of a further evaluation of a policy.
        has_ratio: whether returns have a ratio to the expert's, measured from the lowest possible return.
        selection_settings: names of settings that determine the recommended components.
        expert_name: name of an expert that is always the same and slow to build; "" for others.
    """

    metric_name: ClassVar[str] = "return"
    digits: ClassVar[int] = 1
    protocol_settings: ClassVar[tuple[str, ...]] = ()
    evaluation: ClassVar[type[EvaluationSettings]]
    has_ratio: ClassVar[bool] = True
    selection_settings: ClassVar[tuple[str, ...]] = ()
    expert_name: ClassVar[str] = ""

    @abstractmethod
    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        """Return the spaces that a policy is made for.

        Returns:
            (observation space, action space), each of one step of one episode.
        """

    @abstractmethod
    def build(self, seed: int) -> Problem:
        """Return the problem.

        Args:
            seed: seed of the run, from which the seeds of validation and test episodes are derived.

        Returns:
            The problem.
        """

    def recommended_components(self) -> dict[str, str]:
        """Return names of components by slot that suit this problem, where its task does not name them.

        Returns:
            Names by slot; empty by default.
        """
        return {}

    @property
    def space_adapter(self) -> SpaceAdapter | None:
        """Conversion between the environment's and the policy's observations and actions; None for none."""
        return None

    @property
    def steps(self) -> int:
        """Approximate number of steps of an episode."""
        return 100

    @property
    def label(self) -> str:
        """Text that legends add for these settings; "" for none."""
        return ""

    @property
    def notice(self) -> str:
        """Message about these settings for display before a run; "" for none."""
        return ""

    def expert_identity(self) -> object:
        """Return a value that is equal for two runs if and only if they have equal experts.

        Returns:
            Any value that can be compared.
        """
        return self.name


@dataclass(frozen=True)
class EvaluationSettings(Settings, ABC):
    """Settings of a further evaluation of a policy."""

    @abstractmethod
    def measure(self, problem: ProblemSettings, policy: Policy) -> JsonDict:
        """Score a policy.

        Args:
            problem: settings of the policy's problem.
            policy: the policy.

        Returns:
            The scores for JSON, with "expert_return", "test_return" and "ratio" at least.
        """
