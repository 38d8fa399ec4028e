"""The reliability diagram: a panel for each group, with its error as text."""

from aggrevated_experiments.plots.reliability_diagram import plot_reliability_diagram


def test_reliability_diagram_has_a_panel_per_group_with_its_error(tmp_path):
    bins = [[0.35, 0.2, 10], [0.95, 0.97, 90]]
    plot_reliability_diagram({"some": (bins, 0.0333), "others": (bins[1:], 0.02)}, "Arcs", tmp_path / "figure")
    text = (tmp_path / "figure.svg").read_text()
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    for words in (
        "some",
        "100 arcs, expected calibration error 0.033",
        "others",
        "90 arcs, expected calibration error 0.020",
    ):
        assert words in text
