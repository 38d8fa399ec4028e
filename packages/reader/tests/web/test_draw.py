"""`aggrevated draw` as a person uses it: in Chromium, by mouse, finger, pen and keys."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from browsing import Serve, Serving, Tabs, accessible, pictures_folder
from PIL import Image
from playwright.sync_api import BrowserContext, Route, expect
from playwright.sync_api import Page as Tab
from writing import draw_strokes, heads_shown, labels_shown, settled, strokes_on, write_on, written_as

from aggrevated.plots.animation import encode_gif
from aggrevated_reader import load_reader
from aggrevated_reader.pages.inkml_writing import to_inkml
from aggrevated_reader.pictures.segmentation import read_page

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}
SOLVED = written_as("2x+3=7", "2x=4", "x=2")
SHORT = written_as("a(b+c)=d")
FEWER = """from aggrevated.parsing import corrected
corrected.BESIDE, corrected.OWN, corrected.CHOSEN_ON, corrected.REPORTED = 200, 100, 20, 20"""  # pages, which take long
BOLD = ["--iterations", "12", "--trajectories", "16", "--learning-rate", "2e-3"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for corrected pages."""
    return tmp_path_factory.mktemp("kept") / "pages"


@pytest.fixture(scope="module")
def drawing(serve: Serve, kept: Path) -> Serving:
    """One server for all tests that do not end theirs."""
    return serve("draw", "--corrected-pages", str(kept))


@pytest.fixture
def tab(tabs: Tabs, drawing: Serving) -> Iterator[Tab]:
    """The page, ready to be written on."""
    yield ready(tabs.open(drawing.address, viewport=WIDE))


def ready(tab: Tab) -> Tab:
    expect(tab.locator("#status")).to_have_text("Ready.")
    return tab


def drop(tab: Tab, name: str, data: bytes) -> None:
    """A file, dropped on the paper."""
    tab.evaluate(
        """([name, bytes]) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([new Uint8Array(bytes)], name));
          document.getElementById("paper").dispatchEvent(
            new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true}));
        }""",
        [name, list(data)],
    )


# Writing and reading.


def test_strokes_drawn_by_the_mouse_give_the_right_tree_and_a_film(tab: Tab, tmp_path: Path) -> None:
    frames = [frame_of(tab)]
    every = 1 if os.environ.get("AGGREVATED_SCREENSHOTS") else 6
    strokes = strokes_on(tab, SOLVED)
    for number, _ in enumerate(draw_strokes(tab, strokes), 1):
        settled(tab, number)
        if number % every == 0 or number == len(strokes):
            frames.append(frame_of(tab))
    expect(tab.locator("#text")).to_have_text("2x+3=7\n2x=4\nx=2")
    assert labels_shown(tab) == list(SOLVED.symbols)
    assert heads_shown(tab) == SOLVED.heads.tolist()
    film = encode_gif(frames, [220] * (len(frames) - 1) + [2500])
    (pictures_folder(tmp_path) / "draw.gif").write_bytes(film)
    assert len(film) < 3_000_000


