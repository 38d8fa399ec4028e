"""Regret curves: every number is legible."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from aggrevated_experiments.theory import regret_curves as plots
from aggrevated_experiments.theory.study import Growth, Regret, Study


def test_apart_spreads_equal_positions_and_keeps_distant_ones() -> None:
    np.testing.assert_allclose(plots.move_apart(np.array([30.0, 0.0, 12.0]), 10), [30, 0, 12])
    np.testing.assert_allclose(plots.move_apart(np.array([5.0, 5.0, 5.0]), 10), [-5, 5, 15])
    np.testing.assert_allclose(plots.move_apart(np.array([4.0, 0.0]), 10), [7, -3])


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=8), st.floats(0.1, 20))
def test_apart_keeps_order_gap_and_mean(wanted: list[float], gap: float) -> None:
    found = plots.move_apart(np.array(wanted), gap)
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(found[order]) >= gap - 1e-9).all()
    np.testing.assert_allclose(found.mean(), np.mean(wanted), atol=1e-9)


def test_regret_curves_labels_do_not_overlap(tmp_path: Path, monkeypatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(plots, "save_figure", lambda figure, path: drawn.append(figure))
    x = np.array([16.0, 32.0, 64.0])
    ends = (10.0, 10.5, 10.2, 11.0, 1.0)
    regrets = tuple(Regret(f"method {i}", np.linspace(0, end, 5)[None]) for i, end in enumerate(ends))
    growths = tuple(Growth("N", f"method {i}", x, end * x / 64) for i, end in enumerate(ends))
    bound = np.linspace(1, 20, 5)
    plots.plot_regret_curves(
        Study("tree", "title", {}, np.arange(5), regrets, bound, "bound", ("method 0",), growths), tmp_path / "figure"
    )
    (figure,) = drawn
    FigureCanvasAgg(figure).draw()
    labels = [text for text in figure.axes[1].texts if isinstance(text, Annotation)]
    boxes = [text.get_window_extent() for text in labels]
    assert len(boxes) == len(ends)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
