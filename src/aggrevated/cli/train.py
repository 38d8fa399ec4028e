"""`aggrevated train`: learn a policy."""

from dataclasses import dataclass, fields
from pathlib import Path

from tyro.conf import Positional

from aggrevated.cli.options import Folder, Name, Number, Switch, TaskName, Whole, Widths


@dataclass(frozen=True)
class Train:
    """Learn a policy for a task from its expert, and leave a run folder with the policy, metrics and a curve.

    Try:
      aggrevated train cartpole
      aggrevated train acrobot --method dagger --seed 3 --trials 5 --json
      aggrevated train hopper --update regular --queried-steps 20
      aggrevated train algebra --policy lstm --seed 1
    """

    task: Positional[TaskName]
    """cartpole, acrobot, acrobot-partial (from link positions, without velocities), hopper, walker or algebra."""
    method: str = "aggrevated"
    """aggrevated, aggrevate, dagger, sl, reinforce, tnpg or sl-rl."""
    update: Name = None
    """natural or regular (follow-the-leader for aggrevate, dagger and sl; support-vectors for kernel-svm); default: the
    method's usual one."""
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
    """mlp, window (the last four observations), lstm or gru; for algebra contextual, lstm (the paper's), reactive (the
    paper's NN) or kernel-svm; default: the task's."""
    hidden: Widths = None
    """Widths of the policy's hidden layers."""
    log_deviation: Number = None
    """Where actions are vectors: the logarithm of the policy's standard deviation at first; it is learned."""
    start: Name = None
    """random or supervised (demonstrations of the expert); default: the method's, or the task's for it."""
    start_steps: Whole = None
    """Minibatches of the supervised start."""
    start_rate: Number = None
    """Its learning rate at first; it falls to 0."""
    demonstrations: Whole = None
    """How many episodes of the expert it learns from; 0: K."""
    expert: Name = None
    """A shipped expert's name, a .safetensors file of 'expert train', or a Stable-Baselines3 .zip."""
    oracle: Name = None
    """How the expert is asked for Q*: q-network, gold (trees), monte-carlo (roll-outs) or value-function; default: the
    task's."""
    queried_steps: Whole = None
    """Of each trajectory, how many steps the Monte-Carlo oracle is asked about; 0: all."""
    rollouts: Whole = None
    """Roll-outs per query of the Monte-Carlo oracle, for simulators with chance in them."""
    learning_rate: Number = None
    """Of the regular update and of follow-the-leader."""
    optimiser: Name = None
    """adam or sgd, for the regular update."""
    annealed: Whole = None
    """Over how many iterations learning rate or delta_KL falls to 0, and the entropy bonus to a tenth; 0: never."""
    entropy: Number = None
    """What a nat of the policy's entropy saves at each step: above 0 it keeps a policy from being sure too soon."""
    delta_kl: Number = None
    """delta_KL of the natural update, on the paper's trajectory scale (see docs/guide.md)."""
    damping: Number = None
    """Of the natural update, relative to the mean squared length of the scores."""
    solver: Name = None
    """closed-form or conjugate-gradient, for the natural update."""
    validation_episodes: Whole = None
    """How many episodes the best policy is chosen on."""
    validate_every: Whole = None
    """Iterations between these choices."""
    test_episodes: Whole = None
    """How many fresh episodes the chosen policy is tested on, at the end."""
    checkpoint_every: Whole = None
    """Iterations between checkpoints."""
    system: Name = None
    """algebra: arc-eager or arc-hybrid."""
    dropout: Number = None
    """algebra: of what the policy reads of a symbol, while it learns."""
    geometry: Switch = None
    """algebra: tell the policy where a symbol stands, or do not; default: the contextual policy only."""
    warps: Whole = None
    """algebra: rewritten copies of each training page."""
    crohme: Folder = None
    """algebra: learn from CROHME's InkML files in this folder (train/ and dev/), not from generated ink."""
    sets: Whole = None
    """algebra: how many sets of equations are generated."""
    single_writer: bool = False
    """algebra: one hand writes all generated sets, as in the paper's data."""
    data_seed: Whole = None
    """algebra: the seed of the generated pages, and of the choice of writers for validation."""
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
        settings["single_writer"] = self.single_writer or None
        if settings["expert"] and Path(settings["expert"]).is_file():
            settings["expert"] = str(Path(settings["expert"]).resolve())
        if settings["crohme"]:
            if not all((settings["crohme"] / part).is_dir() for part in ("train", "dev")):
                note(f"{settings['crohme']} has no train/ and dev/: its own files are split by writers, 80/10/10")
            settings["crohme"] = str(settings["crohme"].resolve())
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
