"""What a sweep is asked to do, and what that comes to for one trial: a config, and the command that makes it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from aggrevated.config import Config
from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import DataError, UnusedSettingError, UsageError
from aggrevated.core.settings import SEED, check_known, format_option, to_flag
from aggrevated.core.settings import TRIALS as TRIALS_AT_MOST
from aggrevated.storage import JsonDict
from aggrevated.sweeps.search_space import Choices, Range, Variation, parse_variations
from aggrevated.tasks import Task, find_task

SEARCHES = ("grid", "tpe")
USUAL_METHOD = "aggrevated"
TRIALS = 64  # of tpe, unless somebody says otherwise


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

    @classmethod
    def read(cls, facts: JsonDict, source: object, trust_code: bool = False) -> SweepRequest:
        """What `facts` gave, or a `DataError` that names its source."""
        try:
            own = {name: facts[name] for name in cls.__dataclass_fields__ if name != "trust_code"}
            own["varied"] = parse_variations(own["varied"], find_task(own["task"], trust_code), own["method"])
            own["fixed"] = {name: tuple(v) if isinstance(v, list) else v for name, v in own["fixed"].items()}
        except (KeyError, AttributeError, TypeError, UsageError) as error:
            raise DataError(f"{source} does not say what was asked ({error}); restore it, or begin anew") from error
        return cls(**own, trust_code=trust_code)

    def to_dict(self) -> JsonDict:
        """For sweep.json."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "trust_code"}
        return own | {"varied": [str(one) for one in self.varied]}

    @cached_property
    def found(self) -> Task:
        """The task itself."""
        return find_task(self.task, self.trust_code)

    def resolved(self, settings: Mapping[str, Any]) -> tuple[Config, dict[str, Any]]:
        """(the config of a trial, those settings in it that were varied or fixed and have an effect there)."""
        given = {**self.fixed, **settings}
        while True:
            try:
                return self.config(given), given
            except UnusedSettingError as idle:
                given.pop(idle.setting)

    def config(self, given: Mapping[str, Any]) -> Config:
        """The config with just these settings."""
        own = dict(given)
        return resolve_config(self.found, own.pop("method", self.method), **own)

    def effective(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the settings that have an effect beside the others; all, where they cannot be together anyway.

        What has none is decided by choices by name, never by numbers, and worked out once for each of these.
        """
        by_name = tuple((name, value) for name, value in settings.items() if isinstance(value, str | bool))
        if by_name not in self._kept:
            try:
                self._kept[by_name] = set(self.resolved(settings)[1])
            except UsageError:
                return dict(settings)
        return {name: value for name, value in settings.items() if name in self._kept[by_name]}

    @cached_property
    def _kept(self) -> dict[tuple[tuple[str, Any], ...], set[str]]:
        """The names of the settings that have an effect, by choices."""
        return {}

    def command(self, settings: Mapping[str, Any]) -> str:
        """What to type to make the runs of a trial again, to the bit."""
        kept = {"method": self.method, **self.resolved(settings)[1]}
        words = [f"aggrevated train {self.task}"]
        words += [] if kept["method"] == USUAL_METHOD else [f"--method {kept['method']}"]
        words += [format_option(name, value) for name, value in kept.items() if name != "method"]
        return " ".join([*words, *([f"--trials {self.seeds}"] if self.seeds > 1 else [])])

    def check(self) -> None:
        """Raise a `UsageError` for the first thing that cannot be, or would have no effect on any trial."""
        check_known(self.search, "search", SEARCHES)
        for name in ("trials", "seeds"):
            TRIALS_AT_MOST.check(name, getattr(self, name))
        SEED.check("sampler_seed", self.sampler_seed)
        if not self.varied:
            raise UsageError("nothing varies; say what does, for example --vary iterations=50,100,200")
        for one in self.varied:
            self._check_name(one.name)
            self._check_points(one)
            for value in one.ends:
                self._check_effect(one.name, {one.name: value})
        for name in self.fixed:
            self._check_effect(name, {})

    def _check_name(self, name: str) -> None:
        """Some settings cannot be compared, or not in this way."""
        if name in self.fixed or (name == "method" and self.method != USUAL_METHOD):
            raise UsageError(f"{to_flag(name)} is both varied and fixed; leave one of them out")
        if name == "seed":
            raise UsageError("--seed does not vary: every trial has as many seeds as --seeds says; leave it out")
        if name in self.found.problem.protocol_settings:
            apart = f"fix it, and make a sweep for each {to_flag(name)}"
            raise UsageError(f"{to_flag(name)} does not vary: it decides what is measured, not how well; {apart}")

    def _check_points(self, one: Variation) -> None:
        """A grid needs them, and nothing else does."""
        if isinstance(one, Range) and self.search == "grid" and not one.count:
            raise UsageError(f"a grid needs the number of points: --vary {one}:5; or choose --search tpe")
        if isinstance(one, Range) and self.search != "grid" and one.count:
            raise UsageError(f"the points of --vary {one} have no effect on --search {self.search}; leave them out")

    def _check_effect(self, name: str, values: Mapping[str, Any]) -> None:
        """The setting must be possible, and have an effect, beside some choice of the others."""
        faults = []
        for beside in self._beside():
            fault = self._fault(name, {**self.fixed, **beside, **values})
            if fault is None:
                return
            faults.append(fault)
        raise next((fault for fault in faults if not isinstance(fault, UnusedSettingError)), faults[0])

    def _beside(self) -> Iterator[dict[str, Any]]:
        """Every combination of choices by name, with one value for each number."""
        names = [one.name for one in self.varied]
        values = []
        for one in self.varied:
            by_name = isinstance(one, Choices) and isinstance(one.values[0], str | bool)
            values.append(one.ends if by_name else one.ends[:1])
        return (dict(zip(names, some, strict=True)) for some in product(*values))

    def _fault(self, name: str, given: dict[str, Any]) -> UsageError | None:
        """Why the setting cannot be so, or has no effect; None if it can and has."""
        while True:
            try:
                self.config(given)
            except UnusedSettingError as idle:
                if idle.setting == name:
                    return idle
                given.pop(idle.setting)
            except UsageError as error:
                return error
            else:
                return None
