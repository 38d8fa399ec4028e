"""`aggrevated draw` in Chromium, by mouse, finger, pen and keys."""

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
from browsing import Serve, Serving, Tabs, find_accessibility_faults, pictures_folder
from PIL import Image
from playwright.sync_api import BrowserContext, Route, expect
from playwright.sync_api import Page as Tab
from writing import draw_strokes, place_strokes, read_heads, read_labels, wait_until_read, write_lines, write_on

from aggrevated.plots.animation import encode_gif
from aggrevated_reader import load_reader
from aggrevated_reader.pages.inkml_writing import to_inkml
from aggrevated_reader.pictures.segmentation import read_page

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}
SOLVED = write_lines("2x+3=7", "2x=4", "x=2")
SHORT = write_lines("a(b+c)=d")
FEWER = """from aggrevated_reader import corrected_pages_problem as problem
problem.BESIDE, problem.OWN, problem.CHOSEN_ON, problem.REPORTED = 200, 100, 20, 20"""  # pages, which take long
BOLD = ["--iterations", "12", "--trajectories", "16", "--learning-rate", "2e-3"]


@pytest.fixture(scope="module")
def corrected_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for corrected pages."""
    return tmp_path_factory.mktemp("kept") / "pages"


@pytest.fixture(scope="module")
def drawing(serve: Serve, corrected_folder: Path) -> Serving:
    """One server for all tests that do not stop theirs."""
    return serve("draw", "--corrected-pages", str(corrected_folder))


@pytest.fixture
def tab(tabs: Tabs, drawing: Serving) -> Iterator[Tab]:
    """Open the page, ready for writing."""
    yield wait_until_ready(tabs.open(drawing.address, viewport=WIDE))


def wait_until_ready(tab: Tab) -> Tab:
    expect(tab.locator("#status")).to_have_text("Ready.")
    return tab


def drop_file(tab: Tab, name: str, data: bytes) -> None:
    """Drop a file on the paper."""
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


def test_draw_page_parses_mouse_strokes_as_they_are_drawn(tab: Tab, tmp_path: Path) -> None:
    frames = [take_frame(tab)]
    every = 1 if os.environ.get("AGGREVATED_SCREENSHOTS") else 6
    strokes = place_strokes(tab, SOLVED)
    for number, _ in enumerate(draw_strokes(tab, strokes), 1):
        wait_until_read(tab, number)
        if number % every == 0 or number == len(strokes):
            frames.append(take_frame(tab))
    expect(tab.locator("#text")).to_have_text("2x+3=7\n2x=4\nx=2")
    assert read_labels(tab) == list(SOLVED.symbols)
    assert read_heads(tab) == SOLVED.heads.tolist()
    film = encode_gif(frames, [220] * (len(frames) - 1) + [2500])
    (pictures_folder(tmp_path) / "draw.gif").write_bytes(film)
    assert len(film) < 3_000_000


def take_frame(tab: Tab) -> Image.Image:
    """Return a screenshot at half size."""
    whole = Image.open(BytesIO(tab.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": 900}))).convert("RGB")
    return whole.resize((896, 630), Image.Resampling.LANCZOS)


def test_draw_page_reads_a_dropped_picture(tab: Tab) -> None:
    drop_file(tab, "line.png", draw_picture(SHORT))
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")
    assert read_heads(tab) == SHORT.heads.tolist()
    tab.click("#undo")  # undo to an empty page
    expect(tab.locator("#text")).to_have_text("")


def draw_picture(page: object) -> bytes:
    """Return the page in black on white, like a scan."""
    from PIL import ImageDraw

    ink = getattr(page, "ink")  # noqa: B009 - a Page of this package, not Playwright's
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


def test_draw_page_shows_gold_inkml_as_confirmed_with_costs(tab: Tab) -> None:
    drop_file(tab, "gold.inkml", to_inkml(SHORT, "a(b+c)=d"))
    expect(tab.locator("#confirm")).to_have_attribute("aria-pressed", "true")
    wait_for_steps(tab, "10 confirmed")
    tab.click("#first")
    expect(tab.locator("#transitions tbody")).to_contain_text("nothing")
    assert read_labels(tab) == list(SHORT.symbols)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("nothing.png", b"", "is neither|is damaged|cut off"),
        ("text.txt", b"hello", "is neither InkML"),
        ("bad.inkml", b"<ink><trace>1 1, 2</trace></ink>", "without x or y"),
        ("<b>.inkml", b"<!DOCTYPE x><ink/>", "document type"),
    ],
)
def test_draw_page_rejects_invalid_file_and_changes_nothing(
    tabs: Tabs, drawing: Serving, name: str, data: bytes, why: str
) -> None:
    tab = wait_until_ready(tabs.open(drawing.address, allowed=("422",), viewport=WIDE))
    drop_file(tab, name, data)
    expect(tab.locator("#status")).to_have_text(re.compile(why))
    expect(tab.locator("#status")).to_have_class("status bad")
    assert not read_labels(tab)


def test_draw_page_accepts_pen_and_finger_with_pressure(tab: Tab) -> None:
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
    wait_for_parts(tab, 1)
    pressures = tab.evaluate("JSON.parse(sessionStorage['aggrevated.drawing']).parts[0].strokes[0].map(p => p[2])")
    assert pressures == pytest.approx([0.2, 0.6, 0.9], abs=0.01)
    tab.wait_for_timeout(800)  # wait for the palm rejection after the pen to end
    for kind, at in (("touchStart", 0), ("touchMove", 30), ("touchMove", 60), ("touchEnd", None)):
        points = [] if at is None else [{"x": x + at, "y": y + 12}]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    wait_for_parts(tab, 2)
    assert read_labels(tab) == ["="]


def wait_for_parts(tab: Tab, parts: int) -> None:
    """Wait for the number of parts where a pen's stroke arrives in pieces."""
    tab.wait_for_function("count => document.body.dataset.read == count", arg=parts)


