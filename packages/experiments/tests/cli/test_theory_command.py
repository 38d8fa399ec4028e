"""`aggrevated theory` and `aggrevated reproduce theory`, as users call them, and the figure."""

import contextlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from aggrevated.cli import main
from aggrevated_experiments.theory.experiments import EXPERIMENTS
from aggrevated_experiments.theory.page import format_fact, resolve_settings
from aggrevated_experiments.theory.regret_curves import (
    add_exponent_labels,
    format_tick,
    plot_curves,
    plot_growth,
    plot_regret_curves,
)
from aggrevated_experiments.theory.study import Growth, Regret, Study
from aggrevated_experiments.theory.tuning import SETTINGS_PER_ALGORITHM, TUNING_SEED_OFFSET

TINY = {
    "tree": {"depth": 4, "episodes": 64, "trials": 3, "seed": 0},
    "tree-noisy": {"depth": 6, "episodes": 200, "trials": 2, "seed": 0, "rollouts": 1},
    "mdp": {"states": 4, "actions": 2, "horizon": 2, "episodes": 64, "trials": 2, "seed": 0, "rollouts": 2},
    "lower-bound": {"states": 8, "actions": 4, "episodes": 200, "trials": 2, "seed": 3},
}


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def list_options(name: str, **others: int) -> list[str]:
    return [word for option, value in (TINY[name] | others).items() for word in (f"--{option}", str(value))]


