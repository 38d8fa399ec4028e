"""What the numbers of a study of methods side by side say to its question, in words."""

from __future__ import annotations

from collections.abc import Sequence

from aggrevated.storage import JsonDict
from aggrevated_experiments.method_comparison.spec import StudySpec


def describe_answer(figure: StudySpec, cases: Sequence[JsonDict]) -> str:
    """What the numbers say to the question."""
    ways = {"reached": describe_reached_cases, "difference": describe_differences}
    return " ".join(ways[way](figure, cases) for way in figure.tells)


def describe_reached_cases(figure: StudySpec, cases: Sequence[JsonDict]) -> str:
    """In which cases most trials of each method reach the expert; methods of which the same holds in one sentence."""
    by_cases: dict[str, list[str]] = {}
    apart = [case.label for case in figure.cases if case.apart]
    row = [case["label"] for case in cases if case["label"] not in apart]
    for number, label in enumerate(figure.methods):
        where = [case["label"] for case in cases if is_mostly_reached(case["methods"][number])]
        by_cases.setdefault(describe_cases(row, apart, where), []).append(label)
    near = describe_expert_threshold(figure, cases)
    verb = {False: "reaches", True: "reach"}
    told = [f"{join_with_and(labels)} {verb[len(labels) > 1]} {near} {where}" for where, labels in by_cases.items()]
    return "In more than half of the trials, " + "; ".join(told) + "."


def describe_expert_threshold(figure: StudySpec, cases: Sequence[JsonDict]) -> str:
    """What counts as having reached it, in words: a ratio, or a return."""
    if not figure.within:
        return "the expert's return"
    rated = "ratio" in cases[0]["methods"][0]["trials"][0]
    return f"a ratio of {1 - figure.within:g}" if rated else f"the expert's return less {figure.within:g}"


def is_mostly_reached(method: JsonDict) -> bool:
    """Whether more than half of the trials reached the expert."""
    return bool(2 * method["reached"] > len(method["trials"]))


def describe_cases(row: Sequence[str], apart: Sequence[str], where: Sequence[str]) -> str:
    """Some of the cases, in words: those in a row, and those that stand apart."""
    inside = [case for case in where if case in row]
    if not where or len(where) == len(row) + len(apart):
        return describe_case_range(where, [*row, *apart])
    if len(inside) == len(row):
        return f"everywhere but at {join_with_and([case for case in apart if case not in where])}"
    if not inside:
        return f"only at {join_with_and(where)}"
    return describe_case_range(inside, row) + "".join(f" and at {case}" for case in apart if case in where)


def describe_case_range(where: Sequence[str], among: Sequence[str]) -> str:
    """Some of the cases, in words."""
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
    """Where each method differs from the first by more than chance, by the interval of the paired difference."""
    first, *others = figure.methods
    told = []
    for number, label in enumerate(others, 1):
        signs: dict[str, list[str]] = {"less": [], "more": []}
        for case in cases:
            found = case["methods"][number]["to_first"]
            if found["high"] < 0 or found["low"] > 0:
                words = f"{case['label']} ({found['difference']:+.3g}, {found['low']:+.3g} to {found['high']:+.3g})"
                signs["less" if found["high"] < 0 else "more"].append(words)
        parts = [f"{sign} at {join_with_and(where)}" for sign, where in signs.items() if where]
        told.append(f"{label} earns {' and '.join(parts)}" if parts else f"{label} is not told apart")
    return f"Beside {first}, paired by seeds with 95 % intervals: " + "; ".join(told) + "."


def join_with_and(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
