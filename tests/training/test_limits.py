"""Limits: a run stops at its limit, and resumed with a larger one it equals a run with that limit from the start."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aggrevated import train
from aggrevated.cli.console import print_result
from aggrevated.cli.run_jobs import run_in_parallel
from aggrevated.config import Config
from aggrevated.config.loop import UNLIMITED
from aggrevated.config.resolver import resolve_config
from aggrevated.config.summary import describe_config
from aggrevated.core.errors import UsageError
from aggrevated.engines import IN_PROCESS
from aggrevated.storage import digest_tensors, load_checksummed
from aggrevated.training.limits import extend_limits
from aggrevated.training.records import Metrics
from aggrevated.training.run_folder import Run
from helpers import gymnasium_environments
from helpers.command_line import failure, said
from helpers.small_runs import SMALL, create_and_run, fit_run, make_small_config, stop_after, without_time

LIMITED = {name: value for name, value in SMALL.items() if name != "iterations"}


def make_limited_config(method: str = "aggrevated", **given: Any) -> Config:
    """Return the config of a small run that a limit ends."""
    return resolve_config("cartpole", method, **{**LIMITED, "update": "regular", **given})


def costs_per_iteration(lines: list[Metrics], name: str) -> list[int]:
    """Return the use of one resource in each iteration."""
    counts = [getattr(line, name) for line in lines]
    return [now - before for before, now in zip([0, *counts[:-1]], counts, strict=True)]


@pytest.mark.parametrize(
    ("limit", "counted", "most"), [("budget", "simulator_steps", 2000), ("queries", "oracle_queries", 2000)]
)
def test_run_ends_where_another_iteration_would_exceed_the_limit(
    tmp_path: Path, limit: str, counted: str, most: int
) -> None:
    run, result = create_and_run(tmp_path / "run", make_limited_config(**{limit: most}))
    lines = run.metrics()
    spent = getattr(result, counted)
    last = costs_per_iteration(lines, counted)[-1]
    assert result.ended_by == limit and result.iterations == len(lines) > 3
    assert most - last < spent <= most + last
    for line, cost in zip(lines[:-1], costs_per_iteration(lines, counted)[:-1], strict=True):
        assert getattr(line, counted) + cost <= most
    assert run.config.loop.iterations == UNLIMITED and Run.open(run.folder).result() == result


def test_run_with_several_limits_ends_at_the_first(tmp_path: Path) -> None:
    both = {"budget": 2000, "queries": 2000, "iterations": 3}
    assert create_and_run(tmp_path / "n", make_limited_config(**both))[1].ended_by == "iterations"
    assert (
        create_and_run(tmp_path / "q", make_limited_config(**both | {"iterations": 99, "queries": 600}))[1].ended_by
        == "queries"
    )
    run, result = create_and_run(tmp_path / "b", make_limited_config(**both | {"iterations": 99, "budget": 600}))
    assert result.ended_by == "budget" and run.config.loop.iterations == 99


@pytest.mark.parametrize("validate_every", [1, 3])
@pytest.mark.parametrize("update", ["regular", "exponentiated"])
def test_run_with_budget_resumes_to_the_same_iteration_and_weights(
    tmp_path: Path, update: str, validate_every: int
) -> None:
    config = make_limited_config(update=update, budget=1500, validate_every=validate_every)
    whole, expected = create_and_run(tmp_path / "whole", config)
    broken = Run.create(tmp_path / "broken", config)
    for iterations in (1, 2, 1):
        stop_after(Run.open(broken.folder), iterations)
    result = fit_run(Run.open(broken.folder))
    assert without_time(broken.metrics()) == without_time(whole.metrics())
    same = {"seconds": 0.0, "cpu_seconds": 0.0, "run_folder": ""}
    assert replace(result, **same) == replace(expected, **same)
    last = f"checkpoints/{result.iterations:06d}.safetensors"
    assert digest_tensors(load_checksummed(whole.folder / last)[0]) == digest_tensors(
        load_checksummed(broken.folder / last)[0]
    )


@pytest.mark.parametrize("validate_every", [1, 4])
def test_extend_limits_ends_as_a_run_with_the_larger_budget(tmp_path: Path, validate_every: int) -> None:
    often = {"validate_every": validate_every}
    whole, expected = create_and_run(tmp_path / "whole", make_limited_config(budget=2500, **often))
    run, first = create_and_run(tmp_path / "run", make_limited_config(budget=1000, **often))
    for more in (1600, 2500):
        result = fit_run(extend_limits(Run.open(run.folder), budget=more))
    assert first.iterations < result.iterations == expected.iterations
    assert without_time(run.metrics()) == without_time(whole.metrics())
    same = {"seconds": 0.0, "cpu_seconds": 0.0, "run_folder": ""}
    assert replace(result, **same) == replace(expected, **same)
    assert Run.open(run.folder).config == whole.config


def test_run_with_budget_validates_its_last_policy(tmp_path: Path) -> None:
    """Ten iterations between validations, and fewer in all: before, only the first policy was validated."""
    run, result = create_and_run(tmp_path / "run", make_limited_config(budget=1500, validate_every=10))
    assert 1 < result.iterations < 10 and run.metrics()[-1].best_return == result.initial_return
    assert result.best_return > result.initial_return
    weights, _ = load_checksummed(run.folder / f"checkpoints/{result.iterations:06d}.safetensors")
    assert digest_tensors(run.policy.state_dict()) == result.weights_sha256
    assert (
        digest_tensors({name[7:]: w for name, w in weights.items() if name[:7] == "policy."}) == result.weights_sha256
    )


def test_run_with_extended_budget_has_no_result_until_it_ends(tmp_path: Path) -> None:
    run, _ = create_and_run(tmp_path / "run", make_limited_config(budget=1000))
    stop_after(extend_limits(run, budget=4000), 1)
    again = Run.open(run.folder)
    assert again.config.loop.budget == 4000 and again.result() is None
    assert fit_run(again).ended_by == "budget" and again.result() is not None


def test_run_ends_after_a_start_that_spends_the_budget(tmp_path: Path) -> None:
    config = make_limited_config(start="supervised", start_steps=5, budget=100)
    run, result = create_and_run(tmp_path / "run", config)
    assert result.iterations == 0 and result.ended_by == "budget" and run.metrics() == []
    assert result.start_simulator_steps == result.simulator_steps > 100
    assert digest_tensors(run.policy.state_dict()) == result.weights_sha256 and fit_run(run) == result
    _, whole = create_and_run(tmp_path / "whole", make_limited_config(start="supervised", start_steps=5, budget=1500))
    assert fit_run(extend_limits(run, budget=1500)).weights_sha256 == whole.weights_sha256


def test_extend_limits_refuses_less_and_limits_that_change_nothing(tmp_path: Path) -> None:
    run, result = create_and_run(tmp_path / "run", make_limited_config(budget=1000))
    with pytest.raises(UsageError, match=r"--budget is 900, but must be at least the 1,000 of"):
        extend_limits(run, budget=900)
    with pytest.raises(UsageError, match=rf"--queries is 7, but must be at least the {result.oracle_queries:,} of"):
        extend_limits(run, queries=7)
    with pytest.raises(UsageError, match=r"has ended by --budget 1000; pass a higher --budget, too"):
        extend_limits(run, iterations=500)
    fixed, _ = create_and_run(tmp_path / "fixed", make_small_config(update="regular"))
    with pytest.raises(UsageError, match=r"has ended by --iterations 6; pass a higher --iterations, too"):
        extend_limits(fixed, budget=100_000)
    assert fit_run(extend_limits(fixed, budget=100_000, iterations=8)).iterations == 8


def test_run_refuses_a_query_limit_when_the_oracle_makes_no_queries(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", make_limited_config("reinforce", queries=100))
    with pytest.raises(UsageError, match=r"took no oracle queries: --queries alone will not end the run"):
        fit_run(run)
    assert fit_run(extend_limits(Run.open(run.folder), iterations=3)).iterations == 3


def test_annealing_to_the_end_is_refused_when_the_end_is_unknown() -> None:
    assert (
        make_limited_config(anneal_iterations=-1, iterations=50, budget=1000).update.to_values()["anneal_iterations"]
        == 50
    )
    with pytest.raises(UsageError, match=r"--anneal-iterations is -1 \(all\), but their number is open with --budget"):
        make_limited_config(anneal_iterations=-1, budget=1000)
    settings = {"update": "regular", "policy": "lstm"}
    assert resolve_config("algebra", **settings).update.to_values()["anneal_iterations"] > 0
    open_ended = resolve_config("algebra", **settings, budget=10_000)
    assert open_ended.update.to_values()["anneal_iterations"] == 0 and open_ended.loop.validate_every == 25
    assert resolve_config("cartpole", "loki", budget=1000).reinforcement.to_values()["imitation_max"] == 10


def test_extend_limits_refuses_a_run_annealed_to_zero(tmp_path: Path) -> None:
    run, result = create_and_run(tmp_path / "run", make_limited_config(budget=1000, anneal_iterations=2))
    assert result.iterations > 2
    with pytest.raises(UsageError, match="has fallen to 0 after 2 iterations"):
        extend_limits(run, budget=2000)


def test_parallel_runs_end_by_their_own_budgets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [Run.create(tmp_path / str(seed), make_limited_config(budget=1000, seed=seed)) for seed in range(2)]
    results = run_in_parallel(runs, IN_PROCESS, ignore_numerics=False)
    assert [result.ended_by for result in results] == ["budget"] * 2
    assert "% of each run: 200/200, 2 of 2 runs ended" in capsys.readouterr().err
    print_result([replace(one, iterations=n) for one, n in zip(results, (3, 6), strict=True)], tmp_path, True)
    means = json.loads(capsys.readouterr().out)
    assert means["iterations"] == 4.5 and means["budget"] == 1000
    more = run_in_parallel([extend_limits(run, budget=2000) for run in runs], IN_PROCESS, ignore_numerics=False)
    assert all(a.iterations < b.iterations and b.budget == 2000 for a, b in zip(results, more, strict=True))


def test_train_accepts_a_budget(tmp_path: Path) -> None:
    run = train("cartpole", budget=5000, out=tmp_path / "run", test_episodes=5)
    result = run.result()
    assert result is not None and 2500 < result.simulator_steps <= 5000 + 2500


def test_train_and_resume_commands_accept_a_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in LIMITED.items()]
    train = ["train", "cartpole", "--update", "regular", *words, "--json", "--out"]
    first = json.loads(said([*train, str(tmp_path / "run"), "--budget", "1000"], capsys))
    assert first["ended_by"] == "budget" and first["budget"] == 1000 and first["simulator_steps"] < 1300
    resume = ["resume", str(tmp_path / "run"), "--json"]
    more = json.loads(said([*resume, "--budget", "2000"], capsys))
    whole = json.loads(said([*train, str(tmp_path / "whole"), "--budget", "2000"], capsys))
    assert all(more[name] == whole[name] for name in whole if name not in ("run_folder", "seconds", "cpu_seconds"))
    code, error = failure([*resume, "--budget", "1500"], capsys)
    assert code == 2 and "--budget is 1500, but must be at least the 2,000 of" in error


@pytest.mark.parametrize("budget", [3_000, 40_000])
def test_budget_affords_ten_iterations_and_the_maximum_cost_is_announced(tmp_path: Path, budget: int) -> None:
    """All episodes last 30 steps: a budget of 3,000 pays for 33 roll-ins with 3 rollouts from 2 queries each."""
    messages: list[str] = []
    run = train(
        lambda: gymnasium_environments.Corridor(99),
        expert=gymnasium_environments.act,
        out=tmp_path / "run",
        say=messages.append,
        horizon=30,
        budget=budget,
        validation_episodes=5,
        test_episodes=5,
    )
    result = run.result()
    assert result is not None and result.iterations >= 10 and result.simulator_steps <= budget
    most = run.config.loop.trajectories * (30 + 3 * 2 * 30)
    assert f"an iteration takes at most {most:,} simulator steps" in "; ".join(messages)
    assert max(costs_per_iteration(run.metrics(), "simulator_steps")) <= most
    given = resolve_config(run.config.task, horizon=30, budget=budget, trajectories=33)
    assert given.loop.trajectories == 33


def test_query_limit_affords_ten_iterations_and_builtin_tasks_say_the_cost() -> None:
    config = resolve_config("cartpole", queries=1500, horizon=60)
    assert config.loop.trajectories == 2 and resolve_config("cartpole", horizon=60).loop.trajectories > 2
    assert describe_config(config) == ["an iteration takes at most 120 oracle queries"]
    assert describe_config(resolve_config("cartpole")) == []
