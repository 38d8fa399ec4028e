"""What a run is asked to do: a task, a method, and the pieces with all their settings, as they stand in config.json."""

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
)  # how many episodes are


@dataclass(frozen=True)
class Config:
    """The settings of one run. Together with the package's version they determine every bit of its result."""

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
        """The row of the table of methods."""
        return find_method(self.method)

    @property
    def components(self) -> dict[str, Settings]:
        """The pieces, by the names of their places."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("task", "method")}

    @property
    def has_discrete_actions(self) -> bool:
        """Whether the actions are a finite set."""
        return self.head.is_discrete

    @property
    def oracle_feedback(self) -> Feedback:
        """What is told in every iteration, by the oracle and by what follows it."""
        return self.reinforcement.get_feedback(self.oracle.get_feedback(self.has_discrete_actions))

    @property
    def loss_feedback(self) -> Feedback | None:
        """What loss and update look at, of all that is told; None where that is not what the loss needs."""
        return self.loss.accepts.get(self.oracle_feedback)

    @cached_property
    def built_problem(self) -> Problem:
        """The world, built when it is first needed."""
        return self.problem.build(self.loop.seed)

    def to_dict(self) -> JsonDict:
        """For config.json."""
        pieces = {place: piece.to_dict() for place, piece in self.components.items()}
        return {"version": __version__, "task": self.task.name, "method": self.method, **pieces}

    def with_settings(self, **settings: Any) -> Config:
        """The same with other settings, by name, whichever piece has them."""
        changed: dict[str, Any] = {}
        for name in settings:
            check_known(name, "setting", self.settings)
        for place, piece in self.components.items():
            own = {name: value for name, value in settings.items() if name in get_declared_settings(type(piece))}
            if own:
                changed[place] = replace(piece, **own)
        return replace(self, **changed)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of all pieces, by name."""
        return {name: value for piece in self.components.values() for name, value in piece.to_values().items()}

    def validate(self) -> None:
        """Raise a `UsageError` for the first thing that cannot be."""
        for piece in self.components.values():
            piece.check_values()
        for piece in self.components.values():
            piece.check(self)
        self._check_sizes()
        self._check_feedback()
        self._check_implied_settings()
        for option, piece in (("gradient", self.loss), ("update", self.update)):
            own = f"below 1 for {piece.name}, which learns from actions of its own; or choose another --{option}"
            check_setting(
                self.loop.alpha(1) < 1 or not piece.needs_learner_actions, "alpha_start", self.loop.alpha_start, own
            )

    def _check_sizes(self) -> None:
        """Episodes that run at once must fit into some memory."""
        for name in EPISODE_COUNT_SETTINGS:
            if name in self.settings:
                check_enough_memory(name, self.settings[name], self.problem.steps)

    def _check_feedback(self) -> None:
        """The oracle must tell what the loss needs, and the loss what the update does."""
        then = "" if self.reinforcement.name == "none" else f", then {self.reinforcement.name},"
        knows = f"the oracle {self.oracle.name}{then} tells only {self.oracle_feedback.value}"
        if self.loss_feedback is None:
            needed = " or ".join(what.value for what in self.loss.accepts)
            raise UsageError(f"the gradient {self.loss.name} needs {needed}, but {knows}; choose another --gradient")
        if self.loss_feedback not in self.update.accepts:
            needed = " or ".join(what.value for what in Feedback if what in self.update.accepts)
            has = f"has only {self.loss_feedback.value}"
            raise UsageError(f"the update {self.update.name} needs {needed}, but {has}; choose another --update")

    def _check_implied_settings(self) -> None:
        """What is implied by one piece must be so in the others."""
        for place, piece in self.components.items():
            for name, value in piece.get_implied_settings().items():
                rule = f"{value} with the {place} {piece.name}"
                check_setting(self.settings[name] == value, name, self.settings[name], rule)

    def __getstate__(self) -> JsonDict:
        """A world that was built stays in its process."""
        return {f.name: getattr(self, f.name) for f in fields(self)}
