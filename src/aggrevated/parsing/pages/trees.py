"""Which heads make a tree that a parser can build: one root, no circle, no crossing."""

from collections.abc import Sequence
from itertools import combinations

from aggrevated.core.arrays import Array
from aggrevated.errors import DataError


def check_tree(heads: Sequence[int] | Array) -> None:
    """A `DataError` that names symbols by number, unless the heads [n] are those of a projective tree with one root.

    Symbol i of n has number i + 1. ROOT is 0 and stands before the first symbol, so that its arc must not be crossed
    either: then every transition system here can make all arcs.
    """
    arcs = [(dependent, int(head)) for dependent, head in enumerate(heads, 1)]
    _require_numbers(arcs)
    _require_one_root(arcs)
    _require_no_circle(dict(arcs))
    for one, other in combinations(arcs, 2):
        if _cross(one, other):
            raise DataError(f"{_said(one)} crosses {_said(other)}; give one of these symbols another head")


def _require_numbers(arcs: Sequence[tuple[int, int]]) -> None:
    if not arcs:
        raise DataError("there is no symbol; write at least one")
    for dependent, head in arcs:
        if not 0 <= head <= len(arcs):
            raise DataError(f"the head of symbol {dependent} is {head}; give a number from 0, ROOT, to {len(arcs)}")
        if head == dependent:
            raise DataError(f"symbol {dependent} is its own head; give it another")


def _require_one_root(arcs: Sequence[tuple[int, int]]) -> None:
    roots = [dependent for dependent, head in arcs if head == 0]
    if not roots:
        raise DataError("no symbol depends on ROOT; choose one that does")
    if len(roots) > 1:
        raise DataError(f"the symbols {_listed(roots)} depend on ROOT; keep one of them there")


def _require_no_circle(heads: dict[int, int]) -> None:
    reach_root = {0}
    for start in heads:
        way = [start]
        while way[-1] not in reach_root:
            following = heads[way[-1]]
            if following in way:
                circle = sorted(way[way.index(following) :])
                raise DataError(
                    f"the symbols {_listed(circle)} depend on each other in a circle; give one another head"
                )
            way.append(following)
        reach_root.update(way)


def _cross(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether exactly one end of the second arc lies between the ends of the first, and the other beyond them."""
    low, high = sorted(one)
    first, last = sorted(other)
    return low < first < high < last or first < low < last < high


def _said(arc: tuple[int, int]) -> str:
    dependent, head = arc
    return f"the arc from symbol {dependent} to {f'its head {head}' if head else 'ROOT'}"


def _listed(numbers: Sequence[int]) -> str:
    """As people list a few; the first ones, where they are many."""
    if len(numbers) > 6:
        return f"{', '.join(map(str, numbers[:6]))} and {len(numbers) - 6} more"
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
