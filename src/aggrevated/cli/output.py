"""What people and machines read: results on standard output, notes and warnings on standard error."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aggrevated.theory.study import Study

Facts = dict[str, Any]


def note(sentence: str) -> None:
    """A line for people, on standard error."""
    print(sentence, file=sys.stderr, flush=True)


def print_facts(facts: Facts, as_json: bool) -> None:
    """One object: as JSON, or a line for each fact."""
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<{width}}  {shown(value)}")


def shown(value: Any) -> str:
    """A number in four digits; UAS by kind as a list of "kind UAS (symbols)"."""
    if isinstance(value, dict):
        return ", ".join(f"{kind} {one['uas']:.2f} ({one['symbols']})" for kind, one in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def print_result(results: Sequence[Facts], folder: Path, as_json: bool) -> None:
    """The result of one run; of several trials their means, with the trials under `trials` in JSON."""
    if len(results) == 1:
        print_facts(results[0], as_json)
        return
    means = {
        name: mean([result[name] for result in results])
        for name, value in results[0].items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and name not in ("seed", "iterations", "episodes")
    }
    kinds = {name: over_trials([result[name] for result in results]) for name in KINDS if name in results[0]}
    facts = results[0] | means | kinds | {"run": str(folder)}
    facts.pop("weights_sha256", None)
    if as_json:
        facts["weights_sha256"] = [result["weights_sha256"] for result in results]
        facts["trials"] = list(results)
    print_facts(facts, as_json)


KINDS = ("by_symbol", "by_arc_length")


def over_trials(trials: Sequence[dict[str, Facts]]) -> dict[str, Facts]:
    """UAS by kind of symbol, mean over trials that parsed the same pages."""
    return {kind: one | {"uas": mean([trial[kind]["uas"] for trial in trials])} for kind, one in trials[0].items()}


def mean(numbers: Sequence[float | None]) -> float | None:
    """Their mean; None if one of them is."""
    known = [number for number in numbers if number is not None]
    return sum(known) / len(known) if len(known) == len(numbers) else None


def print_table(rows: Sequence[Facts], as_json: bool, closing: str) -> None:
    """Rows as a JSON list, or as a table with a closing line."""
    if as_json:
        print(json.dumps(list(rows), ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for name in ("method", "trials", "best", "test", "expert", "ratio", "IQM", "95 %"):
        table.add_column(name, justify="left" if name == "method" else "right", no_wrap=name != "method")
    for row in rows:
        returns = (f"{row[name]:.{row['digits']}f}" for name in ("best_return", "test_return", "expert_return"))
        interval = f"{row['ratio_low']:.3f}-{row['ratio_high']:.3f}"
        ratios = (f"{row['ratio_mean']:.3f}", f"{row['ratio_iqm']:.3f}", interval)
        table.add_row(row["label"], str(row["trials"]), *returns, *ratios)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    print(closing)


def print_list(rows: Sequence[Facts], as_json: bool, closing: str) -> None:
    """Objects as a JSON list, or a closing line that says where they are."""
    print(json.dumps(list(rows), ensure_ascii=False) if as_json else closing)


def print_regrets(study: "Study", facts: Facts, as_json: bool, closing: str) -> None:
    """A study of the theory: as JSON, or a table with the bound and a closing line."""
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    from aggrevated.theory.experiments import table

    shown = Table(title=study.title)
    for name in ("algorithm", "regret at N", "least", "most", "exponent in N", "in S"):
        shown.add_column(name, justify="left" if name == "algorithm" else "right")
    for row in table(study):
        numbers = (f"{number:,.1f}" for number in (row.regret, row.least, row.most))
        exponents = ("" if x is None else f"{x:.2f}" for x in (row.exponent_n, row.exponent_s))
        shown.add_row(row.algorithm, *numbers, *exponents)
    Console(width=None if sys.stdout.isatty() else 120).print(shown)
    ratio = facts["largest_ratio_to_bound"]
    print(
        f"{study.bound_label}: {facts['bound']:,.1f} at N; the largest ratio of regret to it, in any trial: {ratio:.3f}"
    )
    print(closing)


def print_scores(rows: Sequence[Facts], as_json: bool, closing: str) -> None:
    """UAS of each row: as a JSON list, or as a table with a closing line."""
    if as_json:
        print(json.dumps(list(rows), ensure_ascii=False))
        return
    width = max(len(row["label"]) for row in rows)
    for row in rows:
        if "uas_micro" in row:
            of_paper = "" if row["paper"] is None else f"  (paper, on other data: {row['paper']:.3f})"
            print(f"{row['label']:<{width}}  {row['uas_micro']:.3f}{of_paper}")
    print(closing)


def print_cards(cards: dict[str, Facts], as_json: bool) -> None:
    """Experts' cards, by name."""
    if as_json:
        print(json.dumps(cards, ensure_ascii=False))
        return
    for name, card in cards.items():
        print(
            f"{name}: {card['algorithm']}, mean return {card['mean_return']:.1f} ± {card['standard_error']:.1f}",
            end=" ",
        )
        print(f"over {card['episodes']} episodes at H = {card['horizon']}; seed {card['seed']}, step {card['step']}")
        print(f"  {card['why']}")
        print(f"  made by: {card['command']}")
