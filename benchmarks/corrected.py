"""What corrected pages teach the builtin reader: the pages themselves, others by the same hand, and what it knew.

python benchmarks/corrected.py                                 # ten pages each by three generated hands: 5 min
python benchmarks/corrected.py --json docs/results/corrected.json
python benchmarks/corrected.py --crohme DIR --writers 6        # real hands: those with the most expressions
python benchmarks/corrected.py --learning-rate 1e-3            # further options are those of `aggrevated train reader`
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import aggrevated
from aggrevated.core.hardware import single_thread
from aggrevated.parsing.pages.crohme import read_folder
from aggrevated.parsing.pages.page import Page
from aggrevated_reader.evaluation import evaluate_reader
from aggrevated_reader.learners.reading_policy import ReadingPolicy
from aggrevated_reader.page_reader import BUILTIN_READER_FILE
from aggrevated_reader.pages.batched_rng import BatchedRng
from aggrevated_reader.pages.expressions import sample_lines
from aggrevated_reader.pages.generated import generate_pages, synthesize_page
from aggrevated_reader.pages.inkml_writing import to_inkml
from aggrevated_reader.pages.writers import sample_writer

SEED = 1_000_003  # of pages that are in no training set
OTHERS = 40  # further pages in the same hand


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=10, help="corrected pages by each hand")
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--crohme", type=Path, help="a folder of InkML files, instead of generated hands")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options, more = parser.parse_known_args()
    settings = dict(zip((name[2:].replace("-", "_") for name in more[::2]), map(json.loads, more[1::2]), strict=True))
    hands = (
        real_hands(options.crohme, options.writers)
        if options.crohme
        else generated_hands(options.writers, options.pages)
    )
    command = " ".join(["python", "benchmarks/corrected.py", *sys.argv[1:]])
    rows = []
    for hand, pages in hands:
        rows.append({"hand": hand, **taught(pages[: options.pages], pages[options.pages :], settings)})
        print(json.dumps(rows[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps({"command": command, "hands": rows}, indent=1) + "\n")


def generated_hands(count: int, pages: int) -> Iterator[tuple[str, list[Page]]]:
    """Yield (name, pages in one hand) of `count` generated hands."""
    for number in range(count):
        draw = np.random.default_rng([SEED, number])
        dice = BatchedRng(draw)
        hand = sample_writer(dice)
        yield (
            f"generated {number}",
            [
                synthesize_page(sample_lines(dice, True), hand, draw, f"page-{place:03d}")
                for place in range(pages + OTHERS)
            ],
        )


def real_hands(folder: Path, count: int) -> Iterator[tuple[str, list[Page]]]:
    """Yield (name, pages) of those who wrote most of the expressions in a folder."""
    pages = read_folder(folder).pages
    for hand, _ in Counter(page.writer for page in pages).most_common(count):
        own = [page for page in pages if page.writer == hand]
        yield hand, [own[place] for place in np.random.default_rng(SEED).permutation(len(own))]


def taught(pages: Sequence[Page], others: Sequence[Page], settings: dict[str, object]) -> dict[str, object]:
    """Return the shares of correct heads and names before and after training, and its cost."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "pages"
        folder.mkdir()
        for page in pages:
            (folder / f"{page.name}.inkml").write_bytes(to_inkml(page))
        began = time.perf_counter()
        run = aggrevated.train("reader", corrected_pages=str(folder), out=Path(place) / "run", say=silent, **settings)
        seconds = time.perf_counter() - began
        now = run.policy
        before = ReadingPolicy.load(BUILTIN_READER_FILE)
        lines = run.metrics()
        best = max(lines, key=lambda line: (line.current_return, -line.iteration)).iteration
    kinds = {"corrected": pages, "same hand": others, "generated": generate_pages(1000, SEED)}
    with single_thread():
        facts = {
            kind: [evaluate_reader(policy, list(on)) for policy in (before, now)] for kind, on in kinds.items() if on
        }
    shares = {
        kind: {what: [round(one[key], 4) for one in found] for what, key in (("uas", "uas_micro"), ("names", "names"))}
        for kind, found in facts.items()
    }
    return shares | {"seconds": round(seconds), "best_after": best}


def silent(_: str) -> None:
    """Print nothing."""


if __name__ == "__main__":
    sys.exit(main())
