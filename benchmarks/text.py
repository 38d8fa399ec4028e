"""How fast a run of `text` parses, and in how much memory.

    python benchmarks/text.py RUN --conllu dev.conllu [--million] [--json PATH]

On one thread, in seconds of CPU: in batches, and a sentence at a time. With `--million` the file is repeated to a
million words and parsed by the command line, whose peak memory is measured.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from aggrevated.arithmetic import fingerprint
from aggrevated.runs.run import Run
from aggrevated.text.reading import SentenceReader
from aggrevated.text.treebank import load

ALONE = 300  # sentences that are parsed one at a time


def words_per_second(reader, batches):
    """Words parsed in a second of CPU."""
    words, began = sum(len(one) for batch in batches for one in batch), time.process_time()
    for batch in batches:
        list(reader.parse(batch))
    return words / (time.process_time() - began)


def of_a_million(run, sentences):
    """(words, peak MB, words a second of wall time) of the command line, on a file of a million words."""
    blocks = ["\n".join(one.lines) + "\n\n" for one in sentences]
    copies = -(-1_000_000 // sum(map(len, sentences)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "million.conllu"
        with path.open("w") as file:
            for _ in range(copies):
                file.writelines(blocks)
        began = time.perf_counter()
        command = [sys.executable, "-m", "aggrevated", "parse", str(path), "--policy", str(run)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
        seconds = time.perf_counter() - began
    words = copies * sum(map(len, sentences))
    return words, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, words / seconds


def main():
    """Measure, print, and write."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("run", type=Path)
    options.add_argument("--conllu", type=Path, required=True)
    options.add_argument("--million", action="store_true")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    sentences, reader = load(given.conllu).sentences, SentenceReader(Run.open(given.run).policy)
    list(reader.parse(sentences[:50]))  # compiled loops are loaded
    facts = {
        "words": sum(map(len, sentences)),
        "in_batches": [words_per_second(reader, [sentences]) for _ in range(3)],
        "one_at_a_time": [words_per_second(reader, [[one] for one in sentences[:ALONE]]) for _ in range(3)],
    }
    if given.million:
        facts["million"] = dict(
            zip(("words", "peak_mb", "words_per_second"), of_a_million(given.run, sentences), strict=True)
        )
    print(json.dumps(facts, indent=1))
    if given.json:
        given.json.write_text(json.dumps(facts | {"versions": fingerprint()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
