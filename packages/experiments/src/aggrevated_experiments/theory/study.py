"""Results of an experiment of the theory: regret curves, a bound, and the growth of regret."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import Estimate, bootstrap_statistic

MAX_POINTS = 200  # points of a curve, evenly spread over the episodes


@dataclass(frozen=True)
class Regret:
    """Cumulative regret R_n = Σ (μ(π_i) − μ(π*)) of one algorithm, exact in μ, in several trials."""

    label: str
    curve: Array  # [trials, points]
    learns_from_expert: bool = True

    @property
    def last(self) -> Array:
        """Return R_N of each trial, [trials]."""
        return self.curve[:, -1]

    def mean(self) -> Estimate:
        """Return the mean of R_N over trials, with its interval."""
        return bootstrap_statistic(self.last, lambda drawn: np.asarray(drawn.mean(axis=1)))


@dataclass(frozen=True)
class TuningTrial:
    """Result of one setting of one algorithm, on instances for tuning only."""

    algorithm: str
    setting: str
    value: float
    seed: int  # seed of the instances
    trials: tuple[float, ...]  # R_N on each instance
    label: str  # label of its curve, if there is one
    chosen: bool = False

    @property
    def regret(self) -> float:
        """Return the mean R_N, by which settings are chosen."""
        return sum(self.trials) / len(self.trials)

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        numbers = {"regret": round_value(self.regret), "regret_of_trials": [round_value(one) for one in self.trials]}
        setting = {"algorithm": self.algorithm, "setting": self.setting, "value": self.value, "seed": self.seed}
        return {**setting, **numbers, "chosen": self.chosen}


@dataclass(frozen=True)
class Growth:
    """Regret at the end for a range of N or S, and the exponent that fits it."""

    quantity: str  # "N" or "S"
    label: str
    x: Array  # [points]
    regret: Array  # [points], mean over trials

    @property
    def exponent(self) -> float:
        """Return the slope in log-log."""
        return fit_slope(np.log(self.x), np.log(np.maximum(self.regret, 1e-12)))


@dataclass(frozen=True)
class Study:
    """Results of one experiment."""

    name: str
    title: str
    settings: Mapping[str, Any]
    episodes: Array  # [points]: episodes of the curves
    regrets: tuple[Regret, ...]
    bound: Array  # [points]
    bound_label: str
    bounded: tuple[str, ...]  # labels of the algorithms with this bound
    growths: tuple[Growth, ...]
    lower: Array | None = None  # [points]: a lower bound of a kind of algorithm
    lower_label: str = ""
    random_play: Array | None = None  # [points]: the regret of random play
    more: Mapping[str, Any] = field(default_factory=dict)
    tuning: tuple[TuningTrial, ...] = ()  # all tried settings
    compared_labels: tuple[tuple[str, str], ...] = ()  # pairs of labels to compare on the same instances

    def to_dict(self) -> dict[str, Any]:
        """Return regret at N, exponents, and the largest ratio of regret to bound, for JSON."""
        ratios = {r.label: float((r.curve / self.bound).max()) for r in self.regrets if r.label in self.bounded}
        return {
            "experiment": self.name,
            **self.settings,
            "regret": {r.label: float(r.curve[:, -1].mean()) for r in self.regrets},
            "exponents": {
                of: {g.label: round(g.exponent, 4) for g in self.growths if g.quantity == of}
                for of in sorted({g.quantity for g in self.growths})
            },
            **self.compare_to_random_play(),
            "bound": float(self.bound[-1]),
            "largest_ratio_to_bound": max(ratios.values()),
            **self.more,
            **self.summarize_regrets(),
            "comparisons": [self.compare(*pair) for pair in self.compared_labels],
            "tuned": {tuning.algorithm: self.summarize_tuned(tuning) for tuning in self.tuning if tuning.chosen},
            "tuning": [tried.to_dict() for tried in self.tuning],
        }

    def summarize_tuned(self, tried: TuningTrial) -> dict[str, Any]:
        """Return the regret of an algorithm with its tuned setting on the instances of the figure."""
        tuned_regret = next(regret for regret in self.regrets if regret.label == tried.label)
        share = (
            {}
            if self.random_play is None
            else {"share_of_random_play": tuned_regret.mean().value / float(self.random_play[-1])}
        )
        return {"setting": tried.setting, **tuned_regret.mean().to_fields("regret"), **share}

    def summarize_regrets(self) -> dict[str, Any]:
        """Return intervals of the means, R_N of each trial, and the mean curves."""
        means = {regret.label: regret.mean() for regret in self.regrets}
        curves = {r.label: [round_value(x) for x in r.curve.mean(axis=0).tolist()] for r in self.regrets}
        return {
            "regret_interval": {label: [mean.low, mean.high] for label, mean in means.items()},
            "regret_of_trials": {r.label: [round_value(x) for x in r.last.tolist()] for r in self.regrets},
            "curves": {
                "episodes": self.episodes.tolist(),
                "bound": list(map(round_value, self.bound.tolist())),
                **curves,
            },
        }

    def compare(self, first: str, second: str) -> dict[str, Any]:
        """Return the difference of two algorithms' R_N on the same instances, and which is ahead.

        Neither is ahead if the interval contains 0.
        """
        last = {regret.label: regret.last for regret in self.regrets}
        difference = bootstrap_statistic(last[first] - last[second], lambda drawn: drawn.mean(axis=1))
        ahead = first if difference.high < 0 else second if difference.low > 0 else None
        return {"first": first, "second": second, **difference.to_fields("difference"), "ahead": ahead}

    def compare_to_random_play(self) -> dict[str, Any]:
        """Return the regret of random play and each algorithm's share of it; {} where it is unknown."""
        if self.random_play is None:
            return {}
        last = float(self.random_play[-1])
        shares = {regret.label: round(float(regret.curve[:, -1].mean()) / last, 6) for regret in self.regrets}
        return {"random_play": last, "share_of_random_play": shares}


def round_value(value: float) -> float:
    """Return a number rounded to seven digits."""
    return float(f"{value:.7g}")


def fit_slope(x: Array, y: Array) -> float:
    """Return the slope of the least-squares line."""
    return float(np.polyfit(x, y, 1)[0])


def list_recorded_episodes(episodes: int) -> Array:
    """Return at most MAX_POINTS episode numbers from 1 to N at which curves are recorded."""
    return np.unique(np.linspace(1, episodes, min(episodes, MAX_POINTS)).round().astype(int))


class Recorder:
    """Cumulative regret, recorded at the episodes of `list_recorded_episodes`."""

    def __init__(self, trials: int, episodes: int) -> None:
        self.points = set(list_recorded_episodes(episodes).tolist())
        self.total = np.zeros(trials)
        self.curve: list[Array] = []

    def add(self, episode: int, regret: Array) -> None:
        """Add the regret [trials] of an episode, counted from 1."""
        self.total = self.total + regret
        if episode in self.points:
            self.curve.append(self.total)

    def make_regret(self, label: str, learns_from_expert: bool = True) -> Regret:
        """Return the recorded curves."""
        return Regret(label, np.stack(self.curve, axis=1), learns_from_expert)
