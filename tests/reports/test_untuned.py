"""benchmarks/untuned.py compares common seeds at equal numbers of steps."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from aggrevated.core.statistics import Estimate


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import untuned_report

    return untuned_report


def make_run(report: ModuleType, tested: float, steps: list[int], best: list[float]) -> Any:
    queries = np.array(steps) // 2
    return report.Run({"test_return": tested}, np.array(steps), np.array(best), queries, 0.0)


def test_untuned_pair_compares_common_seeds_only(report: ModuleType) -> None:
    ours = {seed: make_run(report, 10.0 + seed, [0, 100], [0, 9]) for seed in (0, 1, 2)}
    theirs = {seed: make_run(report, 8.0 + seed, [0, 100], [0, 7]) for seed in (1, 2, 3)}
    pair = report.Pair.in_the_end(ours, theirs)
    assert (pair.ours, pair.theirs, pair.word) == ([11.0, 12.0], [9.0, 10.0], "ahead")
    assert pair.facts()["difference"] == 2.0
    alone = report.Pair.in_the_end({1: ours[1]}, theirs)
    assert alone.word == "one seed" and "difference" not in alone.facts()


def test_untuned_pair_at_equal_steps_uses_the_budget_of_the_shortest_run(report: ModuleType) -> None:
    ours = {0: make_run(report, 0, [0, 100, 400], [0, 1, 9]), 1: make_run(report, 0, [0, 100, 400], [0, 2, 9])}
    theirs = {0: make_run(report, 0, [0, 150], [0, 3]), 1: make_run(report, 0, [0, 200], [0, 8])}
    pair = report.Pair.at_equal("steps", ours, theirs)
    assert (pair.ours, pair.theirs, pair.after) == ([1.0, 2.0], [3.0, 0.0], 150.0)
    assert pair.word == "not told apart"
    late = {seed: make_run(report, 0, [300, 500], [1, 2]) for seed in (0, 1)}
    assert report.Pair.at_equal("steps", late, theirs).word == "not begun"


def test_untuned_report_rounds_differences_by_their_intervals(report: ModuleType) -> None:
    assert report.signed(Estimate(5.34, 3.1, 7.6)) == "+5.3 (+3.1 to +7.6)"
    assert report.signed(Estimate(-0.00052, -0.00098, -0.00006)) == "−0.0005 (−0.0010 to −0.0001)"