def frame_of(tab: Tab) -> Image.Image:
    """What is seen, half as large."""
    whole = Image.open(BytesIO(tab.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": 900}))).convert("RGB")
    return whole.resize((896, 630), Image.Resampling.LANCZOS)


def test_a_picture_dropped_on_the_page_is_read(tab: Tab) -> None:
    drop(tab, "line.png", picture_of(SHORT))
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")
    assert heads_shown(tab) == SHORT.heads.tolist()
    tab.click("#undo")  # what was there before, which is nothing
    expect(tab.locator("#text")).to_have_text("")


def picture_of(page: object) -> bytes:
    """Black on white, as a scanner sees it."""
    from PIL import ImageDraw

    ink = getattr(page, "ink")  # noqa: B009 - a Page of ours, and not of the browser
    every = np.concatenate([stroke for strokes in ink for stroke in strokes])
    scale = 60 / 40
    low = every.min(axis=0) - 20
    size = ((np.ptp(every, axis=0) + 40) * scale).astype(int)
    image = Image.new("L", (int(size[0]), int(size[1])), 255)
    for strokes in ink:
        for stroke in strokes:
            points = [(float(x), float(y)) for x, y in (stroke - low) * scale]
            ImageDraw.Draw(image).line(points, fill=0, width=4, joint="curve")
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def test_inkml_with_its_tree_is_shown_as_confirmed_and_with_costs(tab: Tab) -> None:
    drop(tab, "gold.inkml", to_inkml(SHORT, "a(b+c)=d"))
    expect(tab.locator("#confirm")).to_have_attribute("aria-pressed", "true")
    followed(tab, "10 confirmed")
    tab.click("#first")
    expect(tab.locator("#transitions tbody")).to_contain_text("nothing")
    assert labels_shown(tab) == list(SHORT.symbols)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("nothing.png", b"", "is neither|is damaged|cut off"),
        ("text.txt", b"hello", "is neither InkML"),
        ("bad.inkml", b"<ink><trace>1 1, 2</trace></ink>", "without x or y"),
        ("<b>.inkml", b"<!DOCTYPE x><ink/>", "document type"),
    ],
)
def test_a_file_that_is_none_is_said_to_be_and_changes_nothing(
    tabs: Tabs, drawing: Serving, name: str, data: bytes, why: str
) -> None:
    tab = ready(tabs.open(drawing.address, max_target_cost=("422",), viewport=WIDE))
    drop(tab, name, data)
    expect(tab.locator("#status")).to_have_text(re.compile(why))
    expect(tab.locator("#status")).to_have_class("status bad")
    assert not labels_shown(tab)


def test_pen_and_finger_write_too_and_pressure_is_kept(tab: Tab) -> None:
    devtools = tab.context.new_cdp_session(tab)
    box = tab.locator("#paper").bounding_box()
    assert box is not None
    x = box["x"] + 200
    y = box["y"] + 100
    for kind, at, buttons, force in (
        ("mousePressed", 0, 1, 0.2), ("mouseMoved", 20, 1, 0.6), ("mouseMoved", 60, 1, 0.9), ("mouseReleased", 60, 0, 0)
    ):  # fmt: skip
        point = {"x": x + at, "y": y, "buttons": buttons, "button": "left", "force": force, "pointerType": "pen"}
        devtools.send("Input.dispatchMouseEvent", {"type": kind, **point})
    settled_parts(tab, 1)
    pressures = tab.evaluate("JSON.parse(sessionStorage['aggrevated.drawing']).parts[0].strokes[0].map(p => p[2])")
    assert pressures == pytest.approx([0.2, 0.6, 0.9], abs=0.01)
    tab.wait_for_timeout(800)  # the hand that held the pen has left the paper
    for kind, at in (("touchStart", 0), ("touchMove", 30), ("touchMove", 60), ("touchEnd", None)):
        points = [] if at is None else [{"x": x + at, "y": y + 12}]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    settled_parts(tab, 2)
    assert labels_shown(tab) == ["="]


def settled_parts(tab: Tab, parts: int) -> None:
    """The same where a stroke of a pen is drawn in pieces."""
    tab.wait_for_function("count => document.body.dataset.read == count", arg=parts)


# Changing one's mind.


def test_undo_redo_eraser_and_clear(tab: Tab) -> None:
    write_on(tab, SHORT)
    tab.keyboard.press("Control+z")
    settled(tab, 9)
    tab.click("#redo")
    settled(tab, 10)
    tab.click("#eraser")
    first = strokes_on(tab, SHORT)[0][2].tolist()
    tab.mouse.click(*first)
    settled(tab, 9)
    expect(tab.locator("#text")).to_have_text("(b+c)=d")
    tab.click("#undo")
    settled(tab, 10)
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")
    tab.click("#clear")
    expect(tab.locator("#text")).to_have_text("")
    expect(tab.locator("#hint")).to_be_visible()
    tab.click("#undo")
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")


