"""`aggrevated watch`: an animation of the best policy."""

from dataclasses import dataclass

from tyro.conf import Positional

from aggrevated.cli.options import File, RunFolder, Trust


@dataclass(frozen=True)
class Watch:
    """Write an animated GIF of the best policy and its expert, side by side, from the same start state.

    Try:
      aggrevated watch runs/cartpole-aggrevated-natural
      aggrevated watch runs/acrobot-aggrevated-natural --seed 7 --out swing-up.gif
    """

    command = "watch"
    run_folder: Positional[RunFolder]
    """Run folder."""
    seed: int = 0
    """Seed of the episode."""
    out: File = None
    """GIF file; default: watch.gif in the run folder."""
    trust_code: Trust = False
    json: bool = False
    """Print the path and both returns as one JSON object."""

    def run(self) -> None:
        """Roll out policy and expert, and write the GIF."""
        from aggrevated.cli.console import print_dict
        from aggrevated.core.settings import SEED, check_setting
        from aggrevated.reports.replay import write_replay_gif
        from aggrevated.training.run_folder import list_runs

        SEED.check("seed", self.seed)
        run = list_runs(self.run_folder, self.trust_code)[0]
        path = self.out or run.folder / "watch.gif"
        check_setting(path.suffix == ".gif", "out", path, "a file name that ends in .gif")
        print_dict(write_replay_gif(run, self.seed, path), self.json)
