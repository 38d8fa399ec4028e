"""Pages from CROHME's handwritten expressions: symbols in reading order, and heads from the MathML.

CROHME's <mrow>s nest to the right for all operators. A row is therefore flattened into the tokens of
`algebra`, which has the head rules and the precedence. Other symbols (`,` `!` and the decimal point) are
juxtaposed factors.
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

# labels of symbols in CROHME, and on a page
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
SCRIPTS = {"msup": 2, "msub": 2, "msubsup": 3}  # number of children


def build_page(ink: Ink) -> Page:
    """Convert the ink of one expression to a page.

    Args:
        ink: strokes, symbols and MathML of the expression.

    Returns:
        The page, with one head for every symbol.

    Raises:
        DataError: the MathML is missing, unsupported or inconsistent with the symbols.
    """
    if ink.math is None:
        raise DataError(f"{ink.path}: it has no MathML (<math>), so no heads are known; add it or leave the file out")
    collector = _Symbols(ink.path, {symbol.href: symbol for symbol in ink.symbols if symbol.href})
    tokens = collector.parse_tokens(ink.math)
    collector.check_all_used(ink.symbols)
    try:
        heads = parse_expression_heads([tokens])
    except DataError as error:
        raise DataError(
            f"{ink.path}: <math> is not an expression ({error}); correct it or leave the file out"
        ) from error
    strokes = tuple(tuple(ink.strokes[id] for id in symbol.strokes) for symbol in collector.groups)
    return Page(ink.path.stem, ink.writer or ink.path.stem, tuple(collector.labels), heads, strokes)


def is_core(ink: Ink) -> bool:
    """Return whether ink has one baseline, 3 to 30 symbols, an operator or relation, no `. , ! { }`."""
    if ink.math is None or not _collect_tags(ink.math) <= LEAVES | ROWS:
        return False
    labels = {NAMES.get(symbol.label, symbol.label) for symbol in ink.symbols}
    return FEWEST <= len(ink.symbols) <= MOST and not labels & NOT_CORE and bool(labels & OPERATORS)


def _collect_tags(node: Node) -> set[str]:
    return {node.tag}.union(*map(_collect_tags, node.children))


@dataclass(frozen=True)
class Folder:
    """Expressions of a folder of InkML files, and the files that cannot be used.

    Attributes:
        pages: pages, sorted by the names of their files.
        core: whether each page is a core expression, see `is_core`.
        skipped: names of the files that cannot be used, by reason.
    """

    pages: tuple[Page, ...]
    core: tuple[bool, ...]
    skipped: Mapping[str, tuple[str, ...]]

    @property
    def counts(self) -> Counter[str]:
        """Return the number of unusable files for each reason."""
        return Counter({reason: len(files) for reason, files in self.skipped.items()})

    @property
    def notice(self) -> str:
        """Return a message about the unusable files; empty if all files can be used."""
        total = sum(self.counts.values())
        reasons = self.counts.most_common()
        if not total:
            return ""
        listed = "; ".join(f"{count} x {reason}" for reason, count in reasons[:NAMED])
        more = f"; {len(reasons) - NAMED} reasons more" if len(reasons) > NAMED else ""
        return f"{total} of {total + len(self.pages)} InkML files cannot be used and are left out: {listed}{more}"


NAMED = 4  # number of reasons in a message, the most frequent ones


def read_folder(folder: Path) -> Folder:
    """Read all InkML files of a folder.

    Raises:
        DataError: the folder has no InkML files, or none of them can be used.
    """
    return read_files(
        folder, find_inkml_files(folder, "give the folder that holds them, such as train/ or dev/"), build_page
    )


Files: TypeAlias = tuple[tuple[Path, int, int], ...]  # path, modification time (ns) and size (bytes)


def find_inkml_files(folder: Path, remedy: str) -> Files:
    """Return the InkML files of a folder, sorted by path.

    Args:
        folder: folder to search, without its subfolders.
        remedy: remedy in the error's message.

    Returns:
        Paths, modification times (ns) and sizes (bytes).

    Raises:
        DataError: the folder has no InkML files.
    """
    with reraise_storage_errors(folder):
        files = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".inkml")
        entries = tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files)
    if not files:
        raise DataError(f"{folder} holds no .inkml files; {remedy}")
    return entries


@lru_cache(maxsize=4)  # the folder is read for the message about unusable files, and again for its pages
def read_files(folder: Path, files: Files, page_of: Callable[[Ink], Page]) -> Folder:
    """Read InkML files as pages.

    Args:
        folder: folder of the files, for messages.
        files: files with times and sizes, which make the cache miss if a file changes.
        page_of: function that converts ink to a page.

    Returns:
        The pages, and the files that cannot be used.

    Raises:
        DataError: none of the files can be used.
    """
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
    """Return an error message without file name, ids and remedy, so that files can be counted by reason."""
    shortened = re.sub(r"^(<[^>]*>: )", "", message.removeprefix(f"{path}: "))
    return re.sub(r"(?<!operator )('[^']*'|\bcolumn \d+|\bline \d+)", "…", shortened.split(";")[0])


def load(folder: Path, *, core: bool = False) -> list[Page]:
    """Return the pages of the usable InkML files of a folder.

    Args:
        folder: folder of InkML files.
        core: whether only core expressions are returned, see `is_core`.

    Returns:
        The pages, sorted by the names of their files.

    Raises:
        DataError: the folder has no such pages.
    """
    contents = read_folder(folder)
    pages = [page for page, is_core_page in zip(contents.pages, contents.core, strict=True) if is_core_page or not core]
    if not pages:
        raise DataError(
            f"none of the {len(contents.pages)} expressions in {folder} is on one line of {FEWEST} to {MOST} symbols "
            f"with an operator and without {' '.join(sorted(NOT_CORE))}; give a folder that has some"
        )
    return pages


def stack_expressions(pages: list[Page], generator: np.random.Generator) -> list[Page]:
    """Stack the expressions of each writer, in random order and each once, to pages of 1 to 3 lines."""
    by_writer: dict[str, list[Page]] = {}
    for page in pages:
        by_writer.setdefault(page.writer, []).append(page)
    composed = []
    for _, lines in sorted(by_writer.items()):
        remaining = [lines[index] for index in generator.permutation(len(lines))]
        while remaining:
            count = int(generator.integers(1, 4))
            composed.append(stack(remaining[:count], generator))
            remaining = remaining[count:]
    return composed


def stack(lines: list[Page], generator: np.random.Generator) -> Page:
    """Stack lines on one page with random gaps; the root of the first line heads the roots of the others."""
    starts = np.cumsum([0, *map(len, lines)])
    root = int(np.flatnonzero(lines[0].heads == 0)[0]) + 1
    heads = [np.where(line.heads == 0, root, line.heads + start) for line, start in zip(lines, starts, strict=False)]
    heads[0] = lines[0].heads
    ink: list[Strokes] = []
    bottom = 0.0
    for line in lines:
        boxes = line.boxes
        line_height = float(np.median((boxes[:, 2:] - boxes[:, :2]).max(axis=1))) or 1.0
        corner = np.array([boxes[:, 0].min(), boxes[:, 1].min()])
        shift = (
            np.array([generator.uniform(0, line_height), bottom + generator.uniform(0.5, 1.5) * line_height]) - corner
        )
        ink += [tuple(stroke + shift for stroke in strokes) for strokes in line.ink]
        bottom = float(boxes[:, 3].max() + shift[1])
    symbols = tuple(symbol for line in lines for symbol in line.symbols)
    name = "+".join(line.name for line in lines)
    return Page(name, lines[0].writer, symbols, np.concatenate(heads), tuple(ink))


# From MathML to tokens.


@dataclass
class _Symbols:
    """Converter of MathML to tokens that collects the symbols in reading order."""

    path: Path
    by_href: dict[str, Group]
    groups: list[Group] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)

    def parse_tokens(self, node: Node) -> list[Token]:
        """Return the tokens of `node` and all nodes below it."""
        if node.tag in ROWS:
            return [token for child in node.children for token in self.parse_tokens(child)]
        if node.tag in LEAVES:
            return self.parse_leaf(node)
        if node.tag in SCRIPTS:  # the base may be only the `)` of the bracketed expression
            base, *scripts = self.get_parts(node, SCRIPTS[node.tag])
            low = node.tag != "msup"  # the first script is an index, the second one is an exponent
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
        raise self.make_error(node, f"it has no head rule, only {rules} have one; leave the file out")

    def parse_leaf(self, node: Node) -> list[Token]:
        if node.children:
            raise self.make_error(node, "it holds other elements; it should hold one symbol")
        if not node.id:  # without ink, such as an invisible ×
            return []
        label = self.take(node)
        if node.tag == "mo" and not label.isalnum() and label not in OPERATORS | OPENING | CLOSING | NOT_CORE:
            raise self.make_error(node, f"it has no head rule for the operator {label!r}; leave the file out")
        return [label]

    def get_parts(self, node: Node, count: int) -> tuple[Node, ...]:
        if len(node.children) != count:
            raise self.make_error(node, f"it has {len(node.children)} parts and not {count}; complete it")
        return node.children

    def take(self, node: Node, label: str = "") -> str:
        """Add the symbol of `node` as the next one in reading order and return its label."""
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
        """Raise a `DataError` for a symbol that is not in the MathML."""
        for group in groups:
            if group.href in self.by_href or not group.href:
                raise DataError(
                    f"{self.path}: the symbol {group.label!r} of stroke {group.strokes[0]!r} refers to {group.href!r}, "
                    "which is not a symbol of the MathML; correct its href"
                )

    def make_error(self, node: Node, problem: str) -> DataError:
        return DataError(f"{self.path}: <{node.tag} id={node.id!r}>: {problem}")
