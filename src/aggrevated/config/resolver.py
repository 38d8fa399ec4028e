"""Resolution of task, method and explicit settings into a config; components are found by name."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

from gymnasium.spaces import Discrete, Space

from aggrevated import __version__
from aggrevated.config import Config
from aggrevated.config.loop import LoopSettings
from aggrevated.core.errors import DataError, UnusedSettingError, UsageError
from aggrevated.core.registry import Registry
from aggrevated.core.settings import Settings, check_known, get_declared_settings, suggest_close_match, to_flag
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
from aggrevated.tasks import Task, find_task, iter_tasks
from aggrevated.updates import UpdateSettings

HEAD_REGISTRY: Registry[Any] = Registry("head", "aggrevated.policies.heads", HeadSettings, "aggrevated.heads")
REGISTRIES: dict[str, Registry[Any]] = {  # by slot
    "policy": Registry("policy", "aggrevated.policies", PolicySettings, "aggrevated.policies"),
    "update": Registry("update", "aggrevated.updates", UpdateSettings, "aggrevated.updates"),
    "start": Registry("start", "aggrevated.starts", StartSettings, "aggrevated.starts"),
    "reinforcement": Registry(
        "reinforcement", "aggrevated.oracles", ReinforcementSettings, "aggrevated.reinforcements"
    ),
    "oracle": Registry("oracle", "aggrevated.oracles", OracleSettings, "aggrevated.oracles"),
    "loss": Registry("loss", "aggrevated.losses", LossSettings, "aggrevated.losses"),
}
OPTION_NAMES = {slot: "gradient" if slot == "loss" else slot for slot in REGISTRIES}  # the option of each slot


def list_component_names(task: Task, slot: str) -> list[str]:
    """Return the names of the components that a run of the task can choose from."""
    task_names = [component.name for component in task.components if issubclass(component, REGISTRIES[slot].base)]
    return task_names if task_names and slot == "policy" else REGISTRIES[slot].names(task.components)


def find_component(task: Task, slot: str, name: str) -> type[Settings]:
    """Return the settings class of a component; raise a `UsageError` that lists all names."""
    check_known(name, OPTION_NAMES[slot], list_component_names(task, slot))
    component: type[Settings] = REGISTRIES[slot].get(name, task.components)
    return component


def iter_components(task: Task, slot: str) -> Iterator[type[Settings]]:
    """Yield the settings classes of a slot that can be imported."""
    for name in list_component_names(task, slot):
        with suppress(UsageError):
            yield find_component(task, slot, name)


def iter_heads() -> Iterator[type[HeadSettings]]:
    """Yield the settings classes of the heads that can be imported."""
    for name in HEAD_REGISTRY.names():
        with suppress(UsageError):
            yield HEAD_REGISTRY.get(name)


def select_head(actions: Space[Any]) -> type[HeadSettings]:
    """Return the head for an action space; raise a `UsageError` if there is none."""
    for head in iter_heads():
        if head.accepts(actions):
            return head
    raise UsageError(
        f"no head supports actions of type {type(actions).__name__}{actions.shape or ''}: wrap the environment so that "
        "they are Discrete or a Box of one axis, or add a head"
    )


def max_cost_per_trajectory(components: Mapping[str, Any]) -> dict[str, int]:
    """Return the largest cost of one trajectory and of the queries about it, by the names of the limits."""
    steps = components["problem"].steps
    space = components["problem"].spaces()[1]
    actions = int(space.n) if isinstance(space, Discrete) else None
    return {"budget": steps + components["oracle"].max_steps(steps, actions), "queries": steps}


def max_cost_per_iteration(config: Config) -> dict[str, int]:
    """Return the largest cost of one iteration, by the names of the limits."""
    costs = max_cost_per_trajectory(config.components)
    return {name: config.loop.trajectories * cost for name, cost in costs.items()}


SettingsT = TypeVar("SettingsT", bound=Settings)


def resolve_config(task: Task | str, method: str = "aggrevated", **settings: Any) -> Config:
    """Return the config of a run: explicit settings before presets before defaults.

    Args:
        task: A `Task`, the name of one, the id of a Gymnasium environment, or `module:attribute`.
        method: The name of a method, as in `aggrevated.methods`.
        **settings: Components by the names of their slots (`policy="lstm"`), and their settings. Those that are None
            count as not given.

    Returns:
        The config, checked.

    Raises:
        UsageError: A component or a setting is unknown or does not fit the others.
        UnusedSettingError: A setting has no effect on this run.

    Example:
        >>> from aggrevated import resolve_config
        >>> resolve_config("cartpole", update="regular", learning_rate=0.02).update.to_values()["learning_rate"]
        0.02
    """
    task = find_task(task, trust_code=True) if isinstance(task, str) else task
    if not isinstance(task, Task) or not isinstance(task.problem, ProblemSettings):
        raise UsageError(f"{task!r} is not a task: pass its name, or a Task whose problem is a ProblemSettings")
    explicit = {name: value for name, value in settings.items() if value is not None}
    return select_components(task, method, explicit).fill(explicit)


@dataclass(frozen=True)
class Selection:
    """The components of a run with the presets of its task and method, before the explicit settings."""

    config: Config  # the components, not checked
    choices: Mapping[str, str]  # the names of the components that were chosen explicitly

    def fill(self, explicit: Mapping[str, Any]) -> Config:
        """Return the config with the explicit settings and with all defaults that depend on others, checked.

        Args:
            explicit: Settings by name, choices of components included.

        Raises:
            UsageError: A value is invalid, or does not fit the others.
            UnusedSettingError: A setting has no effect on this run.
        """
        config = self._with_compatible_loss(explicit).config
        check_no_unused_settings(config, explicit)
        components: dict[str, Any] = {
            slot: apply_settings(component, explicit) for slot, component in config.components.items()
        }
        for component in components.values():
            component.check_types()
        config = fill_defaults(replace(config, **components), explicit)
        config.validate()
        for component in config.components.values():
            for name, reason in component.list_unused_settings(config).items():
                if name in explicit:
                    raise UnusedSettingError(f"{to_flag(name)} has no effect on {reason}", name)
        return config

    def _with_compatible_loss(self, explicit: Mapping[str, Any]) -> Selection:
        """Return the selection whose loss fits the oracle with its explicit settings."""
        config = self.config
        if "gradient" in explicit or not any(name in explicit for name in config.oracle.to_values()):
            return self
        oracle = apply_settings(type(config.oracle)(), explicit)
        if (
            choose_compatible_loss(config.task, config.method, config.components | {"oracle": oracle})
            == config.loss.name
        ):
            return self
        return select_components(config.task, config.method, {**self.choices, **explicit})


def fill_defaults(config: Config, explicit: Container[str]) -> Config:
    """Return the config with the defaults that depend on other settings."""
    iterations = config.loop.lift_iteration_limit(explicit).known_iterations
    components: dict[str, Any] = {
        slot: component.fill_defaults(iterations, explicit) for slot, component in config.components.items()
    }
    costs = max_cost_per_trajectory(components) if components["loop"].limits else {}
    components["loop"] = components["loop"].fill_trajectory_count(components["problem"].steps, costs)
    implied = {
        name: value
        for component in components.values()
        for name, value in component.get_implied_settings().items()
        if name not in explicit
    }
    return replace(config, **{slot: apply_settings(component, implied) for slot, component in components.items()})


def select_components(task: Task, method: str, explicit: Mapping[str, Any]) -> Selection:
    """Return the components of a run: explicit choices before presets before defaults of task and method.

    Args:
        task: The task.
        method: The name of the method.
        explicit: Choices of components by slot, and settings. Of the settings, those of the problem that decide which
            components fit it are applied, and those of the oracle decide which loss fits it.
    """
    method_spec = find_method(method)
    decisive = {name: explicit[name] for name in task.problem.selection_settings if name in explicit}
    task = replace(task, problem=apply_settings(task.problem, decisive))
    names, classes = choose_components(task, method, method_spec, explicit)
    presets = dict(method_spec.settings) | task.get_tuned_settings(names)
    setting_names = list_setting_names(task)
    for name in presets:
        if name not in setting_names:
            match = suggest_close_match(name, setting_names)
            raise UsageError(
                f"the task {task.name} or the method {method} sets {name!r}{match}, which is not a setting: remove it"
            )
    components: dict[str, Any] = {slot: apply_settings(cls(), presets) for slot, cls in classes.items()}
    config = Config(task, method, problem=apply_settings(task.problem, presets), **components)
    return Selection(config, {name: explicit[name] for name in OPTION_NAMES.values() if name in explicit})


def choose_components(
    task: Task, method: str, method_spec: Method, explicit: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, type[Settings]]]:
    """Return (the names by slot, the classes of the settings by slot)."""
    names = {"method": method}
    classes = dict[str, type[Settings]](loop=LoopSettings)
    defaults = {
        "policy": task.policy,
        "update": method_spec.updates[0],
        "start": method_spec.start,
        "reinforcement": method_spec.reinforcement,
        "oracle": task.oracle,
    } | task.problem.recommended_components()
    if method_spec.oracles != EXPERT_ORACLE:
        defaults["oracle"] = method_spec.oracles[0]
    for slot, default in defaults.items():
        preset = task.get_tuned_settings(names).get(slot)
        allowed = method_spec.list_allowed_components(slot)
        names[slot] = explicit.get(slot, (preset if not allowed or preset in allowed else None) or default)
        if allowed:
            check_known(names[slot], f"{slot} for {method}", allowed)
        classes[slot] = find_component(task, slot, names[slot])
    classes["head"] = select_head(task.problem.spaces()[1])
    components = {slot: apply_settings(cls(), explicit) for slot, cls in classes.items() if slot == "oracle"}
    components |= {slot: cls() for slot, cls in classes.items() if slot in ("head", "reinforcement")}
    names["loss"] = explicit["gradient"] if "gradient" in explicit else choose_compatible_loss(task, method, components)
    classes["loss"] = find_component(task, "loss", names["loss"])
    return names, classes


def choose_compatible_loss(task: Task, method: str, components: Mapping[str, Any]) -> str:
    """Return the first of the method's losses that accepts the feedback of oracle and reinforcement."""
    reinforcement = components["reinforcement"]
    feedback = reinforcement.get_feedback(components["oracle"].get_feedback(components["head"].is_discrete))
    for name in find_method(method).losses:
        if feedback in REGISTRIES["loss"].get(name, task.components).accepts:
            return name
    source = components["oracle"] if reinforcement.name == "none" else reinforcement
    slot = "oracle" if reinforcement.name == "none" else "reinforcement"
    raise UsageError(
        f"the {slot} {source.name} does not return the costs of all actions, which the method {method} needs; use "
        "--method aggrevated"
    )


