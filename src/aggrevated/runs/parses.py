"""What a parser of handwriting does with pages: how well, and with one page, what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import UsageError
from aggrevated.experiments import tasks
from aggrevated.files import Facts
from aggrevated.parsing.dataset import of_pages
from aggrevated.parsing.pages.crohme import compose
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import CONFIGURATION, Parser
from aggrevated.parsing.scoring import arc_length, by_kind, parsed, scores, symbol
from aggrevated.parsing.splits import pages_of, to_evaluate
from aggrevated.parsing.transitions.configurations import View
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.plots.parse_tree import Frame
from aggrevated.randomness import Purpose, seeds
from aggrevated.roll_in import Mixture, roll_in
from aggrevated.runs.run import Run
from aggrevated.worlds.parsing import Reader


def reader_in(run: Run) -> Reader:
    """The policy of a run of the task algebra."""
    if tasks()[run.config.task].world != "parsing":
        raise UsageError(f"{run.folder} is a run of {run.config.task}; give one of 'aggrevated train algebra'")
    policy = run.policy()
    assert isinstance(policy, Reader)
    return policy


def parser_of(run: Run, policy: Reader, pages: Sequence[Page]) -> Parser:
    """The parser of these pages, which the policy now reads."""
    corpus, features = of_pages(pages, policy.projection)
    policy.with_pages(features, corpus.lengths)
    return Parser(corpus, np.arange(len(pages)), in_order=True, system=SYSTEMS[run.config.system])


def evaluate_parser(run: Run, crohme: Path | None, composed: bool = False) -> Facts:
    """The run's result, or what is known so far, with UAS measured anew: on its test pages, or on real ink.

    `composed`: the expressions of each writer put together to pages of one to three lines.
    """
    policy, config = reader_in(run), run.config
    if crohme is None or str(crohme.resolve()) == config.crohme:  # of what it learned from, only the test pages
        pages = pages_of(config.crohme, config.sets, config.data_seed, config.single_writer).test
    else:
        pages = to_evaluate(crohme)
    if composed:
        pages = compose(pages, np.random.default_rng(0))
    parser = parser_of(run, policy, pages)
    heads = parsed(policy, parser)
    return (
        run.so_far()
        | scores(heads, parser).facts()
        | {
            "by_symbol": by_kind(pages, heads, symbol),
            "by_arc_length": by_kind(pages, heads, arc_length),
            "run": str(run.folder),
        }
    )


def parse_page(run: Run, page: Page) -> tuple[list[int], list[Frame]]:
    """(the head of each symbol, 0 for one that was left without; the configurations on the way, for a drawing)."""
    policy = reader_in(run)
    parser = parser_of(run, policy, [page])
    found = roll_in(parser, Mixture(None, policy.actor()), seeds(0, Purpose.TEST, 0, 1), deterministic=True)
    last, _, _ = parser.step(found.states[:, -1], found.actions[:, -1])
    names = ["start", *(parser.system.actions[action] for action in found.actions[0])]
    rows = [*found.states[0], last[0]]
    frames = [frame(parser, row[None], name) for row, name in zip(rows, names, strict=True)]
    return [max(int(head), 0) for head in frames[-1][0]], frames


def frame(parser: Parser, state: Array, transition: str) -> Frame:
    """One state [1, ...] as a drawing needs it."""
    view = View(state[:, CONFIGURATION])
    return parser.heads(state)[0], np.flatnonzero(view.on_stack[0]).tolist(), int(view.b[0]), transition


def some(frames: Sequence[Frame], count: int = 6) -> list[Frame]:
    """So many of the frames, evenly spaced, the last among them."""
    chosen = np.unique(np.linspace(0, len(frames) - 1, count + 1).round().astype(int)[1:])
    return [frames[place] for place in chosen]


def arcs_of(page: Page, heads: Sequence[int]) -> list[str]:
    """A line for each symbol, for people; with its label where that is known."""
    names = ["ROOT", *("" if label == "?" else label for label in page.symbols)]
    width = max(map(len, names))
    return [
        f"{number:3d} {names[number]:<{width}} <- {head:3d} {names[head]}".rstrip()
        for number, head in enumerate(heads, start=1)
    ]
