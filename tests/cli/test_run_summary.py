"""Summary at the end of a run: task, returns of policy and expert, cost, files and the next command."""

from dataclasses import replace
from pathlib import Path

import pytest

from aggrevated.cli.run_summary import describe_runs
from aggrevated.training.records import Result
from aggrevated.training.run_folder import Run
from helpers.small_runs import create_and_run, make_small_config

FOLDER = Path("runs/cartpole")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Result]:
    return create_and_run(tmp_path_factory.mktemp("summary") / "run", make_small_config())


def with_score(result: Result, policy: float, expert: float, error: float | None = 1.0) -> Result:
    """Return the result with another test score."""
    score = {"test_return": policy, "expert_return": expert, "test_standard_error": error}
    return replace(result, more={**result.more, **score, "expert_standard_error": None, "ratio": policy / expert})


def test_run_summary_states_return_cost_and_files_of_one_run(ended: tuple[Run, Result]) -> None:
    run, result = ended
    lines = describe_runs([run], [with_score(result, 40.0, 50.0)], FOLDER)
    assert lines[0] == "CartPole: AggreVaTeD, exponentiated update, seed 0"
    assert lines[1].split(maxsplit=1) == [
        "test",
        "return  40.0 ± 2.0; expert 50.0 (mean of new episodes ± 95 % interval)",
    ]
    assert (
        f"6 iterations, {result.simulator_steps:,} simulator steps" in lines[2] and "--iterations reached" in lines[2]
    )
    assert lines[3].split(maxsplit=1)[1].startswith("runs/cartpole: policy.safetensors, result.json")


@pytest.mark.parametrize(
    ("policy", "error", "command"),
    [
        (40.0, 1.0, "aggrevated resume runs/cartpole --iterations 12"),  # worse than the expert
        (49.0, 1.0, "aggrevated export runs/cartpole"),  # not significantly different from the expert
        (49.0, None, "aggrevated resume runs/cartpole --iterations 12"),  # unknown standard error
        (60.0, 1.0, "aggrevated export runs/cartpole"),
    ],
)
def test_run_summary_suggests_more_training_behind_the_expert_and_else_the_export(
    ended: tuple[Run, Result], policy: float, error: float | None, command: str
) -> None:
    run, result = ended
    lines = describe_runs([run], [with_score(result, policy, 50.0, error)], FOLDER)
    assert lines[-1].split(maxsplit=1)[1].split("  #")[0] == command


def test_run_summary_of_trials_has_their_mean_and_interval(ended: tuple[Run, Result]) -> None:
    run, result = ended
    results = [replace(with_score(result, value, 50.0), seed=seed) for seed, value in enumerate((40.0, 40.0, 40.0))]
    lines = describe_runs([run] * 3, results, FOLDER)
    assert lines[0].endswith("3 trials, seeds 0 to 2") and "40.0 (40.0 to 40.0); expert 50.0" in lines[1]
    assert "per trial" in lines[2] and "trial-*/result.json" in lines[3]


def test_run_summary_resumes_user_code_with_trust_code(ended: tuple[Run, Result]) -> None:
    run, result = ended
    config = replace(run.config, problem=replace(run.config.problem, expert="rule:act"))  # type: ignore[call-arg]
    lines = describe_runs([replace(run, config=config)], [with_score(result, 40.0, 50.0)], Path("my runs"))
    assert "aggrevated resume 'my runs' --iterations 12 --trust-code  #" in lines[-1]