# Corrections.


def test_draw_page_undo_redo_eraser_and_clear(tab: Tab) -> None:
    write_on(tab, SHORT)
    tab.keyboard.press("Control+z")
    wait_until_read(tab, 9)
    tab.click("#redo")
    wait_until_read(tab, 10)
    tab.click("#eraser")
    first = place_strokes(tab, SHORT)[0][2].tolist()
    tab.mouse.click(*first)
    wait_until_read(tab, 9)
    expect(tab.locator("#text")).to_have_text("(b+c)=d")
    tab.click("#undo")
    wait_until_read(tab, 10)
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")
    tab.click("#clear")
    expect(tab.locator("#text")).to_have_text("")
    expect(tab.locator("#hint")).to_be_visible()
    tab.click("#undo")
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")


def test_draw_page_head_can_be_dragged_selected_and_reset(tab: Tab) -> None:
    write_on(tab, SHORT)
    symbol = tab.locator("#tree .symbol")
    symbol.nth(1).drag_to(symbol.nth(7))  # a onto =
    expect(tab.locator("#tree .arc.said")).to_have_count(1)
    assert read_heads(tab)[0] == 7
    symbol.nth(1).focus()
    tab.keyboard.press("Enter")
    tab.select_option("#head", "0")
    tab.wait_for_function("() => document.querySelector('#tree .arc.said')?.dataset.head === '0'")
    tab.click("#forget")
    expect(tab.locator("#tree .arc.said")).to_have_count(0)
    assert read_heads(tab) == SHORT.heads.tolist()


def test_draw_page_does_not_confirm_an_invalid_tree(tabs: Tabs, drawing: Serving) -> None:
    tab = wait_until_ready(tabs.open(drawing.address, allowed=("422",), viewport=WIDE))
    write_on(tab, SHORT)
    symbol = tab.locator("#tree .symbol")
    symbol.nth(1).drag_to(symbol.nth(0))  # a second root
    expect(tab.locator("#tree .arc.said")).to_have_count(1)
    tab.click("#confirm")
    expect(tab.locator("#refusal")).to_contain_text("depend on ROOT")
    expect(tab.locator("#confirm")).to_have_attribute("aria-pressed", "false")
    expect(tab.locator("#keep")).to_be_disabled()


def test_draw_page_joins_and_splits_symbols(tab: Tab) -> None:
    write_on(tab, SHORT)
    tab.locator("#tree .symbol").nth(7).click()  # =
    tab.click("#split")
    expect(tab.locator("#tree .symbol:not(.root)")).to_have_count(9)
    tab.click("#undo")
    expect(tab.locator("#tree .symbol:not(.root)")).to_have_count(8)
    tab.locator("#tree .symbol").nth(1).click()
    tab.click("#join")  # a(
    expect(tab.locator("#tree .symbol:not(.root)")).to_have_count(7)


