"""`aggrevated theory`: Section 5 of the paper, run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from aggrevated.cli.options import Folder, Integer


@dataclass(frozen=True)
class Theory:
    """Measure the regret of imitation and of reinforcement learning beside the paper's bounds.

    Try:
      aggrevated theory tree --depth 10
      aggrevated theory lower-bound --states 64 --episodes 16000 --json
    """

    command = "theory"
    experiment: Positional[Annotated[str, arg(metavar="EXPERIMENT")]]
    """tree (exact Q*, and RL), tree-noisy, mdp (random MDPs, and UCBVI, REINFORCE, TNPG) or lower-bound (H = 1)."""
    depth: Integer = None
    """K, the levels of the tree: S = 2^K - 1; 4 to 16, default 10."""
    states: Integer = None
    """S, for mdp and lower-bound."""
    actions: Integer = None
    """A, for mdp and lower-bound."""
    horizon: Integer = None
    """H, for mdp."""
    episodes: Integer = None
    """N; default: 16 per leaf (tree), 4000 (tree-noisy, mdp) or 16000 (lower-bound)."""
    rollouts: Integer = None
    """Of the expert, for each noisy Q* of tree-noisy and mdp: the more, the less noise."""
    trials: Integer = None
    """Independent trials, all run at once."""
    seed: Integer = None
    """Of instances and algorithms."""
    out: Folder = None
    """Where EXPERIMENT.png, .svg and .json go; default: runs/theory."""
    json: bool = False
    """Print regrets, exponents and the largest ratio to the bound as one JSON object."""

    def run(self) -> None:
        """Run it, draw it, print the table."""
        from aggrevated.cli.console import print_note, print_table
        from aggrevated_experiments.theory.page import MIN_VALUES, make_regret_table, resolve_settings, run_experiment

        given = {name: value for name in MIN_VALUES if (value := getattr(self, name)) is not None}
        settings = resolve_settings(self.experiment, given)
        print_note(f"theory {self.experiment}: " + ", ".join(f"{name} {value}" for name, value in settings.items()))
        folder = self.out or Path("runs") / "theory"
        study, facts = run_experiment(self.experiment, settings, folder)
        shown = make_regret_table(study, facts, f"figure: {folder / self.experiment}.png")
        print_table(shown, self.json, facts)
