"""Request of a sweep: what varies, what is fixed, and the config and command of each trial."""

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
DEFAULT_METHOD = "aggrevated"
TRIALS = 64  # default of --trials for tpe
MAX_COMBINATIONS = 10_000  # of a grid
Params = Mapping[str, Any]  # Optuna's parameters of a trial: numbers, and choices as text


@dataclass(frozen=True)
class SweepRequest:
    """Request of a sweep.

    Args:
        task: Name of the task.
        method: Name of the method.
        varied: Settings that vary.
        fixed: Settings that do not vary, by name.
        search: "grid" or "tpe".
        trials: Number of trials.
        seeds: Runs per trial, with seeds from that of the config on.
        sampler_seed: Seed of Optuna's sampler.
        trust_code: Allow the import of Python code that the task names.
        effects: Cache of `select_effective_params`.
    """

    task: str
    method: str
    varied: tuple[Variation, ...]
    fixed: Mapping[str, Any]
    search: str
    trials: int
    seeds: int = 1
    sampler_seed: int = 0
    trust_code: bool = field(default=False, compare=False)
    effects: dict[object, set[str]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_dict(cls, values: JsonDict, source: object, trust_code: bool = False) -> SweepRequest:
        """Return the request of a dictionary that `to_dict` returned.

        Args:
            values: The dictionary.
            source: Its file, which errors name.
            trust_code: Allow the import of Python code that the task names.

        Raises:
            DataError: The dictionary is not a request.
        """
        try:
            arguments = {field.name: values[field.name] for field in fields(cls) if field.compare}
            task = find_task(arguments["task"], trust_code)
            arguments["varied"] = parse_variations(arguments["varied"], task, arguments["method"])
            fixed = arguments["fixed"].items()
            arguments["fixed"] = {name: tuple(v) if isinstance(v, list) else v for name, v in fixed}
        except (KeyError, AttributeError, TypeError, UsageError) as error:
            message = f"{source} does not hold the request of a sweep ({error})"
            raise DataError(f"{message}; restore it, or start a new sweep with another --out") from error
        return cls(**arguments, trust_code=trust_code)

    def to_dict(self) -> JsonDict:
        """Return the request for sweep.json."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.compare}
        return values | {"varied": [str(variation) for variation in self.varied]}

    @cached_property
    def task_spec(self) -> Task:
        """Task of the sweep."""
        return find_task(self.task, self.trust_code)

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Optuna's distributions, by parameter."""
        return {variation.label: variation.distribution for variation in self.varied}

    @cached_property
    def grid(self) -> list[dict[str, Any]]:
        """Parameters of all combinations, the last setting fastest; equivalent combinations appear once."""
        if (count := count_combinations(self.varied)) > MAX_COMBINATIONS:
            remedy = "give fewer points, or choose --search tpe"
            raise UsageError(f"the grid has {count:,} combinations; {remedy}")
        combinations = product(*([(variation.label, point) for point in variation.points] for variation in self.varied))
        effective = (tuple(self.select_effective_params(dict(items)).items()) for items in combinations)
        return [dict(items) for items in dict.fromkeys(effective)]

    def to_settings(self, params: Params) -> dict[str, Any]:
        """Return the settings of Optuna's parameters."""
        return {one.name: one.to_value(params[one.label]) for one in self.varied if one.label in params}

    def select_effective_params(self, params: Params) -> dict[str, Any]:
        """Return the parameters that have an effect together with the others; all if they cannot be combined.

        The effect of a parameter depends on choices by name, never on numbers, so it is cached by these choices.
        """
        settings = self.to_settings(params)
        choices = tuple(item for item in settings.items() if isinstance(item[1], str | bool))
        if choices not in self.effects:
            try:
                self.effects[choices] = set(self.resolve(settings)[1])
            except UsageError:
                return dict(params)
        effective = [variation for variation in self.varied if variation.name in self.effects[choices]]
        return {one.label: params[one.label] if one.choices else settings[one.name] for one in effective}

    def resolve(self, settings: Mapping[str, Any], needed: str = "") -> tuple[Config, dict[str, Any]]:
        """Return the config of a trial, and the varied and fixed settings that have an effect in it.

        Raises:
            UnusedSettingError: The setting `needed` has no effect.
        """
        effective = {**self.fixed, **settings}
        while True:
            arguments = dict(effective)
            try:
                return resolve_config(self.task_spec, arguments.pop("method", self.method), **arguments), effective
            except UnusedSettingError as error:
                if error.setting == needed:
                    raise
                effective.pop(error.setting)

    def format_command(self, params: Params) -> str:
        """Return the command that reproduces the runs of a trial, to the last bit."""
        settings = {"method": self.method, **self.resolve(self.to_settings(params))[1]}
        arguments = [f"aggrevated train {self.task}"]
        arguments += [] if settings["method"] == DEFAULT_METHOD else [f"--method {settings['method']}"]
        arguments += [format_option(name, value) for name, value in settings.items() if name != "method"]
        return " ".join([*arguments, *([f"--trials {self.seeds}"] if self.seeds > 1 else [])])

    def check(self) -> None:
        """Raise a `UsageError` if something in the request is not possible, or has no effect on any trial."""
        check_known(self.search, "search", SEARCHES)
        TRIALS_RULE.check("trials", self.trials)
        TRIALS_RULE.check("seeds", self.seeds)
        SEED.check("sampler_seed", self.sampler_seed)
        if not self.varied:
            raise UsageError("no setting varies; add one, for example --vary iterations=50,100,200")
        for variation in self.varied:
            self._check_variation(variation)
            for end in variation.ends:
                self._check_effect(variation.name, {variation.name: variation.to_value(end)})
        for name in self.fixed:
            self._check_effect(name, {})

    def _check_variation(self, variation: Variation) -> None:
        """Raise for a setting that cannot vary, and for points that are missing or have no effect."""
        flag = to_flag(variation.name)
        if variation.name in self.fixed or (variation.name == "method" and self.method != DEFAULT_METHOD):
            raise UsageError(f"{flag} is both varied and fixed; leave one of them out")
        if variation.name == "seed":
            reason = "every trial runs as many seeds as --seeds says"
            raise UsageError(f"--seed cannot vary: {reason}; leave it out")
        if variation.name in self.task_spec.problem.protocol_settings:
            reason = f"it changes what the score measures; fix it, and run one sweep for each {flag}"
            raise UsageError(f"{flag} cannot vary: {reason}")
        if self.search == "grid" and not variation.choices and not variation.count:
            raise UsageError(f"a grid needs the number of points: --vary {variation}:5; or choose --search tpe")
        if self.search != "grid" and variation.count:
            points = f"the points of --vary {variation}"
            raise UsageError(f"{points} have no effect on --search {self.search}; leave them out")

    def _check_effect(self, name: str, values: Mapping[str, Any]) -> None:
        """Raise unless the setting is possible, and has an effect, for some choice of the others."""
        errors = list[UsageError]()
        ends = [variation.ends if variation.kind in (str, bool) else variation.ends[:1] for variation in self.varied]
        for params in product(*ends):
            other_settings = self.to_settings(dict(zip(self.distributions, params, strict=True)))
            try:
                self.resolve({**other_settings, **values}, needed=name)
            except UsageError as error:
                errors.append(error)
            else:
                return
        raise next((error for error in errors if not isinstance(error, UnusedSettingError)), errors[0])


def count_combinations(varied: Sequence[Variation]) -> int:
    """Return the number of combinations of a grid."""
    return prod(len(variation.points) for variation in varied)


def choose_search(varied: Sequence[Variation], trials: int | None) -> str:
    """Return "grid" if points were given, or if only choices vary and all fit into the trials; else "tpe"."""
    if any(variation.count for variation in varied):
        return "grid"
    all_choices = all(variation.choices for variation in varied)
    return "grid" if all_choices and count_combinations(varied) <= (trials or TRIALS) else "tpe"
