"""A policy's card: what it is, from whom it learned, how good it is, and the command that makes it again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggrevated import files
from aggrevated.config import Config
from aggrevated.config.pieces import OPTIONS
from aggrevated.config.resolving import resolve, usual
from aggrevated.errors import UsageError
from aggrevated.files import Facts
from aggrevated.settings import as_option
from aggrevated.version import __version__

if TYPE_CHECKING:
    from aggrevated.runs.run import Run

MEASURED = ("test_return", "test_standard_error", "expert_return", "expert_standard_error", "ratio")


def card_of(run: Run) -> Facts:
    """For JSON; what is not known before a run has ended is missing."""
    config, ended = run.config, run.result()
    result = ended or run.so_far()
    simulator = getattr(config.world, "simulator", None)
    return {
        "task": config.task.name,
        "environment": str(getattr(simulator, "name", "") or config.task.title),
        "expert": expert_of(config),
        "method": config.method,
        "update": config.update.name,
        "policy": config.policy.name,
        "seed": config.loop.seed,
        "iterations": result.iterations,
        "ended": ended is not None,
        "validation_return": result.best_return,
        **{name: result.more[name] for name in MEASURED if name in result.more},
        "simulator_steps": result.simulator_steps,
        "oracle_queries": result.oracle_queries,
        "settings_sha256": files.digest({}, config.facts()),
        "weights_sha256": result.weights_sha256,
        "command": command_of(config),
        "version": __version__,
    }


def model_card(run: Run) -> str:
    """The same in Markdown, for people."""
    card = card_of(run)
    good = [returned("it", card["test_return"], card.get("test_standard_error"))] if "test_return" in card else []
    good += [returned("its expert", card["expert_return"], card.get("expert_standard_error"))] if good else []
    measured = ", ".join(good) or f"{card['validation_return']:.4g} on validation; the run has not ended"
    name = run.config.world.measured
    lines = [
        f"# A policy for {run.config.task.title}",
        "",
        f"- **What:** a policy of the kind `{card['policy']}`, for the environment {card['environment']}",
        f"- **From whom:** the expert {card['expert']}, by {run.config.row.title} with the update `{card['update']}`, "
        f"{card['iterations']} iterations, seed {card['seed']}",
        f"- **How good:** mean {name} {measured}",
        f"- **At what cost:** {card['simulator_steps']:,} simulator steps, {card['oracle_queries']:,} oracle queries",
        f"- **Weights:** SHA-256 `{card['weights_sha256']}`; settings `{card['settings_sha256']}`",
        f"- **Made by:** `{card['command']}`, aggrevated {card['version']}",
    ]
    return "\n".join(lines) + "\n"


def returned(who: str, mean: float, error: float | None) -> str:
    """A mean with its standard error, where that is known."""
    return f"{mean:.4g}{'' if error is None else f' ± {error:.2g}'} ({who})"


def expert_of(config: Config) -> str:
    """The expert's name; of one from a file the file's, without where it lies."""
    named = without_places(config.settings.get("expert", ""))
    return named or str(getattr(config.built_world.expert, "name", type(config.built_world.expert).__name__))


def command_of(config: Config) -> str:
    """What to type to make such a run again: the choices and settings that are not the usual ones.

    Where they do not lead to the same settings, it is the file that has them all.
    """
    try:
        asked: dict[str, Any] = dict(choices_of(config))
        plain = resolve(config.task, config.method, **asked).settings
        settings = {name: value for name, value in config.settings.items() if plain.get(name, value) != value}
        whole = resolve(config.task, config.method, **asked, **settings) == config
    except UsageError:
        whole = False
    if not whole:
        return "aggrevated train --config config.json"
    words = [f"aggrevated train {shlex.quote(config.task.name)}"]
    words += [] if config.method == "aggrevated" else [f"--method {config.method}"]
    given = {**asked, **settings}
    if "expert" in given:
        given["expert"] = without_places(given["expert"])
    return " ".join([*words, *(as_option(name, value) for name, value in given.items())])


def choices_of(config: Config) -> dict[str, str]:
    """The choices that must be named so that all others follow."""
    asked: dict[str, str] = {}
    for place, option in OPTIONS.items():
        chosen = getattr(config, place).name
        if getattr(usual(config.task, config.method, asked), place).name != chosen:
            asked[option] = chosen
    return asked


def without_places(names: str) -> str:
    """Names and files with commas between, the files without their folders."""
    return ",".join(Path(name).name if Path(name).is_absolute() else name for name in names.split(","))
