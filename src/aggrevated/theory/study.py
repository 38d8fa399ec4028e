"""What an experiment of the theory gives: regret curves, a bound, and how regret grows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aggrevated.arrays import Array

POINTS = 200  # of a curve, evenly spread over the episodes


@dataclass(frozen=True)
class Regret:
    """Cumulative regret R_n = Σ (μ(π_i) − μ(π*)) of one algorithm, exact in μ, in several trials."""

    label: str
    curve: Array  # [trials, points]
    learns_from_expert: bool = True


@dataclass(frozen=True)
class Growth:
    """Regret at the end, for a range of N or S, and the exponent that fits it."""

    of: str  # "N" or "S"
    label: str
    x: Array  # [points]
    regret: Array  # [points], mean over trials

    @property
    def exponent(self) -> float:
        """The slope in log-log."""
        return slope(np.log(self.x), np.log(np.maximum(self.regret, 1e-12)))


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

    def facts(self) -> dict[str, Any]:
        """For --json: regret at N, fitted exponents, the largest ratio of regret to bound in any trial and episode."""
        ratios = {r.label: float((r.curve / self.bound).max()) for r in self.regrets if r.label in self.bounded}
        return {
            "experiment": self.name,
            **self.settings,
            "regret": {r.label: float(r.curve[:, -1].mean()) for r in self.regrets},
            "exponents": {
                of: {g.label: round(g.exponent, 4) for g in self.growths if g.of == of}
                for of in sorted({g.of for g in self.growths})
            },
            **self.against_random_play(),
            "bound": float(self.bound[-1]),
            "largest_ratio_to_bound": max(ratios.values()),
            **self.more,
        }

    def against_random_play(self) -> dict[str, Any]:
        """The regret of playing at random, and which share of it each algorithm has, where that is known."""
        if self.random_play is None:
            return {}
        last = float(self.random_play[-1])
        shares = {regret.label: round(float(regret.curve[:, -1].mean()) / last, 6) for regret in self.regrets}
        return {"random_play": last, "share_of_random_play": shares}


def slope(x: Array, y: Array) -> float:
    """Of the least-squares line."""
    return float(np.polyfit(x, y, 1)[0])


def when(episodes: int) -> Array:
    """At most POINTS episode numbers from 1 to N, at which a curve is recorded."""
    return np.unique(np.linspace(1, episodes, min(episodes, POINTS)).round().astype(int))


class Recorder:
    """Adds up regret, and keeps it at the episodes of `when`."""

    def __init__(self, trials: int, episodes: int) -> None:
        self.points, self.total = set(when(episodes).tolist()), np.zeros(trials)
        self.curve: list[Array] = []

    def add(self, episode: int, regret: Array) -> None:
        """The regret [trials] of episode n, counted from 1."""
        self.total = self.total + regret
        if episode in self.points:
            self.curve.append(self.total)

    def regret(self, label: str, learns_from_expert: bool = True) -> Regret:
        return Regret(label, np.stack(self.curve, axis=1), learns_from_expert)