def test_draw_page_forgets_corrections_of_removed_symbols(tab: Tab) -> None:
    write_on(tab, SHORT)
    symbol = tab.locator("#tree .symbol")
    symbol.nth(8).drag_to(symbol.nth(1))  # d onto a
    expect(tab.locator("#tree .arc.said")).to_have_count(1)
    symbol.nth(1).click()
    tab.click("#join")  # a and ( are one symbol now
    expect(tab.locator("#tree .symbol:not(.root)")).to_have_count(7)
    expect(tab.locator("#tree .arc.said")).to_have_count(0)


def test_draw_page_undoes_a_typed_label_at_once(tab: Tab) -> None:
    write_on(tab, SHORT)
    tab.locator("#tree .symbol").nth(1).click()
    tab.fill("#label", "k")
    tab.press("#label", "Enter")
    expect(tab.locator("#text")).to_have_text("k(b+c)=d")
    tab.click("#undo")
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")


def test_draw_page_rejects_too_long_label(tab: Tab) -> None:
    write_on(tab, SHORT)
    tab.locator("#tree .symbol").nth(1).click()
    tab.fill("#label", "∫" * 6)
    tab.press("#label", "Enter")
    expect(tab.locator("#status")).to_contain_text("16 bytes at most")
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")


def test_draw_page_ignores_late_answers(tab: Tab) -> None:
    held: list[Route] = []
    tab.route("**/steps", lambda route: held.append(route))  # answered below
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


def test_draw_page_retries_when_the_server_is_busy(tabs: Tabs, drawing: Serving) -> None:
    tab = wait_until_ready(tabs.open(drawing.address, allowed=("503",), viewport=WIDE))
    refusals = {"read": 2, "steps": 2}

    def refuse_at_first(route: Route) -> None:
        which = route.request.url.rsplit("/", 1)[1]
        refusals[which] -= 1
        if refusals[which] >= 0:
            route.fulfill(status=503, json={"error": "the server is busy; try again"})
        else:
            route.continue_()

    tab.route(re.compile("/(read|steps)$"), refuse_at_first)
    drop_file(tab, "gold.inkml", to_inkml(SHORT))
    wait_for_steps(tab, "10 confirmed")
    expect(tab.locator("#confirm")).to_have_attribute("aria-pressed", "true")
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")


def test_draw_page_cannot_confirm_before_the_answer_is_displayed(tab: Tab) -> None:
    write_on(tab, SHORT)
    expect(tab.locator("#confirm")).to_be_enabled()
    tab.route("**/read", lambda route: None)  # no answer
    strokes = place_strokes(tab, write_lines("x"))
    for _ in draw_strokes(tab, [strokes[0] + [300, 60]]):
        pass
    expect(tab.locator("#confirm")).to_be_disabled()
    expect(tab.locator("#keep")).to_be_disabled()


def test_draw_page_plays_the_parse_and_shows_costs_of_mistakes(tab: Tab) -> None:
    write_on(tab, SHORT)
    wait_for_steps(tab, "10 open")
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
    wait_for_steps(tab, "10 confirmed")
    tab.click("#first")
    costs = [str(tab.locator("#step-said").text_content())]
    for _ in range(14):
        tab.click("#next")
        costs.append(str(tab.locator("#step-said").text_content()))
    assert sum("This mistake costs 1 arc." in text for text in costs) == 1
    assert costs[-1] == "Step 14 of 14: the parse has ended."
    tab.click("#play")
    expect(tab.locator("#step-said")).to_have_text(re.compile(r"^Step [1-9]\d? of 14"))
    tab.click("#play")  # pauses
    assert tab.locator("#play").text_content() == "Play"


def wait_for_steps(tab: Tab, what: str) -> None:
    """Wait until the displayed steps belong to this many parts, confirmed or open."""
    expect(tab.locator("body")).to_have_attribute("data-followed", what)


# Persistence.


