"""How soon after a stroke `aggrevated draw` shows what it is, in the browser; and how many pages a second are read.

    python benchmarks/draw.py [--symbols 30] [--pages 6] [--one-core] [--json PATH]

Chromium (Debian's) draws pages of about so many symbols stroke by stroke. A delay is from the end of a stroke to the
frame in which symbols, labels and tree are drawn, of the strokes with which a page has nine tenths of its symbols or
more; between two strokes there are 0 to 600 ms, so that some come while the steps of the parse are worked out. With
--one-core server and browser share one core, else each has one.
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
    """So many generated pages, each in a hand of its own, of about so many symbols."""
    found = []
    number = 0
    while len(found) < count:
        page = generate_page(number, seed=18)
        found += [page] if abs(len(page) - symbols) <= 1 else []
        number += 1
    return found


def delays(address: str, pages: list[Page]) -> list[float]:
    """Milliseconds from the end of each late stroke to what is seen of it."""
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
                shown = "n => document.body.dataset.read == n && performance.getEntriesByName('read').length"
                tab.wait_for_function(shown, arg=number)
                tab.wait_for_timeout(pauses.uniform(0, 600) if number >= late else 0)
                if number == late:
                    tab.evaluate("performance.clearMeasures()")
            found += tab.evaluate("performance.getEntriesByName('read').map(one => one.duration)")
            tab.close()
        browser.close()
    return found


def readings_a_second(address: str, page: Page, seconds: float = 5.0) -> float:
    """How often a page is read, asked one time after the other."""
    parts = [[stroke.round(2).tolist()] for strokes in page.ink for stroke in strokes]
    body = json.dumps({"parts": parts}).encode()
    asked = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        with urllib.request.urlopen(urllib.request.Request(f"{address}read", data=body, method="POST")) as answer:
            answer.read()
        asked += 1
    return asked / (time.perf_counter() - began)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--symbols", type=int, default=30)
    parser.add_argument("--pages", type=int, default=6)
    parser.add_argument("--one-core", action="store_true")
    parser.add_argument("--json", type=Path, help="where the numbers are written")
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    command = [sys.executable, "-m", "aggrevated", "draw", "--no-browser", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    os.sched_setaffinity(server.pid, {cores[0]})
    try:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        os.sched_setaffinity(0, {cores[0] if asked.one_core else cores[-1]})
        pages = pages_of(asked.symbols, asked.pages)
        found = np.array(delays(address, pages))
        rate = readings_a_second(address, pages[0])
    finally:
        server.terminate()
        server.wait()
    facts = {
        "symbols": asked.symbols,
        "pages": len(pages),
        "strokes": len(found),
        "one_core": asked.one_core,
        "milliseconds": {"median": float(np.median(found)), "95 %": float(np.percentile(found, 95)), "target": TARGET},
        "pages_a_second": rate,
        "versions": get_package_versions(("aggrevated", "torch", "numpy", "starlette", "uvicorn")),
    }
    print(f"{len(found)} strokes on {len(pages)} pages of {asked.symbols} ± 1 symbols")
    told = ", ".join(f"{name} {value:.0f} ms" for name, value in facts["milliseconds"].items())
    print(f"from the end of a stroke to what is seen of it: {told}")
    print(f"pages read one after the other: {rate:.1f} a second")
    if asked.json:
        asked.json.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
