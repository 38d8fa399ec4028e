"""Remake the pages of docs/results that come from runs or theory: `make results`, or one: `make results PAGE=hopper`.

It prints the expected time before each page, and afterwards the time and whether the bits equal the previous ones.
Interrupted pages resume. Pages of other benchmarks (untuned, strangers, speed, scale, text, reader, guides) are not
among them: benchmarks/README.md has their commands. Unknown options, such as --engine, are passed to
`aggrevated reproduce`. With --peers nothing is run: the pages of control get the rows of other libraries again, from
the files of tuned_peers.py.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aggrevated.core.registry import list_task_names
from aggrevated.kernels.numerics import compute_numerics_fingerprint, describe_numerics_difference
from aggrevated.storage import JsonDict, read_json
from aggrevated.tasks import find_task
from aggrevated_experiments.learning_curves_page import write_with_peers

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
# minutes of two cores: of a page, and of all together
MOST = 90
ALL = 480


@dataclass(frozen=True)
class Page:
    """Command of a page, and its expected minutes of two cores."""

    minutes: int
    needs: str = ""  # option with the path of data that no repository may contain


PAGES: Mapping[str, Page] = {
    "cartpole": Page(20),
    "acrobot": Page(30),
    "acrobot-partial": Page(45),
    "hopper": Page(45),
    "walker": Page(40),
    "paper-hopper": Page(40),
    "paper-acrobot-partial": Page(40),
    "theory": Page(20),
    "table1": Page(80),
    "parsing-curves": Page(1),  # from the runs of Table 1
    "pays-lock": Page(10),
    "pays-tree": Page(5),
    "pays-cliff": Page(10),
    "pays-keys": Page(15),
    "pays-packing": Page(10),
    "expert-strength": Page(15),
    "where-it-pays": Page(1),  # from the other pages of this kind
    "real-ink": Page(30, needs="crohme"),
}

WITHOUT_RUNS = ("theory", "pays-tree", "where-it-pays")
PARTS = {"theory": ("tree", "tree-noisy", "mdp", "lower-bound"), "where-it-pays": ()}  # numbers are elsewhere


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"pages: {', '.join(PAGES)}; default: all")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="folder of the pages (default: docs/results)")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "results", help="folder of the runs")
    parser.add_argument("--crohme", type=Path, help="CROHME's InkML files, required for the page real-ink")
    parser.add_argument(
        "--peers", action="store_true", help="remake only the rows of other libraries, in the pages of control"
    )
    options, rest = parser.parse_known_args()
    if unknown := [name for name in options.pages if name not in PAGES]:
        parser.error(f"there is no page {unknown[0]}; give one of {', '.join(PAGES)}")
    for name in options.pages or PAGES:
        if options.peers:
            with_peers(name, options.folder)
            continue
        page = PAGES[name]
        if page.needs and getattr(options, page.needs) is None:
            print(f"{name}: left out, as it needs --{page.needs} DIR")
            continue
        made(name, page, options, rest)
    if options.folder == RESULTS:
        subprocess.run([sys.executable, ROOT / "docs/make_numbers.py"], check=True)


def made(name: str, page: Page, options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Make one page and print the outcome."""
    print(f"{name}: may take {page.minutes} minutes of two cores", flush=True)
    before = bits_of(name, options.folder)
    began = time.perf_counter()
    elsewhere = made_elsewhere(name, options.folder)
    if code := subprocess.run(reproduce(name, page, options, rest), cwd=ROOT).returncode:
        raise SystemExit(code if code > 0 else 128 - code)  # it has printed the reason; the same command resumes
    took = (time.perf_counter() - began) / 60
    after = bits_of(name, options.folder)
    same = "the bits are those that were there"
    if before != after:
        same = f"other bits than before ({before or 'none'}{elsewhere and f', made with {elsewhere}'})"
    print(f"{name}: {took:.1f} minutes; bits {after or 'none'}: {same}", flush=True)


def with_peers(name: str, folder: Path) -> None:
    """Remake a page with the current rows of other libraries, if it has such rows."""
    if name in list_task_names() and find_task(name).protocol:
        write_with_peers(name, folder)
        print(f"{name}: bits {bits_of(name, folder)}")


def reproduce(name: str, page: Page, options: argparse.Namespace, rest: Sequence[str]) -> list[str]:
    """Return the command of a page."""
    own = "table1" if name == "parsing-curves" else name
    words = [sys.executable, "-m", "aggrevated", "reproduce", name, "--report", str(options.folder)]
    if name not in WITHOUT_RUNS:
        words += ["--out", str(options.runs / own), *rest]
    if page.needs:
        words += [f"--{page.needs}", str(getattr(options, page.needs))]
    return words


def bits_of(name: str, folder: Path) -> str:
    """Return the digest of a page's numbers, or "" if there are none."""
    return " ".join(str(facts.get("bits", ""))[:12] for facts in numbers_of(name, folder))


def made_elsewhere(name: str, folder: Path) -> str:
    """Return a sentence on what has other bits here than where the page was made; "" if nothing has."""
    found = [facts.get("machine", {}).get("numerics") for facts in numbers_of(name, folder)]
    return next(
        (
            describe_numerics_difference(arithmetic, compute_numerics_fingerprint())
            for arithmetic in found
            if arithmetic
        ),
        "",
    )


def numbers_of(name: str, folder: Path) -> list[JsonDict]:
    """Return the JSON of a page, or of its parts."""
    paths = [folder / f"{file}.json" for file in PARTS.get(name, (name,))]
    return [read_json(path) for path in paths if path.is_file()]


if __name__ == "__main__":
    main()