def test_a_head_is_corrected_by_dragging_by_choosing_and_forgotten(tab: Tab) -> None:
    write_on(tab, SHORT)
    symbol = tab.locator("#tree .symbol")
    symbol.nth(1).drag_to(symbol.nth(7))  # a onto =
    expect(tab.locator("#tree .arc.said")).to_have_count(1)
    assert heads_shown(tab)[0] == 7
    symbol.nth(1).focus()
    tab.keyboard.press("Enter")
    tab.select_option("#head", "0")
    tab.wait_for_function("() => document.querySelector('#tree .arc.said')?.dataset.head === '0'")
    tab.click("#forget")
    expect(tab.locator("#tree .arc.said")).to_have_count(0)
    assert heads_shown(tab) == SHORT.heads.tolist()


def test_a_tree_that_is_none_is_not_confirmed(tabs: Tabs, drawing: Serving) -> None:
    tab = ready(tabs.open(drawing.address, max_target_cost=("422",), viewport=WIDE))
    write_on(tab, SHORT)
    symbol = tab.locator("#tree .symbol")
    symbol.nth(1).drag_to(symbol.nth(0))  # a second root
    expect(tab.locator("#tree .arc.said")).to_have_count(1)
    tab.click("#confirm")
    expect(tab.locator("#refusal")).to_contain_text("depend on ROOT")
    expect(tab.locator("#confirm")).to_have_attribute("aria-pressed", "false")
    expect(tab.locator("#keep")).to_be_disabled()


def test_symbols_are_joined_and_taken_apart(tab: Tab) -> None:
    write_on(tab, SHORT)
    tab.locator("#tree .symbol").nth(7).click()  # =
    tab.click("#split")
    expect(tab.locator("#tree .symbol:not(.root)")).to_have_count(9)
    tab.click("#undo")
    expect(tab.locator("#tree .symbol:not(.root)")).to_have_count(8)
    tab.locator("#tree .symbol").nth(1).click()
    tab.click("#join")  # a(
    expect(tab.locator("#tree .symbol:not(.root)")).to_have_count(7)


def test_what_was_said_of_a_symbol_that_is_none_any_more_is_forgotten(tab: Tab) -> None:
    write_on(tab, SHORT)
    symbol = tab.locator("#tree .symbol")
    symbol.nth(8).drag_to(symbol.nth(1))  # d onto a
    expect(tab.locator("#tree .arc.said")).to_have_count(1)
    symbol.nth(1).click()
    tab.click("#join")  # a and ( are one symbol now
    expect(tab.locator("#tree .symbol:not(.root)")).to_have_count(7)
    expect(tab.locator("#tree .arc.said")).to_have_count(0)


def test_a_label_that_was_typed_is_one_change(tab: Tab) -> None:
    write_on(tab, SHORT)
    tab.locator("#tree .symbol").nth(1).click()
    tab.fill("#label", "k")
    tab.press("#label", "Enter")
    expect(tab.locator("#text")).to_have_text("k(b+c)=d")
    tab.click("#undo")
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")


def test_a_label_that_is_too_long_changes_nothing(tab: Tab) -> None:
    write_on(tab, SHORT)
    tab.locator("#tree .symbol").nth(1).click()
    tab.fill("#label", "∫" * 6)
    tab.press("#label", "Enter")
    expect(tab.locator("#status")).to_contain_text("16 bytes at most")
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")


def test_answers_that_come_too_late_are_not_shown(tab: Tab) -> None:
    held: list[Route] = []
    tab.route("**/steps", lambda route: held.append(route))  # it is answered below
    write_on(tab, SHORT)
    for _ in range(200):
        if held:
            break
        tab.wait_for_timeout(50)
    assert held
    tab.click("#clear")
    expect(tab.locator("#text")).to_have_text("")
    for one in held:
        with tab.expect_response("**/steps"):
            one.continue_()
    tab.wait_for_timeout(100)
    expect(tab.locator("#playing")).to_be_hidden()


def test_a_server_that_is_busy_is_asked_again(tabs: Tabs, drawing: Serving) -> None:
    tab = ready(tabs.open(drawing.address, max_target_cost=("503",), viewport=WIDE))
    refusals = {"read": 2, "steps": 2}

    def busy(route: Route) -> None:
        which = route.request.url.rsplit("/", 1)[1]
        refusals[which] -= 1
        if refusals[which] >= 0:
            route.fulfill(status=503, json={"error": "there is too much to do at the moment; try again"})
        else:
            route.continue_()

    tab.route(re.compile("/(read|steps)$"), busy)
    drop(tab, "gold.inkml", to_inkml(SHORT))
    followed(tab, "10 confirmed")
    expect(tab.locator("#confirm")).to_have_attribute("aria-pressed", "true")
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")


