"""CROHME's handwritten expressions as pages: the symbols in reading order, and their heads from the MathML.

CROHME's <mrow>s nest to the right whatever the operators are, so a row is flattened into the tokens of `algebra`, which
knows the head rules and the precedence. What is not algebra (`,` `!` and the point of a decimal) stands side by side
with its neighbours.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.algebra import (
    BAR,
    CLOSING,
    OPENING,
    OPERATORS,
    ROOT_SIGN,
    Fraction,
    Raised,
    Root,
    Token,
    parse_expression_heads,
)
from aggrevated.parsing.pages.inkml import Group, Ink, Node, read_inkml
from aggrevated.parsing.pages.page import Page, Strokes
from aggrevated.storage import reraise_storage_errors

# What CROHME calls a symbol, and how a page shows it.
NAMES = {
    "\\times": "×", "times": "×", "\\cdot": "·", "\\div": "÷", "\\pm": "±", "−": "-", "\\{": "{", "\\}": "}",
    "\\sqrt": "√", "\\alpha": "α", "\\beta": "β", "\\gamma": "γ", "\\theta": "θ", "\\pi": "π", "\\sigma": "σ",
    "\\lambda": "λ", "\\mu": "μ", "\\Delta": "Δ", "\\omega": "ω", "\\infty": "∞",
    "\\sin": "sin", "\\cos": "cos", "\\tan": "tan", "\\log": "log", "\\lim": "lim",
    "\\lt": "<", "\\gt": ">", "\\leq": "≤", "\\geq": "≥", "\\neq": "≠", "ne": "≠",
}  # fmt: skip

NOT_CORE = frozenset(".,!{}")
FEWEST = 3
MOST = 30

LEAVES = {"mi", "mn", "mo", "mtext"}
ROWS = {"math", "mrow", "mstyle"}
SCRIPTS = {"msup": 2, "msub": 2, "msubsup": 3}  # how many parts each has


def build_page(ink: Ink) -> Page:
    """The expression as a page, one head for every symbol, or a `DataError` that says what stands against it."""
    if ink.math is None:
        raise DataError(f"{ink.path}: it has no MathML (<math>), so no heads are known; add it or leave the file out")
    found = _Symbols(ink.path, {symbol.href: symbol for symbol in ink.symbols if symbol.href})
    tokens = found.parse_tokens(ink.math)
    found.check_all_used(ink.symbols)
    try:
        heads = parse_expression_heads([tokens])
    except DataError as error:
        raise DataError(
            f"{ink.path}: <math> is not an expression ({error}); correct it or leave the file out"
        ) from error
    strokes = tuple(tuple(ink.strokes[id] for id in symbol.strokes) for symbol in found.groups)
    return Page(ink.path.stem, ink.writer or ink.path.stem, tuple(found.labels), heads, strokes)


def is_core(ink: Ink) -> bool:
    """One baseline, none of `. , ! { }`, 3 to 30 symbols, at least one operator or relation."""
    if ink.math is None or not _collect_tags(ink.math) <= LEAVES | ROWS:
        return False
    labels = {NAMES.get(symbol.label, symbol.label) for symbol in ink.symbols}
    return FEWEST <= len(ink.symbols) <= MOST and not labels & NOT_CORE and bool(labels & OPERATORS)


def _collect_tags(node: Node) -> set[str]:
    return {node.tag}.union(*map(_collect_tags, node.children))


@dataclass(frozen=True)
class Folder:
    """The expressions of a folder of InkML files, and what was left out of it."""

    pages: tuple[Page, ...]  # by the names of their files
    core: tuple[bool, ...]  # of each, whether it is of the core
    skipped: Mapping[str, tuple[str, ...]]  # by reason, the files that cannot be used

    @property
    def counts(self) -> Counter[str]:
        """How many files were left out for each reason."""
        return Counter({reason: len(files) for reason, files in self.skipped.items()})

    @property
    def notice(self) -> str:
        """A line for people, empty where nothing was left out."""
        total = sum(self.counts.values())
        kinds = self.counts.most_common()
        if not total:
            return ""
        named = "; ".join(f"{count} x {reason}" for reason, count in kinds[:NAMED])
        more = f"; {len(kinds) - NAMED} reasons more" if len(kinds) > NAMED else ""
        return f"{total} of {total + len(self.pages)} InkML files cannot be used and are left out: {named}{more}"


NAMED = 4  # reasons in a line, the most frequent


def read_folder(folder: Path) -> Folder:
    """All InkML files of a folder; one in which nothing can be used is a `DataError`."""
    return read_files(
        folder, find_inkml_files(folder, "give the folder that holds them, such as train/ or dev/"), build_page
    )


Files: TypeAlias = tuple[tuple[Path, int, int], ...]  # with their times and sizes


def find_inkml_files(folder: Path, remedy: str) -> Files:
    """The InkML files of a folder; none is a `DataError` with that remedy."""
    with reraise_storage_errors(folder):
        files = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".inkml")
        as_they_are = tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files)
    if not files:
        raise DataError(f"{folder} holds no .inkml files; {remedy}")
    return as_they_are


@lru_cache(maxsize=4)  # people are told what is left out before the pages are used
def read_files(folder: Path, files: Files, page_of: Callable[[Ink], Page]) -> Folder:
    """The pages of these files, each as `page_of` makes it of its ink."""
    pages = []
    core = []
    skipped: dict[str, tuple[str, ...]] = {}
    for path, _, _ in files:
        try:
            ink = read_inkml(path)
            pages.append(page_of(ink))
            core.append(is_core(ink))
        except DataError as error:
            reason = strip_file_details(str(error), path)
            skipped[reason] = (*skipped.get(reason, ()), path.name)
            first = error
    if not pages:
        raise DataError(f"none of the {len(files)} InkML files in {folder} can be used: {first}") from first
    return Folder(tuple(pages), tuple(core), skipped)


def strip_file_details(message: str, path: Path) -> str:
    """What stands against a file, without its name, its ids and the remedy, so that files can be counted by it."""
    without_place = re.sub(r"^(<[^>]*>: )", "", message.removeprefix(f"{path}: "))
    return re.sub(r"(?<!operator )('[^']*'|\bcolumn \d+|\bline \d+)", "…", without_place.split(";")[0])


def load(folder: Path, *, core: bool = False) -> list[Page]:
    """The pages of all InkML files in the folder that can be used (only the core ones, if asked), by name."""
    found = read_folder(folder)
    pages = [page for page, is_of_it in zip(found.pages, found.core, strict=True) if is_of_it or not core]
    if not pages:
        raise DataError(
            f"none of the {len(found.pages)} expressions in {folder} is on one line of {FEWEST} to {MOST} symbols with "
            f"an operator and without {' '.join(sorted(NOT_CORE))}; give a folder that has some"
        )
    return pages


def stack_expressions(pages: list[Page], generator: np.random.Generator) -> list[Page]:
    """Pages of 1 to 3 lines: the expressions of each writer, each used once, shuffled and stacked."""
    by_writer: dict[str, list[Page]] = {}
    for one in pages:
        by_writer.setdefault(one.writer, []).append(one)
    composed = []
    for _, lines in sorted(by_writer.items()):
        left = [lines[place] for place in generator.permutation(len(lines))]
        while left:
            count = int(generator.integers(1, 4))
            composed.append(stack(left[:count], generator))
            left = left[count:]
    return composed


def stack(lines: list[Page], generator: np.random.Generator) -> Page:
    """The lines below each other with gaps; the root of the first is the root, and heads the roots of the others."""
    starts = np.cumsum([0, *map(len, lines)])
    root = int(np.flatnonzero(lines[0].heads == 0)[0]) + 1
    heads = [np.where(line.heads == 0, root, line.heads + start) for line, start in zip(lines, starts, strict=False)]
    heads[0] = lines[0].heads
    ink: list[Strokes] = []
    bottom = 0.0
    for line in lines:
        boxes = line.boxes
        size = float(np.median((boxes[:, 2:] - boxes[:, :2]).max(axis=1))) or 1.0
        corner = np.array([boxes[:, 0].min(), boxes[:, 1].min()])
        shift = np.array([generator.uniform(0, size), bottom + generator.uniform(0.5, 1.5) * size]) - corner
        ink += [tuple(stroke + shift for stroke in strokes) for strokes in line.ink]
        bottom = float(boxes[:, 3].max() + shift[1])
    symbols = tuple(symbol for line in lines for symbol in line.symbols)
    name = "+".join(line.name for line in lines)
    return Page(name, lines[0].writer, symbols, np.concatenate(heads), tuple(ink))


# From MathML to tokens.


@dataclass
class _Symbols:
    """Collects the symbols in reading order while it turns MathML into tokens."""

    path: Path
    by_href: dict[str, Group]
    groups: list[Group] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)

    def parse_tokens(self, node: Node) -> list[Token]:
        """The tokens of `node`: one call for each level of the MathML."""
        if node.tag in ROWS:
            return [token for child in node.children for token in self.parse_tokens(child)]
        if node.tag in LEAVES:
            return self.parse_leaf(node)
        if node.tag in SCRIPTS:  # the base may be no more than the `)` of what is raised
            base, *scripts = self.get_parts(node, SCRIPTS[node.tag])
            low = node.tag != "msup"  # the first script is an index, a second one is an exponent
            tokens = self.parse_tokens(base)
            return tokens + [Raised(tuple(self.parse_tokens(part)), low and i == 0) for i, part in enumerate(scripts)]
        if node.tag == "mfrac":
            above, below = self.get_parts(node, 2)
            numerator = tuple(self.parse_tokens(above))
            bar = self.take(node, BAR)
            return [Fraction(numerator, tuple(self.parse_tokens(below)), bar)]
        if node.tag == "msqrt":
            self.take(node, ROOT_SIGN)
            return [Root(tuple(token for child in node.children for token in self.parse_tokens(child)))]
        if node.tag == "mroot":
            under, index = self.get_parts(node, 2)
            first = tuple(self.parse_tokens(index))
            self.take(node, ROOT_SIGN)
            return [Root(tuple(self.parse_tokens(under)), first)]
        rules = ", ".join(sorted({*LEAVES, *ROWS, *SCRIPTS, "mfrac", "msqrt", "mroot"}))
        raise self.make_error(node, f"there is no rule for its heads, only for {rules}; leave the file out")

    def parse_leaf(self, node: Node) -> list[Token]:
        if node.children:
            raise self.make_error(node, "it holds other elements; it should hold one symbol")
        if not node.id:  # without ink, such as an invisible ×
            return []
        label = self.take(node)
        if node.tag == "mo" and not label.isalnum() and label not in OPERATORS | OPENING | CLOSING | NOT_CORE:
            raise self.make_error(node, f"there is no rule for the heads of the operator {label!r}; leave the file out")
        return [label]

    def get_parts(self, node: Node, count: int) -> tuple[Node, ...]:
        if len(node.children) != count:
            raise self.make_error(node, f"it has {len(node.children)} parts and not {count}; complete it")
        return node.children

    def take(self, node: Node, label: str = "") -> str:
        """The label of the next symbol in reading order, which is the ink of `node`."""
        group = self.by_href.pop(node.id, None)
        if group is None:
            raise self.make_error(node, "no symbol refers to it; give its id as the href of a <traceGroup>")
        label = label or group.label or node.text
        if not label:
            raise self.make_error(node, "its symbol has no label; write one into the <traceGroup>")
        self.groups.append(group)
        self.labels.append(NAMES.get(label, label))
        return self.labels[-1]

    def check_all_used(self, groups: tuple[Group, ...]) -> None:
        for group in groups:
            if group.href in self.by_href or not group.href:
                raise DataError(
                    f"{self.path}: the symbol {group.label!r} of stroke {group.strokes[0]!r} refers to {group.href!r}, "
                    "which is no symbol of the MathML; correct its href"
                )

    def make_error(self, node: Node, what: str) -> DataError:
        return DataError(f"{self.path}: <{node.tag} id={node.id!r}>: {what}")
