"""What a parser of handwriting does with one page."""

from collections.abc import Sequence

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import UsageError
from aggrevated.machine import one_thread
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import CONFIGURATION, Parser
from aggrevated.parsing.transitions.configurations import View
from aggrevated.parsing.world import Algebra
from aggrevated.plots.parse_tree import Frame
from aggrevated.randomness import Purpose, seeds
from aggrevated.roll_in import Mixture, roll_in
from aggrevated.runs.run import Run


def parse_page(run: Run, page: Page) -> tuple[list[int], list[Frame]]:
    """(the head of each symbol, 0 for one that was left without; the configurations on the way, for a drawing)."""
    world = run.config.world
    if not isinstance(world, Algebra):
        raise UsageError(f"{run.folder} is a run of {run.config.task.name}; give one of 'aggrevated train algebra'")
    policy = run.policy
    with one_thread():
        parser = world.parser_of(policy, [page])
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
