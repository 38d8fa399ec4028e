"""Where pieces are found by name, and which option chooses among them."""

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from gymnasium.spaces import Discrete, Space

from aggrevated import __version__
from aggrevated.config import Config
from aggrevated.config.loop import LoopSettings
from aggrevated.core.errors import DataError, UnusedSettingError, UsageError
from aggrevated.core.registry import Registry
from aggrevated.core.settings import Settings, check_known, declared_settings, suggest_close_match, to_flag
from aggrevated.losses import LossSettings
from aggrevated.methods import EXPERT_ORACLE, Method, find_method
from aggrevated.oracles import OracleSettings
from aggrevated.oracles.loki import ReinforcementSettings
from aggrevated.policies import PolicySettings
from aggrevated.policies.heads import HeadSettings
from aggrevated.problems import ProblemSettings
from aggrevated.problems.code_references import import_reference, is_reference
from aggrevated.starts import StartSettings
from aggrevated.storage import JsonDict
from aggrevated.tasks import Task, all_tasks, find_task
from aggrevated.updates import UpdateSettings

HEAD_REGISTRY: Registry[Any] = Registry("head", "aggrevated.policies.heads", HeadSettings, "aggrevated.heads")
REGISTRIES: dict[str, Registry[Any]] = {  # by the place in a config
    "policy": Registry("policy", "aggrevated.policies", PolicySettings, "aggrevated.policies"),
    "update": Registry("update", "aggrevated.updates", UpdateSettings, "aggrevated.updates"),
    "start": Registry("start", "aggrevated.starts", StartSettings, "aggrevated.starts"),
    "reinforcement": Registry(
        "reinforcement", "aggrevated.oracles", ReinforcementSettings, "aggrevated.reinforcements"
    ),
    "oracle": Registry("oracle", "aggrevated.oracles", OracleSettings, "aggrevated.oracles"),
    "loss": Registry("loss", "aggrevated.losses", LossSettings, "aggrevated.losses"),
}
OPTION_NAMES = {place: "gradient" if place == "loss" else place for place in REGISTRIES}  # what chooses it


def list_component_names(task: Task, place: str) -> list[str]:
    """The pieces that a run of the task can choose from."""
    own = [piece.name for piece in task.components if issubclass(piece, REGISTRIES[place].base)]
    return own if own and place == "policy" else REGISTRIES[place].names(task.components)


def find_component(task: Task, place: str, name: str) -> type[Settings]:
    """The one of that name, or a `UsageError` that lists them."""
    check_known(name, OPTION_NAMES[place], list_component_names(task, place))
    found: type[Settings] = REGISTRIES[place].get(name, task.components)
    return found


def iter_components(task: Task, place: str) -> Iterator[type[Settings]]:
    """Every one of them that can be imported: a broken one disturbs nobody who does not ask for it."""
    for name in list_component_names(task, place):
        with suppress(UsageError):
            yield find_component(task, place, name)


def iter_heads() -> Iterator[type[HeadSettings]]:
    """Every head that can be imported."""
    for name in HEAD_REGISTRY.names():
        with suppress(UsageError):
            yield HEAD_REGISTRY.get(name)


def select_head(actions: Space[Any]) -> type[HeadSettings]:
    """The head for such actions, or a `UsageError` where there is none."""
    for found in iter_heads():
        if found.accepts(actions):
            return found
    raise UsageError(
        f"no policy here takes actions of type {type(actions).__name__}{actions.shape or ''}: wrap the environment so "
        "that they are Discrete or a Box of one axis, or add a head for them"
    )


def max_cost_per_trajectory(pieces: Mapping[str, Any]) -> dict[str, int]:
    """Of a roll-in of all H steps and the questions about it, by the names of the limits."""
    steps = pieces["problem"].steps
    space = pieces["problem"].spaces()[1]
    actions = int(space.n) if isinstance(space, Discrete) else None
    return {"budget": steps + pieces["oracle"].max_steps(steps, actions), "queries": steps}


def max_cost_per_iteration(config: Config) -> dict[str, int]:
    """The same of all K."""
    return {name: config.loop.trajectories * most for name, most in max_cost_per_trajectory(config.components).items()}


SettingsT = TypeVar("SettingsT", bound=Settings)


