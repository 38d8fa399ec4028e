"""`aggrevated tree`: the paper's tree experiment to play with, in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from aggrevated.cli.showing import PORT, NoBrowser, Port

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from aggrevated.theory.game import Settings


@dataclass(frozen=True)
class Tree:
    """Open the tree of Section 5.1 to play with: watch EG, FTL and UCB spend their episodes, beside the paper's bounds.

    All three learn on the same tree from the same seed. What is chosen here can be chosen on the page, too. It is
    served on the loopback address only, for whoever has the address that is printed. 'aggrevated theory tree' measures
    regret in many trials, and at greater depth.

    Try:
      aggrevated tree
      aggrevated tree --depth 7 --rollouts 1 --once
    """

    command = "tree"
    depth: int = 6
    """K, the levels of the tree: 2^(K-1) leaves; 3 to 8."""
    costs: Annotated[str, arg(metavar="NAME")] = "one-good-leaf"
    """one-good-leaf (all cost 1/2, one less: the hard instances) or uniform."""
    rollouts: int = 0
    """Of the expert, for each noisy Q* that EG and FTL are told; 0: exact."""
    step: float = 1.0
    """EG's step, in units of the theorem's."""
    episodes: int = 200
    """N; 10 to 2000."""
    seed: int = 0
    """Of the tree, and of all three learners."""
    once: bool = False
    """Print how it ends, and serve nothing."""
    port: Port = 0
    no_browser: NoBrowser = False
    json: bool = False
    """Print the page's address as a JSON object; with --once, all that the page shows."""

    def run(self) -> None:
        """Serve until somebody stops it, or print."""
        PORT.require("port", self.port)
        settings = self._settings()
        if self.once:
            self._print(settings)
            return
        from aggrevated.cli.showing import show

        show(lambda: self._app(settings), self.port, not self.no_browser, self.json)

    def _settings(self) -> Settings:
        from aggrevated.theory.game import Settings

        return Settings(self.depth, self.costs, self.rollouts, self.step, self.episodes, self.seed)

    def _print(self, settings: Settings) -> None:
        from aggrevated.cli.output import print_table
        from aggrevated.reports import Table, number, text
        from aggrevated.theory.game import Game

        game = Game(settings)
        columns = {
            "learner": text("learner"),
            "regret": number("regret", 2),
            "bound": lambda row: row["bound"] or "",
            "leaves tried": text("leaves_tried"),
            "best leaf first": lambda row: str(row["best_leaf_first_taken"] or "never"),
            "episodes there": text("episodes_at_best_leaf"),
        }
        print_table(Table(game.rows(), columns, game.sentences()[-1]), self.json, game.facts())

    @staticmethod
    def _app(settings: Settings) -> ASGIApp:
        from aggrevated.server.tree import tree_app

        return tree_app(settings)
