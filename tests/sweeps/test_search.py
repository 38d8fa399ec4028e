"""Which trials are made."""

import sys

import pytest

from aggrevated.core.errors import UsageError
from aggrevated.sweeps.search import ROUND, choose_search, list_grid, propose_next_round, propose_tpe_round
from aggrevated.sweeps.search_space import parse_variations
from aggrevated.sweeps.trials import Trial
from aggrevated.tasks import find_task
from helpers.fake_runs import asked, needs_optuna

RATES = "learning-rate=1e-4..1e-1:log"
UPDATES = "update=regular,exponentiated"


def test_a_grid_is_every_combination_the_last_setting_fastest() -> None:
    found = list_grid(asked("alpha-start=0..0.5:2", "iterations=1,2,3"))
    assert [tuple(one.values()) for one in found] == [(0.0, 1), (0.0, 2), (0.0, 3), (0.5, 1), (0.5, 2), (0.5, 3)]
    assert [list(one) for one in found] == [["alpha_start", "iterations"]] * 6


def test_combinations_that_differ_only_in_what_has_no_effect_are_one() -> None:
    found = list_grid(asked("learning-rate=0.1,0.2,0.3", UPDATES))
    assert [one.get("learning_rate") for one in found] == [0.1, None, 0.2, 0.3]
    assert [one["update"] for one in found] == ["regular", "exponentiated", "regular", "regular"]


def test_a_grid_of_more_than_anybody_can_run_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"the grid has 40,000 combinations; give fewer points, or choose --search tpe"
    ):
        list_grid(asked("temperature=0.1..1:200", "exploring=0..1:200"))


def test_a_grid_goes_in_rounds() -> None:
    what = asked("iterations=1..20:20")
    first = [Trial(i, one) for i, one in enumerate(propose_next_round(what, []))]
    assert [trial.settings["iterations"] for trial in first] == list(range(1, 9))
    assert [one["iterations"] for one in propose_next_round(what, first * 2)] == [17, 18, 19, 20]


@pytest.mark.parametrize(
    ("varied", "trials", "search"),
    [
        ([UPDATES], None, "grid"),
        ([UPDATES, "iterations=1,2,3"], 6, "grid"),
        ([UPDATES, "iterations=1,2,3"], 5, "tpe"),
        ([UPDATES, RATES], 64, "tpe"),
        ([UPDATES, f"{RATES}:5"], 4, "grid"),
    ],
)
def test_the_usual_search(varied: list[str], trials: int | None, search: str) -> None:
    assert choose_search(parse_variations(varied, find_task("cartpole"), "aggrevated"), trials) == search


def scored(settings: list[dict], first: int = 0) -> list[Trial]:
    """Trials that are best at a learning rate of 0.01."""
    return [Trial(first + i, one, (-abs(one.get("learning_rate", 0.1) - 0.01),)) for i, one in enumerate(settings)]


@needs_optuna
def test_a_round_of_tpe_follows_from_the_seed_and_the_trials_before_it_and_nothing_else() -> None:
    what = asked(RATES, UPDATES, "iterations=1..9", search="tpe")
    first = propose_tpe_round(what, [])
    assert first == propose_tpe_round(what, []) and len(first) == ROUND
    second = propose_tpe_round(what, scored(first))
    assert second == propose_tpe_round(what, scored(first)) and not [one for one in second if one in first]
    assert propose_tpe_round(asked(RATES, UPDATES, "iterations=1..9", search="tpe", sampler_seed=1), []) != first
    worse = [Trial(i, one, (float(i),)) for i, one in enumerate(first)]
    assert propose_tpe_round(what, worse) != second  # what was found matters
    for one in (*first, *second):
        assert 1e-4 <= one.get("learning_rate", 1e-4) <= 1e-1 and one["iterations"] in range(1, 10)
        assert ("learning_rate" in one) == (one["update"] == "regular")


@needs_optuna
def test_no_trial_is_made_twice_and_a_small_space_is_tried_whole() -> None:
    what = asked(UPDATES, "iterations=1,2,3", search="tpe")
    trials = list[Trial]()
    while found := propose_tpe_round(what, trials):
        trials += scored(found, len(trials))
    assert sorted((one.settings["update"], one.settings["iterations"]) for one in trials) == [
        (update, n) for update in ("exponentiated", "regular") for n in (1, 2, 3)
    ]


@needs_optuna
def test_tpe_goes_on_where_the_best_so_far_cannot_be_varied() -> None:
    """All that is left to vary is beside a worse choice: it is tried nevertheless, not the best again and again."""
    what = asked(RATES, UPDATES, search="tpe")
    first = [
        Trial(i, one, (1.0 if "learning_rate" not in one else -1.0,))
        for i, one in enumerate(propose_tpe_round(what, []))
    ]
    assert sum("learning_rate" not in trial.settings for trial in first) == 1
    assert len(propose_tpe_round(what, first)) == ROUND


@needs_optuna
def test_tpe_finds_what_is_best_and_keeps_away_from_what_fails() -> None:
    what = asked(RATES, search="tpe", update="regular")
    trials = list[Trial]()
    for _ in range(4):
        found = propose_tpe_round(what, trials)
        trials += [
            Trial(len(trials) + i, one, failed="diverged") if one["learning_rate"] > 0.03 else scored([one])[0]
            for i, one in enumerate(found)
        ]
    last = [trial.settings["learning_rate"] for trial in trials[-ROUND:]]
    assert sum(rate <= 0.03 for rate in last) >= ROUND - 2
    assert min(abs(trial.settings["learning_rate"] - 0.01) for trial in trials) < 0.002


@needs_optuna
def test_optuna_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    propose_tpe_round(asked(RATES, search="tpe", update="regular"), [])
    said = capsys.readouterr()
    assert not said.out and not said.err


def test_without_optuna_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError, match=r"--search tpe needs Optuna: pip install 'aggrevated\[optuna\]', or choose"):
        propose_next_round(asked(RATES, search="tpe", update="regular"), [])
    assert propose_next_round(asked(UPDATES), [])
