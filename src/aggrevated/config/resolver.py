"""From what was asked for to a config: whatever was left open comes from the task, the method and the pieces."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from aggrevated.config import Config
from aggrevated.config.budget import most_per_trajectory
from aggrevated.config.component_registry import HEADS, OPTIONS, SHELVES, all_heads, all_of, head_for, piece
from aggrevated.config.loop import LoopSettings
from aggrevated.core.settings import Settings, flag, guess, known, settings_of
from aggrevated.errors import DataError, IdleError, UsageError
from aggrevated.methods import ASKED, Method, find_method
from aggrevated.problems import WorldSettings
from aggrevated.problems.code_references import imported, is_reference
from aggrevated.storage import Facts
from aggrevated.tasks import Task, all_tasks, find_task
from aggrevated.version import __version__

Piece = TypeVar("Piece", bound=Settings)


def resolve(task: Task | str, method: str = "aggrevated", **given: Any) -> Config:
    """The config of a run; a `UsageError` for the first thing in it that cannot be, or has no effect."""
    task = find_task(task, trust=True) if isinstance(task, str) else task  # it was typed
    if not isinstance(task, Task) or not isinstance(task.world, WorldSettings):
        raise UsageError(f"{task!r} is no task: give a name, or a Task whose world is of a kind of WorldSettings")
    given = {name: value for name, value in given.items() if value is not None}
    config = usual(task, method, given)
    refuse_idle(config, given)
    pieces: dict[str, Any] = {place: with_settings(own, given) for place, own in config.pieces.items()}
    for own in pieces.values():
        own.check_types()
    config = completed(replace(config, **pieces), given)
    config.check()
    return config


def completed(config: Config, given: Container[str]) -> Config:
    """The config with everything filled in that was left open."""
    iterations = config.loop.opened(given).length
    pieces: dict[str, Any] = {place: own.completed(iterations, given) for place, own in config.pieces.items()}
    most = most_per_trajectory(pieces) if pieces["loop"].limits else {}
    pieces["loop"] = pieces["loop"].sized(pieces["world"].steps, most)
    following = {name: value for own in pieces.values() for name, value in own.implied().items() if name not in given}
    return replace(config, **{place: with_settings(own, following) for place, own in pieces.items()})


def usual(task: Task, method: str, given: Mapping[str, Any]) -> Config:
    """The pieces that were chosen, with the settings that they have for the task and the method."""
    row = find_method(method)
    decisive = {name: given[name] for name in task.world.decisive if name in given}
    task = replace(task, world=with_settings(task.world, decisive))
    picked, kinds = choose(task, method, row, given)
    settings = dict(row.settings) | task.tuned_for(picked)
    names = all_settings(task)
    for name in settings:
        if name not in names:
            near = guess(name, names)
            raise UsageError(f"the task {task.name} or the method {method} sets {name!r}{near}, which is no setting")
    pieces: dict[str, Any] = {place: with_settings(kind(), settings) for place, kind in kinds.items()}
    return Config(task, method, world=with_settings(task.world, settings), **pieces)


def choose(
    task: Task, method: str, row: Method, given: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, type[Settings]]]:
    """(what was picked, by name; the pieces, by place): as given, else as tuned for what is picked, or usual."""
    picked, kinds = {"method": method}, dict[str, type[Settings]](loop=LoopSettings)
    names = {"policy": task.policy, "update": row.updates[0], "start": row.start, "reinforcement": row.reinforcement}
    names |= {"oracle": task.oracle} | task.world.suits()
    if row.cost_to_go != ASKED:
        names["oracle"] = row.cost_to_go[0]
    for place, name in names.items():
        tuned, only = task.tuned_for(picked).get(place), row.only(place)
        picked[place] = given.get(place, (tuned if not only or tuned in only else None) or name)
        if only:
            known(picked[place], f"{place} for {method}", only)
        kinds[place] = piece(task, place, picked[place])
    kinds["head"] = head_for(task.world.spaces()[1])
    named = given.get("gradient")
    picked["loss"] = fitting_loss(task, method, row, kinds, given) if named is None else named
    kinds["loss"] = piece(task, "loss", picked["loss"])
    return picked, kinds


def fitting_loss(task: Task, method: str, row: Method, kinds: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The first of the method's losses that can be computed from what the oracle tells."""
    tells = kinds["reinforcement"]().tells(with_settings(kinds["oracle"](), given).tells(kinds["head"].finite))
    for name in row.losses:
        if tells in SHELVES["loss"].get(name, task.brings).sees:
            return name
    teller = "oracle" if kinds["reinforcement"].name == "none" else "reinforcement"
    raise UsageError(
        f"the {teller} {kinds[teller].name} does not know what the other actions cost, which the method {method} "
        "needs; use --method aggrevated"
    )


