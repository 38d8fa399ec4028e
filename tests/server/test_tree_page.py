"""`aggrevated tree` as a person plays with it, in Chromium; and what it is asked for, without."""

import asyncio
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import Serve, Serving, Tabs, accessible
from PIL import Image
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect
from starlette.types import Message

from aggrevated.cli import main
from aggrevated.errors import UsageError
from aggrevated.server.tree import MOST_BODY, tree_app
from aggrevated.theory import bounds, tree
from aggrevated.theory.bandits import index_policy, ucb1
from aggrevated.theory.experiments import UCB1_BONUS, led, on_hard_trees
from aggrevated.theory.game import Game, Settings
from aggrevated.theory.study import when

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}
PUBLISHED = os.environ.get("AGGREVATED_SCREENSHOTS")  # where pictures of the page go; nowhere, if nobody wants them
SETTINGS = Settings()
PICTURE = {"depth": 6, "costs": "one-good-leaf", "rollouts": 0, "step": 1.0, "episodes": 200, "seed": 4}


# The game, without a browser.


def regrets_of(settings: Settings) -> list[np.ndarray]:
    """What the functions of the theory say of EG, FTL and UCB, at the episodes of `when`."""
    given = settings.tree(), settings.episodes, settings.seed
    eg = tree.exponentiated_gradient(*given, settings.queries, step=settings.step)
    ftl, _ = tree.follow_the_leader(*given, settings.queries)
    ucb = index_policy(settings.tree().means, settings.episodes, ucb1, "", settings.seed, UCB1_BONUS)
    return [one.curve[0] for one in (eg, ftl, ucb)]


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(depth=3, costs="uniform", rollouts=3, step=0.5, episodes=10, seed=9),
        Settings(depth=8, rollouts=1, episodes=500, seed=2**53 - 1),
    ],
)
def test_the_regrets_are_those_of_the_theory_to_the_bit(settings: Settings) -> None:
    points = when(settings.episodes) - 1
    for played, curve in zip(Game(settings).facts()["learners"], regrets_of(settings), strict=True):
        np.testing.assert_array_equal(np.array(played["regret"])[points], curve)


def test_on_hard_trees_they_are_those_of_the_study() -> None:
    settings = Settings(depth=5, rollouts=1, episodes=100, seed=3)
    bandit, _, gradient = on_hard_trees(5, 100, 1)
    eg, _, ucb = Game(settings).played
    np.testing.assert_array_equal(eg.regret, gradient.regret(3, 1.0).curve[0])
    np.testing.assert_array_equal(ucb.regret, bandit.regret(3, UCB1_BONUS).curve[0])
    np.testing.assert_array_equal(Game(Settings(5, episodes=100, seed=3)).played[1].regret, led(5, 100, 1, 3).curve[0])


@pytest.mark.parametrize("rollouts", [0, 2])
def test_replaying_what_moved_gives_every_policy_and_its_regret(rollouts: int) -> None:
    """As the page does: π_n is the start and what the episodes before it moved; its cost is that of its leaves."""
    game = Game(Settings(depth=4, costs="uniform", rollouts=rollouts, episodes=40, seed=1))
    for played in game.played[:2]:
        assert played.start is not None and played.moved is not None and played.chance is not None
        policy, total = played.start.copy(), 0.0
        for n, leaf in enumerate(played.taken):
            reach = np.ones(1)
            for level in range(3):
                right = policy[2**level - 1 : 2 ** (level + 1) - 1]
                reach = np.stack([reach * (1 - right), reach * right], axis=1).ravel()
            total += reach @ game.means - game.means.min()
            assert played.regret[n] == pytest.approx(total, abs=1e-9)
            assert played.chance[n] == pytest.approx(reach[game.best]) and reach[leaf] > 0
            nodes = [0, 1 + (leaf >> 2), 3 + (leaf >> 1)]
            policy[nodes] = played.moved[n]


def test_bounds_are_shown_where_they_hold() -> None:
    def kinds(**given: Any) -> list[tuple[str, str]]:
        return [(one["of"], one["kind"]) for one in Game(Settings(episodes=50, **given)).lines()]

    assert kinds() == [("FTL", "at most"), ("EG", "at most"), ("UCB", "at least"), ("", "random")]
    assert kinds(rollouts=1, step=2.0, costs="uniform") == [("", "random")]
    game = Game(Settings(costs="uniform", episodes=50))
    (ftl, eg, random), n = game.lines(), np.arange(1, 51)
    np.testing.assert_allclose(ftl["values"], bounds.special_upper(6, n, np.ptp(game.means)), atol=1e-4)
    np.testing.assert_allclose(eg["values"], bounds.special_lower_noisy(6, n), atol=1e-4)
    assert random["values"][-1] == pytest.approx(50 * (game.means.mean() - game.means.min()), abs=1e-3)
    assert (game.played[1].regret <= ftl["values"]).all() and (game.played[0].regret <= eg["values"]).all()


