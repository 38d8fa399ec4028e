"""Which trials are made: all of a grid, or those that Optuna's TPE comes up with, in rounds.

A round's trials follow from the sampler's seed and from the trials of the rounds before it, and from nothing else. So
neither the number of workers nor a stop changes which trials there are, and a longer sweep begins as a shorter one.
"""

import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from types import ModuleType
from typing import Any

from aggrevated.core.errors import UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.sweeps.request import TRIALS, SweepRequest
from aggrevated.sweeps.search_space import Choices, Range, Variation
from aggrevated.sweeps.trials import Trial

ROUND = 8  # trials that are asked for at once
ATTEMPTS = 200  # of a round, to find trials that were not made already
MOST = 10_000  # of a grid


def choose_search(varied: Sequence[Variation], trials: int | None) -> str:
    """A grid, if points were given, or if there are only choices and all of them can be tried; else TPE."""
    ranges = [one for one in varied if isinstance(one, Range)]
    if ranges:
        return "grid" if any(one.count for one in ranges) else "tpe"
    return "grid" if count_combinations(varied) <= (trials or TRIALS) else "tpe"


def count_combinations(varied: Sequence[Variation]) -> int:
    """How many combinations there are."""
    return prod(len(one.points) for one in varied)


def propose_next_round(asked: SweepRequest, before: Sequence[Trial]) -> list[dict[str, Any]]:
    """The settings of the round after these trials; fewer than a round, or none, where there is nothing new."""
    if asked.search == "grid":
        return list_grid(asked)[len(before) : len(before) + ROUND]
    return propose_tpe_round(asked, before)


def list_grid(asked: SweepRequest) -> list[dict[str, Any]]:
    """All combinations, the last setting fastest; those that differ only in what has no effect are one."""
    if count_combinations(asked.varied) > MOST:
        raise UsageError(
            f"the grid has {count_combinations(asked.varied):,} combinations; give fewer points, or choose --search tpe"
        )
    names = [one.name for one in asked.varied]
    every = (dict(zip(names, some, strict=True)) for some in product(*(one.points for one in asked.varied)))
    return [dict(one) for one in dict.fromkeys(tuple(asked.effective(some).items()) for some in every)]


def propose_tpe_round(asked: SweepRequest, before: Sequence[Trial]) -> list[dict[str, Any]]:
    """A round of Optuna's tree-structured Parzen estimator; the first is drawn at random."""
    optuna = import_optuna()
    seed = int(derive_seeds(asked.sampler_seed, SeedPurpose.SEARCH, len(before) // ROUND, 1)[0]) % 2**32
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is experimental in one version of Optuna is usual in the next
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=ROUND, constant_liar=True)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.add_trials([to_optuna_trial(optuna, asked, trial) for trial in before])
        found: dict[tuple[Any, ...], dict[str, Any]] = {tuple(trial.settings.items()): {} for trial in before}
        for _ in range(ATTEMPTS):
            trial = study.ask()
            settings = asked.effective({one.name: suggest_value(trial, one) for one in asked.varied})
            found.setdefault(tuple(settings.items()), settings)  # one that was made stays open, and TPE turns elsewhere
            if len(found) == len(before) + ROUND:
                break
    return list(found.values())[len(before) :]


def suggest_value(trial: Any, one: Variation) -> Any:
    """What Optuna's trial has for a setting."""
    if isinstance(one, Choices):
        return one.values[trial.suggest_categorical(one.name, list(range(len(one.values))))]
    if one.whole:
        return trial.suggest_int(one.name, one.low, one.high, log=one.log)
    return one.tidy(trial.suggest_float(one.name, one.low, one.high, log=one.log))


def to_optuna_trial(optuna: ModuleType, asked: SweepRequest, trial: Trial) -> Any:
    """A trial of ours as one of Optuna's; one that failed is to TPE worse than all that did not."""
    own = {one.name: one for one in asked.varied if one.name in trial.settings}
    return optuna.trial.create_trial(
        params={name: to_optuna_value(one, trial.settings) for name, one in own.items()},
        distributions={name: to_optuna_distribution(optuna, one) for name, one in own.items()},
        value=trial.score,
        state=optuna.trial.TrialState.PRUNED if trial.failed else optuna.trial.TrialState.COMPLETE,
    )


def to_optuna_value(one: Variation, settings: Mapping[str, Any]) -> Any:
    """A setting's value as Optuna knows it: choices by their number."""
    value = settings[one.name]
    return one.values.index(value) if isinstance(one, Choices) else value


def to_optuna_distribution(optuna: ModuleType, one: Variation) -> Any:
    """What Optuna calls it."""
    if isinstance(one, Choices):
        return optuna.distributions.CategoricalDistribution(list(range(len(one.values))))
    kind = optuna.distributions.IntDistribution if one.whole else optuna.distributions.FloatDistribution
    return kind(one.low, one.high, log=one.log)


def import_optuna() -> ModuleType:
    """Optuna, silent; a `UsageError` where it is not installed."""
    try:
        import optuna
    except ImportError as error:
        remedy = "pip install 'aggrevated[optuna]', or choose --search grid"
        raise UsageError(f"--search tpe needs Optuna: {remedy}") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