def with_settings(own: Piece, settings: Mapping[str, Any]) -> Piece:
    """The piece with those of the settings that it has."""
    mine = {name: settings[name] for name in settings_of(type(own)) if name in settings}
    return replace(own, **{name: plain(value) for name, value in mine.items()})


def plain(value: Any) -> Any:
    """A list as a tuple, and NumPy's numbers as Python's."""
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else getattr(value, "item", lambda: value)()


def refuse_idle(config: Config, given: Iterable[str]) -> None:
    """An `IdleError` for the first setting that was given and would have no effect."""
    effective = {*config.settings, *OPTIONS.values()}
    if not config.update.uses_loss:
        effective -= {"gradient", *settings_of(type(config.loss))}
    for name in given:
        if name not in effective:
            refuse(config, name)


def refuse(config: Config, name: str) -> NoReturn:
    """Say why a setting has no effect on the run, and what it is a setting of."""
    idle = f"{flag(name)} has no effect on"
    if not config.update.uses_loss and name in ("gradient", *settings_of(type(config.loss))):
        raise IdleError(f"{idle} the update {config.update.name}; choose another --update, or leave it out", name)
    found = [(place, one.name) for place in SHELVES for one in all_of(config.task, place) if name in settings_of(one)]
    for place, option in OPTIONS.items():
        only = config.row.only(place)
        owners = [owner for where, owner in found if where == place and (not only or owner in only)]
        if owners:
            now = f"the {option} {getattr(config, place).name}"
            of = f"it is of --{option} {' or '.join(owners)}"
            raise IdleError(f"{idle} {now}: {of}; choose that, or leave it out", name)
    if found:
        raise IdleError(f"{idle} the method {config.method}; choose another --method, or leave it out", name)
    if any(name in settings_of(head) for head in all_heads()):
        kind = "a finite set" if config.finite else "vectors"
        of = f"{config.task.name}, whose actions are {kind}"
        raise IdleError(f"{idle} {of}; choose another task, or leave it out", name)
    names = {one for task in all_tasks() for one in all_settings(task)}
    if name in names:
        raise IdleError(f"{idle} {config.task.name}; choose another task, or leave it out", name)
    where = f"'aggrevated train {config.task.name} --help' shows those that there are"
    raise UsageError(f"unknown setting {flag(name)}{guess(name.replace('-', '_'), names, flag)}; {where}")


def all_pieces(task: Task) -> list[type[Settings]]:
    """All that a run of the task can be made of."""
    on_shelves = [*all_heads(), *(one for place in SHELVES for one in all_of(task, place))]
    return [LoopSettings, type(task.world), *on_shelves]


def all_settings(task: Task) -> set[str]:
    """The names of all settings that a run of the task can have."""
    return {name for one in all_pieces(task) for name in settings_of(one)} | set(OPTIONS.values())


def from_facts(facts: Facts, source: object, task: Task | None = None, trust: bool = False) -> Config:
    """The config that `Config.facts` wrote, checked again; a `DataError` names the file where it does not fit.

    Python code that it names is imported only with `trust`.
    """
    written = {"version", "task", "method", "loop", "world", "head", *SHELVES}
    if facts.get("version") != __version__ or not isinstance(facts.get("task"), str) or set(facts) != written:
        remedy = "start a new run with 'aggrevated train'"
        raise DataError(f"{source} is not a config of version {__version__}; {remedy}")
    try:
        task = task or known_task(facts["task"], facts["world"], trust)
        places = {"loop": LoopSettings(), "world": task.world} | dict.fromkeys(("head", *SHELVES))
        pieces: dict[str, Any] = {place: as_written(task, place, own, facts[place]) for place, own in places.items()}
        config = Config(task, facts["method"], **pieces)
        find_method(config.method)
        config.check()
    except (UsageError, TypeError, KeyError) as error:
        raise DataError(f"{source} holds settings that cannot be ({error}); restore it or start a new run") from error
    return config


def known_task(name: str, world: Any, trust: bool) -> Task:
    """The task of that name; a `DataError` if the world that the facts are of is in code that is not trusted."""
    task = find_task(name, trust)
    if not trust and is_reference(name) and isinstance(world, dict) and world.get("name") != task.world.name:
        imported(name, trusted=False)
    return task


def as_written(task: Task, place: str, own: Settings | None, facts: Facts) -> Settings:
    """One piece, from its name and settings."""
    if not isinstance(facts, dict) or "name" not in facts:
        raise UsageError(f"{place} is {facts!r}, and no piece")
    name = facts["name"]
    if own is None:
        own = (HEADS.get(name) if place == "head" else piece(task, place, name))()
    settings = {key: value for key, value in facts.items() if key != "name"}
    if name != own.name or set(settings) != set(settings_of(type(own))):
        raise UsageError(f"{name} has other settings")
    return with_settings(own, settings)
