"""`aggrevated board` in a browser: how soon all curves are drawn, and how soon a new iteration is on the screen."""

import interleave

# isort: split
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from aggrevated.config.resolving import resolve
from aggrevated.files import Facts, Journal, rewrite_journal, seal_json
from aggrevated.runs.records import Metrics

RUNS, ITERATIONS = 100, 2_000
OPENED, FOLLOWED = 1.0, 2.0  # seconds at most
LOOKED_AT = 10.0  # seconds for which the server looks on after the last page
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
WHEN_DRAWN = """
window.drawn = new Promise((done) => (function look() {
  const curves = document.querySelectorAll(".curve[data-path]").length;
  requestAnimationFrame(curves >= %d ? () => done(performance.now() / 1000) : look);
})());
"""
WHEN_SHOWN = """
(text) => new Promise((done) => (function look() {
  const shown = [...document.querySelectorAll("#rows .done")].some((one) => one.textContent.startsWith(text));
  if (shown) return requestAnimationFrame(() => done(Date.now() / 1000));
  requestAnimationFrame(look);
})())
"""


def line(n: int, run: int, best: float, current: float) -> Facts:
    """What a run writes of an iteration."""
    metrics = Metrics(
        iteration=n, roll_in_return=current, current_return=current, best_return=best, loss=0.11283737421035767 / n,
        gradient_norm=0.1442431483161174 / n, kl=0.04737363338470459, halvings=0, sure_and_wrong=0.005917159763313609,
        left_to_learn=0.160147078169991, usual_mistake=6.856939460358337, died="", simulator_steps=1_000 * n,
        start_simulator_steps=0, oracle_steps=0, validation_steps=20_000 * n, oracle_queries=1_000 * n, diverged=0,
        validation_diverged=0, seconds=round(0.1 * n * (1 + run % 3), 3),
    )  # fmt: skip
    return metrics.facts()


def lines(run: int) -> Iterator[Facts]:
    """Of a run that learns."""
    draws, best = random.Random(run), 0.0
    for n in range(1, ITERATIONS + 1):
        current = 500 * (1 - math.exp(-n / 300 / (1 + run % 7))) + draws.gauss(0, 10)
        best = max(best, current)
        yield line(n, run, best, current)


def make(folder: Path) -> dict[Path, str]:
    """All runs; the seal of the last line of each, by folder."""
    seals = {}
    for run in range(RUNS):
        place = folder / f"run-{run:03d}"
        place.mkdir()
        seal_json(place / "config.json", resolve("cartpole", seed=run, iterations=10 * ITERATIONS).facts())
        seals[place] = rewrite_journal(place / "metrics.jsonl", lines(run))
    return seals


def opened(browser: Browser, address: str) -> tuple[Page, float]:
    """(a new page, the seconds from navigation until all curves were drawn)."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.add_init_script(WHEN_DRAWN % RUNS)
    page.goto(address)
    return page, page.evaluate("window.drawn")


def followed(page: Page, place: Path, seal: str, n: int) -> tuple[str, float]:
    """(the new seal, the seconds from a new line of a run until it was on the screen)."""
    with Journal(place / "metrics.jsonl", seal) as journal:
        began = time.time()
        journal.append(line(n, 0, 600.0, 590.0))
        return journal.seal, page.evaluate(WHEN_SHOWN, f"{n:,} ") - began


def used_by(process: int) -> tuple[float, float]:
    """(seconds of CPU, megabytes) of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    peak = next(row for row in Path(f"/proc/{process}/status").read_text().splitlines() if row.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) / 1024


def main() -> None:
    options = interleave.arguments(__doc__, rounds=9)
    spent: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        spent.setdefault(name, []).append(value)

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        seals = make(Path(folder))
        command = [sys.executable, "-m", "aggrevated", "board", folder, "--no-browser", "--json"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert server.stdout is not None
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        try:
            address = json.loads(server.stdout.readline())["address"]
            for number, (place, seal) in enumerate(list(seals.items())[: options.rounds]):
                page, seconds = opened(browser, address)
                note("the first page" if number == 0 else "further pages", seconds)
                page.wait_for_timeout(700 + 130 * number)  # at any moment between two looks
                for n in (ITERATIONS + 2 * number + 1, ITERATIONS + 2 * number + 2):  # which no other run shows
                    seal, seconds = followed(page, place, seal, n)
                    note("a new iteration", seconds)
                page.close()
            cpu, memory = used_by(server.pid)
            note("CPU of the server", cpu)
            time.sleep(LOOKED_AT + 1)
            idle = used_by(server.pid)[0]
            time.sleep(20)
            note("CPU of the server in 20 s while nobody looks", used_by(server.pid)[0] - idle)
        finally:
            server.terminate()
            server.wait()
            browser.close()
    rows = [interleave.summary("board", name, "s", seconds) for name, seconds in spent.items()]
    rows.append(interleave.summary("board", "most memory of the server", "MB", [memory]))
    targets = [
        interleave.at_most("board", "open, at worst", OPENED, [max(spent["the first page"] + spent["further pages"])]),
        interleave.at_most("board", "follow, at worst", FOLLOWED, [max(spent["a new iteration"])]),
    ]
    interleave.report(f"{RUNS} runs of {ITERATIONS:,} iterations on a board", rows, targets, options)


if __name__ == "__main__":
    main()
