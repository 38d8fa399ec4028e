"""Command `aggrevated parse`: handwritten pages as expressions and trees."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from aggrevated.cli.options import AnyPath, File, Folder
from aggrevated.core.errors import AggrevatedError, DataError, UsageError
from aggrevated_reader.cli.draw_options import make_drawing_paths

if TYPE_CHECKING:
    from aggrevated.storage import JsonDict
    from aggrevated_reader.pages_report import PageReader, ParsedPage


@dataclass(frozen=True)
class Parse:
    """Read handwritten algebra: print expressions and trees, with the head of every symbol.

    A page is a picture (PNG, JPEG, WebP), a PDF or InkML; its expression is printed as text and LaTeX. For a
    folder, all such files are read, and unreadable files are counted. Symbols have numbers in reading order
    from 1; 0 is ROOT.

    Try:
      aggrevated parse page.png --draw
      aggrevated parse scans/ --json > parsed.jsonl
    """

    command = "parse"
    files: Positional[Annotated[tuple[AnyPath, ...], arg(metavar="FILE [FILE ...]")]]
    """Pictures, PDFs, InkML files, or folders of them."""
    policy: Folder = None
    """The folder of a run of 'train reader' or 'train algebra', or a reader's file. Default: the builtin reader."""
    draw: bool = False
    """Draw the tree of each page under its handwriting, as .svg and .png."""
    show_growth: bool = False
    """Also draw the growth of the parse in six steps, to a file with -growth in its name."""
    steps: bool = False
    """Also print the parse step by step, with the cost of each transition if an InkML file has the gold tree."""
    out: File = None
    """The name of the drawing; for several files, the folder for them. Default: FILE-tree in the current folder."""
    strict: bool = False
    """Exit with code 65 if a page does not look like algebra or a file cannot be read."""
    verbose: bool = False
    """List the files of pages that cannot be read."""
    json: bool = False
    """Print one JSON object per page, one per line."""

    def run(self) -> None:
        """Read, print and draw the pages."""
        from aggrevated_reader.pages_report import find_page_files, load_reader
        from aggrevated_reader.pictures.segmentation import segment_page

        if not self.files:
            raise UsageError("no file is given to parse; give a picture, a PDF, InkML, or a folder of these")
        files = find_page_files(self.files)
        if files != list(self.files[:1]):
            self._show_all(load_reader(self.policy), files)
            return
        # Before torch is imported: a large picture takes memory, and a bad one fails at once.
        segmented = segment_page(files[0])
        reader = load_reader(self.policy)
        self._show(reader.parse_segmented(files[0], segmented), reader, alone=True)

    def _show_all(self, reader: PageReader, files: list[Path]) -> None:
        from aggrevated.cli.console import Progress, print_note
        from aggrevated_reader.pages_report import count_failures, extract_reason

        failed: list[tuple[Path, AggrevatedError]] = []
        doubtful: list[Path] = []
        with Progress("pages", len(files)) as progress:
            for done, (file, result) in enumerate(zip(files, reader.parse_all(files), strict=True), 1):
                if isinstance(result, AggrevatedError):
                    failed.append((file, result))
                    if self.verbose:
                        print_note(f"left out {file}: {extract_reason(file, result)}")
                else:
                    self._show(result, reader, alone=False)
                    doubtful += [file] if result.doubts else []
                progress.report(done, f"{done - len(failed)} read", last=done == len(files))
        for why, count in count_failures(failed).most_common():
            print_note(f"left out {count} of {len(files)} files: {why}")
        if len(failed) == len(files):
            raise DataError(f"none of the {len(files)} files could be read; give pictures, PDFs or InkML of algebra")
        if self.strict and (failed or doubtful):
            raise DataError(
                f"{len(failed)} of {len(files)} files could not be read, and {len(doubtful)} pages do not look like "
                "algebra; check these, or leave --strict out"
            )

    def _show(self, parsed: ParsedPage, reader: PageReader, alone: bool) -> None:
        """Print one page, and warn if it does not look like algebra."""
        from aggrevated.cli.console import print_dict, print_note
        from aggrevated_reader.pages_report import format_arcs
        from aggrevated_reader.parse_steps import format_steps

        drawings = self._list_drawing_paths(parsed.file, alone)
        steps = self._list_steps(parsed, reader)
        if self.json:
            print_dict(parsed.to_dict() | ({"steps": steps} if self.steps else {}) | drawings, as_json=True)
        elif alone:
            has_labels = set(parsed.reading.labels) != {"?"}
            in_one_line = " \\\\ ".join(parsed.latex.splitlines())
            expression = [parsed.text, f"LaTeX: {in_one_line}"] if has_labels else []
            print("\n".join([*expression, *format_arcs(parsed)]))
        else:
            print(f"{parsed.file}: {' / '.join(parsed.text.splitlines())}")
        if steps and not self.json:
            print("\n".join(format_steps(steps, parsed.reading.labels)))
        if parsed.doubts:
            print_note(f"{parsed.file} may not be a page of algebra, or may be misread: {'; '.join(parsed.doubts)}")
        self._draw(parsed, reader, drawings)
        if drawings and alone and not self.json:
            print(f"drawings: {', '.join(drawings.values())}")
        if alone and self.strict and parsed.doubts:
            raise DataError(f"{parsed.file} does not look like algebra; check it, or leave --strict out")

    def _list_steps(self, parsed: ParsedPage, reader: PageReader) -> list[JsonDict]:
        """Return the steps of the parse if --steps is set."""
        if not self.steps or not len(parsed.page):
            return []
        from aggrevated_reader.parse_steps import has_gold_heads, list_parse_steps

        return list_parse_steps(*reader.reads.make_parser(parsed.seen.page), known=has_gold_heads(parsed.seen.page))

    def _list_drawing_paths(self, file: Path, alone: bool) -> dict[str, str]:
        """Return the paths of the drawings by ending."""
        if not (self.draw or self.show_growth or self.out):
            return {}
        drawings, grown = (make_drawing_paths(file, self.out, alone, suffix) for suffix in ("", "-growth"))
        return drawings | ({"growth": grown["svg"]} if self.show_growth else {})

    def _draw(self, parsed: ParsedPage, reader: PageReader, drawings: dict[str, str]) -> None:
        if not drawings:
            return
        from aggrevated.plots.parse_tree import draw_growth, draw_tree
        from aggrevated_reader.pages_report import list_frames, select_frames

        reading = parsed.reading
        path = Path(drawings["svg"]).with_suffix("")
        names = reading.labels if set(reading.labels) != {"?"} else ()
        draw_tree(parsed.page, reading.heads, path, parsed.file.name, names=names, lines=reading.lines)
        if self.show_growth:
            frames = list_frames(*reader.reads.make_parser(parsed.seen.page))
            draw_growth(
                parsed.page, select_frames(frames), Path(drawings["growth"]).with_suffix(""), title=parsed.file.name
            )
