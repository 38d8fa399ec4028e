"""A sweep in its folder: stopped anywhere, it goes on to the same trials; what fails is written down."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from aggrevated.core.errors import DataError, StorageError, UsageError
from aggrevated.kernels.numerics import numerics_fingerprint
from aggrevated.storage import exclusive_lock, save_checksummed_json
from aggrevated.sweeps import sweep as module
from aggrevated.sweeps.search import ROUND
from aggrevated.sweeps.sweep import FailureCallback, Sweep, create_or_open_sweep
from aggrevated.sweeps.trials import Trial, sort_best_first
from aggrevated.training.run_folder import Run, list_runs
from helpers.fake_runs import asked, made_up, needs_optuna, pretend, whole

RATES = "learning-rate=1e-4..1e-1:log"
UPDATES = "update=regular,exponentiated"


class StoppedError(Exception):
    """What nobody expects."""


def stopped_after(runs_left: int) -> Callable[[Sequence[Run], FailureCallback], None]:
    """A runner that is broken off after so many runs."""
    left = [runs_left]

    def run_them(runs: Sequence[Run], failed: FailureCallback) -> None:
        for run in runs:
            if not left[0]:
                raise StoppedError
            left[0] -= 1
            pretend()([run], failed)

    return run_them


def test_a_trial_has_a_run_for_each_seed_and_its_score_is_their_mean_on_validation(tmp_path: Path) -> None:
    last = whole(tmp_path, asked("learning-rate=0.01,0.02", update="regular", seeds=3, seed=5))
    assert [path.name for path in sorted(tmp_path.glob("trial-001/*"))] == ["seed-5", "seed-6", "seed-7"]
    assert [run.config.loop.seed for run in list_runs(tmp_path / "trial-001")] == [5, 6, 7]
    first, second = last.trials
    assert first.best_returns == (0.005, 0.006, 0.007) and first.score == pytest.approx(0.006)
    assert first.spread == pytest.approx(0.001) and first.test == pytest.approx(0.006 - 1.0)
    assert second.score == pytest.approx(0.006 - 0.01) and last.best == first
    written = json.loads((tmp_path / "sweep.json").read_text())
    assert written["best"]["trial"] == 0 and written["best"]["command"].endswith("--trials 3")
    assert [one["settings"]["learning_rate"] for one in written["trials"]] == [0.01, 0.02]


@needs_optuna
@pytest.mark.parametrize("runs", [0, 1, 8, 13, 20])
def test_broken_off_after_any_run_it_goes_on_to_the_same_trials_and_the_same_best(tmp_path: Path, runs: int) -> None:
    what = asked(RATES, UPDATES, search="tpe", trials=11, seeds=2)
    expected = whole(tmp_path / "whole", what)
    broken = create_or_open_sweep(tmp_path / "broken", what)
    with pytest.raises(StoppedError):
        list(broken.rounds(stopped_after(runs)))
    *_, last = create_or_open_sweep(tmp_path / "broken", what).rounds(pretend())
    assert last.trials == expected.trials and last.best == expected.best and len(last.trials) == 11


@needs_optuna
def test_broken_off_while_it_writes_it_goes_on_to_the_same_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = asked(RATES, UPDATES, search="tpe", trials=10)
    expected = whole(tmp_path / "whole", what)
    for write in range(5):  # before and after each round
        folder = tmp_path / f"broken-{write}"
        left = [write]

        def writing(path: Path, facts: object, left: list[int] = left) -> None:
            if path.name == "sweep.json":
                if not left[0]:
                    (path.parent / ".sweep.json.1.tmp").write_text("{")  # as a kill leaves it
                    raise StoppedError
                left[0] -= 1
            save_checksummed_json(path, facts)

        folder.mkdir()
        with monkeypatch.context() as patch, pytest.raises(StoppedError):
            patch.setattr(module.files, "seal_json", writing)
            list(create_or_open_sweep(folder, what).rounds(pretend()))
        *_, last = create_or_open_sweep(folder, what).rounds(pretend())
        assert last.trials == expected.trials
        assert not list(folder.rglob(".*.tmp"))


@needs_optuna
def test_a_sweep_of_more_trials_begins_as_one_of_fewer(tmp_path: Path) -> None:
    what = asked(RATES, UPDATES, search="tpe", trials=18)
    expected = whole(tmp_path / "whole", what)
    for trials in (3, 11, 18):
        *_, last = create_or_open_sweep(tmp_path / "longer", replace(what, trials=trials)).rounds(pretend())
        assert last.trials == expected.trials[:trials]
    assert Sweep.open(tmp_path / "longer").asked.trials == 18


def test_trials_that_have_ended_are_not_run_again(tmp_path: Path) -> None:
    what = asked("iterations=1..10:10")
    first = whole(tmp_path, what)
    *_, again = Sweep.open(tmp_path).rounds(stopped_after(0))
    assert again == first and len(again.trials) == 10


def test_a_run_that_fails_is_a_trial_that_failed_and_the_sweep_goes_on(tmp_path: Path) -> None:
    def score(run: Run) -> float:
        if run.config.update.learning_rate > 0.07 and run.config.loop.seed == 1:
            raise DataError("everything diverged; make the step smaller")
        return made_up(run)

    what = asked("learning-rate=0.001..0.1:log:10", update="regular", seeds=2)
    last = whole(tmp_path, what, score)
    assert [bool(trial.failed) for trial in last.trials] == [False] * 9 + [True]
    assert last.trials[9].failed == "everything diverged; make the step smaller" and last.trials[9].score is None
    assert Sweep.open(tmp_path).trials == last.trials and last.trials[9] not in sort_best_first(last.trials)


def test_settings_that_cannot_be_together_are_a_trial_that_failed(tmp_path: Path) -> None:
    last = whole(tmp_path, asked("oracle=q-network,value-function"))
    good, bad = last.trials
    assert good.score is not None and "value-function" in bad.failed
    assert not (tmp_path / bad.name).exists()


@pytest.mark.parametrize("error", [StorageError("the disk is full"), UsageError("in use"), StoppedError("a bug")])
def test_what_is_not_the_trials_fault_stops_the_sweep(tmp_path: Path, error: Exception) -> None:
    def score(run: Run) -> float:
        raise error

    what = asked(UPDATES)
    with pytest.raises(type(error)):
        whole(tmp_path, what, score)
    assert not any(trial.ended for trial in Sweep.open(tmp_path).trials)
    *_, last = create_or_open_sweep(tmp_path, what).rounds(pretend())
    assert all(trial.score is not None for trial in last.trials)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (asked("update=regular,natural"), "with varied update=regular,exponentiated, not update=regular,natural"),
        (asked(UPDATES, seeds=2), "with seeds 1, not 2"),
        (asked(UPDATES, sampler_seed=3), "with sampler seed 0, not 3"),
        (asked(UPDATES, alpha_start=0.5), "with fixed iterations 2"),
        (asked(UPDATES, method="loki"), "with method aggrevated, not loki"),
        (asked(UPDATES, trials=1), "of 2 trials, more than the 1 asked for now; leave --trials out"),
    ],
)
def test_another_sweep_in_the_same_folder_is_refused(tmp_path: Path, other, words: str) -> None:
    create_or_open_sweep(tmp_path, asked(UPDATES, trials=2))
    with pytest.raises(UsageError) as caught:
        create_or_open_sweep(tmp_path, other)
    assert words in str(caught.value) and "choose another --out" in str(caught.value)


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="exists already: choose another --out"):
        create_or_open_sweep(tmp_path, asked(UPDATES))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_that_somebody_put_there_is_not_taken_for_a_trial(tmp_path: Path) -> None:
    what = asked(UPDATES)
    Run.create(tmp_path / "other" / "trial-000" / "seed-0", what.resolved({"update": "natural"})[0])
    sweep = Sweep(tmp_path / "other", what).write()
    with pytest.raises(UsageError, match="holds a run with other settings"):
        list(sweep.rounds(pretend()))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    sweep = create_or_open_sweep(tmp_path, asked(UPDATES))
    with exclusive_lock(tmp_path), pytest.raises(UsageError, match="in use by another process"):
        list(sweep.rounds(pretend()))


def test_a_sweep_begun_elsewhere_or_damaged_is_refused(tmp_path: Path) -> None:
    facts = whole(tmp_path, asked(UPDATES)).to_dict()
    save_checksummed_json(tmp_path / "sweep.json", facts | {"numerics": numerics_fingerprint() | {"torch": "1.0"}})
    with pytest.raises(DataError, match=r"was begun with torch 1.0 .*'aggrevated resume .* --ignore-numerics'"):
        Sweep.open(tmp_path)
    assert len(Sweep.open(tmp_path, ignore_numerics=True).trials) == 2
    for broken in ({"version": "0.1.0"}, {"trials": [{}]}, {"asked": {}}):
        save_checksummed_json(tmp_path / "sweep.json", facts | broken)
        with pytest.raises(DataError, match=r"sweep\.json"):
            Sweep.open(tmp_path)


def test_the_earlier_of_two_equal_trials_is_the_better() -> None:
    trials = [Trial(i, {}, (score,)) for i, score in enumerate((1.0, 3.0, 2.0, 3.0))] + [Trial(4, {}, failed="x")]
    assert [trial.number for trial in sort_best_first(trials)] == [1, 3, 2, 0]


def test_a_round_is_of_the_same_size_whatever_runs_it(tmp_path: Path) -> None:
    sizes = list[int]()

    def run_them(runs: Sequence[Run], failed: FailureCallback) -> None:
        sizes.append(len(runs))
        pretend()(runs, failed)

    list(create_or_open_sweep(tmp_path, asked("iterations=1..20:20", seeds=2, trials=20)).rounds(run_them))
    assert sizes == [2 * ROUND, 2 * ROUND, 8]
