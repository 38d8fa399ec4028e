"""A policy's card: what it is, from whom it learned, how good it is, and the command that makes it again."""

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
    """What a card is written from: a run in its folder."""

    @property
    def config(self) -> Config: ...
    def result(self) -> Result | None: ...
    def load_partial_result(self) -> Result: ...


def make_policy_metadata(run: DescribableRun) -> JsonDict:
    """For JSON; what is not known before a run has ended is missing."""
    config = run.config
    ended = run.result()
    result = ended or run.load_partial_result()
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
        "ended": ended is not None,
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
    """The same in Markdown, for people."""
    card = make_policy_metadata(run)
    good = [format_return("it", card["test_return"], card.get("test_standard_error"))] if "test_return" in card else []
    good += [format_return("its expert", card["expert_return"], card.get("expert_standard_error"))] if good else []
    measured = ", ".join(good) or f"{card['validation_return']:.4g} on validation; the run has not ended"
    name = run.config.problem.metric_name
    lines = [
        f"# A policy for {run.config.task.title}",
        "",
        f"- **What:** a policy of the kind `{card['policy']}`, for the environment {card['environment']}",
        f"- **From whom:** the expert {card['expert']}, by {run.config.method_spec.title} with the update "
        f"`{card['update']}`, "
        f"{card['iterations']} iterations, seed {card['seed']}",
        f"- **How good:** mean {name} {measured}",
        f"- **At what cost:** {card['simulator_steps']:,} simulator steps, {card['oracle_queries']:,} oracle queries",
        f"- **Weights:** SHA-256 `{card['weights_sha256']}`; settings `{card['settings_sha256']}`",
        f"- **Made by:** `{card['command']}`, aggrevated {card['version']}",
    ]
    return "\n".join(lines) + "\n"


def format_return(who: str, mean: float, error: float | None) -> str:
    """A mean with its standard error, where that is known."""
    return f"{mean:.4g}{'' if error is None else f' ± {error:.2g}'} ({who})"


def get_expert_display_name(config: Config) -> str:
    """The expert's name; of one from a file the file's, without where it lies."""
    named = strip_paths(config.settings.get("expert", "")) or config.problem.expert_name
    return named or str(getattr(config.built_problem.expert, "name", type(config.built_problem.expert).__name__))


def format_rerun_command(config: Config) -> str:
    """What to type to make such a run again: the choices and settings that are not the usual ones.

    Where they do not lead to the same settings, it is the file that has them all; where environment or expert are
    objects that have no name to type, it is a line of Python.
    """
    task = find_named_task(config)
    try:
        given = find_non_default_settings(config, task or strip_task_settings(config))
    except AggrevatedError:
        return "aggrevated train --config config.json"
    if "expert" in given:
        given["expert"] = strip_paths(given["expert"])
    if task is None:
        words = [repr(config.task.name), f"expert={get_expert_display_name(config)}", f"method={config.method!r}"]
        words += [f"{name}={value!r}" for name, value in given.items() if name != "expert"]
        return f"aggrevated.train({', '.join(words)})"
    words = [f"aggrevated train {shlex.quote(config.task.name)}"]
    words += [] if config.method == "aggrevated" else [f"--method {config.method}"]
    return " ".join([*words, *(format_option(name, value) for name, value in given.items())])


def find_named_task(config: Config) -> Task | None:
    """The task as its name alone leads to; None where it or its expert was given as an object."""
    try:
        task = find_task(config.task.name, trust_code=is_code_trusted(config.task.name, config.problem))
    except AggrevatedError:
        return None
    own = [
        (getattr(config.problem, part, None), getattr(task.problem, part, None)) for part in ("given", "make_expert")
    ]
    return task if type(task.problem) is type(config.problem) and all(a is b for a, b in own) else None


def strip_task_settings(config: Config) -> Task:
    """The task of a config without the settings that went into it."""
    world = config.task.problem
    declared = {
        name: get_declared_settings(type(world))[name].default for name in world.selection_settings if name != "expert"
    }
    return replace(config.task, problem=replace(world, **declared))


def find_non_default_settings(config: Config, task: Task) -> dict[str, Any]:
    """The choices and settings by which the task comes to that config; a `UsageError` where there are none such."""
    own = {name: getattr(config.problem, name) for name in config.problem.selection_settings}
    asked = {name: value for name, value in own.items() if value != getattr(task.problem, name)}
    for name in list(asked):  # what follows by itself is not said
        less = {other: value for other, value in asked.items() if other != name}
        with suppress(AggrevatedError):
            if resolve_config(task, config.method, **less).settings[name] == asked[name]:
                asked = less
    for place, option in OPTION_NAMES.items():
        chosen = getattr(config, place).name
        if getattr(select_components(task, config.method, asked).config, place).name != chosen:
            asked[option] = chosen
    plain = resolve_config(task, config.method, **asked).settings
    asked |= {name: value for name, value in config.settings.items() if plain.get(name, value) != value}
    if resolve_config(task, config.method, **asked) != config:
        raise UsageError("these settings come from elsewhere")
    return asked


def strip_paths(names: str) -> str:
    """Names and files with commas between, the files without their folders."""
    return ",".join(Path(name).name if Path(name).is_absolute() else name for name in names.split(","))
