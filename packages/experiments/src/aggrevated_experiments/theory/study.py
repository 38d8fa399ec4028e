"""What an experiment of the theory gives: regret curves, a bound, and how regret grows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.statistics import Estimate, bootstrap_statistic

MAX_POINTS = 200  # of a curve, evenly spread over the episodes


@dataclass(frozen=True)
class Regret:
    """Cumulative regret R_n = Σ (μ(π_i) − μ(π*)) of one algorithm, exact in μ, in several trials."""

    label: str
    curve: Array  # [trials, points]
    learns_from_expert: bool = True

    @property
    def last(self) -> Array:
        """[trials]: R_N."""
        return self.curve[:, -1]

    def mean(self) -> Estimate:
        """Of R_N over trials, with its interval."""
        return bootstrap_statistic(self.last, lambda drawn: np.asarray(drawn.mean(axis=1)))


@dataclass(frozen=True)
class TuningTrial:
    """One setting of one algorithm, on instances for tuning only."""

    algorithm: str
    setting: str
    value: float
    seed: int  # of the instances
    trials: tuple[float, ...]  # R_N on each of them
    label: str  # of its curve, if it is shown
    chosen: bool = False

    @property
    def regret(self) -> float:
        """The mean, by which it is chosen."""
        return sum(self.trials) / len(self.trials)

    def to_dict(self) -> dict[str, Any]:
        numbers = {"regret": round_value(self.regret), "regret_of_trials": [round_value(one) for one in self.trials]}
        where = {"algorithm": self.algorithm, "setting": self.setting, "value": self.value, "seed": self.seed}
        return {**where, **numbers, "chosen": self.chosen}


@dataclass(frozen=True)
class Growth:
    """Regret at the end, for a range of N or S, and the exponent that fits it."""

    quantity: str  # "N" or "S"
    label: str
    x: Array  # [points]
    regret: Array  # [points], mean over trials

    @property
    def exponent(self) -> float:
        """The slope in log-log."""
        return fit_slope(np.log(self.x), np.log(np.maximum(self.regret, 1e-12)))


@dataclass(frozen=True)
class Study:
    """One experiment."""

    name: str
    title: str
    settings: Mapping[str, Any]
    episodes: Array  # [points], of the curves
    regrets: tuple[Regret, ...]
    bound: Array  # [points]
    bound_label: str
    bounded: tuple[str, ...]  # the labels of the algorithms that the bound is for
    growths: tuple[Growth, ...]
    lower: Array | None = None  # [points]: what no algorithm of some kind stays below
    lower_label: str = ""
    random_play: Array | None = None  # [points]: the regret of one that never learns
    more: Mapping[str, Any] = field(default_factory=dict)
    tuning: tuple[TuningTrial, ...] = ()  # every setting that was tried
    compared_labels: tuple[tuple[str, str], ...] = ()  # labels: one algorithm and another on the same instances

    def to_dict(self) -> dict[str, Any]:
        """For --json: regret at N, fitted exponents, the largest ratio of regret to bound in any trial and episode."""
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
            "tuned": {one.algorithm: self.summarize_tuned(one) for one in self.tuning if one.chosen},
            "tuning": [tried.to_dict() for tried in self.tuning],
        }

    def summarize_tuned(self, tried: TuningTrial) -> dict[str, Any]:
        """An algorithm with the setting that was chosen, whatever it is, on the instances of the figure."""
        found = next(regret for regret in self.regrets if regret.label == tried.label)
        share = (
            {}
            if self.random_play is None
            else {"share_of_random_play": found.mean().value / float(self.random_play[-1])}
        )
        return {"setting": tried.setting, **found.mean().to_fields("regret"), **share}

    def summarize_regrets(self) -> dict[str, Any]:
        """Intervals of the means, R_N of every trial, and the mean curves."""
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
        """The difference of two algorithms' R_N on the same instances, and which is ahead; none if it may be 0."""
        last = {regret.label: regret.last for regret in self.regrets}
        difference = bootstrap_statistic(last[first] - last[second], lambda drawn: drawn.mean(axis=1))
        ahead = first if difference.high < 0 else second if difference.low > 0 else None
        return {"first": first, "second": second, **difference.to_fields("difference"), "ahead": ahead}

    def compare_to_random_play(self) -> dict[str, Any]:
        """The regret of playing at random, and which share of it each algorithm has, where that is known."""
        if self.random_play is None:
            return {}
        last = float(self.random_play[-1])
        shares = {regret.label: round(float(regret.curve[:, -1].mean()) / last, 6) for regret in self.regrets}
        return {"random_play": last, "share_of_random_play": shares}


def round_value(value: float) -> float:
    """To seven digits, as many as a curve needs."""
    return float(f"{value:.7g}")


def fit_slope(x: Array, y: Array) -> float:
    """Of the least-squares line."""
    return float(np.polyfit(x, y, 1)[0])


def list_recorded_episodes(episodes: int) -> Array:
    """At most MAX_POINTS episode numbers from 1 to N, at which a curve is recorded."""
    return np.unique(np.linspace(1, episodes, min(episodes, MAX_POINTS)).round().astype(int))


class Recorder:
    """Adds up regret, and keeps it at the episodes of `when`."""

    def __init__(self, trials: int, episodes: int) -> None:
        self.points = set(list_recorded_episodes(episodes).tolist())
        self.total = np.zeros(trials)
        self.curve: list[Array] = []

    def add(self, episode: int, regret: Array) -> None:
        """The regret [trials] of episode n, counted from 1."""
        self.total = self.total + regret
        if episode in self.points:
            self.curve.append(self.total)

    def make_regret(self, label: str, learns_from_expert: bool = True) -> Regret:
        return Regret(label, np.stack(self.curve, axis=1), learns_from_expert)
