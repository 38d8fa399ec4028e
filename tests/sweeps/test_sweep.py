"""A sweep in its folder: after a stop anywhere it resumes to the same trials; failures are recorded."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState, create_trial

from aggrevated import storage
from aggrevated.core.errors import DataError, StorageError, UsageError
from aggrevated.kernels.numerics import compute_numerics_fingerprint
from aggrevated.storage import exclusive_lock, save_checksummed_json
from aggrevated.sweeps.request import SweepRequest
from aggrevated.sweeps.sweep import (
    TRIALS_PER_ROUND,
    FailureCallback,
    Runner,
    Sweep,
    create_or_open_sweep,
    propose_round,
)
from aggrevated.sweeps.sweep import sort_best_first as best_first
from aggrevated.training.run_folder import Run, list_runs
from helpers.fake_runs import facts_of, made_up_return, make_request, pretend, run_new, run_study, run_to_end

RATES = "learning-rate=1e-4..1e-1:log"
UPDATES = "update=regular,exponentiated"


class StoppedError(Exception):
    """An unexpected exception."""


def make_stopping_runner(runs_left: int) -> Runner:
    """Return a runner that raises after `runs_left` runs."""
    left = [runs_left]

    def run_all(runs: Sequence[Run], failed: FailureCallback) -> None:
        for run in runs:
            if not left[0]:
                raise StoppedError
            left[0] -= 1
            pretend()([run], failed)

    return run_all


def make_finished_trials(
    request: SweepRequest, proposed: Sequence[dict[str, Any]], score: Callable[..., float | None]
) -> list:
    """Return trials with these parameters; a score of None means that the trial failed."""
    return [
        create_trial(
            state=TrialState.PRUNED if score(params) is None else TrialState.COMPLETE,
            value=score(params),
            params=params,
            distributions={name: request.distributions[name] for name in params},
        )
        for params in proposed
    ]


def near_best_rate(params: dict[str, Any]) -> float:
    """Return a score that is best at a learning rate of 0.01."""
    return -abs(params.get("learning-rate", 0.1) - 0.01)


def test_trial_has_a_run_for_each_seed_and_its_score_is_their_mean_on_validation(tmp_path: Path) -> None:
    first, second = run_new(tmp_path, make_request("learning-rate=0.01,0.02", update="regular", seeds=3, seed=5))
    assert [path.name for path in sorted(tmp_path.glob("trial-001/*"))] == ["seed-5", "seed-6", "seed-7"]
    assert [run.config.loop.seed for run in list_runs(tmp_path / "trial-001")] == [5, 6, 7]
    assert first.user_attrs["best_returns"] == [0.005, 0.006, 0.007] and first.value == pytest.approx(0.006)
    assert first.user_attrs["spread"] == pytest.approx(0.001)
    assert first.user_attrs["test"] == pytest.approx(0.006 - 1.0)
    assert second.value == pytest.approx(0.006 - 0.01) and best_first([second, first]) == [first, second]
    assert [trial.params["learning-rate"] for trial in (first, second)] == ["0.01", "0.02"]


def test_grid_is_made_in_order_and_in_rounds(tmp_path: Path) -> None:
    sizes = list[int]()

    def run_all(runs: Sequence[Run], failed: FailureCallback) -> None:
        sizes.append(len(runs))
        pretend()(runs, failed)

    trials = run_new(tmp_path, make_request("iterations=1..20:20", seeds=2, trials=20), run_all)
    assert [trial.params["iterations"] for trial in trials] == list(range(1, 21))
    assert sizes == [2 * TRIALS_PER_ROUND, 2 * TRIALS_PER_ROUND, 8]


@pytest.mark.parametrize("runs", [0, 1, 8, 13, 20])
def test_sweep_broken_off_after_any_run_goes_on_to_the_same_trials(tmp_path: Path, runs: int) -> None:
    request = make_request(RATES, UPDATES, search="tpe", trials=11, seeds=2)
    expected = run_new(tmp_path / "whole", request)
    with pytest.raises(StoppedError):
        run_new(tmp_path / "broken", request, make_stopping_runner(runs))
    trials = run_new(tmp_path / "broken", request)
    assert facts_of(trials) == facts_of(expected) and len(trials) == 11


def test_sweep_killed_while_it_writes_its_journal_goes_on_to_the_same_trials(tmp_path: Path) -> None:
    request = make_request(RATES, UPDATES, search="tpe", trials=10)
    expected = run_new(tmp_path / "whole", request)
    journal = (tmp_path / "whole" / "study.jsonl").read_bytes()
    assert journal.count(b"\n") == 13  # the study, two rounds and ten trials
    for size in range(0, len(journal), 531):
        folder = tmp_path / f"broken-{size}"
        sweep = create_or_open_sweep(folder, request)
        (folder / "study.jsonl").write_bytes(journal[:size])
        (folder / ".sweep.json.1.tmp").write_text("{")  # as a killed process leaves it
        assert facts_of(run_to_end(sweep)) == facts_of(expected)
        assert facts_of(run_to_end(Sweep.open(folder))) == facts_of(expected)
        assert not list(folder.rglob(".*.tmp"))


def test_sweep_of_more_trials_begins_as_one_of_fewer(tmp_path: Path) -> None:
    request = make_request(RATES, UPDATES, search="tpe", trials=18)
    expected = run_new(tmp_path / "whole", request)
    for count in (3, 11, 18):
        trials = run_new(tmp_path / "longer", replace(request, trials=count))
        assert facts_of(trials) == facts_of(expected[:count])
    assert Sweep.open(tmp_path / "longer").request.trials == 18


def test_trials_that_have_ended_are_not_run_again(tmp_path: Path) -> None:
    first = run_new(tmp_path, make_request("iterations=1..10:10"))
    again = run_to_end(Sweep.open(tmp_path), make_stopping_runner(0))
    assert facts_of(again) == facts_of(first) and len(again) == 10


def test_round_follows_from_the_seed_and_the_trials_before_it_and_nothing_else() -> None:
    request = make_request(RATES, UPDATES, "iterations=1..9", search="tpe")
    first = propose_round(request, [])
    assert first == propose_round(request, []) and len(first) == TRIALS_PER_ROUND
    before = make_finished_trials(request, first, near_best_rate)
    second = propose_round(request, before)
    assert second == propose_round(request, before) and not [one for one in second if one in first]
    assert propose_round(replace(request, sampler_seed=1), []) != first
    others = make_finished_trials(request, first, lambda params: -near_best_rate(params))
    assert propose_round(request, others) != second  # results of trials matter
    for one in (*first, *second):
        assert 1e-4 <= one.get("learning-rate", 1e-4) <= 1e-1 and one["iterations"] in range(1, 10)
        assert ("learning-rate" in one) == (one["update"] == "regular")


def test_no_trial_is_made_twice_and_a_small_space_is_tried_whole(tmp_path: Path) -> None:
    trials = run_new(tmp_path, make_request(UPDATES, "iterations=1,2,3", search="tpe"))
    assert sorted(tuple(trial.params.values()) for trial in trials) == [
        (update, n) for update in ("exponentiated", "regular") for n in "123"
    ]
    assert facts_of(run_to_end(Sweep.open(tmp_path))) == facts_of(trials)


def test_tpe_continues_where_the_best_so_far_cannot_be_varied() -> None:
    """Only a worse choice has parameters left to vary: TPE tries it and does not repeat the best trial."""
    request = make_request(RATES, UPDATES, search="tpe")
    before = make_finished_trials(
        request, propose_round(request, []), lambda params: 1.0 - 2.0 * ("learning-rate" in params)
    )
    assert sum("learning-rate" not in trial.params for trial in before) == 1
    assert len(propose_round(request, before)) == TRIALS_PER_ROUND


def test_tpe_finds_what_is_best_and_keeps_away_from_what_fails() -> None:
    request = make_request(RATES, search="tpe", update="regular")
    trials = list[FrozenTrial]()
    for _ in range(4):
        proposed = propose_round(request, trials)
        trials += make_finished_trials(
            request, proposed, lambda one: None if one["learning-rate"] > 0.03 else near_best_rate(one)
        )
    last = [trial.params["learning-rate"] for trial in trials[-TRIALS_PER_ROUND:]]
    assert sum(rate <= 0.03 for rate in last) >= TRIALS_PER_ROUND - 2
    assert min(abs(trial.params["learning-rate"] - 0.01) for trial in trials) < 0.002


def test_optuna_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_new(tmp_path, make_request(RATES, search="tpe", update="regular", trials=12))
    printed = capsys.readouterr()
    assert not printed.out and not printed.err


def test_run_that_fails_is_a_trial_that_failed_and_the_sweep_goes_on(tmp_path: Path) -> None:
    def score(run: Run) -> float:
        if run.config.update.learning_rate > 0.07 and run.config.loop.seed == 1:
            raise DataError("everything diverged; make the step smaller")
        return made_up_return(run)

    trials = run_new(
        tmp_path, make_request("learning-rate=0.001..0.1:log:10", update="regular", seeds=2), pretend(score)
    )
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 9 + [TrialState.PRUNED]
    assert trials[9].user_attrs == {"failed": "everything diverged; make the step smaller"}
    assert facts_of(run_to_end(Sweep.open(tmp_path), make_stopping_runner(0))) == facts_of(trials)
    assert trials[9] not in best_first(trials)


def test_settings_that_cannot_be_together_are_a_trial_that_failed(tmp_path: Path) -> None:
    good, bad = run_new(tmp_path, make_request("oracle=q-star,value-function"))
    assert good.value is not None and "value-function" in bad.user_attrs["failed"]
    assert not (tmp_path / "trial-001").exists()


@pytest.mark.parametrize("error", [StorageError("the disk is full"), UsageError("in use"), StoppedError("a bug")])
def test_error_that_is_not_the_trials_fault_stops_the_sweep(tmp_path: Path, error: Exception) -> None:
    def score(run: Run) -> float:
        raise error

    request = make_request(UPDATES)
    with pytest.raises(type(error)):
        run_new(tmp_path, request, pretend(score))
    assert not Sweep.open(tmp_path).open_study().trials
    assert all(trial.value is not None for trial in run_new(tmp_path, request))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (make_request("update=regular,natural"), "varied update=regular,exponentiated, not update=regular,natural"),
        (make_request(UPDATES, seeds=2), "with seeds 1, not 2"),
        (make_request(UPDATES, sampler_seed=3), "with sampler seed 0, not 3"),
        (make_request(UPDATES, alpha_start=0.5), "with fixed iterations 2"),
        (make_request(UPDATES, method="loki"), "with method aggrevated, not loki"),
        (make_request(UPDATES, trials=1), "of 2 trials, more than the 1 requested now; leave --trials out"),
    ],
)
def test_another_request_in_the_same_folder_is_refused(tmp_path: Path, other: SweepRequest, words: str) -> None:
    create_or_open_sweep(tmp_path, make_request(UPDATES, trials=2))
    with pytest.raises(UsageError) as caught:
        create_or_open_sweep(tmp_path, other)
    assert words in str(caught.value) and "choose another --out" in str(caught.value)


def test_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="exists already: choose another --out"):
        create_or_open_sweep(tmp_path, make_request(UPDATES))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_sweep_does_not_count_a_foreign_run_as_a_trial(tmp_path: Path) -> None:
    request = make_request(UPDATES)
    sweep = create_or_open_sweep(tmp_path, request)
    Run.create(tmp_path / "trial-000" / "seed-0", request.resolve({"update": "natural"})[0])
    with pytest.raises(UsageError, match="holds a run with other settings"):
        run_to_end(sweep)


def test_sweep_is_run_by_one_process_at_a_time(tmp_path: Path) -> None:
    sweep = create_or_open_sweep(tmp_path, make_request(UPDATES))
    with exclusive_lock(tmp_path), pytest.raises(UsageError, match="in use by another process"):
        run_to_end(sweep)


def test_sweep_begun_elsewhere_or_damaged_is_refused(tmp_path: Path) -> None:
    run_new(tmp_path, make_request(UPDATES))
    facts = Sweep.open(tmp_path).to_dict()
    other = compute_numerics_fingerprint() | {"torch": "1.0"}
    save_checksummed_json(tmp_path / "sweep.json", facts | {"numerics": other})
    with pytest.raises(DataError, match=r"was started with torch 1.0 .*'aggrevated resume .* --ignore-numerics'"):
        Sweep.open(tmp_path)
    assert len(run_to_end(Sweep.open(tmp_path, ignore_numerics=True))) == 2
    for broken in ({"version": "0.1.0"}, {"request": {}}, {"request": facts["request"] | {"varied": ["nothing"]}}):
        save_checksummed_json(tmp_path / "sweep.json", facts | broken)
        with pytest.raises(DataError, match=r"sweep\.json"):
            Sweep.open(tmp_path)
    (tmp_path / "sweep.json").write_text(json.dumps(facts | {"sha256": "0"}))
    with pytest.raises(DataError, match="was changed after it was written"):
        Sweep.open(tmp_path)


def edit_line(line: int, **changes: Any) -> Callable[[list[storage.JsonDict]], None]:
    """Return a function that changes one line of a journal."""
    return lambda lines: lines[line].update(changes)


HOSTILE = {
    "another operation": edit_line(2, op_code=99),
    "no operation": lambda lines: lines[2].clear(),
    "no such state": edit_line(3, state=77),
    "a trial that is running": edit_line(3, state=0),
    "another value": edit_line(3, value=7.0),
    "a word for a value": edit_line(3, value="best"),
    "words for returns": edit_line(3, user_attrs={"best_returns": ["x"], "test_returns": ["x"]}),
    "no returns": edit_line(3, user_attrs={}),
    "returns for other seeds": edit_line(3, user_attrs={"best_returns": [1.0, 2.0], "test_returns": [1.0, 2.0]}),
    "another class": edit_line(3, distributions={"learning-rate": json.dumps({"name": "os.system", "attributes": {}})}),
    "other choices": edit_line(
        3,
        distributions={
            "learning-rate": json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": ["1", "2"]}})
        },
    ),
    "another parameter": edit_line(3, params={"momentum": 0.9}),
    "no such choice": edit_line(3, params={"learning-rate": 5}),
    "a round of something else": edit_line(1, user_attr={"round 0": [{"learning-rate": "0.5"}]}),
    "a round that is none": edit_line(1, user_attr={"round 0": 3}),
    "a line that is deep": edit_line(1, user_attr=json.loads("[" * 900 + "]" * 900)),
}


@pytest.mark.parametrize("edit", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.filterwarnings("ignore")
def test_hostile_journal_is_refused_in_a_sentence_with_a_remedy_that_works(
    tmp_path: Path, edit: Callable[[list[storage.JsonDict]], None]
) -> None:
    expected = run_new(tmp_path, make_request("learning-rate=0.001,0.01", update="regular"))
    path = tmp_path / "study.jsonl"
    lines = storage.read_journal(path)
    edit(lines)
    storage.rewrite_journal(path, lines)  # with correct checksums
    with pytest.raises(DataError) as caught:
        run_to_end(Sweep.open(tmp_path))
    assert f"{path} does not hold the trials of this sweep" in str(caught.value) and "\n" not in str(caught.value)
    assert f"remove it and run 'aggrevated resume {tmp_path}', which restores it from the runs" in str(caught.value)
    path.unlink()
    assert facts_of(run_to_end(Sweep.open(tmp_path), make_stopping_runner(0))) == facts_of(expected)


@pytest.mark.parametrize("damage", ["a digit", "a line less", "not JSON", "a folder"])
def test_damaged_journal_is_refused_in_a_sentence(tmp_path: Path, damage: str) -> None:
    run_new(tmp_path, make_request("learning-rate=0.001,0.01", update="regular"))
    path = tmp_path / "study.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    if damage == "a digit":
        path.write_bytes(b"".join(lines).replace(b'"value": 0.0', b'"value": 7.0'))
    if damage == "a line less":
        path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    if damage == "not JSON":
        path.write_bytes(b"".join([*lines[:2], b"\x00\xff\n", *lines[3:]]))
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    with pytest.raises((DataError, StorageError)) as caught:
        run_to_end(Sweep.open(tmp_path))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_journal_of_another_sweep_is_refused(tmp_path: Path) -> None:
    run_new(tmp_path / "one", make_request("learning-rate=0.001,0.01", update="regular"))
    run_new(tmp_path / "two", make_request("learning-rate=0.002,0.02", update="regular"))
    (tmp_path / "one/study.jsonl").rename(tmp_path / "two/study.jsonl")
    with pytest.raises(DataError, match="does not hold the trials of this sweep"):
        run_to_end(Sweep.open(tmp_path / "two"))


def test_optuna_itself_reads_the_journal(tmp_path: Path) -> None:
    study = run_study(create_or_open_sweep(tmp_path, make_request(RATES, UPDATES, search="tpe", trials=12)))
    backend = JournalFileBackend(str(tmp_path / "study.jsonl"))
    loaded = optuna.load_study(study_name="sweep", storage=optuna.storages.JournalStorage(backend))
    assert loaded.trials == study.trials and loaded.best_value == best_first(study.trials)[0].value


def test_earlier_of_two_equal_trials_is_the_better(tmp_path: Path) -> None:
    scores = iter((1.0, 3.0, 2.0, 3.0))
    trials = run_new(tmp_path, make_request("iterations=1,2,3,4"), pretend(lambda run: next(scores)))
    assert [trial.number for trial in best_first(trials)] == [1, 3, 2, 0]
