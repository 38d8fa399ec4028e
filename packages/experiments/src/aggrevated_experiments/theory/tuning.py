"""Tuning of all algorithms alike: equally many settings, tried on instances that no figure uses."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from aggrevated_experiments.theory.study import Regret, TuningTrial

TUNING_SEED_OFFSET = 1_000_000  # added to the seed of the figure's instances
SETTINGS_PER_ALGORITHM = 4  # tried settings


@dataclass(frozen=True)
class Tunable:
    """An algorithm with one tunable setting and its values; the first is the theorem's, if there is one."""

    algorithm: str
    what: str  # "step ×", "bonus ×", "rate"
    settings: tuple[float, ...]
    run: Callable[[int, float], Regret]  # (seed of instances and algorithm, value of the setting)
    has_theorem: bool = True

    def __post_init__(self) -> None:
        assert len(self.settings) == SETTINGS_PER_ALGORITHM, "all have as many tries"

    def run_setting(self, seed: int, setting: float) -> Regret:
        """Run with one value; the label names it unless it is the theorem's."""
        is_of_theorem = self.has_theorem and setting == self.settings[0]
        label = self.algorithm if is_of_theorem else f"{self.algorithm}, {self.what} {setting:g}"
        return replace(self.run(seed, setting), label=label)


def tune(tunable: Tunable, seed: int) -> list[TuningTrial]:
    """Try all settings on instances of another seed; the first with the smallest mean regret is chosen."""
    tuning_seed = seed + TUNING_SEED_OFFSET
    tried = []
    for value in tunable.settings:
        regret = tunable.run_setting(tuning_seed, value)
        last_regrets = tuple(regret.curve[:, -1].tolist())
        tried.append(
            TuningTrial(tunable.algorithm, f"{tunable.what} {value:g}", value, tuning_seed, last_regrets, regret.label)
        )
    best = min(tried, key=lambda trial: trial.regret)
    return [replace(trial, chosen=trial is best) for trial in tried]


def choose_setting(tried: Iterable[TuningTrial], algorithm: str) -> TuningTrial:
    """Return the chosen setting of an algorithm."""
    return next(trial for trial in tried if trial.chosen and trial.algorithm == algorithm)


def list_plotted_settings(tunable: Tunable, tried: Iterable[TuningTrial]) -> list[float]:
    """Return the theorem's setting, if there is one, and the chosen one."""
    chosen = choose_setting(tried, tunable.algorithm).value
    return list(dict.fromkeys([*tunable.settings[: int(tunable.has_theorem)], chosen]))