def test_sentences_say_what_happened() -> None:
    game = Game(Settings(episodes=60, seed=4))
    before, *told = game.sentences()
    assert len(told) == 60 and "UCB has tried none" in before
    _, found = tree.follow_the_leader(game.trees, 60, 4)
    assert f"FTL found the best leaf after {found[0]} episodes, and stays there." in told[-1] and found[0] > 1
    assert "FTL has not found the best leaf." in told[found[0] - 1]
    assert "UCB has tried 27 of 32 leaves, the best one" in told[26] and "all 32 leaves" in told[-1]


def posted(body: str, path: str = "/game", method: str = "POST", first: Settings = SETTINGS) -> tuple[int, bytes]:
    """(status, body) of what the application answers, without a server around it."""
    said: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body.encode(), "more_body": False}

    async def send(message: Message) -> None:
        said.append(message)

    head = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": []}
    with ThreadPoolExecutor(1) as beside:  # in this thread Playwright may have a loop that runs
        beside.submit(asyncio.run, tree_app(first)(head, receive, send)).result()
    return said[0]["status"], b"".join(message.get("body", b"") for message in said[1:])


WRONG = {"depth": (2, 9, 6.0, "6", None, True, 10**30), "costs": ("", 1, "x" * 900, None), "rollouts": (-1, 1001, 0.5)}
WRONG |= {"step": (0, 0.001, 101, "1", None), "episodes": (9, 2001, 1e300, [10]), "seed": (-1, 2**53, 1.5, {})}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_what_cannot_be_is_refused_in_a_sentence(name: str, value: object) -> None:
    status, body = posted(json.dumps({name: value}))
    told = json.loads(body)["error"]
    assert status == 422 and f"--{name} is " in told and len(told) < 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("[]", 422),
        ("{", 422),
        ('{"x": 1}', 422),
        ('{"step": NaN}', 422),
        ("1" * (MOST_BODY + 1), 413),
        ('{"seed": 1' + "0" * 900 + "}", 422),
    ],
)
def test_what_is_no_request_is_refused_too(body: str, status: int) -> None:
    found, answer = posted(body)
    assert found == status and json.loads(answer)["error"]


def test_the_largest_game_takes_seconds_and_two_megabytes_at_most() -> None:
    largest = {"depth": 8, "episodes": 2000, "rollouts": 1000, "costs": "uniform", "step": 0.37}
    begun = time.process_time()
    status, answer = posted(json.dumps(largest))
    assert time.process_time() - begun < 5  # 0.7 alone
    assert status == 200 and len(answer) < 2_000_000


@pytest.mark.parametrize(
    "words", ["--depth 9", "--costs dear", "--rollouts -1", "--step nan", "--episodes 1", "--seed -1", "--port -1"]
)
def test_the_command_refuses_before_it_serves(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["tree", *words.split()])
    assert left.value.code == 2 and words.split()[0] in capsys.readouterr().err


def test_the_command_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tree", "--depth", "4", "--episodes", "30", "--once"]
    main([*words, "--json"])
    assert json.loads(capsys.readouterr().out) == Game(Settings(depth=4, episodes=30)).facts()
    main(words)
    printed, game = capsys.readouterr().out, Game(Settings(depth=4, episodes=30))
    assert game.sentences()[-1] in " ".join(printed.split())
    assert all(f" {one.regret[-1]:,.2f} " in printed for one in game.played)


def test_the_page_begins_with_what_the_command_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("aggrevated.server.serving.serve", lambda app, *_: shown.append(app))
    monkeypatch.setattr("aggrevated.server.tree.tree_app", shown.append)
    main(["tree", "--depth", "4", "--step", "0.3", "--no-browser"])
    assert shown[0] == Settings(depth=4, step=0.3)
    assert json.loads(posted("", "/state", "GET", shown[0])[1]) == vars(shown[0])


