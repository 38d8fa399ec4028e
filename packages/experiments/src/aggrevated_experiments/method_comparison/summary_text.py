"""Sentences that answer the question of a method comparison from its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from aggrevated.storage import JsonDict
from aggrevated_experiments.method_comparison.spec import StudySpec


def describe_answer(figure: StudySpec, cases: Sequence[JsonDict]) -> str:
    """Return the answer to the study's question."""
    describers = {"reached": describe_reached_cases, "difference": describe_differences}
    return " ".join(describers[part](figure, cases) for part in figure.tells)


def describe_reached_cases(figure: StudySpec, cases: Sequence[JsonDict]) -> str:
    """Describe in which cases most trials of each method reach the expert.

    Methods with the same cases share a clause.
    """
    by_cases: dict[str, list[str]] = {}
    apart = [case.label for case in figure.cases if case.apart]
    row = [case["label"] for case in cases if case["label"] not in apart]
    for number, label in enumerate(figure.methods):
        where = [case["label"] for case in cases if is_mostly_reached(case["methods"][number])]
        by_cases.setdefault(describe_cases(row, apart, where), []).append(label)
    threshold = describe_expert_threshold(figure, cases)
    verb = {False: "reaches", True: "reach"}
    clauses = [
        f"{join_with_and(labels)} {verb[len(labels) > 1]} {threshold} {where}" for where, labels in by_cases.items()
    ]
    return "In more than half of the trials, " + "; ".join(clauses) + "."


def describe_expert_threshold(figure: StudySpec, cases: Sequence[JsonDict]) -> str:
    """Describe what counts as having reached the expert: a ratio or a return."""
    if not figure.within:
        return "the expert's return"
    has_ratio = "ratio" in cases[0]["methods"][0]["trials"][0]
    return f"a ratio of {1 - figure.within:g}" if has_ratio else f"the expert's return less {figure.within:g}"


def is_mostly_reached(method: JsonDict) -> bool:
    """Return whether more than half of the trials reached the expert."""
    return bool(2 * method["reached"] > len(method["trials"]))


def describe_cases(row: Sequence[str], apart: Sequence[str], where: Sequence[str]) -> str:
    """Describe a subset of the cases: those in a row, and those apart from it."""
    inside = [case for case in where if case in row]
    if not where or len(where) == len(row) + len(apart):
        return describe_case_range(where, [*row, *apart])
    if len(inside) == len(row):
        return f"everywhere but at {join_with_and([case for case in apart if case not in where])}"
    if not inside:
        return f"only at {join_with_and(where)}"
    return describe_case_range(inside, row) + "".join(f" and at {case}" for case in apart if case in where)


def describe_case_range(where: Sequence[str], among: Sequence[str]) -> str:
    """Describe a subset of the cases in a row."""
    if len(where) == len(among):
        return "in every case"
    if not where:
        return "in no case"
    if list(where) == list(among[: len(where)]) and len(where) > 1:
        return f"up to {where[-1]} and not above"
    if list(where) == list(among[-len(where) :]) and len(where) > 1:
        return f"from {where[0]} on"
    if len(where) == len(among) - 1 > 1:
        return f"everywhere but at {next(case for case in among if case not in where)}"
    return f"only at {join_with_and(where)}"


def describe_differences(figure: StudySpec, cases: Sequence[JsonDict]) -> str:
    """Describe in which cases each method differs from the first, by the paired difference's interval."""
    first, *others = figure.methods
    clauses = []
    for number, label in enumerate(others, 1):
        signs: dict[str, list[str]] = {"less": [], "more": []}
        for case in cases:
            difference = case["methods"][number]["to_first"]
            if difference["high"] < 0 or difference["low"] > 0:
                interval = f"{difference['low']:+.3g} to {difference['high']:+.3g}"
                text = f"{case['label']} ({difference['difference']:+.3g}, {interval})"
                signs["less" if difference["high"] < 0 else "more"].append(text)
        parts = [f"{sign} at {join_with_and(where)}" for sign, where in signs.items() if where]
        clauses.append(f"{label} earns {' and '.join(parts)}" if parts else f"{label} is not told apart")
    return f"Beside {first}, paired by seeds with 95 % intervals: " + "; ".join(clauses) + "."


def join_with_and(phrases: Sequence[str]) -> str:
    """Return the words as "a, b and c"."""
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"
