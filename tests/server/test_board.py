"""`aggrevated board` as a person uses it, in Chromium: runs that go on, filters, settings, films, damage."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import board_folders as folders
import pytest
from browsing import Serve, Serving, Tabs, accessible
from PIL import Image
from playwright.sync_api import Page, expect

from aggrevated import train
from aggrevated.files import only_one

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}
REFUSED = ("Failed to load resource",)
PUBLISHED = os.environ.get("AGGREVATED_SCREENSHOTS")  # where pictures of the page go; nowhere, if nobody wants them


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Runs of all kinds, one of them as if it were running."""
    root = folders.gallery(tmp_path_factory.mktemp("gallery") / "runs")
    with only_one(root / "cartpole-dagger"):
        yield root


@pytest.fixture(scope="module")
def board(serve: Serve, gallery: Path) -> Serving:
    """One server for all tests that change nothing."""
    return serve("board", str(gallery))


@pytest.fixture
def page(tabs: Tabs, board: Serving) -> Iterator[Page]:
    """The board, with all that it shows."""
    yield settled(tabs.open(board.address, viewport=WIDE))


def settled(page: Page) -> Page:
    expect(page.locator("#status")).to_contain_text("11 runs")
    expect(page.locator("#warnings")).to_contain_text("is not as it was written")  # the seals are checked
    return page


def hurried(tabs: Tabs, address: str, allowed: tuple[str, ...] = (), **options: Any) -> Page:
    """A page whose pauses are a fifth as long."""
    page = tabs.open("about:blank", allowed, **options)
    page.context.add_init_script("const slow = setTimeout; window.setTimeout = (work, after) => slow(work, after / 5);")
    page.goto(address)
    return page


def names(page: Page) -> list[str]:
    return page.locator("#rows button.open").all_text_contents()


def drawn(page: Page) -> set[str]:
    return {str(one.get_attribute("data-path")) for one in page.locator(".curve[data-path]").all()}


def row(page: Page, name: str) -> Any:
    return page.locator("#rows tr").filter(has=page.get_by_role("button", name=name, exact=True))


def test_all_runs_are_listed_and_drawn_with_their_experts(page: Page) -> None:
    assert names(page) == [
        "acrobot-changed", "acrobot-exponentiated", "acrobot-natural",
        "cartpole-dagger", "cartpole-exponentiated", "cartpole-natural", "cartpole-reinforce",
    ]  # fmt: skip
    assert drawn(page) == set(names(page))
    assert page.locator(".figure h3").all_text_contents() == ["acrobot", "cartpole"]
    assert page.locator(".expert-label").all_text_contents() == ["expert −92.4", "expert 369"]
    expect(row(page, "cartpole-natural")).to_contain_text("5 trials")
    expect(row(page, "cartpole-natural")).to_contain_text("60 / 60")
    beside = {name: row(page, name).locator("td").last.text_content() for name in names(page)}
    assert beside == dict.fromkeys(names(page), "–") | {
        "acrobot-exponentiated": "1.069 ×", "acrobot-natural": "1.069 ×",
        "cartpole-exponentiated": "1.268 ×", "cartpole-natural": "1.225 ×",
    }  # fmt: skip
    expect(page.locator("#measures")).to_contain_text("the ratio of returns (×) for acrobot, cartpole.")
    expect(page.locator(".band")).to_have_count(1)
    expect(row(page, "cartpole-reinforce")).to_contain_text("⚠ died")
    expect(row(page, "acrobot-changed")).to_contain_text("✕ damaged")
    expect(page.locator("#sentences")).to_contain_text("learning has died: gradient vanished; first in iteration 42")