def test_settings_have_to_be_of_their_type() -> None:
    with pytest.raises(UsageError, match="--depth is '6', but must be a whole number"):
        Settings(depth="6")  # type: ignore[arg-type]


# In Chromium.


@pytest.fixture(scope="module")
def playing(serve: Serve) -> Serving:
    """One server for all tests."""
    return serve("tree")


@pytest.fixture
def tab(tabs: Tabs, playing: Serving) -> Tab:
    """The page, with its first game."""
    return ready(tabs.open(playing.address, viewport=WIDE))


def ready(tab: Tab) -> Tab:
    expect(tab.locator("#status")).to_have_text("Ready.")
    return tab


def choose(tab: Tab, **settings: object) -> None:
    """Another game."""
    asked = json.loads(tab.evaluate("document.body.dataset.game")) | settings
    for name, value in settings.items():
        control = tab.locator(f"#{name}")
        if name in ("episodes", "seed"):
            control.fill(str(value))
            control.dispatch_event("change")
        else:
            control.select_option(str(value).removesuffix(".0"))
    tab.wait_for_function(
        "asked => JSON.stringify(JSON.parse(document.body.dataset.game)) === asked", arg=compact(asked)
    )


def compact(facts: dict[str, Any]) -> str:
    """As JavaScript writes it."""
    whole = {name: int(value) if value == int(value) else value for name, value in facts.items() if name != "costs"}
    return json.dumps({name: facts[name] if name == "costs" else whole[name] for name in facts}, separators=(",", ":"))


def at(tab: Tab) -> int:
    return int(tab.evaluate("document.body.dataset.at"))


def scrub(tab: Tab, episode: int) -> None:
    tab.locator("#at").fill(str(episode))


def regrets_shown(tab: Tab) -> list[str]:
    """Of EG, FTL and UCB, after the episode that is looked at."""
    return tab.locator("#numbers tbody tr td:nth-child(2)").all_text_contents()[:3]


def test_regrets_shown_are_those_of_the_theory(tab: Tab) -> None:
    for settings in (Settings(), Settings(depth=4, costs="uniform", rollouts=10, step=2.0, episodes=120, seed=11)):
        choose(tab, **vars(settings))
        curves = regrets_of(settings)
        for episode in (1, 2, 57, settings.episodes):
            scrub(tab, episode)
            assert regrets_shown(tab) == [f"{curve[episode - 1]:,.2f}" for curve in curves]
            expect(tab.locator("#said")).to_have_text(Game(settings).sentences()[episode])


def test_it_is_stepped_played_paused_and_scrubbed(tab: Tab) -> None:
    assert at(tab) == 0
    for _ in range(3):
        tab.click("#next")
    tab.click("#back")
    assert at(tab) == 2
    tab.select_option("#speed", "20")
    tab.click("#play")
    expect(tab.locator("#play")).to_have_text("Pause")
    tab.wait_for_function("() => Number(document.body.dataset.at) > 8")
    tab.click("#play")
    paused = at(tab)
    tab.wait_for_timeout(150)
    assert at(tab) == paused < 200
    tab.select_option("#speed", "100")
    scrub(tab, 195)
    tab.click("#play")
    tab.wait_for_function("() => document.body.dataset.at === '200'")
    expect(tab.locator("#play")).to_have_text("Play")  # it has ended
    tab.click("#first")
    expect(tab.locator("#said")).to_contain_text("Nothing is learned yet")
    tab.locator("#chart").click()  # in its middle
    assert 90 < at(tab) < 110


def test_trees_show_paths_policies_and_counts(tab: Tab) -> None:
    choose(tab, depth=4, episodes=50, rollouts=1, seed=2)
    game = Game(Settings(depth=4, episodes=50, rollouts=1, seed=2))
    for episode in (50, 7, 31):  # back, and on again
        scrub(tab, episode)
        for played in game.played:
            shown = tab.locator(f"svg.tree.{played.name.lower()}")
            expect(shown).to_have_attribute("aria-label", label(game, played.taken, episode, played.name))
            counts = np.bincount(played.taken[:episode], minlength=8)
            told = shown.locator(".count title").all_text_contents()
            assert [int(one.split("taken ")[1].split()[0]) for one in told] == counts.tolist()
    widths = [float(str(one.get_attribute("stroke-width"))) for one in tab.locator("svg.tree.eg .edge").all()]
    reach = reached(game, 31)
    np.testing.assert_allclose(widths, 0.7 + 5.3 * reach[1:], atol=0.01)