def apply_settings(component: SettingsT, settings: Mapping[str, Any]) -> SettingsT:
    """Return the component with those of the settings that it declares."""
    values = {name: settings[name] for name in get_declared_settings(type(component)) if name in settings}
    return replace(component, **{name: to_plain_value(value) for name, value in values.items()})


def to_plain_value(value: Any) -> Any:
    """Return a list as a tuple, and a NumPy number as Python's."""
    return (
        tuple(map(to_plain_value, value))
        if isinstance(value, list | tuple)
        else getattr(value, "item", lambda: value)()
    )


def check_no_unused_settings(config: Config, explicit: Iterable[str]) -> None:
    """Raise an `UnusedSettingError` for the first explicit setting that has no effect."""
    effective = {*config.settings, *OPTION_NAMES.values()}
    if not config.update.uses_loss:
        effective -= {"gradient", *get_declared_settings(type(config.loss))}
    for name in explicit:
        if name not in effective:
            raise_unused_setting(config, name)


def raise_unused_setting(config: Config, name: str) -> NoReturn:
    """Raise an `UnusedSettingError` that says why a setting has no effect and what it belongs to."""
    idle = f"{to_flag(name)} has no effect on"
    if not config.update.uses_loss and name in ("gradient", *get_declared_settings(type(config.loss))):
        raise UnusedSettingError(
            f"{idle} the update {config.update.name}; choose another --update, or leave it out", name
        )
    owners_by_slot = [
        (slot, component.name)
        for slot in REGISTRIES
        for component in iter_components(config.task, slot)
        if name in get_declared_settings(component)
    ]
    for slot, option in OPTION_NAMES.items():
        allowed = config.method_spec.list_allowed_components(slot)
        owners = [owner for where, owner in owners_by_slot if where == slot and (not allowed or owner in allowed)]
        if owners:
            current = f"the {option} {getattr(config, slot).name}"
            detail = f"it belongs to --{option} {' or '.join(owners)}"
            raise UnusedSettingError(f"{idle} {current}: {detail}; choose that, or leave it out", name)
    if owners_by_slot:
        raise UnusedSettingError(f"{idle} the method {config.method}; choose another --method, or leave it out", name)
    if any(name in get_declared_settings(head) for head in iter_heads()):
        kind = "a finite set" if config.has_discrete_actions else "vectors"
        detail = f"{config.task.name}, whose actions are {kind}"
        raise UnusedSettingError(f"{idle} {detail}; choose another task, or leave it out", name)
    names = {setting for task in iter_tasks() for setting in list_setting_names(task)}
    if name in names:
        raise UnusedSettingError(f"{idle} {config.task.name}; choose another task, or leave it out", name)
    where = f"'aggrevated train {config.task.name} --help' shows those that there are"
    raise UsageError(
        f"unknown setting {to_flag(name)}{suggest_close_match(name.replace('-', '_'), names, to_flag)}; {where}"
    )


