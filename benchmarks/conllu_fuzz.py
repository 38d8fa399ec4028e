"""Spoiled CoNLL-U files: each is read, or refused in one sentence that names a line, within a second.

    python benchmarks/conllu_fuzz.py [--files 100000] [--seed 0]

Each file is read as trees, as words, and as plain text. The files are made here; those of the tests are made likewise.
"""

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "text"))
from mutations import mutated, outcome, outcome_as_text

READERS = {
    "trees": lambda data: outcome(data, trees=True),
    "words": lambda data: outcome(data, trees=False),
    "plain text": outcome_as_text,
}
MOST = 1.0  # seconds of CPU for a file


def main():
    """Count what becomes of the files; 1 if one of them ended in a traceback or took too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    counts = {name: Counter() for name in READERS}
    faults, slowest = 0, (0.0, -1, "", 0)
    for number in range(asked.files):
        data = mutated(number, random.Random(f"{asked.seed} {number}"))
        for name, read in READERS.items():
            began = time.process_time()
            try:
                counts[name][read(data)] += 1
            except Exception:
                faults += 1
                print(f"file {number} as {name}:\n{traceback.format_exc()}", file=sys.stderr)
            slowest = max(slowest, (time.process_time() - began, number, name, len(data)))
    report(counts, asked.files, faults, slowest)
    return 1 if faults or slowest[0] > MOST else 0


def report(counts, files, faults, slowest):
    """Print what became of them."""
    for name, outcomes in counts.items():
        print(f"{files:,} files as {name}:")
        for what, count in outcomes.most_common():
            print(f"  {count:8,}  {what}")
    took, number, name, size = slowest
    print(f"slowest: file {number} as {name}, {size:,} bytes, {took:.3f} s with writing and reading again")
    print(f"faults: {faults}")


if __name__ == "__main__":
    sys.exit(main())