def test_filters_ticks_and_a_reload(page: Page) -> None:
    page.locator("#task").select_option("cartpole")
    page.get_by_label("Find").fill("natural")
    assert names(page) == ["cartpole-natural"] and drawn(page) == {"cartpole-natural"}
    page.reload()
    expect(page.locator("#count")).to_have_text("1 of 7")
    assert names(page) == ["cartpole-natural"]
    page.get_by_role("button", name="Trials of cartpole-natural").click()
    assert len(drawn(page)) == 6 and "cartpole-natural/trial-04" in names(page)
    page.get_by_role("button", name="Clear").click()
    page.locator("#state").select_option("died")
    assert names(page) == ["cartpole-reinforce"]
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Draw cartpole-natural", exact=True).uncheck()
    assert "cartpole-natural" not in drawn(page) and "cartpole-natural" in names(page)
    page.get_by_role("button", name="Show none").click()
    expect(page.locator("#no-curves")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    page.get_by_label("Order").select_option("best")
    assert names(page)[0] == "cartpole-exponentiated"


def test_axes_are_read_by_keyboard_and_as_a_table(page: Page) -> None:
    slider = page.get_by_label("Read the curves of cartpole at")
    figure = page.locator(".figure").filter(has=slider)
    for axis, title in (("steps", "simulator steps"), ("queries", "oracle queries"), ("seconds", "seconds")):
        page.locator("#axis").select_option(axis)
        expect(figure.locator(".chart")).to_contain_text(title)
    page.get_by_label("logarithmic").check()
    page.locator("#axis").select_option("episodes")
    page.get_by_label("logarithmic").uncheck()
    newest = figure.locator(".readout b").all_text_contents()
    slider.focus()
    for _ in range(150):
        page.keyboard.press("ArrowLeft")
    assert figure.locator(".readout b").all_text_contents() != newest
    assert re.fullmatch(r"At [\d,.]+ episodes", str(slider.get_attribute("aria-valuetext")))
    box = figure.locator(".chart").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
    assert slider.input_value() in [str(i) for i in range(80, 100)]  # the paper begins right of its numbers
    figure.get_by_text("The same as a table").click()
    expect(figure.locator("table tbody tr")).to_have_count(4)
    expect(figure.locator("table tbody")).to_contain_text("cartpole-dagger")


def test_settings_side_by_side_say_in_what_they_differ(page: Page) -> None:
    page.get_by_role("button", name="cartpole-dagger", exact=True).press("Enter")
    expect(page.locator("#side-by-side")).to_contain_text("loop.trajectories")  # alone, all of them
    page.get_by_role("button", name="cartpole-exponentiated", exact=True).press("Enter")
    method = page.locator("#side-by-side tr").filter(has_text="≠ method")
    expect(method.locator("td")).to_have_text(["dagger", "aggrevated"])
    expect(page.locator("#side-by-side")).not_to_contain_text("loop.seed")
    page.get_by_label("also those that are alike").check()
    expect(page.locator("#side-by-side")).to_contain_text("loop.seed")
    expect(page.locator(".one")).to_have_count(2)
    assert page.locator(".curve.strong[data-path]").count() == 2
    page.get_by_role("button", name="Close cartpole-dagger").click()
    expect(page.locator(".one")).to_have_count(1)
    expect(page.locator(".chart .curve.thin")).to_have_count(1)  # of one alone, the current policy too
    expect(page.locator(".one code").first).to_have_text("aggrevated train cartpole --iterations 60", timeout=30_000)
    page.get_by_role("button", name="cartpole-reinforce", exact=True).click()
    resume = page.locator(".one").filter(has_text="cartpole-reinforce").locator("code").nth(1)
    expect(resume).to_contain_text("aggrevated resume")


def test_everyone_can_use_it_in_light_and_dark_and_on_a_telephone(tabs: Tabs, board: Serving) -> None:
    for name, options in {
        "board": {"viewport": WIDE},
        "board-dark": {"viewport": WIDE, "color_scheme": "dark"},
        "board-narrow": {"viewport": NARROW, "reduced_motion": "reduce"},
    }.items():
        page = settled(tabs.open(board.address, **options))
        for one in ("cartpole-exponentiated", "cartpole-natural"):
            page.get_by_role("button", name=one, exact=True).click()
        expect(page.locator("#side-by-side")).to_contain_text("update.name")
        for place in (0, 1):
            command = page.locator(".one").nth(place).locator("code").first
            expect(command).to_contain_text("aggrevated train cartpole", timeout=30_000)
        expect(page.locator("#sentences li")).to_have_count(2)
        page.locator("#axis").select_option("steps")
        page.locator("#status").click()
        page.evaluate("document.getElementById('list').scrollTo(0, 0)")
        assert accessible(page) == []
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= options["viewport"]["width"]
        if PUBLISHED:
            clip = {"x": 0, "y": 0, "width": width, "height": 1900}
            picture = Image.open(BytesIO(page.screenshot(full_page=True, clip=clip)))
            picture.convert("RGB").quantize(128).save(Path(PUBLISHED, f"{name}.png"), optimize=True)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_server_that_dies_and_comes_back_is_followed_further(serve: Serve, tabs: Tabs, tmp_path: Path) -> None:
    run = folders.write(folders.begin(tmp_path / "run", iterations=99), map(folders.line, range(1, 11)))
    port = str(free_port())
    first = serve("board", str(tmp_path), "--port", port)
    page = hurried(tabs, first.address, REFUSED)
    other = tabs.beside(page.context, first.address, REFUSED)
    for tab in (page, other):
        expect(row(tab, "run")).to_contain_text("10 / 99")
    page.get_by_role("button", name="run", exact=True).click()
    first.stop(signal.SIGKILL)
    expect(page.locator("#status")).to_contain_text("nobody answers")
    folders.append(run, map(folders.line, range(11, 13)))
    again = serve("board", str(tmp_path), "--port", port)
    assert again.address == first.address
    for tab in (page, other):
        expect(row(tab, "run")).to_contain_text("12 / 99")
        expect(tab.locator("#status")).to_contain_text("followed live")
    expect(page.locator(".one")).to_have_count(1)
    folders.append(run, [folders.line(13)])
    expect(row(page, "run")).to_contain_text("13 / 99")
    (run / "config.json").unlink()
    expect(page.locator("#status")).to_contain_text("no runs here yet")


def test_a_run_that_is_repaired_gets_its_command_and_its_settings(serve: Serve, tabs: Tabs, tmp_path: Path) -> None:
    config = folders.begin(tmp_path / "run", iterations=99) / "config.json"
    whole = config.read_text()
    config.write_text(whole.replace("99", "98"))
    page = hurried(tabs, serve("board", str(tmp_path)).address)
    page.route("**/command?*", lambda route: route.fulfill(json={"command": "train", "resume": "go on"}))
    page.get_by_role("button", name="run", exact=True).click()
    expect(page.locator(".one")).to_contain_text("was changed after it was written")
    expect(page.locator("#no-difference")).to_be_visible()
    config.write_text(whole)
    expect(page.locator(".one code").first).to_have_text("train")
    expect(page.locator("#side-by-side")).to_contain_text("loop.trajectories")


def test_a_run_is_watched_to_its_end_and_filmed(serve: Serve, tabs: Tabs, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    watching = serve("board", str(tmp_path), env={"TMPDIR": str(tmp_path / "temporary")})
    page = hurried(tabs, watching.address, permissions=["clipboard-read", "clipboard-write"])
    expect(page.locator("#status")).to_contain_text("they appear by themselves")
    few = ["--iterations", "30", "--trajectories", "16", "--horizon", "30"]
    few += ["--validation-episodes", "10", "--test-episodes", "10"]
    command = [sys.executable, "-m", "aggrevated", "train", "cartpole", *few, "--out", str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as training:
        expect(row(page, "run")).to_contain_text("● running", timeout=30_000)
        page.get_by_role("button", name="run", exact=True).click()  # what makes commands begins meanwhile
        expect(row(page, "run")).to_contain_text("✓ ended", timeout=60_000)
        assert training.wait(30) == 0
    expect(row(page, "run")).to_contain_text("30 / 30")
    expect(page.locator(".expert-label")).to_have_text("expert 30")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    page.get_by_role("button", name="Make a film of run beside its expert").click()
    expect(page.locator(".film img")).to_be_visible(timeout=60_000)
    expect(page.locator(".film p")).to_contain_text("expert 30, from the same start")
    page.get_by_role("button", name="Copy the command of run").click()
    expect(page.locator("#status")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == " ".join(["aggrevated train cartpole", *few])
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".film canvas")).to_be_visible()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == before
    (films,) = (tmp_path / "temporary").iterdir()
    assert [one.name for one in films.iterdir()] == ["1.gif"]
    page.close()
    assert watching.stop() in (143, -signal.SIGTERM) and not films.exists()


def asked(board: Serving, path: str, facts: Any = None) -> tuple[int, Any]:
    """(status, answer) of a request."""
    data = None if facts is None else json.dumps(facts).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(board.address + path, data)) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.parametrize("key", ["", "0", "-1", "../etc", "999999999999", "1e3", "🦆", "x" * 2000])
def test_runs_are_asked_for_by_number_only(board: Serving, key: str) -> None:
    quoted = urllib.request.quote(key)
    for path in (f"settings?runs={quoted}", f"command?run={quoted}", f"film?film={quoted}", f"film.gif?film={quoted}"):
        assert asked(board, path) == (404, {"error": "there is nothing of that name here"})
    assert asked(board, "film", {"run": key[:100], "seed": 0})[0] == 404


def made(board: Serving, run: int) -> Any:
    """What is told of a film of the run in the end."""
    status, film = asked(board, "film", {"run": run, "seed": 0})
    until = time.monotonic() + 60
    while film["state"] == "making" and time.monotonic() < until:
        time.sleep(0.1)
        status, film = asked(board, f"film?film={film['film']}")
    assert status == 200
    return film


def test_films_that_cannot_be_are_refused_in_a_sentence(board: Serving) -> None:
    runs = {one["path"]: one["key"] for one in asked(board, "runs")[1]["runs"]}
    for seed in (-1, "x", 1.5, None, 10**30, True):
        assert asked(board, "film", {"run": runs["cartpole-dagger"], "seed": seed})[0] == 422
    assert asked(board, "film", [1])[0] == 422 and asked(board, "film", {"run": "x" * 5000})[0] == 413


def test_code_that_a_run_names_is_run_only_with_trust(serve: Serve, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "somebodys.py").write_text(
        "from pathlib import Path\nimport gymnasium\n"
        "def make():\n    Path('imported').touch()\n    return gymnasium.make('CartPole-v1')\n"
        "def act(observation):\n    return int(observation[2] > 0)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    few = {"iterations": 1, "horizon": 20, "validation_episodes": 2, "test_episodes": 2, "trajectories": 2}
    train("somebodys:make", expert="somebodys:act", out=tmp_path / "runs" / "own", say=lambda _: None, **few)
    (tmp_path / "imported").unlink()
    folders.begin(tmp_path / "runs" / "ours")
    board = serve("board", "runs", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    runs = {one["path"]: one["key"] for one in asked(board, "runs")[1]["runs"]}
    assert "--trust" in made(board, runs["own"])["error"] and not (tmp_path / "imported").exists()
    assert "somebodys:make" in json.dumps(asked(board, f"settings?runs={runs['own']}")[1])
    assert "has no policy yet" in made(board, runs["ours"])["error"]
