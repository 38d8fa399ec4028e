"""`aggrevated train`: learn a policy."""

from dataclasses import dataclass, fields
from pathlib import Path

from tyro.conf import Positional

from aggrevated.cli.options import Folder, Name, Number, TaskName, Whole, Widths


@dataclass(frozen=True)
class Train:
    """Learn a policy for a task from its expert, and leave a run folder with the policy, metrics and a curve.

    Try:
      aggrevated train cartpole
      aggrevated train acrobot --method dagger --seed 3 --trials 5 --json
      aggrevated train hopper --update regular --queried-steps 20
    """

    task: Positional[TaskName]
    """cartpole, acrobot, acrobot-partial (Acrobot from link positions, without velocities), hopper or walker."""
    method: str = "aggrevated"
    """aggrevated, aggrevate, dagger, sl, reinforce, tnpg or sl-rl."""
    update: Name = None
    """natural or regular (follow-the-leader for aggrevate, dagger and sl); default: the method's usual one."""
    seed: Whole = None
    """The seed that everything random comes from; trial i uses seed + i."""
    trials: int = 1
    """How many independent runs, in subfolders of the run folder."""
    iterations: Whole = None
    """N, the iterations of Algorithm 1."""
    trajectories: Whole = None
    """K, the roll-ins per iteration."""
    horizon: Whole = None
    """H, after how many steps an episode is cut."""
    mixing: Number = None
    """alpha_1, the share of roll-in steps that the expert takes in the first iteration."""
    mixing_decay: Number = None
    """alpha_n = mixing * decay^(n-1)."""
    gradient: Name = None
    """all-actions (Eq. 10, 12), taken-action (Eq. 11, 13) or likelihood; default: the method's usual one."""
    no_advantage: bool = False
    """Use Q itself (Eq. 10, 11) rather than the variance-reduced advantage (Eq. 12, 13)."""
    policy: Name = None
    """mlp, window (the last four observations), lstm or gru; default: the task's."""
    hidden: Widths = None
    """Widths of the policy's hidden layers."""
    log_deviation: Number = None
    """Where actions are vectors: the logarithm of the policy's standard deviation at first; it is learned."""
    start: Name = None
    """random or supervised (K demonstrations of the expert); default: the method's, or the task's for it."""
    start_steps: Whole = None
    """Minibatches of the supervised start."""
    expert: Name = None
    """A shipped expert's name, a .safetensors file of 'expert train', or a Stable-Baselines3 .zip."""
    oracle: Name = None
    """How the expert is asked for Q*: q-network, monte-carlo (roll-outs) or value-function; default: the task's."""
    queried_steps: Whole = None
    """Of each trajectory, how many steps the Monte-Carlo oracle is asked about; 0: all."""
    rollouts: Whole = None
    """Roll-outs per query of the Monte-Carlo oracle, for simulators with chance in them."""
    learning_rate: Number = None
    """Of the regular update and of follow-the-leader."""
    optimiser: Name = None
    """adam or sgd, for the regular update."""
    delta_kl: Number = None
    """delta_KL of the natural update, on the paper's trajectory scale (see docs/guide.md)."""
    damping: Number = None
    """Of the natural update, relative to the mean squared length of the scores."""
    solver: Name = None
    """closed-form or conjugate-gradient, for the natural update."""
    validation_episodes: Whole = None
    """How many episodes the best policy is chosen on, in each iteration."""
    test_episodes: Whole = None
    """How many fresh episodes the chosen policy is tested on, at the end."""
    checkpoint_every: Whole = None
    """Iterations between checkpoints."""
    out: Folder = None
    """The run folder; default: a new one in runs/."""
    json: bool = False
    """Print the result as one JSON object."""

    def run(self) -> None:
        """Train, and print the result."""
        from dataclasses import replace

        from aggrevated.cli.jobs import run_all
        from aggrevated.cli.output import note, print_result
        from aggrevated.runs.config import refuse_idle, require, resolve
        from aggrevated.runs.run import Run, refuse_if_used, unused_folder

        require(self.trials >= 1, "trials", self.trials, "at least 1")
        settings = {name: getattr(self, name) for name in SETTINGS}
        if settings["expert"] and Path(settings["expert"]).is_file():
            settings["expert"] = str(Path(settings["expert"]).resolve())
        config = resolve(self.task, self.method, self.update, advantage=not self.no_advantage, **settings)
        refuse_idle(config, settings)
        folder = self.out or unused_folder(Path("runs") / f"{config.task}-{config.method}-{config.update}")
        if self.trials == 1:
            runs = [Run.create(folder, config)]
        else:
            refuse_if_used(folder)
            names = [f"trial-{trial:02d}" for trial in range(self.trials)]
            seeds = range(config.seed, config.seed + self.trials)
            runs = [
                Run.create(folder / name, replace(config, seed=seed)) for name, seed in zip(names, seeds, strict=True)
            ]
        note(f"run: {folder}")
        print_result(run_all(runs), folder, self.json)


OWN = ("task", "method", "update", "trials", "no_advantage", "out", "json")
SETTINGS = [field.name for field in fields(Train) if field.name not in OWN]
