"""Model card of a policy: task, expert, scores, cost of training, and the command that reproduces it."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from aggrevated import __version__, storage
from aggrevated.config import Config
from aggrevated.config.resolver import OPTION_NAMES, resolve_config, select_components
from aggrevated.core.errors import AggrevatedError, UsageError
from aggrevated.core.settings import format_option, get_declared_settings
from aggrevated.storage import JsonDict
from aggrevated.tasks import Task, find_task, is_code_trusted
from aggrevated.training.records import Result

MEASURED_FIELDS = ("test_return", "test_standard_error", "expert_return", "expert_standard_error", "ratio")


class DescribableRun(Protocol):
    """A run in its folder, from which a model card is made."""

    @property
    def config(self) -> Config: ...
    def result(self) -> Result | None: ...
    def load_partial_result(self) -> Result: ...


def make_policy_metadata(run: DescribableRun) -> JsonDict:
    """Return the model card for JSON; without the test's scores if the run has not ended."""
    config = run.config
    final_result = run.result()
    result = final_result or run.load_partial_result()
    simulator = getattr(config.problem, "simulator", None)
    return {
        "task": config.task.name,
        "environment": str(getattr(simulator, "name", "") or config.task.title),
        "expert": get_expert_display_name(config),
        "method": config.method,
        "update": config.update.name,
        "policy": config.policy.name,
        "seed": config.loop.seed,
        "iterations": result.iterations,
        "ended": final_result is not None,
        "validation_return": result.best_return,
        **{name: result.more[name] for name in MEASURED_FIELDS if name in result.more},
        "simulator_steps": result.simulator_steps,
        "oracle_queries": result.oracle_queries,
        "settings_sha256": storage.digest_tensors({}, config.to_dict()),
        "weights_sha256": result.weights_sha256,
        "command": format_rerun_command(config),
        "version": __version__,
    }


def make_model_card(run: DescribableRun) -> str:
    """Return the model card in Markdown."""
    card = make_policy_metadata(run)
    scores = []
    if "test_return" in card:
        scores = [
            format_return("policy", card["test_return"], card.get("test_standard_error")),
            format_return("expert", card["expert_return"], card.get("expert_standard_error")),
        ]
    measured = ", ".join(scores) or f"{card['validation_return']:.4g} on validation; the run has not ended"
    name = run.config.problem.metric_name
    lines = [
        f"# A policy for {run.config.task.title}",
        "",
        f"- **Policy:** of the kind `{card['policy']}`, for the environment {card['environment']}",
        f"- **Training:** {run.config.method_spec.title} with the update `{card['update']}`, from the expert "
        f"{card['expert']}, {card['iterations']} iterations, seed {card['seed']}",
        f"- **Score:** mean {name} {measured}",
        f"- **Cost:** {card['simulator_steps']:,} simulator steps, {card['oracle_queries']:,} oracle queries",
        f"- **Weights:** SHA-256 `{card['weights_sha256']}`; settings `{card['settings_sha256']}`",
        f"- **Command:** `{card['command']}`, aggrevated {card['version']}",
    ]
    return "\n".join(lines) + "\n"


def format_return(label: str, mean: float, standard_error: float | None) -> str:
    """Return a mean with its standard error, if that is known."""
    return f"{mean:.4g}{'' if standard_error is None else f' ± {standard_error:.2g}'} ({label})"


def get_expert_display_name(config: Config) -> str:
    """Return the expert's name; for an expert from a file, the file's name without its folder."""
    name = strip_paths(config.settings.get("expert", "")) or config.problem.expert_name
    return name or str(getattr(config.built_problem.expert, "name", type(config.built_problem.expert).__name__))


def format_rerun_command(config: Config) -> str:
    """Return a command that reproduces a run: the components and settings that are not the defaults.

    If no command leads to the same config, the command names the config file. If environment or expert are objects
    without a name, it is a line of Python.
    """
    task = find_named_task(config)
    try:
        settings = find_non_default_settings(config, task or strip_task_settings(config))
    except AggrevatedError:
        return "aggrevated train --config config.json"
    if "expert" in settings:
        settings["expert"] = strip_paths(settings["expert"])
    if task is None:
        arguments = [repr(config.task.name), f"expert={get_expert_display_name(config)}", f"method={config.method!r}"]
        arguments += [f"{name}={value!r}" for name, value in settings.items() if name != "expert"]
        return f"aggrevated.train({', '.join(arguments)})"
    arguments = [f"aggrevated train {shlex.quote(config.task.name)}"]
    arguments += [] if config.method == "aggrevated" else [f"--method {config.method}"]
    return " ".join([*arguments, *(format_option(name, value) for name, value in settings.items())])


def find_named_task(config: Config) -> Task | None:
    """Return the task that the config's task name leads to; None if environment or expert were given as objects."""
    try:
        task = find_task(config.task.name, trust_code=is_code_trusted(config.task.name, config.problem))
    except AggrevatedError:
        return None
    objects = [
        (getattr(config.problem, name, None), getattr(task.problem, name, None)) for name in ("given", "make_expert")
    ]
    same_objects = all(one is other for one, other in objects)
    return task if type(task.problem) is type(config.problem) and same_objects else None


def strip_task_settings(config: Config) -> Task:
    """Return the task of a config with the defaults of the settings that selected it."""
    problem = config.task.problem
    declared = get_declared_settings(type(problem))
    defaults = {name: declared[name].default for name in problem.selection_settings if name != "expert"}
    return replace(config.task, problem=replace(problem, **defaults))


def find_non_default_settings(config: Config, task: Task) -> dict[str, Any]:
    """Return the components and settings that lead from the task to the config.

    Raises:
        UsageError: There are no such settings.
    """
    selection = {name: getattr(config.problem, name) for name in config.problem.selection_settings}
    settings = {name: value for name, value in selection.items() if value != getattr(task.problem, name)}
    for name in list(settings):  # leave out what follows from the others
        fewer = {other: value for other, value in settings.items() if other != name}
        with suppress(AggrevatedError):
            if resolve_config(task, config.method, **fewer).settings[name] == settings[name]:
                settings = fewer
    for slot, option in OPTION_NAMES.items():
        component = getattr(config, slot).name
        if getattr(select_components(task, config.method, settings).config, slot).name != component:
            settings[option] = component
    resolved = resolve_config(task, config.method, **settings).settings
    settings |= {name: value for name, value in config.settings.items() if resolved.get(name, value) != value}
    if resolve_config(task, config.method, **settings) != config:
        raise UsageError("no command leads to this config; train with --config config.json")
    return settings


def strip_paths(names: str) -> str:
    """Return comma-separated names and files, the files without their folders."""
    return ",".join(Path(name).name if Path(name).is_absolute() else name for name in names.split(","))
