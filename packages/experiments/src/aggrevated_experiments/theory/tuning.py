"""One way of tuning for all algorithms: as many settings for each, tried on instances that no figure shows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from aggrevated_experiments.theory.study import Regret, TuningTrial

TUNING_SEED_OFFSET = 1_000_000  # from the seed of the figure's instances to that of the instances for tuning
SETTINGS_PER_ALGORITHM = 4  # are tried of every algorithm


@dataclass(frozen=True)
class Tunable:
    """An algorithm, what of it is set, and to what: first to what its theorem says, if it has one."""

    algorithm: str
    what: str  # "step ×", "bonus ×", "rate"
    settings: tuple[float, ...]
    run: Callable[[int, float], Regret]  # from the seed of instances and algorithm, and a setting
    has_theorem: bool = True

    def __post_init__(self) -> None:
        assert len(self.settings) == SETTINGS_PER_ALGORITHM, "all have as many tries"

    def run_setting(self, seed: int, setting: float) -> Regret:
        """With a label that says the setting, unless it is the theorem's."""
        of_theorem = self.has_theorem and setting == self.settings[0]
        label = self.algorithm if of_theorem else f"{self.algorithm}, {self.what} {setting:g}"
        return replace(self.run(seed, setting), label=label)


def tune(tunable: Tunable, seed: int) -> list[TuningTrial]:
    """All settings on other instances than those of `seed`; the least mean regret is chosen, the first of several."""
    apart = seed + TUNING_SEED_OFFSET
    tried = []
    for value in tunable.settings:
        regret = tunable.run_setting(apart, value)
        ends = tuple(regret.curve[:, -1].tolist())
        tried.append(TuningTrial(tunable.algorithm, f"{tunable.what} {value:g}", value, apart, ends, regret.label))
    best = min(tried, key=lambda one: one.regret)
    return [replace(one, chosen=one is best) for one in tried]


def choose_setting(tried: Iterable[TuningTrial], algorithm: str) -> TuningTrial:
    """Of one algorithm."""
    return next(one for one in tried if one.chosen and one.algorithm == algorithm)


def list_plotted_settings(tunable: Tunable, tried: Iterable[TuningTrial]) -> list[float]:
    """The theorem's setting, if it has one, and the chosen one."""
    chosen = choose_setting(tried, tunable.algorithm).value
    return list(dict.fromkeys([*tunable.settings[: int(tunable.has_theorem)], chosen]))
