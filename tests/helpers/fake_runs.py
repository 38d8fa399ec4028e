"""Sweeps with fake runs whose results are computed from their settings."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial

from aggrevated.core.errors import AggrevatedError
from aggrevated.storage import save_checksummed_json
from aggrevated.sweeps.request import SweepRequest
from aggrevated.sweeps.search_space import parse_variations
from aggrevated.sweeps.sweep import FailureCallback, Runner, Sweep, create_or_open_sweep
from aggrevated.tasks import find_task
from aggrevated.training.records import Result
from aggrevated.training.run_folder import Run

SMALL = {"iterations": 2, "trajectories": 2, "horizon": 30, "validation_episodes": 2, "test_episodes": 5}


def make_request(*varied: str, search: str = "grid", trials: int = 64, **given: Any) -> SweepRequest:
    """Return the request of a small sweep of CartPole, with one seed unless `seeds` is given."""
    request_fields = {name: given.pop(name) for name in ("method", "seeds", "sampler_seed") if name in given}
    method = request_fields.setdefault("method", "aggrevated")
    space = parse_variations(varied, find_task("cartpole"), method)
    fixed = {**SMALL, **given}
    return SweepRequest(task="cartpole", varied=space, fixed=fixed, search=search, trials=trials, **request_fields)


def made_up_return(run: Run) -> float:
    """Return a fake return: highest at learning rate 0.01 or without one, and a little higher with each seed."""
    rate = run.config.update.to_values().get("learning_rate", 0.01)
    return -abs(rate - 0.01) + 0.001 * run.config.loop.seed


def pretend(score: Callable[[Run], float] = made_up_return) -> Runner:
    """Return a runner that writes a result without training."""

    def run_all(runs: Sequence[Run], failed: FailureCallback) -> None:
        for run in runs:
            try:
                write_result(run, score(run))
            except AggrevatedError as error:
                failed(run, error)

    return run_all


def write_result(run: Run, returned: float) -> None:
    """Write result.json of a run."""
    numbers = {name: 0 for name in Result.__dataclass_fields__ if name != "more"}
    texts = ("task", "method", "update", "ended_by", "run_folder", "weights_sha256")
    known = {"iterations": run.config.loop.iterations, "best_return": returned, "test_return": returned - 1.0}
    save_checksummed_json(run.folder / "result.json", numbers | dict.fromkeys(texts, "") | known)


def run_to_end(sweep: Sweep, runner: Runner | None = None) -> list[FrozenTrial]:
    """Run the missing trials, and return all trials."""
    return run_study(sweep, runner).trials


def run_study(sweep: Sweep, runner: Runner | None = None) -> Study:
    """Run the missing trials, and return the study."""
    return sweep.run(runner or pretend(), lambda study, new: None)


def run_new(folder: Path, request: SweepRequest, runner: Runner | None = None) -> list[FrozenTrial]:
    """Start or resume the sweep, and run it to its end."""
    return run_to_end(create_or_open_sweep(folder, request), runner)


def facts_of(trials: Sequence[FrozenTrial]) -> list[tuple[Any, ...]]:
    """Return all facts of the trials except times."""
    return [(trial.number, trial.params, trial.value, trial.state, trial.user_attrs) for trial in trials]
