"""What people and machines read: results on standard output, notes and warnings on standard error."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggrevated.storage import JsonDict

if TYPE_CHECKING:
    from aggrevated.experts.model_card import ExpertCard
    from aggrevated.reports import Table
    from aggrevated.training.records import Record


def print_note(sentence: str) -> None:
    """A line for people, on standard error."""
    print(sentence, file=sys.stderr, flush=True)


def print_dict(facts: JsonDict, as_json: bool) -> None:
    """One object: as JSON, or a line for each fact."""
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<{width}}  {format_value(value)}")


def format_value(value: Any) -> str:
    """A number in four digits; UAS by kind as a list of "kind UAS (symbols)"."""
    if isinstance(value, dict) and all(isinstance(one, dict) for one in value.values()):
        return ", ".join(f"{kind} {one['uas']:.2f} ({one['symbols']})" for kind, one in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def print_result(trials: Sequence["Record"], folder: Path, as_json: bool) -> None:
    """The result of one run; of several trials their means, with the trials under `trials` in JSON."""
    results = [trial.to_dict() for trial in trials]
    if len(results) == 1:
        print_dict(results[0], as_json)
        return
    means = {
        name: mean([result[name] for result in results])
        for name, value in results[0].items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and name not in ("seed", "budget", "queries", "episodes")
        and (name != "iterations" or len({result[name] for result in results}) > 1)
    }
    kinds = {
        name: summarize_trials([result[name] for result in results]) for name in UAS_BREAKDOWNS if name in results[0]
    }
    facts = results[0] | means | kinds | {"run": str(folder)}
    facts.pop("weights_sha256", None)
    facts.pop("note", None)  # of one trial
    if as_json:
        facts["weights_sha256"] = [result["weights_sha256"] for result in results]
        facts["trials"] = results
    print_dict(facts, as_json)


UAS_BREAKDOWNS = ("by_symbol", "by_arc_length")


def summarize_trials(trials: Sequence[dict[str, JsonDict]]) -> dict[str, JsonDict]:
    """UAS by kind of symbol, mean over trials that parsed the same pages."""
    return {kind: one | {"uas": mean([trial[kind]["uas"] for trial in trials])} for kind, one in trials[0].items()}


def mean(numbers: Sequence[float | None]) -> float | None:
    """Their mean; None if one of them is."""
    known = [number for number in numbers if number is not None]
    return sum(known) / len(known) if len(known) == len(numbers) else None


def print_table(table: "Table", as_json: bool, facts: JsonDict | None = None) -> None:
    """Its rows as a JSON list, or the facts where they are more than that; for people a table with a closing line."""
    if as_json:
        print(json.dumps(facts or list(table.rows), ensure_ascii=False))
        return
    if table.columns:
        from rich.console import Console
        from rich.table import Table as Shown

        shown = Shown(title=table.title or None)
        for place, name in enumerate(table.columns):
            shown.add_column(name, justify="right" if place else "left", no_wrap=place > 0)
        for row in table.rows:
            shown.add_row(*(column(row) for column in table.columns.values()))
        Console(width=None if sys.stdout.isatty() else 120).print(shown)
    print(table.closing)


def print_expert_cards(cards: Mapping[str, "ExpertCard"], as_json: bool) -> None:
    """Experts' cards, by name."""
    if as_json:
        print(json.dumps({name: card.to_dict() for name, card in cards.items()}, ensure_ascii=False))
        return
    for name, card in cards.items():
        print(
            f"{name}: {card.algorithm}, mean return {card.mean_return:.1f} ± {card.standard_error:.1f} "
            f"over {card.episodes} episodes at H = {card.horizon}; seed {card.seed}, step {card.step}"
        )
        print(f"  {card.why}\n  made by: {card.command}")
