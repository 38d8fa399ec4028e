"""Delay after a stroke until `aggrevated draw` shows its symbol in the browser, and pages read per second.

    python benchmarks/draw.py [--symbols 30] [--pages 6] [--one-core] [--json PATH]

Chromium (Debian's) draws pages of about --symbols symbols stroke by stroke. A delay lasts from the end of a stroke to
the frame with its symbols, labels and tree, for strokes after nine tenths of the symbols of a page. Between two strokes
there are 0 to 600 ms, so some strokes come while the steps of the parse are computed. With --one-core, server and
browser share one core; else each has one.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "packages" / "reader" / "tests" / "web"))
from browsing import CHROMIUM, FLAGS
from writing import draw_strokes, strokes_on

from aggrevated.parsing.pages.page import Page
from aggrevated.reports import get_package_versions
from aggrevated_reader.pages.generated import generate_page

TARGET = 150.0  # milliseconds for 30 symbols on one core


def pages_of(symbols: int, count: int) -> list[Page]:
    """Return `count` generated pages in different hands, of `symbols` ± 1 symbols."""
    found = []
    number = 0
    while len(found) < count:
        page = generate_page(number, seed=18)
        found += [page] if abs(len(page) - symbols) <= 1 else []
        number += 1
    return found


def delays(address: str, pages: list[Page]) -> list[float]:
    """Return the milliseconds from the end of each late stroke to the frame that shows it."""
    found = []
    pauses = np.random.default_rng(0)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for page in pages:
            tab = browser.new_page(viewport={"width": 1280, "height": 1000})
            tab.goto(address)
            tab.wait_for_selector("#status:has-text('Ready.')")
            strokes = strokes_on(tab, page)
            late = int(0.9 * len(strokes))
            for number, _ in enumerate(draw_strokes(tab, strokes), 1):
                displayed = "n => document.body.dataset.read == n && performance.getEntriesByName('read').length"
                tab.wait_for_function(displayed, arg=number)
                tab.wait_for_timeout(pauses.uniform(0, 600) if number >= late else 0)
                if number == late:
                    tab.evaluate("performance.clearMeasures()")
            found += tab.evaluate("performance.getEntriesByName('read').map(one => one.duration)")
            tab.close()
        browser.close()
    return found


def readings_a_second(address: str, page: Page, seconds: float = 5.0) -> float:
    """Return how often per second a page is read, with one request after the other."""
    parts = [[stroke.round(2).tolist()] for strokes in page.ink for stroke in strokes]
    body = json.dumps({"parts": parts}).encode()
    requests = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        with urllib.request.urlopen(urllib.request.Request(f"{address}read", data=body, method="POST")) as answer:
            answer.read()
        requests += 1
    return requests / (time.perf_counter() - began)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--symbols", type=int, default=30)
    parser.add_argument("--pages", type=int, default=6)
    parser.add_argument("--one-core", action="store_true")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    command = [sys.executable, "-m", "aggrevated", "draw", "--no-browser", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    os.sched_setaffinity(server.pid, {cores[0]})
    try:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        os.sched_setaffinity(0, {cores[0] if options.one_core else cores[-1]})
        pages = pages_of(options.symbols, options.pages)
        found = np.array(delays(address, pages))
        rate = readings_a_second(address, pages[0])
    finally:
        server.terminate()
        server.wait()
    facts = {
        "symbols": options.symbols,
        "pages": len(pages),
        "strokes": len(found),
        "one_core": options.one_core,
        "milliseconds": {"median": float(np.median(found)), "95 %": float(np.percentile(found, 95)), "target": TARGET},
        "pages_a_second": rate,
        "versions": get_package_versions(("aggrevated", "torch", "numpy", "starlette", "uvicorn")),
    }
    print(f"{len(found)} strokes on {len(pages)} pages of {options.symbols} ± 1 symbols")
    summary = ", ".join(f"{name} {value:.0f} ms" for name, value in facts["milliseconds"].items())
    print(f"from the end of a stroke to what is seen of it: {summary}")
    print(f"pages read one after the other: {rate:.1f} a second")
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
