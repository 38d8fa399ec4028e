"""`aggrevated evaluate`: try the chosen policy on fresh episodes."""

from dataclasses import dataclass

from tyro.conf import Positional

from aggrevated.cli.options import RunFolder


@dataclass(frozen=True)
class Evaluate:
    """Try the policy that a run chose on fresh episodes, beside its expert.

    Try:
      aggrevated evaluate runs/cartpole-aggrevated-natural
      aggrevated evaluate runs/cartpole-aggrevated-natural --episodes 5000 --deterministic --json
    """

    run_folder: Positional[RunFolder]
    """The folder that 'aggrevated train' made, of one run or of several trials."""
    episodes: int = 1000
    """How many episodes."""
    seed: int = 1_000_000
    """The seed of the episodes; the default is one that no training used."""
    deterministic: bool = False
    """Take the policy's most likely action instead of drawing one."""
    json: bool = False
    """Print the result as one JSON object."""

    def run(self) -> None:
        """Evaluate, and print the result."""
        from aggrevated.cli.output import print_result
        from aggrevated.runs.config import require
        from aggrevated.runs.evaluation import evaluate
        from aggrevated.runs.run import runs_in

        require(self.episodes >= 1, "episodes", self.episodes, "at least 1")
        require(self.seed >= 0, "seed", self.seed, "0 or more")
        results = [evaluate(run, self.episodes, self.seed, self.deterministic) for run in runs_in(self.run_folder)]
        print_result(results, self.run_folder, self.json)
