"""Accuracy of a reader by kinds of pages, its calibration, and its speed.

python benchmarks/reader.py                                    # the builtin one, on generated pages of another seed
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

SEED = 1_000_003  # of pages that are in no training set
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", type=Path, default=BUILTIN_READER_FILE)
    parser.add_argument("--crohme", type=Path, help="a folder of InkML files, or one with a subfolder dev/")
    parser.add_argument("--pages", type=int, default=1000, help="generated pages")
    parser.add_argument("--figure", type=Path, help="path of the reliability diagram, without suffix")
    options = parser.parse_args()
    reader = LoadedReader.load(options.reader)
    groups = {}
    pages = generate_pages(options.pages, SEED)
    with single_thread():
        found = {"generated pages": evaluate_reader(reader.policy, pages)}
        if options.crohme:
            folder = read_folder(find_evaluation_folder(options.crohme))
            found["real ink (CROHME)"] = evaluate_reader(reader.policy, folder.pages, folder.core)
        began = time.process_time()
        reader.read(pages)
        speed = sum(map(len, pages)) / (time.process_time() - began)
    for name, facts in found.items():
        print(json.dumps({"on": name, **{key: facts[key] for key in TOLD}, "by_page": facts["by_page"]}, indent=1))
        groups[name] = facts["reliability"], facts["calibration_error"]
    print(json.dumps({"symbols_per_second": round(speed), "bytes": options.reader.stat().st_size}))
    if options.figure:
        plot_reliability_diagram(groups, "Arcs: how sure the reader is, and how often it is right", options.figure)


if __name__ == "__main__":
    main()