def resolve_config(task: Task | str, method: str = "aggrevated", **given: Any) -> Config:
    """The config of a run; a `UsageError` for the first thing in it that cannot be, or has no effect."""
    task = find_task(task, trust_code=True) if isinstance(task, str) else task  # it was typed
    if not isinstance(task, Task) or not isinstance(task.problem, ProblemSettings):
        raise UsageError(f"{task!r} is no task: give a name, or a Task whose world is of a kind of WorldSettings")
    given = {name: value for name, value in given.items() if value is not None}
    config = default_config(task, method, given)
    check_no_unused_settings(config, given)
    pieces: dict[str, Any] = {place: apply_settings(own, given) for place, own in config.components.items()}
    for own in pieces.values():
        own.check_types()
    config = fill_config_defaults(replace(config, **pieces), given)
    config.validate()
    return config


def fill_config_defaults(config: Config, given: Container[str]) -> Config:
    """The config with everything filled in that was left open."""
    iterations = config.loop.without_iteration_limit(given).known_iterations
    pieces: dict[str, Any] = {place: own.fill_defaults(iterations, given) for place, own in config.components.items()}
    most = max_cost_per_trajectory(pieces) if pieces["loop"].limits else {}
    pieces["loop"] = pieces["loop"].with_trajectory_count(pieces["problem"].steps, most)
    following = {
        name: value for own in pieces.values() for name, value in own.implied_settings().items() if name not in given
    }
    return replace(config, **{place: apply_settings(own, following) for place, own in pieces.items()})


def default_config(task: Task, method: str, given: Mapping[str, Any]) -> Config:
    """The pieces that were chosen, with the settings that they have for the task and the method."""
    row = find_method(method)
    decisive = {name: given[name] for name in task.problem.selection_settings if name in given}
    task = replace(task, problem=apply_settings(task.problem, decisive))
    picked, kinds = choose_components(task, method, row, given)
    settings = dict(row.settings) | task.tuned_for(picked)
    names = all_setting_names(task)
    for name in settings:
        if name not in names:
            near = suggest_close_match(name, names)
            raise UsageError(f"the task {task.name} or the method {method} sets {name!r}{near}, which is no setting")
    pieces: dict[str, Any] = {place: apply_settings(kind(), settings) for place, kind in kinds.items()}
    return Config(task, method, problem=apply_settings(task.problem, settings), **pieces)


def choose_components(
    task: Task, method: str, row: Method, given: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, type[Settings]]]:
    """(what was picked, by name; the pieces, by place): as given, else as tuned for what is picked, or usual."""
    picked = {"method": method}
    kinds = dict[str, type[Settings]](loop=LoopSettings)
    names = {"policy": task.policy, "update": row.updates[0], "start": row.start, "reinforcement": row.reinforcement}
    names |= {"oracle": task.oracle} | task.problem.recommended_components()
    if row.oracles != EXPERT_ORACLE:
        names["oracle"] = row.oracles[0]
    for place, name in names.items():
        tuned = task.tuned_for(picked).get(place)
        only = row.allowed_components(place)
        picked[place] = given.get(place, (tuned if not only or tuned in only else None) or name)
        if only:
            check_known(picked[place], f"{place} for {method}", only)
        kinds[place] = find_component(task, place, picked[place])
    kinds["head"] = select_head(task.problem.spaces()[1])
    named = given.get("gradient")
    picked["loss"] = first_compatible_loss(task, method, row, kinds, given) if named is None else named
    kinds["loss"] = find_component(task, "loss", picked["loss"])
    return picked, kinds


def first_compatible_loss(
    task: Task, method: str, row: Method, kinds: Mapping[str, Any], given: Mapping[str, Any]
) -> str:
    """The first of the method's losses that can be computed from what the oracle tells."""
    tells = kinds["reinforcement"]().feedback(
        apply_settings(kinds["oracle"](), given).feedback(kinds["head"].is_discrete)
    )
    for name in row.losses:
        if tells in REGISTRIES["loss"].get(name, task.components).accepts:
            return name
    teller = "oracle" if kinds["reinforcement"].name == "none" else "reinforcement"
    raise UsageError(
        f"the {teller} {kinds[teller].name} does not know what the other actions cost, which the method {method} "
        "needs; use --method aggrevated"
    )


def apply_settings(own: SettingsT, settings: Mapping[str, Any]) -> SettingsT:
    """The piece with those of the settings that it has."""
    mine = {name: settings[name] for name in declared_settings(type(own)) if name in settings}
    return replace(own, **{name: to_plain_value(value) for name, value in mine.items()})


def to_plain_value(value: Any) -> Any:
    """A list as a tuple, and NumPy's numbers as Python's."""
    return (
        tuple(map(to_plain_value, value))
        if isinstance(value, list | tuple)
        else getattr(value, "item", lambda: value)()
    )


