"""Settings of the loop of Algorithm 1: iterations, trajectories, limits, α_n and the seed."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from typing import Self

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
)

# by name: the schedule as a function of α_1 and a parameter, and the setting of that parameter
ALPHA_SCHEDULES: dict[str, tuple[Callable[[float, float], Schedule], str]] = {
    "geometric": (geometric_schedule, "alpha_decay"),
    "linear": (lambda first, scale: linear_schedule(first, 0.0, scale), "alpha_scale"),
    "exponential": (exponential_schedule, "alpha_scale"),
    "inverse-sigmoid": (inverse_sigmoid_schedule, "alpha_scale"),
    "constant": (lambda first, _: constant_schedule(first), "alpha_start"),
}
SCHEDULE_PARAMETERS = ("alpha_decay", "alpha_scale")


def find_schedules(parameter: str) -> str:
    """Return the names of the schedules with this parameter."""
    return " or ".join(schedule for schedule, (_, name) in ALPHA_SCHEDULES.items() if name == parameter)


TARGET_STEPS_PER_ITERATION = 1000
MIN_ITERATIONS_PER_LIMIT = 10
UNLIMITED = MAX_COUNT  # iterations of a run that a limit ends
LIMIT_NAMES = ("budget", "queries")
LIMIT_UNITS = dict(zip(LIMIT_NAMES, ("simulator steps", "oracle queries"), strict=True))
LIMIT_RULE = at_least(0, 10**11)


@dataclass(frozen=True)
class LoopSettings(Settings):
    """N, K, α_n and the seed; intervals of validation and checkpoints."""

    name = "loop"
    seed: int = setting(0, "Seed of all random numbers; trial i uses seed + i.", SEED)
    iterations: int = setting(
        100, "N, the number of iterations. With --budget or --queries: as many as fit, unless set.", at_least(1)
    )
    budget: int = setting(
        0,
        "Limit on the simulator steps of start, roll-ins and oracle, in all. The run ends before an iteration that "
        "would exceed it. Validation and test do not count. 0: no limit.",
        LIMIT_RULE,
    )
    queries: int = setting(0, "Limit on the oracle queries, in all. 0: no limit.", LIMIT_RULE)
    trajectories: int = setting(
        0,
        "K, the trajectories per iteration. 0: 5 to 100, about 1,000 steps; fewer where a limit allows less than ten "
        "iterations.",
        COUNT,
    )
    alpha_start: float = setting(
        0.0, "alpha_1, the fraction of roll-in steps that the expert takes in iteration 1.", UNIT_INTERVAL
    )
    alpha_schedule: str = setting(
        "geometric", f"Schedule of alpha_n: {', '.join(ALPHA_SCHEDULES)}.", one_of(ALPHA_SCHEDULES)
    )
    alpha_decay: float = setting(0.5, "geometric: alpha_n = alpha_start * alpha_decay^(n-1).", UNIT_INTERVAL)
    alpha_scale: float = setting(
        10.0,
        "Scale k of the schedule: linear, alpha_start * (1 - (n-1)/k); exponential, alpha_start * e^(-(n-1)/k); "
        "inverse-sigmoid, alpha_start * k / (k + e^((n-1)/k)).",
        POSITIVE,
    )
    alpha_min: float = setting(0.0, "Lower bound of alpha_n.", UNIT_INTERVAL)
    validate_every: int = setting(1, "Iterations between validations.", at_least(1))
    checkpoint_every: int = setting(10, "Iterations between checkpoints.", at_least(1))

    @property
    def alpha(self) -> Schedule:
        make, shape = ALPHA_SCHEDULES[self.alpha_schedule]
        return lower_bounded(self.alpha_min, make(self.alpha_start, getattr(self, shape)))

    @property
    def limits(self) -> dict[str, int]:
        """The limits that are set, by name."""
        return {name: getattr(self, name) for name in LIMIT_NAMES if getattr(self, name)}

    @property
    def known_iterations(self) -> int:
        """N, or 0 if a limit ends the run."""
        return 0 if self.limits and self.iterations == UNLIMITED else self.iterations

    def lift_iteration_limit(self, explicit: Container[str]) -> Self:
        """Return the settings without a limit on iterations, if there is another limit and N is not explicit."""
        return replace(self, iterations=UNLIMITED) if self.limits and "iterations" not in explicit else self

    def fill_defaults(self, iterations: int, explicit: Container[str]) -> Self:
        """Return the settings with a `validate_every` that divides N, so that the last policy is validated, too."""
        if self.limits:
            return self.lift_iteration_limit(explicit)
        if "validate_every" in explicit:
            return self
        return replace(self, validate_every=compute_largest_divisor(iterations, self.validate_every))

    def list_unused_settings(self, chosen: SelectedComponents) -> Mapping[str, str]:
        if self.alpha_start == 0.0:
            reason = "a run whose --alpha-start is 0; set that, or leave it out"
            return dict.fromkeys(("alpha_schedule", *SCHEDULE_PARAMETERS), reason)
        schedule = f"--alpha-schedule {self.alpha_schedule}"
        unused = [name for name in SCHEDULE_PARAMETERS if name != ALPHA_SCHEDULES[self.alpha_schedule][1]]
        return {
            name: f"{schedule}: it belongs to {find_schedules(name)}; choose that, or leave it out" for name in unused
        }

    def fill_trajectory_count(self, steps: int, costs: Mapping[str, int] | None = None) -> Self:
        """Return the settings with K, if it is 0.

        Args:
            steps: The largest number of steps of an episode.
            costs: The largest cost of a trajectory by the names of the limits, which should allow ten iterations.
        """
        default = min(max(TARGET_STEPS_PER_ITERATION // max(steps, 1), 5), 100)
        max_counts = (
            limit // (MIN_ITERATIONS_PER_LIMIT * max((costs or {}).get(name, 1), 1))
            for name, limit in self.limits.items()
        )
        return replace(self, trajectories=self.trajectories or max(1, min([default, *max_counts])))

    def check(self, chosen: SelectedComponents) -> None:
        rule = f"a divisor of the {self.iterations} iterations"
        divides = bool(self.limits) or self.iterations % self.validate_every == 0
        check_setting(divides, "validate_every", self.validate_every, rule)


def compute_largest_divisor(number: int, maximum: int) -> int:
    """Return the largest divisor of the number that is at most `maximum`."""
    return next((divisor for divisor in range(maximum, 1, -1) if number % divisor == 0), 1)
