"""The settings of Algorithm 1 itself: how often, how much, how much of it by the expert."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from typing import Self

from aggrevated.core.errors import UnusedSettingError
from aggrevated.core.schedules import (
    Schedule,
    constant_schedule,
    exponential_schedule,
    geometric_schedule,
    inverse_sigmoid_schedule,
    linear_schedule,
    lower_bounded,
)
from aggrevated.core.settings import (
    COUNT,
    MAX_COUNT,
    POSITIVE,
    SEED,
    UNIT_INTERVAL,
    SelectedComponents,
    Settings,
    at_least,
    check_setting,
    one_of,
    setting,
    to_flag,
)

# by name: the schedule from α_1 and a shape, and which setting that shape is
ALPHA_SCHEDULES: dict[str, tuple[Callable[[float, float], Schedule], str]] = {
    "geometric": (geometric_schedule, "alpha_decay"),
    "linear": (lambda first, scale: linear_schedule(first, 0.0, scale), "alpha_scale"),
    "exponential": (exponential_schedule, "alpha_scale"),
    "inverse-sigmoid": (inverse_sigmoid_schedule, "alpha_scale"),
    "constant": (lambda first, _: constant_schedule(first), "alpha_start"),
}
SCHEDULE_PARAMETERS = ("alpha_decay", "alpha_scale")


TARGET_STEPS_PER_ITERATION = 1000  # steps per iteration
MIN_ITERATIONS_PER_LIMIT = 10  # iterations, by a limit, at least
UNLIMITED = MAX_COUNT  # iterations, where it is for a limit to end the run
LIMIT_NAMES = ("budget", "queries")
LIMIT_UNITS = dict(zip(LIMIT_NAMES, ("simulator steps", "questions to the oracle"), strict=True))
LIMIT_RULE = at_least(0, 10**11)


@dataclass(frozen=True)
class LoopSettings(Settings):
    """N, K, α_n and the seed; and how often a policy is validated and kept."""

    name = "loop"
    seed: int = setting(0, "The seed that everything random comes from; trial i uses seed + i.", SEED)
    iterations: int = setting(
        100, "N, the iterations of Algorithm 1; with --budget or --queries, unless given, as many as fit.", at_least(1)
    )
    budget: int = setting(
        0,
        "Simulator steps in all, of start, roll-ins and oracle: the run ends where another iteration like the last "
        "would not fit. Those of validation and test are counted apart. 0: no limit.",
        LIMIT_RULE,
    )
    queries: int = setting(0, "Questions to the oracle in all, likewise; 0: no limit.", LIMIT_RULE)
    trajectories: int = setting(
        0,
        "K, the roll-ins per iteration; 0: 5 to 100, for 1,000 steps about; fewer where a limit would not buy ten.",
        COUNT,
    )
    alpha_start: float = setting(
        0.0, "alpha_1, the share of roll-in steps that the expert takes in iteration 1.", UNIT_INTERVAL
    )
    alpha_schedule: str = setting(
        "geometric", f"How alpha_n falls: {', '.join(ALPHA_SCHEDULES)}.", one_of(ALPHA_SCHEDULES)
    )
    alpha_decay: float = setting(0.5, "geometric: alpha_n = alpha_start * alpha_decay^(n-1).", UNIT_INTERVAL)
    alpha_scale: float = setting(
        10.0,
        "How slowly, k: linear, alpha_start * (1 - (n-1)/k); exponential, alpha_start * e^(-(n-1)/k); inverse-sigmoid, "
        "alpha_start * k / (k + e^((n-1)/k)).",
        POSITIVE,
    )
    alpha_min: float = setting(0.0, "alpha_n never falls below it.", UNIT_INTERVAL)
    validate_every: int = setting(1, "Iterations between choices of the best policy.", at_least(1))
    checkpoint_every: int = setting(10, "Iterations between checkpoints.", at_least(1))

    @property
    def alpha(self) -> Schedule:
        make, shape = ALPHA_SCHEDULES[self.alpha_schedule]
        return lower_bounded(self.alpha_min, make(self.alpha_start, getattr(self, shape)))

    @property
    def limits(self) -> dict[str, int]:
        """What may be spent, by the names of the settings; nothing where there is no limit."""
        return {name: getattr(self, name) for name in LIMIT_NAMES if getattr(self, name)}

    @property
    def known_iterations(self) -> int:
        """N, as far as it is known: 0 where it is for a limit to end the run."""
        return 0 if self.limits and self.iterations == UNLIMITED else self.iterations

    def lift_iteration_limit(self, given: Container[str]) -> Self:
        """With as many iterations as fit, where there is a limit and nobody said how many."""
        return replace(self, iterations=UNLIMITED) if self.limits and "iterations" not in given else self

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """The last policy is validated, too: so often at most that it divides the iterations, if these are known."""
        self._check_unused_settings(given)
        if self.limits:
            return self.lift_iteration_limit(given)
        if "validate_every" in given:
            return self
        return replace(self, validate_every=compute_largest_divisor(iterations, self.validate_every))

    def _check_unused_settings(self, given: Container[str]) -> None:
        """An `IdleError` for a shape of the mixing that another schedule has."""
        for name in SCHEDULE_PARAMETERS:
            if (
                name in given
                and self.alpha_schedule in ALPHA_SCHEDULES
                and name != ALPHA_SCHEDULES[self.alpha_schedule][1]
            ):
                owners = " or ".join(schedule for schedule, (_, shape) in ALPHA_SCHEDULES.items() if shape == name)
                idle = f"{to_flag(name)} has no effect on --alpha-schedule {self.alpha_schedule}"
                raise UnusedSettingError(f"{idle}: it is of {owners}; choose that, or leave it out", name)

    def fill_trajectory_count(self, steps: int, most: Mapping[str, int] | None = None) -> Self:
        """With K for episodes of so many steps, where it was left open.

        `most` is what a trajectory may cost, by the names of the limits: these are to buy ten iterations, K allowing.
        """
        usual = min(max(TARGET_STEPS_PER_ITERATION // max(steps, 1), 5), 100)
        bought = (
            limit // (MIN_ITERATIONS_PER_LIMIT * max((most or {}).get(name, 1), 1))
            for name, limit in self.limits.items()
        )
        return replace(self, trajectories=self.trajectories or max(1, min([usual, *bought])))

    def check(self, chosen: SelectedComponents) -> None:
        rule = f"a divisor of the {self.iterations} iterations"
        fits = bool(self.limits) or self.iterations % self.validate_every == 0
        check_setting(fits, "validate_every", self.validate_every, rule)


def compute_largest_divisor(number: int, most: int) -> int:
    """The largest divisor of the number that is not above `most`."""
    return next((divisor for divisor in range(most, 1, -1) if number % divisor == 0), 1)