def test_nobody_confirms_what_is_not_seen(tab: Tab) -> None:
    write_on(tab, SHORT)
    expect(tab.locator("#confirm")).to_be_enabled()
    tab.route("**/read", lambda route: None)  # no answer
    strokes = strokes_on(tab, written_as("x"))
    for _ in draw_strokes(tab, [strokes[0] + [300, 60]]):
        pass
    expect(tab.locator("#confirm")).to_be_disabled()
    expect(tab.locator("#keep")).to_be_disabled()


def test_the_parse_is_played_and_a_mistake_has_its_cost(tab: Tab) -> None:
    write_on(tab, SHORT)
    followed(tab, "10 open")
    tab.click("#first")
    expect(tab.locator("#step-said")).to_have_text(
        re.compile(r"^Step 0 of 14: shift is next, the policy is 9\d[.\d]* % sure.$")
    )
    assert tab.locator("#stack li").all_text_contents() == ["ROOT"]
    assert tab.locator("#transitions td:nth-child(3)").all_text_contents() == [""] * 4
    symbol = tab.locator("#tree .symbol")
    tab.click("#last")
    symbol.nth(1).drag_to(symbol.nth(2))  # a heads (: the parser will get one arc wrong
    expect(tab.locator("#tree .arc.said")).to_have_count(1)
    tab.click("#confirm")
    followed(tab, "10 confirmed")
    tab.click("#first")
    costs = [str(tab.locator("#step-said").text_content())]
    for _ in range(14):
        tab.click("#next")
        costs.append(str(tab.locator("#step-said").text_content()))
    assert sum("This mistake costs 1 arc." in said for said in costs) == 1
    assert costs[-1] == "Step 14 of 14: the parse has ended."
    tab.click("#play")
    expect(tab.locator("#step-said")).to_have_text(re.compile(r"^Step [1-9]\d? of 14"))
    tab.click("#play")  # pauses
    assert tab.locator("#play").text_content() == "Play"


def followed(tab: Tab, what: str) -> None:
    """Wait until the steps that are shown are of so many parts, confirmed or open."""
    expect(tab.locator("body")).to_have_attribute("data-followed", what)


# What stays.


def test_a_reload_loses_nothing_and_a_second_tab_is_another_page(tab: Tab, tabs: Tabs, drawing: Serving) -> None:
    write_on(tab, SHORT)
    second = ready(tabs.beside(context_of(tab), drawing.address))
    assert labels_shown(second) == []
    write_on(second, written_as("x=2"))
    tab.reload()
    settled(tab, 10)
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")
    expect(second.locator("#text")).to_have_text("x=2")


def context_of(tab: Tab) -> BrowserContext:
    return tab.context


def test_a_server_that_dies_and_comes_back_is_found_again(tabs: Tabs, serve: Serve, kept: Path) -> None:
    first = serve("draw", "--corrected-pages", str(kept), "--port", str(free_port()))
    tab = ready(tabs.open(first.address, max_target_cost=("Failed to load", "ERR_CONNECTION"), viewport=WIDE))
    strokes = strokes_on(tab, SHORT)
    for _ in draw_strokes(tab, strokes[:4]):
        pass
    settled(tab, 4)
    first.stop(signal.SIGKILL)
    for _ in draw_strokes(tab, strokes[4:]):
        pass
    expect(tab.locator("#status")).to_contain_text("nobody answers")
    again = serve("draw", "--corrected-pages", str(kept), "--port", str(first.port))
    assert again.address == first.address  # so that the page, and a bookmark, find it
    settled(tab, 10)
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_what_is_saved_can_be_read_again(tab: Tab, tmp_path: Path) -> None:
    write_on(tab, SHORT)
    saved = {}
    for kind in ("inkml", "png", "json", "latex"):
        with tab.expect_download() as coming:
            tab.click(f"#save-{kind}")
        saved[kind] = tmp_path / coming.value.suggested_filename
        coming.value.save_as(saved[kind])
    assert saved["latex"].read_text() == "a(b+c)=d\n"
    assert json.loads(saved["json"].read_text())["text"] == "a(b+c)=d"
    reader = load_reader()
    for kind in ("inkml", "png"):
        parsed = reader.parse(saved[kind])
        assert parsed.text == "a(b+c)=d" and parsed.heads == SHORT.heads.tolist()


