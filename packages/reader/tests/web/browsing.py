"""Servers as the command line starts them, and Debian's Chromium driven by Playwright: what tests of pages share."""

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
    """A command that serves, and where."""

    process: "subprocess.Popen[str]"
    address: str
    errors: Path  # what it says on standard error

    @property
    def port(self) -> int:
        return int(self.address.split(":")[2].split("/")[0])

    def said(self) -> str:
        """All of it so far."""
        return self.errors.read_text()

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Stop it, and give its exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(how)
        return self.process.wait(20)


Serve = Callable[..., Serving]


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