def test_draw_page_survives_reload_and_keeps_tabs_separate(tab: Tab, tabs: Tabs, drawing: Serving) -> None:
    write_on(tab, SHORT)
    second = wait_until_ready(tabs.open_tab(get_context(tab), drawing.address))
    assert read_labels(second) == []
    write_on(second, write_lines("x=2"))
    tab.reload()
    wait_until_read(tab, 10)
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")
    expect(second.locator("#text")).to_have_text("x=2")


def get_context(tab: Tab) -> BrowserContext:
    return tab.context


def test_draw_page_reconnects_after_server_restart(tabs: Tabs, serve: Serve, corrected_folder: Path) -> None:
    first = serve("draw", "--corrected-pages", str(corrected_folder), "--port", str(free_port()))
    tab = wait_until_ready(tabs.open(first.address, allowed=("Failed to load", "ERR_CONNECTION"), viewport=WIDE))
    strokes = place_strokes(tab, SHORT)
    for _ in draw_strokes(tab, strokes[:4]):
        pass
    wait_until_read(tab, 4)
    first.stop(signal.SIGKILL)
    for _ in draw_strokes(tab, strokes[4:]):
        pass
    expect(tab.locator("#status")).to_contain_text("no answer")
    again = serve("draw", "--corrected-pages", str(corrected_folder), "--port", str(first.port))
    assert again.address == first.address  # so that the page and bookmarks find it
    wait_until_read(tab, 10)
    expect(tab.locator("#text")).to_have_text("a(b+c)=d")


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_draw_page_saves_files_that_can_be_read_back(tab: Tab, tmp_path: Path) -> None:
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


def test_draw_page_correction_can_be_saved_trained_on_and_read_back(tabs: Tabs, serve: Serve, tmp_path: Path) -> None:
    page = write_lines("2x+3=7", "2x=4", "x=2", hand=5)  # its 4 is read as a Y
    first = serve("draw", "--corrected-pages", "corrected", cwd=tmp_path)
    tab = wait_until_ready(tabs.open(first.address, viewport=WIDE))
    write_on(tab, page)
    assert read_labels(tab)[9] == "Y"
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

    tab.close()  # the page would query the server
    first.stop()
    train = ["train", "reader", "--corrected-pages", "corrected", *BOLD, "--out", "run"]
    program = f"{FEWER}\nfrom aggrevated.cli import main\nmain({train})"
    trained = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert trained.returncode == 0, trained.stderr
    second = serve("draw", "--policy", "run", cwd=tmp_path)
    again = wait_until_ready(tabs.open(second.address, viewport=WIDE))
    write_on(again, page)
    assert read_labels(again) == list(page.symbols)
    assert read_heads(again) == page.heads.tolist()


# Accessibility.


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_draw_page_is_accessible(tabs: Tabs, drawing: Serving, scheme: str, tmp_path: Path) -> None:
    tab = wait_until_ready(tabs.open(drawing.address, viewport=WIDE, color_scheme=scheme, reduced_motion="reduce"))
    assert find_accessibility_faults(tab) == []
    drop_file(tab, "gold.inkml", to_inkml(SOLVED))
    wait_for_steps(tab, "22 confirmed")
    tab.locator("#tree .symbol").nth(4).click()
    tab.click("#first")
    for _ in range(5):
        tab.click("#next")
    assert find_accessibility_faults(tab) == []
    name = "draw.png" if scheme == "light" else "draw-dark.png"
    tab.screenshot(path=pictures_folder(tmp_path) / name, full_page=True)
    tab.click("#play")  # without motion it is a step
    expect(tab.locator("#step-said")).to_contain_text("Step 6 of")


def test_draw_page_fits_a_phone_screen(tabs: Tabs, drawing: Serving, tmp_path: Path) -> None:
    tab = wait_until_ready(tabs.open(drawing.address, viewport=NARROW, has_touch=True, device_scale_factor=2))
    top = tab.locator("#paper").bounding_box()
    drop_file(tab, "gold.inkml", to_inkml(SHORT))
    wait_for_steps(tab, "10 confirmed")
    assert tab.locator("#paper").bounding_box() == top  # the paper does not move under the pen
    tab.click("#first")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert find_accessibility_faults(tab) == []
    tab.screenshot(path=pictures_folder(tmp_path) / "draw-narrow.png", full_page=True)


def test_draw_page_can_be_used_by_keyboard(tab: Tab) -> None:
    drop_file(tab, "line.png", draw_picture(SHORT))
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