def test_a_correction_is_kept_trained_on_and_read_back(tabs: Tabs, serve: Serve, tmp_path: Path) -> None:
    page = written_as("2x+3=7", "2x=4", "x=2", hand=5)  # whose 4 is read as a Y
    first = serve("draw", "--corrected-pages", "corrected", cwd=tmp_path)
    tab = ready(tabs.open(first.address, viewport=WIDE))
    write_on(tab, page)
    assert labels_shown(tab)[9] == "Y"
    tab.locator("#tree .symbol").nth(10).click()
    tab.fill("#label", "4")
    tab.press("#label", "Enter")
    expect(tab.locator("#text")).to_have_text("2x+3=7\n2x=4\nx=2")
    tab.click("#confirm")
    tab.click("#keep")
    expect(tab.locator("#status")).to_have_text("Kept as page-0001.inkml.")
    (file,) = (tmp_path / "corrected").iterdir()
    found = read_page(file)
    assert found.symbols == page.symbols and found.heads.tolist() == page.heads.tolist()

    tab.close()  # it would ask for the server
    first.stop()
    train = ["train", "algebra", "--corrected-pages", "corrected", *BOLD, "--out", "run"]
    program = f"{FEWER}\nfrom aggrevated.cli import main\nmain({train})"
    trained = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert trained.returncode == 0, trained.stderr
    second = serve("draw", "--policy", "run", cwd=tmp_path)
    again = ready(tabs.open(second.address, viewport=WIDE))
    write_on(again, page)
    assert labels_shown(again) == list(page.symbols)
    assert heads_shown(again) == page.heads.tolist()


# For everybody.


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_those_who_cannot_see_it(
    tabs: Tabs, drawing: Serving, scheme: str, tmp_path: Path
) -> None:
    tab = ready(tabs.open(drawing.address, viewport=WIDE, color_scheme=scheme, reduced_motion="reduce"))
    assert accessible(tab) == []
    drop(tab, "gold.inkml", to_inkml(SOLVED))
    followed(tab, "22 confirmed")
    tab.locator("#tree .symbol").nth(4).click()
    tab.click("#first")
    for _ in range(5):
        tab.click("#next")
    assert accessible(tab) == []
    name = "draw.png" if scheme == "light" else "draw-dark.png"
    tab.screenshot(path=pictures_folder(tmp_path) / name, full_page=True)
    tab.click("#play")  # without motion it is a step
    expect(tab.locator("#step-said")).to_contain_text("Step 6 of")


def test_it_fits_a_telephone(tabs: Tabs, drawing: Serving, tmp_path: Path) -> None:
    tab = ready(tabs.open(drawing.address, viewport=NARROW, has_touch=True, device_scale_factor=2))
    top = tab.locator("#paper").bounding_box()
    drop(tab, "gold.inkml", to_inkml(SHORT))
    followed(tab, "10 confirmed")
    assert tab.locator("#paper").bounding_box() == top  # it does not move under the pen
    tab.click("#first")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert accessible(tab) == []
    tab.screenshot(path=pictures_folder(tmp_path) / "draw-narrow.png", full_page=True)


def test_all_can_be_done_by_keys(tab: Tab) -> None:
    drop(tab, "line.png", picture_of(SHORT))
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")
    tab.locator("#tree .symbol").nth(1).focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "label"
    tab.keyboard.type("k")
    tab.keyboard.press("Enter")
    expect(tab.locator("#text")).to_have_text("a(k+c)=d")
    chosen = tab.locator("#tree .symbol.chosen")
    expect(chosen).to_have_attribute("aria-label", "k 3")
    expect(chosen).to_have_attribute("aria-description", re.compile(r"head \+ 4, \d+ % sure"))
