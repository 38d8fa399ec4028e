"""The command `aggrevated theory`: experiments on Section 5 of the paper."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from aggrevated.cli.options import Folder, Integer


@dataclass(frozen=True)
class Theory:
    """Measure the regret of imitation and of reinforcement learning, and compare it with the paper's bounds.

    Try:
      aggrevated theory tree --depth 10
      aggrevated theory lower-bound --states 64 --episodes 16000 --json
    """

    command = "theory"
    experiment: Positional[Annotated[str, arg(metavar="EXPERIMENT")]]
    """tree (exact Q*, and RL), tree-noisy, mdp (random MDPs, and UCBVI, REINFORCE, TNPG) or lower-bound (H = 1)."""
    depth: Integer = None
    """K, the number of levels of the tree, which has S = 2^K - 1 states; 4 to 16, default 10."""
    states: Integer = None
    """S, the number of states, for mdp and lower-bound."""
    actions: Integer = None
    """A, the number of actions, for mdp and lower-bound."""
    horizon: Integer = None
    """H, the horizon in steps, for mdp."""
    episodes: Integer = None
    """N, the number of episodes; default: 16 per leaf (tree), 4000 (tree-noisy, mdp) or 16000 (lower-bound)."""
    rollouts: Integer = None
    """Roll-outs of the expert per noisy Q* of tree-noisy and mdp; more of them reduce the noise."""
    trials: Integer = None
    """Number of independent trials, all run at once."""
    seed: Integer = None
    """Seed of instances and algorithms."""
    out: Folder = None
    """Folder of EXPERIMENT.png, .svg and .json; default: runs/theory."""
    json: bool = False
    """Print regrets, exponents and the largest ratio to the bound as one JSON object."""

    def run(self) -> None:
        """Run the experiment, plot it, and print the table."""
        from aggrevated.cli.console import print_note, print_table
        from aggrevated_experiments.theory.page import MIN_VALUES, make_regret_table, resolve_settings, run_experiment

        options = {name: value for name in MIN_VALUES if (value := getattr(self, name)) is not None}
        settings = resolve_settings(self.experiment, options)
        print_note(f"theory {self.experiment}: " + ", ".join(f"{name} {value}" for name, value in settings.items()))
        folder = self.out or Path("runs") / "theory"
        study, results = run_experiment(self.experiment, settings, folder)
        table = make_regret_table(study, results, f"figure: {folder / self.experiment}.png")
        print_table(table, self.json, results)
