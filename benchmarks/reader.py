"""How good a reader is, by kinds of pages, and whether it is as sure as it is right; how fast it reads.

python benchmarks/reader.py                                    # the shipped one, on generated pages of its own seed
python benchmarks/reader.py --reader RUN/reader.safetensors --crohme ink --figure docs/results/reader-reliability
"""

import argparse
import json
import time
from pathlib import Path

from aggrevated.core.hardware import single_thread
from aggrevated.parsing.pages.crohme import read_folder
from aggrevated.parsing.splits import find_evaluation_folder
from aggrevated_experiments.plots.reliability_diagram import plot_reliability_diagram
from aggrevated_reader.page_reader import BUILTIN_READER_FILE, LoadedReader
from aggrevated_reader.pages.generated import generate_pages
from aggrevated_reader.reader_problem import evaluate_reader

SEED = 1_000_003  # of pages that no reader has learned from
TOLD = (
    "uas_micro",
    "exact_match",
    "names",
    "calibration_error",
    "expected_loss",
    "loss",
    "errors_in_most_doubtful_tenth",
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--reader", type=Path, default=BUILTIN_READER_FILE)
    options.add_argument("--crohme", type=Path, help="a folder of InkML files, or with dev/ in it")
    options.add_argument("--pages", type=int, default=1000, help="generated pages")
    options.add_argument("--figure", type=Path, help="where the reliability diagram goes, without its ending")
    asked = options.parse_args()
    reader = LoadedReader.load(asked.reader)
    groups = {}
    pages = generate_pages(asked.pages, SEED)
    with single_thread():
        found = {"generated pages": evaluate_reader(reader.policy, pages)}
        if asked.crohme:
            folder = read_folder(find_evaluation_folder(asked.crohme))
            found["real ink (CROHME)"] = evaluate_reader(reader.policy, folder.pages, folder.core)
        began = time.process_time()
        reader.read(pages)
        speed = sum(map(len, pages)) / (time.process_time() - began)
    for name, facts in found.items():
        print(json.dumps({"on": name, **{key: facts[key] for key in TOLD}, "by_page": facts["by_page"]}, indent=1))
        groups[name] = facts["reliability"], facts["calibration_error"]
    print(json.dumps({"symbols_per_second": round(speed), "bytes": asked.reader.stat().st_size}))
    if asked.figure:
        plot_reliability_diagram(groups, "Arcs: how sure the reader is, and how often it is right", asked.figure)


if __name__ == "__main__":
    main()
