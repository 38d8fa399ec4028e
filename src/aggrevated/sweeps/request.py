"""What a sweep is asked to do, and what that comes to for one trial: a config, and a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from optuna.distributions import BaseDistribution

from aggrevated.config import Config
from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import DataError, UnusedSettingError, UsageError
from aggrevated.core.settings import SEED, check_known, format_option, to_flag
from aggrevated.core.settings import TRIALS as TRIALS_RULE
from aggrevated.storage import JsonDict
from aggrevated.sweeps.search_space import Variation, parse_variations
from aggrevated.tasks import Task, find_task

SEARCHES = ("grid", "tpe")
USUAL_METHOD = "aggrevated"
TRIALS = 64  # of tpe, unless --trials says otherwise
MAX_COMBINATIONS = 10_000  # of a grid
Params = Mapping[str, Any]  # Optuna's parameters of a trial: numbers, and choices by their words


@dataclass(frozen=True)
class SweepRequest:
    """The task and its method, what varies and what is fixed, how trials are searched for, and how many."""

    task: str
    method: str
    varied: tuple[Variation, ...]
    fixed: Mapping[str, Any]
    search: str
    trials: int
    seeds: int = 1
    sampler_seed: int = 0
    trust_code: bool = field(default=False, compare=False)  # whether code that the task names may be imported
    effects: dict[object, set[str]] = field(default_factory=dict, compare=False, repr=False)  # a cache

    @classmethod
    def from_dict(cls, facts: JsonDict, source: object, trust_code: bool = False) -> SweepRequest:
        """Return what `to_dict` gave; a `DataError` that names the source if it is not a request."""
        try:
            own = {one.name: facts[one.name] for one in fields(cls) if one.compare}
            own["varied"] = parse_variations(own["varied"], find_task(own["task"], trust_code), own["method"])
            own["fixed"] = {name: tuple(v) if isinstance(v, list) else v for name, v in own["fixed"].items()}
        except (KeyError, AttributeError, TypeError, UsageError) as error:
            what = f"{source} does not say what was asked ({error})"
            raise DataError(f"{what}; restore it, or begin anew") from error
        return cls(**own, trust_code=trust_code)

    def to_dict(self) -> JsonDict:
        """Return it for sweep.json."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.compare}
        return own | {"varied": [str(one) for one in self.varied]}

    @cached_property
    def task_spec(self) -> Task:
        """The task itself."""
        return find_task(self.task, self.trust_code)

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Optuna's distributions, by parameter."""
        return {one.label: one.distribution for one in self.varied}

    @cached_property
    def grid(self) -> list[dict[str, Any]]:
        """The parameters of all combinations, the last setting fastest, each effective one once."""
        if (count := count_combinations(self.varied)) > MAX_COMBINATIONS:
            fewer = "give fewer points, or choose --search tpe"
            raise UsageError(f"the grid has {count:,} combinations; {fewer}")
        every = product(*([(one.label, point) for point in one.points] for one in self.varied))
        effective = (tuple(self.select_effective_params(dict(some)).items()) for some in every)
        return [dict(one) for one in dict.fromkeys(effective)]

    def to_settings(self, params: Params) -> dict[str, Any]:
        """Return the settings that Optuna's parameters stand for."""
        return {one.name: one.to_value(params[one.label]) for one in self.varied if one.label in params}

    def select_effective_params(self, params: Params) -> dict[str, Any]:
        """Return the parameters that have an effect beside the others; all, if they cannot be together.

        Which have one depends on choices by name, never on numbers: it is worked out once for each of these.
        """
        settings = self.to_settings(params)
        by_name = tuple(one for one in settings.items() if isinstance(one[1], str | bool))
        if by_name not in self.effects:
            try:
                self.effects[by_name] = set(self.resolve(settings)[1])
            except UsageError:
                return dict(params)
        kept = [one for one in self.varied if one.name in self.effects[by_name]]
        return {one.label: params[one.label] if one.choices else settings[one.name] for one in kept}

    def resolve(self, settings: Mapping[str, Any], needed: str = "") -> tuple[Config, dict[str, Any]]:
        """Return the config of a trial, and those varied or fixed settings in it that have an effect there.

        An `UnusedSettingError` if the needed one has none.
        """
        given = {**self.fixed, **settings}
        while True:
            own = dict(given)
            try:
                return resolve_config(self.task_spec, own.pop("method", self.method), **own), given
            except UnusedSettingError as idle:
                if idle.setting == needed:
                    raise
                given.pop(idle.setting)

    def format_command(self, params: Params) -> str:
        """Return the command that makes the runs of a trial again, to the bit."""
        kept = {"method": self.method, **self.resolve(self.to_settings(params))[1]}
        words = [f"aggrevated train {self.task}"]
        words += [] if kept["method"] == USUAL_METHOD else [f"--method {kept['method']}"]
        words += [format_option(name, value) for name, value in kept.items() if name != "method"]
        return " ".join([*words, *([f"--trials {self.seeds}"] if self.seeds > 1 else [])])

    def check(self) -> None:
        """Raise a `UsageError` for the first thing that is not possible, or has no effect on any trial."""
        check_known(self.search, "search", SEARCHES)
        TRIALS_RULE.check("trials", self.trials)
        TRIALS_RULE.check("seeds", self.seeds)
        SEED.check("sampler_seed", self.sampler_seed)
        if not self.varied:
            raise UsageError("nothing varies; say what does, for example --vary iterations=50,100,200")
        for one in self.varied:
            self._check_variation(one)
            for end in one.ends:
                self._check_effect(one.name, {one.name: one.to_value(end)})
        for name in self.fixed:
            self._check_effect(name, {})

    def _check_variation(self, one: Variation) -> None:
        """Raise for a setting that cannot vary, and for points that are missing or have no effect."""
        flag = to_flag(one.name)
        if one.name in self.fixed or (one.name == "method" and self.method != USUAL_METHOD):
            raise UsageError(f"{flag} is both varied and fixed; leave one of them out")
        if one.name == "seed":
            why = "every trial has as many seeds as --seeds says"
            raise UsageError(f"--seed does not vary: {why}; leave it out")
        if one.name in self.task_spec.problem.protocol_settings:
            apart = f"it decides what is measured, not how well; fix it, and make a sweep for each {flag}"
            raise UsageError(f"{flag} does not vary: {apart}")
        if self.search == "grid" and not one.choices and not one.count:
            raise UsageError(f"a grid needs the number of points: --vary {one}:5; or choose --search tpe")
        if self.search != "grid" and one.count:
            points = f"the points of --vary {one}"
            raise UsageError(f"{points} have no effect on --search {self.search}; leave them out")

    def _check_effect(self, name: str, values: Mapping[str, Any]) -> None:
        """Raise unless the setting is possible, and has an effect, beside some choice of the others."""
        faults = list[UsageError]()
        ends = [one.ends if one.kind in (str, bool) else one.ends[:1] for one in self.varied]
        for some in product(*ends):
            beside = self.to_settings(dict(zip(self.distributions, some, strict=True)))
            try:
                self.resolve({**beside, **values}, needed=name)
            except UsageError as fault:
                faults.append(fault)
            else:
                return
        raise next((fault for fault in faults if not isinstance(fault, UnusedSettingError)), faults[0])


def count_combinations(varied: Sequence[Variation]) -> int:
    """Return how many combinations a grid has."""
    return prod(len(one.points) for one in varied)


def choose_search(varied: Sequence[Variation], trials: int | None) -> str:
    """Return grid if points were given, or if there are only choices and all can be tried; else tpe."""
    if any(one.count for one in varied):
        return "grid"
    all_choices = all(one.choices for one in varied)
    return "grid" if all_choices and count_combinations(varied) <= (trials or TRIALS) else "tpe"
