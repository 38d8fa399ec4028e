"""`aggrevated evaluate`: try the chosen policy on fresh episodes, or on pages that were held out."""

from dataclasses import dataclass

from tyro.conf import Positional

from aggrevated.cli.options import Folder, RunFolder, Whole


@dataclass(frozen=True)
class Evaluate:
    """Try the policy that a run chose on fresh episodes beside its expert, or on test pages.

    Try:
      aggrevated evaluate runs/cartpole-aggrevated-natural
      aggrevated evaluate runs/cartpole-aggrevated-natural --episodes 5000 --deterministic --json
      aggrevated evaluate runs/algebra-aggrevated-regular --crohme ink/dev --json
    """

    run_folder: Positional[RunFolder]
    """The folder that 'aggrevated train' made, of one run or of several trials."""
    episodes: Whole = None
    """How many episodes; default: 1000."""
    seed: Whole = None
    """The seed of the episodes; the default, 1000000, is one that no training used."""
    deterministic: bool = False
    """Take the policy's most likely action instead of drawing one; parsers always do."""
    crohme: Folder = None
    """algebra: real ink, a folder of InkML files or with dev/ in it; only its core expressions are used."""
    composed: bool = False
    """algebra: put the expressions of each writer together to pages of one to three lines."""
    json: bool = False
    """Print the result as one JSON object."""

    def run(self) -> None:
        """Evaluate, and print the result."""
        from aggrevated.cli.output import print_result
        from aggrevated.errors import UsageError
        from aggrevated.experiments import tasks
        from aggrevated.runs.evaluation import evaluate
        from aggrevated.runs.parses import evaluate_parser
        from aggrevated.runs.run import runs_in

        episodes, seed = self._episodes()
        runs = runs_in(self.run_folder)
        task = tasks()[runs[0].config.task]
        idle = ("episodes", "seed") if task.world == "parsing" else ("crohme", "composed")
        for name in idle:
            if getattr(self, name) is not None and getattr(self, name) is not False:
                raise UsageError(f"--{name} has no effect on a run of {task.name}; leave it out")
        if task.world == "parsing":
            if self.composed and self.crohme is None and not runs[0].config.crohme:
                raise UsageError("generated pages have one to three lines already; --composed needs --crohme")
            results = [evaluate_parser(run, self.crohme, self.composed) for run in runs]
        else:
            results = [evaluate(run, episodes, seed, self.deterministic) for run in runs]
        print_result(results, self.run_folder, self.json)

    def _episodes(self) -> tuple[int, int]:
        """(how many, their seed)."""
        from aggrevated.runs.config import require

        episodes = 1000 if self.episodes is None else self.episodes
        seed = 1_000_000 if self.seed is None else self.seed
        require(episodes >= 1, "episodes", episodes, "at least 1")
        require(seed >= 0, "seed", seed, "0 or more")
        return episodes, seed