def label(game: Game, taken: np.ndarray, episode: int, name: str) -> str:
    leaf, tried = int(taken[episode - 1]), len(set(taken[:episode].tolist()))
    best = ", the best" if leaf == game.best else ""
    return f"Tree of {name}: this episode ends at leaf {leaf + 1} of 8{best}; {tried} leaves tried"


def reached(game: Game, episode: int) -> np.ndarray:
    """[S]: how likely EG's policy of that episode comes to each node."""
    episodes = tree.descending(game.trees, 50, game.settings.seed, game.settings.queries)
    policy = next(one.policy[0].copy() for n, one in enumerate(episodes, 1) if n == episode)
    reach = np.ones(15)
    for node, odds in enumerate(policy):
        right = 1 / (1 + np.exp(-odds))
        reach[2 * node + 1], reach[2 * node + 2] = reach[node] * (1 - right), reach[node] * right
    return reach


def test_a_mistake_is_said_and_changes_nothing(tabs: Tabs, playing: Serving) -> None:
    tab = ready(tabs.open(playing.address, allowed=("422",), viewport=WIDE))
    before = tab.evaluate("document.body.dataset.game")
    tab.fill("#episodes", "5000")
    tab.locator("#episodes").dispatch_event("change")
    expect(tab.locator("#status")).to_have_text("--episodes is 5000, but must be between 10 and 2000")
    expect(tab.locator("#status")).to_have_class("status bad")
    assert tab.evaluate("document.body.dataset.game") == before
    tab.fill("#episodes", "50")
    tab.locator("#episodes").dispatch_event("change")
    ready(tab)
    tab.click("#another")
    tab.wait_for_function("() => JSON.parse(document.body.dataset.game).seed === 1")


def test_far_bounds_are_drawn_on_a_logarithmic_scale(tab: Tab) -> None:
    expect(tab.locator("#beyond")).to_contain_text("special_lower_noisy, δ = 0.05” is far above")
    assert tab.locator("#chart .curve.bound").count() == 2
    tab.check("#log")
    expect(tab.locator("#beyond")).to_have_text("")
    assert tab.locator("#chart .curve.bound").count() == 3


def test_all_can_be_done_by_keys(tab: Tab) -> None:
    tab.locator("body").press("ArrowRight")
    tab.locator("body").press("ArrowRight")
    tab.locator("body").press("ArrowLeft")
    assert at(tab) == 1
    tab.keyboard.press("End")
    assert at(tab) == 200
    tab.keyboard.press("Home")
    tab.keyboard.press("Space")
    tab.wait_for_function("() => Number(document.body.dataset.at) > 0")
    tab.keyboard.press("Space")
    expect(tab.locator("#play")).to_have_text("Play")
    tab.focus("#at")
    tab.keyboard.press("End")
    assert at(tab) == 200  # of the slider
    tab.focus("#play")
    tab.keyboard.press("Enter")
    tab.wait_for_function("() => Number(document.body.dataset.at) < 200")
    tab.keyboard.press("Space")
    expect(tab.locator("#play")).to_have_text("Play")


def keep(tab: Tab, name: str) -> None:
    """The whole page as a picture, in few colours, if somebody wants it."""
    if PUBLISHED:
        whole = Image.open(BytesIO(tab.screenshot(full_page=True))).convert("RGB")
        whole.quantize(256, kmeans=2, dither=Image.Dither.NONE).save(Path(PUBLISHED, name), optimize=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_those_who_cannot_see_it(tabs: Tabs, playing: Serving, scheme: str) -> None:
    tab = ready(tabs.open(playing.address, viewport=WIDE, color_scheme=scheme, reduced_motion="reduce"))
    choose(tab, **PICTURE)
    scrub(tab, 90)
    tab.locator("#at").blur()
    assert accessible(tab) == []
    keep(tab, f"tree{'-dark' * (scheme == 'dark')}.png")
    tab.click("#play")  # without motion it is a step
    assert at(tab) == 91
    expect(tab.locator("#play")).to_have_text("Play")


def test_it_fits_a_telephone(tabs: Tabs, playing: Serving) -> None:
    tab = ready(tabs.open(playing.address, viewport=NARROW, has_touch=True, device_scale_factor=2))
    choose(tab, depth=7, rollouts=1, episodes=2000, costs="uniform")
    scrub(tab, 1500)
    tab.locator("#at").blur()
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert accessible(tab) == []
    keep(tab, "tree-narrow.png")