def check_no_unused_settings(config: Config, given: Iterable[str]) -> None:
    """An `IdleError` for the first setting that was given and would have no effect."""
    effective = {*config.settings, *OPTION_NAMES.values()}
    if not config.update.uses_loss:
        effective -= {"gradient", *declared_settings(type(config.loss))}
    for name in given:
        if name not in effective:
            raise_unused_setting(config, name)


def raise_unused_setting(config: Config, name: str) -> NoReturn:
    """Say why a setting has no effect on the run, and what it is a setting of."""
    idle = f"{to_flag(name)} has no effect on"
    if not config.update.uses_loss and name in ("gradient", *declared_settings(type(config.loss))):
        raise UnusedSettingError(
            f"{idle} the update {config.update.name}; choose another --update, or leave it out", name
        )
    found = [
        (place, one.name)
        for place in REGISTRIES
        for one in iter_components(config.task, place)
        if name in declared_settings(one)
    ]
    for place, option in OPTION_NAMES.items():
        only = config.method_spec.allowed_components(place)
        owners = [owner for where, owner in found if where == place and (not only or owner in only)]
        if owners:
            now = f"the {option} {getattr(config, place).name}"
            of = f"it is of --{option} {' or '.join(owners)}"
            raise UnusedSettingError(f"{idle} {now}: {of}; choose that, or leave it out", name)
    if found:
        raise UnusedSettingError(f"{idle} the method {config.method}; choose another --method, or leave it out", name)
    if any(name in declared_settings(head) for head in iter_heads()):
        kind = "a finite set" if config.has_discrete_actions else "vectors"
        of = f"{config.task.name}, whose actions are {kind}"
        raise UnusedSettingError(f"{idle} {of}; choose another task, or leave it out", name)
    names = {one for task in all_tasks() for one in all_setting_names(task)}
    if name in names:
        raise UnusedSettingError(f"{idle} {config.task.name}; choose another task, or leave it out", name)
    where = f"'aggrevated train {config.task.name} --help' shows those that there are"
    raise UsageError(
        f"unknown setting {to_flag(name)}{suggest_close_match(name.replace('-', '_'), names, to_flag)}; {where}"
    )


def list_component_types(task: Task) -> list[type[Settings]]:
    """All that a run of the task can be made of."""
    on_shelves = [*iter_heads(), *(one for place in REGISTRIES for one in iter_components(task, place))]
    return [LoopSettings, type(task.problem), *on_shelves]


def all_setting_names(task: Task) -> set[str]:
    """The names of all settings that a run of the task can have."""
    return {name for one in list_component_types(task) for name in declared_settings(one)} | set(OPTION_NAMES.values())


def config_from_dict(facts: JsonDict, source: object, task: Task | None = None, trust_code: bool = False) -> Config:
    """The config that `Config.to_dict` wrote, checked again; a `DataError` names the file where it does not fit.

    Python code that it names is imported only with `trust`.
    """
    written = {"version", "task", "method", "loop", "problem", "head", *REGISTRIES}
    if facts.get("version") != __version__ or not isinstance(facts.get("task"), str) or set(facts) != written:
        remedy = "start a new run with 'aggrevated train'"
        raise DataError(f"{source} is not a config of version {__version__}; {remedy}")
    try:
        task = task or task_from_dict(facts["task"], facts["problem"], trust_code)
        places = {"loop": LoopSettings(), "problem": task.problem} | dict.fromkeys(("head", *REGISTRIES))
        pieces: dict[str, Any] = {
            place: component_from_dict(task, place, own, facts[place]) for place, own in places.items()
        }
        config = Config(task, facts["method"], **pieces)
        find_method(config.method)
        config.validate()
    except (UsageError, TypeError, KeyError) as error:
        raise DataError(f"{source} holds settings that cannot be ({error}); restore it or start a new run") from error
    return config


def task_from_dict(name: str, world: Any, trust_code: bool) -> Task:
    """The task of that name; a `DataError` if the world that the facts are of is in code that is not trusted."""
    task = find_task(name, trust_code)
    if not trust_code and is_reference(name) and isinstance(world, dict) and world.get("name") != task.problem.name:
        import_reference(name, trusted=False)
    return task


def component_from_dict(task: Task, place: str, own: Settings | None, facts: JsonDict) -> Settings:
    """One piece, from its name and settings."""
    if not isinstance(facts, dict) or "name" not in facts:
        raise UsageError(f"{place} is {facts!r}, and no piece")
    name = facts["name"]
    if own is None:
        own = (HEAD_REGISTRY.get(name) if place == "head" else find_component(task, place, name))()
    settings = {key: value for key, value in facts.items() if key != "name"}
    if name != own.name or set(settings) != set(declared_settings(type(own))):
        raise UsageError(f"{name} has other settings")
    return apply_settings(own, settings)
