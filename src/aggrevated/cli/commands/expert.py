"""`aggrevated expert`: list, train and evaluate experts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from aggrevated.cli.options import File, Integer, Name, TaskName


@dataclass(frozen=True)
class List:
    """List the builtin experts and how each was trained.

    Try:
      aggrevated expert list
      aggrevated expert list --json
    """

    json: bool = False
    """Print the cards as one JSON object."""

    def run(self) -> None:
        """Print the cards of the experts."""
        from aggrevated.cli.console import print_expert_cards
        from aggrevated.experts.loading import read_builtin_expert_cards

        print_expert_cards(read_builtin_expert_cards(), self.json)


@dataclass(frozen=True)
class TrainExpert:
    """Train a DQN or TRPO expert like the builtin one, and select its best checkpoint by the mean return.

    Try:
      aggrevated expert train cartpole
      aggrevated expert train acrobot --seed 1 --out my-expert.safetensors --json
    """

    task: Positional[TaskName]
    """A task that has a builtin expert: cartpole, acrobot, hopper or walker."""
    seed: int = 0
    """Seed of the training and of the episodes that select the checkpoint."""
    out: File = None
    """File of the expert; default: TASK-expert.safetensors."""
    json: bool = False
    """Print the card as one JSON object."""

    def run(self) -> None:
        """Train the expert, write it and print its card."""
        from aggrevated.cli.console import print_expert_cards, print_note
        from aggrevated.core.errors import UsageError
        from aggrevated.core.settings import check_setting
        from aggrevated.problems.control import require_control_problem
        from aggrevated.problems.expert_training import train_expert
        from aggrevated.storage import reraise_storage_errors, save_checksummed
        from aggrevated.tasks import find_task

        check_setting(
            0 <= self.seed < 2**32, "seed", self.seed, "0 or more, and below 2^32, as Stable-Baselines3 takes it"
        )
        task = find_task(self.task)
        if task.expert_recipe is None:
            raise UsageError(
                f"{task.name} has no recipe for an expert: it uses the expert "
                f"{task.problem.to_values().get('expert')}; train that one"
            )
        path = self.out or Path(f"{task.name}-expert.safetensors")
        with reraise_storage_errors(path):  # a path that cannot be written fails before the training
            new = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("ab").close()
            if new:
                path.unlink()
        simulator = require_control_problem(task.problem, "'expert train'").simulator

        def report(step: int, mean: float) -> None:
            print_note(f"step {step}: mean return {mean:.1f}")

        weights, card = train_expert(task.name, task.expert_recipe, simulator, self.seed, report)
        save_checksummed(path, weights, card.to_dict())
        print_expert_cards({str(path): card}, self.json)


@dataclass(frozen=True)
class EvaluateExpert:
    """Measure the mean return of an expert.

    Try:
      aggrevated expert evaluate cartpole
      aggrevated expert evaluate acrobot --expert my-expert.safetensors --episodes 5000 --json
    """

    task: Positional[TaskName]
    """A control task: cartpole, acrobot, acrobot-partial, hopper or walker."""
    expert: Name = None
    """Builtin expert, .safetensors file, Stable-Baselines3 .zip, or several; default: that of the task."""
    episodes: int = 1000
    """Number of episodes."""
    horizon: Integer = None
    """H, the largest number of steps of an episode; default: that of the task."""
    seed: int = 1_000_000
    """Seed of the episodes."""
    json: bool = False
    """Print the result as one JSON object."""

    def run(self) -> None:
        """Evaluate the expert and print its mean return."""
        from aggrevated.cli.console import print_dict
        from aggrevated.config.resolver import apply_settings
        from aggrevated.core.rng import SeedPurpose, derive_seeds
        from aggrevated.problems import check_enough_memory
        from aggrevated.problems.control import FreshEpisodesSettings, require_control_problem
        from aggrevated.tasks import find_task
        from aggrevated.validation import evaluate_returns

        task = find_task(self.task)
        FreshEpisodesSettings(self.episodes, self.seed).check_values()
        settings = {"expert": self.expert, "horizon": self.horizon}
        problem = require_control_problem(task.problem, "'expert evaluate'")
        problem = apply_settings(problem, {name: value for name, value in settings.items() if value is not None})
        problem.check_values()
        check_enough_memory("episodes", self.episodes, problem.horizon)
        expert = problem.loaded_expert
        returns, steps = evaluate_returns(
            expert, problem.simulator, derive_seeds(self.seed, SeedPurpose.TEST, 0, self.episodes)
        )
        error = returns.std(ddof=1) / len(returns) ** 0.5 if len(returns) > 1 else 0.0
        result = {"task": task.name, "expert": expert.name, "episodes": self.episodes, "horizon": problem.horizon}
        result |= {"seed": self.seed, "mean_return": float(returns.mean()), "standard_error": float(error)}
        result |= {"diverged": self.episodes - len(returns), "simulator_steps": steps}
        print_dict(result, self.json)


Action = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[TrainExpert, tyro.conf.subcommand("train")]
    | Annotated[EvaluateExpert, tyro.conf.subcommand("evaluate")]
)


@dataclass(frozen=True)
class ExpertCommand:
    """List, train or evaluate experts.

    Try:
      aggrevated expert list
      aggrevated expert evaluate cartpole --json
    """

    command = "expert"
    action: Action

    def run(self) -> None:
        """Run the subcommand."""
        self.action.run()
