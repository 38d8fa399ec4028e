"""`aggrevated parse`: the tree of one handwritten page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from aggrevated.cli.options import AnyPath, File, RunFolder


@dataclass(frozen=True)
class Parse:
    """Parse a page of handwritten algebra: print the head of every symbol, and draw the tree under the handwriting.

    The file is InkML, or a picture (PNG, JPEG) of dark ink on light paper. Symbols are numbered in reading order from
    1, and 0 is ROOT.

    Try:
      aggrevated parse page.png --policy runs/algebra-aggrevated-regular
      aggrevated parse expression.inkml --policy runs/algebra-aggrevated-regular --json
    """

    command = "parse"
    file: Positional[Annotated[AnyPath, arg(metavar="FILE")]]
    """An InkML file, or a picture of a page."""
    policy: RunFolder
    """The folder of a run of 'aggrevated train algebra'."""
    out: File = None
    """The drawing is written here, with the endings .svg and .png; default: FILE's name with -tree, in this folder."""
    growth: bool = False
    """Draw also how the parse grew, in six steps: the same name with -growth."""
    json: bool = False
    """Print one JSON object, with the heads as a list."""

    def run(self) -> None:
        """Parse, draw and print."""
        import numpy as np

        from aggrevated.cli.output import print_facts
        from aggrevated.parsing.pictures.segmentation import read_page

        page = read_page(self.file)  # before torch is there: a large picture takes memory

        from aggrevated.plots.parse_tree import draw_growth, draw_tree
        from aggrevated.reports.pages import arcs_of, parse_page, some
        from aggrevated.runs.trials import runs_in

        heads, frames = parse_page(runs_in(self.policy)[0], page)
        out = self.out or Path(f"{self.file.stem}-tree")
        out = out.with_suffix("") if out.suffix in (".png", ".svg") else out
        drawings = {ending: str(out.with_name(f"{out.name}.{ending}")) for ending in ("svg", "png")}
        if self.growth:
            drawings["growth"] = str(out.with_name(f"{out.name}-growth.svg"))
        if self.json:
            print_facts({"heads": heads, "symbols": list(page.symbols), **drawings}, as_json=True)
        else:
            print("\n".join(arcs_of(page, heads)))
        draw_tree(page, np.array(heads), out, title=self.file.name)
        if self.growth:
            draw_growth(page, some(frames), out.with_name(f"{out.name}-growth"), title=self.file.name)
        if not self.json:
            print(f"drawings: {', '.join(drawings.values())}")
