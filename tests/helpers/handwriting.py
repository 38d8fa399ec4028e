"""Handwritten expressions as InkML files like CROHME's, in generated handwriting: ink, symbols, MathML and writer."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.handwriting import write_page

LINES = ("a+b=c", "x-3=y", "2x=10", "a(b+c)=d", "x=7-y", "4+5=9", "z=x+y", "m=n-p", "3k=s", "t=u+v+w", "6-e=1", "8=y+z")
LATEX = {"×": "\\times"}  # CROHME's names of symbols that it renames


def is_projective(heads: Array) -> bool:
    """Return whether the arcs have no crossing and no cycle and one root, as a transition system builds them."""
    n = len(heads)
    arcs = [(min(h, d), max(h, d)) for d, h in enumerate(heads.tolist(), 1)]
    crossing = any(a < c < b < d for a, b in arcs for c, d in arcs)
    ancestors = np.concatenate([[0], heads])  # of symbols 0 … n, one step up; doubled until more than n steps
    for _ in range(n.bit_length()):
        ancestors = ancestors[ancestors]
    return not crossing and not ancestors.any() and int((heads == 0).sum()) == 1


def inkml(line: str, writer: int, seed: int = 0) -> str:
    """Return one line of algebra in that writer's hand, with MathML nested to the right as CROHME's."""
    page = write_page([line], writer, seed)
    traces = groups = nested = ""
    for k, (symbol, strokes) in enumerate(zip(page.symbols, page.ink, strict=True)):
        label = LATEX.get(symbol, symbol)
        views = ""
        for s, stroke in enumerate(strokes):
            points = ", ".join(f"{x:.2f} {y:.2f}" for x, y in stroke)
            traces += f'<trace id="{k}.{s}">{points}</trace>'
            views += f'<traceView traceDataRef="{k}.{s}"/>'
        groups += f'<traceGroup><annotation type="truth">{label}</annotation>{views}<annotationXML href="s{k}"/>'
        groups += "</traceGroup>"
    for k, symbol in reversed(list(enumerate(page.symbols))):
        tag = "mn" if symbol.isdigit() else "mi" if symbol.isalpha() else "mo"
        nested = f'<mrow><{tag} xml:id="s{k}">{LATEX.get(symbol, symbol)}</{tag}>{nested}</mrow>'
    return (
        f'<ink><annotation type="writer">w{writer}</annotation><annotationXML><math>{nested}</math></annotationXML>'
        f"{traces}<traceGroup>{groups}</traceGroup></ink>"
    )


def write_folder(folder: Path, expressions: Iterable[tuple[str, int]]) -> Path:
    """Write one file for each (line, writer)."""
    folder.mkdir(parents=True)
    for number, (line, writer) in enumerate(expressions):
        (folder / f"{number:03}.inkml").write_text(inkml(line, writer, number))
    return folder


def crohme_like(folder: Path) -> Path:
    """Write train/ with twelve lines by twelve writers, and dev/ with three lines by two other writers."""
    write_folder(folder / "train", zip(LINES, range(12), strict=True))
    write_folder(folder / "dev", [("b=a-c", 20), ("5x=y", 21), ("9-r=d", 20)])
    return folder
