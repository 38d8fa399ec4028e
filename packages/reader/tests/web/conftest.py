"""Fixtures for pages in a real browser; `browsing` holds their types."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import CHROMIUM, FLAGS, Serve, Serving, Tabs
from browsing import find_accessibility_faults as find_accessibility_faults
from browsing import pictures_folder as pictures_folder
from playwright.sync_api import Browser, expect, sync_playwright

expect.set_options(timeout=20_000)  # milliseconds: other tests run in parallel


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need a browser where there is none."""
    if CHROMIUM is None:
        for item in items:
            if "browser" in getattr(item, "fixturenames", ()):
                why = f"{item.name}: there is no Chromium here (Debian: apt-get install chromium)"
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start `aggrevated ARGUMENTS` in a new folder or in `cwd`; all processes end with the module."""
    begun: list[Serving] = []

    def start(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Serving:
        place = tmp_path_factory.mktemp("serving")
        errors = place / "errors.txt"
        with errors.open("a") as error_file:
            process = subprocess.Popen(
                [sys.executable, "-m", "aggrevated", *arguments, "--no-browser", "--json"],
                stdout=subprocess.PIPE, stderr=error_file, text=True, cwd=cwd or place, env=os.environ | (env or {}),
            )  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, errors.read_text()
        begun.append(Serving(process, json.loads(line)["address"], errors))
        return begun[-1]

    yield start
    for one in begun:
        one.stop(signal.SIGKILL)
        assert "Traceback" not in one.read_errors(), one.read_errors()
        if one.process.stdout is not None:
            one.process.stdout.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a worker."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def tabs(browser: Browser) -> Iterator[Tabs]:
    """Pages that close at the end of the test, which fails if a console complained."""
    found = Tabs(browser, [], [])
    yield found
    for context in found.contexts:
        context.close()
    assert found.complaints == []