def capture_stdout(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the standard output of a command."""
    capsys.readouterr()
    main(arguments)
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict]]:
    """Return the folder and the printed facts of all four experiments, each run once."""
    folder = tmp_path_factory.mktemp("theory")
    facts = {}
    for name in TINY:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(["theory", name, *list_options(name), "--out", str(folder), "--json"])
        facts[name] = json.loads(out.getvalue())
    return folder, facts


@pytest.mark.parametrize("name", TINY)
def test_theory_command_writes_numbers_and_figure(name: str, results: tuple[Path, dict[str, dict]]) -> None:
    folder = results[0]
    facts = results[1][name]
    assert {"regret", "exponents", "largest_ratio_to_bound", "bound", "command", "versions"} <= set(facts)
    assert facts["experiment"] == name and all(facts[option] == value for option, value in TINY[name].items())
    assert all(value >= 0 for value in facts["regret"].values()) and len(facts["regret"]) >= 1
    assert 0 < facts["largest_ratio_to_bound"] <= 1
    assert facts["command"] == f"aggrevated theory {name} {' '.join(list_options(name))}"
    assert json.loads((folder / f"{name}.json").read_text()) == facts
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / f"{name}.svg").read_text()
    assert len(list(folder.iterdir())) == 3 * 4


def test_theory_experiments_compare_the_expected_algorithms(results: tuple[Path, dict[str, dict]]) -> None:
    tree, noisy, mdp, lower = results[1].values()
    assert set(tree["regret"]) > {"UCB1 over leaves", "MOSS over leaves", "AggreVaTe, FTL, exact Q*"}
    assert tree["random_trees_within_k_minus_1"] and tree["most_episodes_to_the_best_leaf"]["4"] == 3
    rl = min(regret for label, regret in tree["regret"].items() if "over leaves" in label)
    assert tree["ratio_of_best_rl_to_aggrevate"] == pytest.approx(rl / tree["regret"]["AggreVaTe, FTL, exact Q*"])
    assert len(noisy["regret"]) == 2 and set(noisy["exponents"]) == set("NS") and len(noisy["exponents_of_ln_s"]) == 2
    tuned = [label for label in mdp["regret"] if label.startswith(("UCBVI, b", "REINFORCE, rate", "TNPG, δ_KL"))]
    assert {"UCBVI", "AggreVaTeD, EG, exact Q*", "AggreVaTeD, EG, noisy Q*"} < set(mdp["regret"]) and len(tuned) == 3
    assert mdp["largest_ratio_of_exact_to_exact_bound"] <= 1
    (regret,) = lower["regret"].values()
    assert lower["regret_over_lower_bound"] == pytest.approx(regret / lower["lower_bound"])
    assert lower["gap"] == pytest.approx(0.5 * np.sqrt(8 * np.log(4) / 200))


@pytest.mark.parametrize("name", ["tree", "mdp"])
def test_theory_experiments_tune_all_algorithms_alike_on_separate_instances(
    name: str, results: tuple[Path, dict[str, dict]]
) -> None:
    facts = results[1][name]
    tries: dict[str, list[dict]] = {}
    for one in facts["tuning"]:
        tries.setdefault(one["algorithm"], []).append(one)
        assert one["seed"] == facts["seed"] + TUNING_SEED_OFFSET and len(one["regret_of_trials"]) == facts["trials"]
    assert len(tries) == {"tree": 3, "mdp": 5}[name]
    for algorithm, tried in tries.items():
        assert len({one["value"] for one in tried}) == SETTINGS_PER_ALGORITHM
        (chosen,) = (one for one in tried if one["chosen"])
        assert chosen["regret"] == min(one["regret"] for one in tried)
        tuned = facts["tuned"][algorithm]
        labels = {algorithm, f"{algorithm}, {chosen['setting']}"} & set(facts["regret"])
        assert tuned["setting"] == chosen["setting"] and tuned["regret"] in [facts["regret"][one] for one in labels]


@pytest.mark.parametrize("name", TINY)
def test_theory_json_has_curves_trials_and_intervals(name: str, results: tuple[Path, dict[str, dict]]) -> None:
    facts = results[1][name]
    episodes, bound, *curves = facts["curves"].values()
    assert episodes[-1] == facts["episodes"] and len(curves) == len(facts["regret"]) and len(bound) == len(episodes)
    for label, regret in facts["regret"].items():
        low, high = facts["regret_interval"][label]
        assert low <= regret <= high
        assert len(facts["curves"][label]) == len(episodes) and len(facts["regret_of_trials"][label]) == facts["trials"]
        assert facts["curves"][label][-1] == pytest.approx(regret) == np.mean(facts["regret_of_trials"][label])


@pytest.mark.parametrize("name", TINY)
def test_theory_command_is_deterministic_per_seed(
    name: str, results: tuple[Path, dict[str, dict]], working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture_stdout(["theory", name, *list_options(name)], capsys)  # into the default folder
    for ending in ("png", "svg", "json"):
        assert (working_folder / f"runs/theory/{name}.{ending}").read_bytes() == (
            results[0] / f"{name}.{ending}"
        ).read_bytes()
    other = EXPERIMENTS[name].run(**TINY[name] | {"seed": 1}).to_dict()["regret"]
    assert all(other[label] != regret for label, regret in results[1][name]["regret"].items() if label in other)


def test_theory_command_prints_a_table_and_the_figure_path(
    results: tuple[Path, dict[str, dict]], working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = capture_stdout(["theory", "lower-bound", *list_options("lower-bound"), "--out", "figures"], capsys)
    facts = results[1]["lower-bound"]
    (label, regret), *_ = facts["regret"].items()
    row = next(line for line in printed.splitlines() if label in line)
    assert f" {regret:,.1f} " in row and f" {facts['exponents']['N'][label]:.2f} " in row
    assert f"in any trial: {facts['largest_ratio_to_bound']:.3f}" in printed
    assert printed.endswith("figure: figures/lower-bound.png\n")


def test_theory_command_accepts_an_optimal_first_policy(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = json.loads(capture_stdout(["theory", "tree", *list_options("tree", trials=1, seed=9), "--json"], capsys))
    assert facts["regret"]["AggreVaTe, FTL, exact Q*"] == 0


def test_theory_lower_bound_with_two_actions_is_zero_and_valid_json(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = capture_stdout(["theory", "lower-bound", *list_options("lower-bound", actions=2), "--json"], capsys)
    assert "Infinity" not in printed and json.loads(printed)["lower_bound"] == 0


def test_resolve_settings_fills_in_defaults(working_folder: Path) -> None:
    assert resolve_settings("mdp", {}) == EXPERIMENTS["mdp"].defaults
    assert resolve_settings("lower-bound", {"seed": 3}) == {**EXPERIMENTS["lower-bound"].defaults, "seed": 3}
    assert resolve_settings("tree", {"depth": 12})["episodes"] == 16 * 2**11  # enough for every leaf at any depth
    assert resolve_settings("tree", {"depth": 4, "episodes": 64})["episodes"] == 64


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("theory three", "unknown experiment 'three' (did you mean tree?): choose one of tree, tree-noisy, mdp, lower"),
        ("theory lowerbound", "did you mean lower-bound?"),
        ("theory mdp --depth 6", "--depth has no effect on the experiment mdp; leave it out"),
        ("theory tree --states 6", "--states has no effect on the experiment tree; leave it out"),
        ("theory lower-bound --horizon 2", "--horizon has no effect on the experiment lower-bound"),
        ("theory tree --depth 3", "--depth is 3, but must be at least 4"),
        ("theory tree-noisy --depth 19", "--depth is 19, but must be at most 16"),
        ("theory mdp --episodes 0", "--episodes is 0, but must be at least 64"),
        ("theory mdp --states 3", "--states is 3, but must be at least 4"),
        ("theory mdp --actions 1", "--actions is 1, but must be at least 2"),
        ("theory mdp --horizon 0", "--horizon is 0, but must be at least 1"),
        ("theory tree --trials 0", "--trials is 0, but must be at least 1"),
        ("theory tree --seed -1", "--seed is -1, but must be at least 0"),
        ("theory tree --depth 9 --episodes 255", "--episodes is 255, but must be at least 256, one per leaf"),
        ("theory tree --depth deep", "--depth"),
        ("theory", "EXPERIMENT"),
        ("reproduce theory --trials 3", "--trials has no effect on theory, which has no runs; leave it out"),
        ("reproduce theory --workers 2", "--workers has no effect on theory, which has no runs; leave it out"),
        ("reproduce thery", "unknown figure 'thery' (did you mean theory?)"),
    ],
)
def test_theory_command_rejects_bad_options_in_one_sentence(
    arguments: str, words: str, working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments.split())
    captured = capsys.readouterr()
    assert caught.value.code == 2
    assert words in captured.err and captured.out == ""
    assert "Traceback" not in captured.err
    assert list(working_folder.iterdir()) == []


def test_reproduce_theory_writes_all_experiments_and_a_page(
    working_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, experiment in list(EXPERIMENTS.items()):
        monkeypatch.setitem(EXPERIMENTS, name, replace(experiment, defaults=TINY[name], docs={"trials": 4}))
    facts = json.loads(capture_stdout(["reproduce", "theory", "--json"], capsys))
    assert [(one["experiment"], one["trials"]) for one in facts] == [(name, 4) for name in TINY]
    folder = working_folder / "runs/reproduce-theory"
    page = (folder / "theory.md").read_text()
    for one in facts:
        assert f"`{one['command']}`" in page and f"]({one['experiment']}.png)" in page
        assert f"is {one['largest_ratio_to_bound']:.3f}." in page
        for pair in one["comparisons"]:
            assert (
                f"{pair['difference']:,.1f} [{pair['difference_low']:,.1f}, {pair['difference_high']:,.1f}] on" in page
            )
        for label, regret in one["regret"].items():
            assert re.search(rf"\| {re.escape(label)} \| {regret:,.1f} \| [\d.,]+ to [\d.,]+ \|", page)
        assert all((folder / f"{one['experiment']}.{ending}").is_file() for ending in ("png", "svg", "json"))
    assert str(working_folder) not in page  # the page is published


def test_reproduce_theory_quick_ignores_the_settings_of_the_docs(
    working_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lower = replace(EXPERIMENTS["lower-bound"], defaults=TINY["lower-bound"], docs={"trials": 4})
    monkeypatch.setattr("aggrevated_experiments.theory.page.EXPERIMENTS", {"lower-bound": lower})
    printed = capture_stdout(["reproduce", "theory", "--quick"], capsys)
    assert printed == "figures and page: runs/reproduce-theory-quick/theory.md\n"
    facts = json.loads((working_folder / "runs/reproduce-theory-quick/lower-bound.json").read_text())
    assert facts["trials"] == TINY["lower-bound"]["trials"]


def test_format_fact_formats_numbers() -> None:
    assert format_fact(1234.5678) == "1,235" and format_fact(3) == "3" and format_fact(True) == "True"
    assert format_fact({"4": 3, "5": 0.25}) == "4: 3, 5: 0.25"


# ---- the figure


def make_study(largest: float) -> Study:
    """Return a study of a learner, then one with `largest` regret, and a bound of 8."""
    regrets = Regret("EG", np.array([[1.0, 2.0], [1.0, 4.0]])), Regret("RL", np.full((2, 2), largest), False)
    growths = [Growth(of, "EG", np.array([16.0, 1024.0]), np.array([1.0, 8.0])) for of in ("N", "S")]
    lower = np.array([0.5, 0.6])
    return Study(
        "tree",
        "A tree",
        {},
        np.array([1, 2]),
        regrets,
        np.full(2, 8.0),
        "bound",
        ("EG",),
        tuple(growths),
        lower,
        "lower",
    )


def test_draw_curves_shows_means_ranges_and_bounds() -> None:
    axes = Figure().subplots()
    plot_curves(axes, make_study(5.0), {"EG": "C0", "RL": "C1"})
    lines = {str(line.get_label()): line for line in axes.lines}
    assert list(lines) == ["EG", "RL", "bound", "lower"]
    np.testing.assert_array_equal(lines["EG"].get_ydata(), [1.0, 3.0])
    np.testing.assert_array_equal(lines["bound"].get_ydata(), [8.0, 8.0])
    np.testing.assert_array_equal(lines["lower"].get_ydata(), [0.5, 0.6])
    assert lines["EG"].get_linestyle() == "-" and lines["RL"].get_linestyle() == ":"  # an expert gives a solid line
    edge = axes.collections[0].get_paths()[0].vertices
    assert {2.0, 4.0} <= set(edge[edge[:, 0] == 2.0, 1])


@pytest.mark.parametrize(("largest", "scale"), [(5.0, "linear"), (1000.0, "log")])
def test_draw_curves_uses_log_axis_where_regrets_are_far_apart(largest: float, scale: str) -> None:
    axes = Figure().subplots()
    plot_curves(axes, make_study(largest), {"EG": "C0", "RL": "C1"})
    assert axes.get_yscale() == scale


def test_draw_growth_labels_exponents_and_ticks() -> None:
    axes = Figure().subplots()
    plot_growth(axes, make_study(5.0), "S", {"EG": "C0"})
    add_exponent_labels(axes, [growth for growth in make_study(5.0).growths if growth.quantity == "S"], {"EG": "C0"})
    assert [text.get_text() for text in axes.texts] == ["0.50"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["16", "1.02k"]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlabel() == "states $S$"


def test_short_abbreviates_thousands() -> None:
    assert [format_tick(x) for x in (63.0, 999.0, 1000.0, 16383.0)] == ["63", "999", "1k", "16.4k"]


def test_regret_curves_without_growth_has_one_panel(tmp_path: Path) -> None:
    plot_regret_curves(replace(make_study(5.0), growths=()), tmp_path / "one")
    plot_regret_curves(make_study(5.0), tmp_path / "three")
    assert (tmp_path / "three.svg").read_text().count('id="axes_') == 3
    assert (tmp_path / "one.svg").read_text().count('id="axes_') == 1
