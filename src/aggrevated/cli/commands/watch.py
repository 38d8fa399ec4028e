"""`aggrevated watch`: see what was learned."""

from dataclasses import dataclass

from tyro.conf import Positional

from aggrevated.cli.options import File, RunFolder, Trust


@dataclass(frozen=True)
class Watch:
    """Make an animated GIF of the learned policy beside its expert, from the same start.

    Try:
      aggrevated watch runs/cartpole-aggrevated-natural
      aggrevated watch runs/acrobot-aggrevated-natural --seed 7 --out swing-up.gif
    """

    command = "watch"
    run_folder: Positional[RunFolder]
    """The folder that 'aggrevated train' made."""
    seed: int = 0
    """Which episode."""
    out: File = None
    """Where the GIF goes; default: watch.gif in the run folder."""
    trust_code: Trust = False
    json: bool = False
    """Print where it went, and both returns, as one JSON object."""

    def run(self) -> None:
        """Roll out both, and draw."""
        from aggrevated.cli.console import print_dict
        from aggrevated.core.settings import SEED, check_setting
        from aggrevated.reports.replay import write_replay_gif
        from aggrevated.training.run_folder import list_runs

        SEED.check("seed", self.seed)
        run = list_runs(self.run_folder, self.trust_code)[0]
        path = self.out or run.folder / "watch.gif"
        check_setting(path.suffix == ".gif", "out", path, "a file name that ends in .gif")
        print_dict(write_replay_gif(run, self.seed, path), self.json)
