"""Sweeps whose runs take no time: their results are made up from their settings."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from aggrevated.core.errors import AggrevatedError
from aggrevated.storage import save_checksummed_json
from aggrevated.sweeps.request import SweepRequest
from aggrevated.sweeps.search_space import parse_variations
from aggrevated.sweeps.sweep import FailureCallback, Sweep
from aggrevated.sweeps.trials import Trial
from aggrevated.tasks import find_task
from aggrevated.training.records import Result
from aggrevated.training.run_folder import Run

SMALL = {"iterations": 2, "trajectories": 2, "horizon": 30, "validation_episodes": 2, "test_episodes": 5}
needs_optuna = pytest.mark.skipif(
    find_spec("optuna") is None,
    reason="TPE is Optuna's, which is not installed: pip install 'aggrevated[optuna]'",
)


def asked(*varied: str, search: str = "grid", trials: int = 64, **given: Any) -> SweepRequest:
    """A small sweep of CartPole, with one seed unless `seeds` says otherwise."""
    own = {name: given.pop(name) for name in ("method", "seeds", "sampler_seed") if name in given}
    method = own.setdefault("method", "aggrevated")
    space = parse_variations(varied, find_task("cartpole"), method)
    return SweepRequest(task="cartpole", varied=space, fixed={**SMALL, **given}, search=search, trials=trials, **own)


def made_up(run: Run) -> float:
    """A return: it is best where the learning rate is 0.01, or without one, and a little better with each seed."""
    rate = run.config.update.to_values().get("learning_rate", 0.01)
    return -abs(rate - 0.01) + 0.001 * run.config.loop.seed


def pretend(score: Callable[[Run], float] = made_up) -> Callable[[Sequence[Run], FailureCallback], None]:
    """What runs nothing, and writes down that it did."""

    def run_them(runs: Sequence[Run], failed: FailureCallback) -> None:
        for run in runs:
            try:
                end(run, score(run))
            except AggrevatedError as error:
                failed(run, error)

    return run_them


def end(run: Run, returned: float) -> None:
    """Leave a result.json."""
    numbers = {name: 0 for name in Result.__dataclass_fields__ if name != "more"}
    names = {
        "task": "cartpole",
        "method": "",
        "update": "",
        "ended_by": "iterations",
        "run_folder": "",
        "weights_sha256": "",
    }
    known = {"iterations": run.config.loop.iterations, "best_return": returned, "test_return": returned - 1.0}
    save_checksummed_json(run.folder / "result.json", numbers | names | known)


def whole(folder: Path, what: SweepRequest, score: Callable[[Run], float] = made_up) -> Sweep:
    """A new sweep, to its end."""
    *_, last = Sweep(folder, what).write().rounds(pretend(score))
    return last


def settings_of(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    return [dict(trial.settings) for trial in trials]