def list_component_types(task: Task) -> list[type[Settings]]:
    """Return the settings classes of all components that a run of the task can have."""
    components = [*iter_heads(), *(component for slot in REGISTRIES for component in iter_components(task, slot))]
    return [LoopSettings, type(task.problem), *components]


def list_setting_names(task: Task) -> set[str]:
    """Return the names of all settings that a run of the task can have."""
    return {name for component in list_component_types(task) for name in get_declared_settings(component)} | set(
        OPTION_NAMES.values()
    )


def config_from_dict(content: JsonDict, source: object, task: Task | None = None, trust_code: bool = False) -> Config:
    """Return the config that `Config.to_dict` wrote, checked.

    Args:
        content: The dictionary.
        source: What error messages call it, for example the path of the file.
        task: The task, if it has no name to be found by.
        trust_code: Import the Python code that the config names.

    Raises:
        DataError: The dictionary is of another version, or its settings are invalid.
    """
    written = {"version", "task", "method", "loop", "problem", "head", *REGISTRIES}
    if content.get("version") != __version__ or not isinstance(content.get("task"), str) or set(content) != written:
        remedy = "start a new run with 'aggrevated train'"
        raise DataError(f"{source} is not a config of version {__version__}; {remedy}")
    try:
        task = task or task_from_dict(content["task"], content["problem"], trust_code)
        slots = {"loop": LoopSettings(), "problem": task.problem} | dict.fromkeys(("head", *REGISTRIES))
        components: dict[str, Any] = {
            slot: component_from_dict(task, slot, default, content[slot]) for slot, default in slots.items()
        }
        config = Config(task, content["method"], **components)
        find_method(config.method)
        config.validate()
    except (UsageError, TypeError, KeyError) as error:
        raise DataError(f"{source} holds invalid settings ({error}): restore it, or start a new run") from error
    return config


def task_from_dict(name: str, problem: Any, trust_code: bool) -> Task:
    """Return the task of that name; raise a `DataError` if its problem is in code that is not trusted."""
    task = find_task(name, trust_code)
    if not trust_code and is_reference(name) and isinstance(problem, dict) and problem.get("name") != task.problem.name:
        import_reference(name, trusted=False)
    return task


def component_from_dict(task: Task, slot: str, default: Settings | None, content: JsonDict) -> Settings:
    """Return a component from its name and settings."""
    if not isinstance(content, dict) or "name" not in content:
        raise UsageError(f"{slot} is {content!r}, which is not a component")
    name = content["name"]
    if default is None:
        default = (HEAD_REGISTRY.get(name) if slot == "head" else find_component(task, slot, name))()
    settings = {key: value for key, value in content.items() if key != "name"}
    if name != default.name or set(settings) != set(get_declared_settings(type(default))):
        raise UsageError(f"the settings of {name} are not those of this version")
    return apply_settings(default, settings)
