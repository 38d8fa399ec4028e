"""Servers started from the command line, and Debian's Chromium driven by Playwright, for tests of pages."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
AXE = Path(__file__).parent / "vendor" / "axe.min.js"


@dataclass
class Serving:
    """A running server command and its address."""

    process: "subprocess.Popen[str]"
    address: str
    errors: Path  # its standard error

    @property
    def port(self) -> int:
        return int(self.address.split(":")[2].split("/")[0])

    def read_errors(self) -> str:
        """Return its standard error so far."""
        return self.errors.read_text()

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Stop it and return its exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(how)
        return self.process.wait(20)


Serve = Callable[..., Serving]


@dataclass
class Tabs:
    """Opens pages and records the complaints of their consoles."""

    browser: Browser
    contexts: list[BrowserContext]
    complaints: list[str]

    def open(self, address: str, allowed: tuple[str, ...] = (), **options: object) -> Page:
        """Open a page in a new browser context with `options`; texts in `allowed` may appear in the console."""
        context = self.browser.new_context(**options)  # type: ignore[arg-type]
        self.contexts.append(context)
        return self.open_tab(context, address, allowed)

    def open_tab(self, context: BrowserContext, address: str, allowed: tuple[str, ...] = ()) -> Page:
        """Open another tab in the same context."""
        page = context.new_page()

        def record_complaint(text: str) -> None:
            if not any(words in text for words in allowed):
                self.complaints.append(text)

        page.on(
            "console", lambda message: record_complaint(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(address)
        return page


def find_accessibility_faults(page: Page) -> list[str]:
    """Return the accessibility violations that axe-core finds in a page, one line each."""
    page.evaluate(AXE.read_text())  # bypasses the page's content policy; not served
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
        for one in found["violations"]
    ]


def pictures_folder(tmp_path: Path) -> Path:
    """Return $AGGREVATED_SCREENSHOTS (docs/images, to publish screenshots), else a folder of the test."""
    return Path(os.environ.get("AGGREVATED_SCREENSHOTS") or tmp_path)
