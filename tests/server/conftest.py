"""Pages in a real browser: servers as the command line starts them, Debian's Chromium driven by Playwright."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
AXE = Path(__file__).parent / "vendor" / "axe.min.js"


@dataclass
class Serving:
    """A command that serves, and where."""

    process: "subprocess.Popen[str]"
    address: str
    errors: IO[str]  # what it says on standard error

    @property
    def port(self) -> int:
        return int(self.address.split(":")[2].split("/")[0])

    def said(self) -> str:
        """All of it so far."""
        self.errors.seek(0)
        return self.errors.read()

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Stop it, and give its exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(how)
        return self.process.wait(20)


Serve = Callable[..., Serving]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start `aggrevated ARGUMENTS`, in a folder of its own unless one is given; all end with the module."""
    begun: list[Serving] = []

    def start(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Serving:
        place = tmp_path_factory.mktemp("serving")
        errors = (place / "errors.txt").open("w+")
        process = subprocess.Popen(
            [sys.executable, "-m", "aggrevated", *arguments, "--no-browser", "--json"],
            stdout=subprocess.PIPE, stderr=errors, text=True, cwd=cwd or place, env=os.environ | (env or {}),
        )  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline()
        errors.seek(0)
        assert line, errors.read()
        begun.append(Serving(process, json.loads(line)["address"], errors))
        return begun[-1]

    yield start
    for one in begun:
        one.stop(signal.SIGKILL)
        assert "Traceback" not in one.said(), one.said()
        one.errors.close()
        if one.process.stdout is not None:
            one.process.stdout.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a worker; without Chromium these tests are skipped."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@dataclass
class Tabs:
    """Opens pages, and knows what their consoles said."""

    browser: Browser
    contexts: list[BrowserContext]
    complaints: list[str]

    def open(self, address: str, allowed: tuple[str, ...] = (), **options: object) -> Page:
        """A page of a person of its own; `options` are of the browser's context, `allowed` may be complained of."""
        context = self.browser.new_context(**options)  # type: ignore[arg-type]
        self.contexts.append(context)
        return self.beside(context, address, allowed)

    def beside(self, context: BrowserContext, address: str, allowed: tuple[str, ...] = ()) -> Page:
        """Another tab of the same person."""
        page = context.new_page()

        def hear(text: str) -> None:
            if not any(words in text for words in allowed):
                self.complaints.append(text)

        page.on("console", lambda message: hear(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(address)
        return page


@pytest.fixture
def tabs(browser: Browser) -> Iterator[Tabs]:
    """Pages that are closed at the end of the test, which fails where a console complained."""
    found = Tabs(browser, [], [])
    yield found
    for context in found.contexts:
        context.close()
    assert found.complaints == []


def accessible(page: Page) -> list[str]:
    """What axe-core finds wrong with a page, a line each."""
    page.evaluate(AXE.read_text())  # past the page's own policy: nothing of it is served
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
        for one in found["violations"]
    ]


def pictures_folder(tmp_path: Path) -> Path:
    """Where screenshots go: $AGGREVATED_SCREENSHOTS (docs/images, to publish them), else a folder of the test."""
    return Path(os.environ.get("AGGREVATED_SCREENSHOTS") or tmp_path)
