"""The config of a run: task, method and components with all their settings, as in config.json."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from aggrevated import __version__
from aggrevated.config.loop import LoopSettings
from aggrevated.core.errors import UsageError
from aggrevated.core.settings import Settings, check_known, check_setting, get_declared_settings
from aggrevated.losses import LossSettings
from aggrevated.methods import Method, find_method
from aggrevated.oracles import Feedback, OracleSettings
from aggrevated.oracles.loki import ReinforcementSettings
from aggrevated.policies import PolicySettings
from aggrevated.policies.heads import HeadSettings
from aggrevated.problems import Problem, ProblemSettings, check_enough_memory
from aggrevated.starts import StartSettings
from aggrevated.storage import JsonDict
from aggrevated.tasks import Task
from aggrevated.updates import UpdateSettings

EPISODE_COUNT_SETTINGS = (
    "trajectories",
    "demonstrations",
    "validation_episodes",
    "test_episodes",
)  # settings that are numbers of episodes


@dataclass(frozen=True)
class Config:
    """The settings of one run. With the version of the package, they determine every bit of its result.

    `resolve_config` makes one, and `to_dict` is its config.json.

    Attributes:
        task: The task. It is not compared: two configs are equal if their settings are.
        method: The name of the method.
        loop: Iterations, trajectories, limits, α_n and the seed.
        problem: Simulator, expert, validation and test.
        policy: The network.
        head: The action distribution.
        oracle: What computes the cost-to-go (line 6).
        reinforcement: Reinforcement learning after the imitation.
        loss: The loss (line 6).
        update: The update (line 7).
        start: What comes before iteration 1 (line 2).
    """

    task: Task = field(compare=False)
    method: str
    loop: LoopSettings
    problem: ProblemSettings
    policy: PolicySettings
    head: HeadSettings
    oracle: OracleSettings
    reinforcement: ReinforcementSettings
    loss: LossSettings
    update: UpdateSettings
    start: StartSettings

    @property
    def method_spec(self) -> Method:
        """The `Method` of that name."""
        return find_method(self.method)

    @property
    def components(self) -> dict[str, Settings]:
        """The components by slot."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("task", "method")}

    @property
    def has_discrete_actions(self) -> bool:
        """True if the actions are a finite set."""
        return self.head.is_discrete

    @property
    def oracle_feedback(self) -> Feedback:
        """The feedback of oracle and reinforcement in every iteration."""
        return self.reinforcement.get_feedback(self.oracle.get_feedback(self.has_discrete_actions))

    @property
    def loss_feedback(self) -> Feedback | None:
        """The part of the feedback that loss and update use; None if the loss does not accept the feedback."""
        return self.loss.accepts.get(self.oracle_feedback)

    @cached_property
    def built_problem(self) -> Problem:
        """The problem, built at the first access."""
        return self.problem.build(self.loop.seed)

    def to_dict(self) -> JsonDict:
        """Return the dictionary of config.json."""
        components = {slot: component.to_dict() for slot, component in self.components.items()}
        return {"version": __version__, "task": self.task.name, "method": self.method, **components}

    def with_settings(self, **settings: Any) -> Config:
        """Return the config with other settings, by name, of any component; they are not checked.

        Args:
            **settings: New values by the names of the settings.

        Raises:
            UsageError: A setting is unknown.
        """
        changed: dict[str, Any] = {}
        for name in settings:
            check_known(name, "setting", self.settings)
        for slot, component in self.components.items():
            values = {name: settings[name] for name in get_declared_settings(type(component)) if name in settings}
            if values:
                changed[slot] = replace(component, **values)
        return replace(self, **changed)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of all components, by name."""
        return {name: value for component in self.components.values() for name, value in component.to_values().items()}

    def validate(self) -> None:
        """Check all values and that the components fit each other.

        Raises:
            UsageError: A value is invalid, or two components do not fit.
        """
        for component in self.components.values():
            component.check_values()
        for component in self.components.values():
            component.check(self)
        self._check_sizes()
        self._check_feedback()
        self._check_implied_settings()
        for option, component in (("gradient", self.loss), ("update", self.update)):
            rule = f"below 1 for {component.name}, which needs actions of the learner; or choose another --{option}"
            is_valid = self.loop.alpha(1) < 1 or not component.needs_learner_actions
            check_setting(is_valid, "alpha_start", self.loop.alpha_start, rule)

    def _check_sizes(self) -> None:
        """Check that the episodes of one batch fit into memory."""
        for name in EPISODE_COUNT_SETTINGS:
            if name in self.settings:
                check_enough_memory(name, self.settings[name], self.problem.steps)

    def _check_feedback(self) -> None:
        """Check that the oracle returns what the loss needs, and the loss what the update needs."""
        suffix = "" if self.reinforcement.name == "none" else f", then {self.reinforcement.name},"
        returns = f"the oracle {self.oracle.name}{suffix} returns only {self.oracle_feedback.value}"
        if self.loss_feedback is None:
            names = " or ".join(feedback.value for feedback in self.loss.accepts)
            raise UsageError(f"the gradient {self.loss.name} needs {names}, but {returns}; choose another --gradient")
        if self.loss_feedback not in self.update.accepts:
            names = " or ".join(feedback.value for feedback in Feedback if feedback in self.update.accepts)
            available = f"has only {self.loss_feedback.value}"
            raise UsageError(f"the update {self.update.name} needs {names}, but {available}; choose another --update")

    def _check_implied_settings(self) -> None:
        """Check that the settings that one component implies hold in the others."""
        for slot, component in self.components.items():
            for name, value in component.get_implied_settings().items():
                rule = f"{value} with the {slot} {component.name}"
                check_setting(self.settings[name] == value, name, self.settings[name], rule)

    def __getstate__(self) -> JsonDict:
        """Return the state without the built problem, which is not pickled."""
        return {f.name: getattr(self, f.name) for f in fields(self)}
