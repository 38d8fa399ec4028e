"""What a run is asked to do: every setting, resolved, as it stands in config.json."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, get_origin, get_type_hints

from aggrevated import __version__
from aggrevated.errors import DataError, UsageError
from aggrevated.experiments import KNOW_EVERY_ACTION, TO_THE_END, Task, tasks
from aggrevated.files import Facts
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.policies.cells import CELLS
from aggrevated.recipes import METHODS, OPTIMISERS, ORACLES, SOLVERS, Method, cost_of_mistakes, mistakes
from aggrevated.start import STARTS


@dataclass(frozen=True)
class Config:
    """The settings of one run. Together with the package's version they determine every bit of its result."""

    task: str
    method: str
    update: str
    seed: int
    iterations: int  # N
    trajectories: int  # K
    horizon: int  # H
    mixing: float  # α_1
    mixing_decay: float  # α_n = α_1 · decay^(n−1)
    gradient: str
    advantage: bool  # Eq. 12 and 13 rather than 10 and 11
    policy: str
    hidden: tuple[int, ...]
    log_deviation: float  # of a Gaussian policy, at first
    start: str  # random or supervised
    start_steps: int  # of the supervised start
    start_rate: float  # its learning rate
    demonstrations: int  # that it learns from; 0: K
    expert: str
    oracle: str  # how the expert is asked for Q*
    queried_steps: int  # M: of each trajectory, by the Monte-Carlo oracle; 0: all
    rollouts: int  # per query, by the Monte-Carlo oracle
    learning_rate: float  # of the regular update, and inside follow the leader
    optimiser: str
    annealed: int  # over how many iterations learning rate and δ_KL fall to 0, the entropy bonus to a tenth; 0: never
    entropy: float  # β: what a nat of the policy's entropy saves
    delta_kl: float  # of the natural update, on the paper's scale
    damping: float
    solver: str
    validation_episodes: int
    validate_every: int
    test_episodes: int
    checkpoint_every: int
    # of parsing only:
    system: str  # of transitions
    dropout: float
    geometry: bool  # whether the policy is told where a symbol stands
    warps: int  # rewritten copies of each training page
    crohme: str  # a folder of real ink; "" for generated ink
    sets: int  # of generated ink
    single_writer: bool
    data_seed: int

    def facts(self) -> Facts:
        """For config.json."""
        return asdict(self) | {"hidden": list(self.hidden), "version": __version__}


DEFAULTS: dict[str, Any] = {
    "seed": 0,
    "mixing_decay": 0.5,
    "advantage": True,
    "log_deviation": -0.5,
    "start_steps": 500,
    "start_rate": 0.01,
    "demonstrations": 0,
    "queried_steps": 0,
    "rollouts": 1,
    "learning_rate": 0.01,
    "optimiser": "adam",
    "annealed": 0,
    "entropy": 0.0,
    "delta_kl": 1e-4,
    "damping": 10.0,
    "solver": "closed-form",
    "test_episodes": 1000,
    "checkpoint_every": 10,
    "validate_every": 1,
    "system": "arc-eager",
    "dropout": 0.0,
    "geometry": False,
    "warps": 0,
    "crohme": "",
    "sets": 400,
    "single_writer": False,
    "data_seed": 0,
}


def resolve(task: str, method: str, update: str | None = None, **given: Any) -> Config:
    """Fill in what was not given, from the task, the method and the defaults, and check that it makes sense."""
    chosen = tasks()[known(task, "task", tasks())]
    row = METHODS[known(method, "method", METHODS)]
    policy = known(given.get("policy") or chosen.policy, "policy", chosen.policies)
    if policy == "kernel-svm" and method not in ("dagger", "sl"):
        raise UsageError(
            f"the policy kernel-svm is for the methods dagger and sl, not for {method}; choose one of these"
        )
    own = {**chosen.settings.get(method, {}), **chosen.settings.get(policy, {})}
    update = known(update or own.get("update") or row.updates[0], f"update for {method}", row.updates)
    start = given.get("start") or own.get("start") or row.start
    usual = DEFAULTS | of_the_method(row) | of_the_task(chosen, str(start), method, update, policy)
    if (given.get("oracle") or chosen.oracles[0]) not in KNOW_EVERY_ACTION and row.gradients[0] == "all-actions":
        usual["gradient"] = "taken-action"  # for want of the other actions' cost-to-go
    settings = usual | {name: value for name, value in given.items() if value is not None}
    if settings["annealed"] == TO_THE_END:
        settings["annealed"] = settings["iterations"]
    if given.get("validate_every") is None:
        settings["validate_every"] = largest_divisor(settings["iterations"], settings["validate_every"])
    config = Config(task=task, method=method, update=update, **settings)
    check(config, row)
    return config


def largest_divisor(number: int, most: int) -> int:
    """The largest divisor of the number that is not above `most`: so that the last policy is validated, too."""
    return next((divisor for divisor in range(most, 1, -1) if number % divisor == 0), 1)


def of_the_method(row: Method) -> dict[str, Any]:
    """The settings that a method brings with it; one that is all expert stays so."""
    own = {"gradient": row.gradients[0], "mixing": row.mixing, "start": row.start}
    return own | ({"mixing_decay": 1.0} if row.mixing == 1.0 else {})


def of_the_task(task: Task, start: str, method: str, update: str, policy: str) -> dict[str, Any]:
    """The settings that were tuned for the task."""
    names = ("iterations", "trajectories", "horizon", "hidden", "expert", "validation_episodes")
    keys = ["always", start, policy, method, update]
    keys += [f"{method}/{update}", f"{method}/{update}/{policy}", f"{start}/{method}"]
    tuned = {name: value for key in keys for name, value in task.settings.get(key, {}).items() if name != "update"}
    return {name: getattr(task, name) for name in names} | {"policy": policy, "oracle": task.oracles[0]} | tuned


def check(config: Config, row: Method) -> None:
    """Raise a `UsageError` for the first setting that cannot be."""
    check_oracle(config, row)
    check_numbers(config)
    check_policy(config)
    if config.gradient == "taken-action" or config.update == "natural":  # both need actions of the learner's own
        require(config.mixing < 1, "mixing", config.mixing, "below 1 for the taken-action gradient and natural update")


def check_oracle(config: Config, row: Method) -> None:
    """Names that exist, and a gradient that fits what the oracle knows."""
    known(config.oracle, "oracle", ORACLES)
    known(config.start, "start", STARTS)
    known(config.system, "system", SYSTEMS)
    task = tasks()[config.task]
    finite = task.finite
    if row.cost_to_go is cost_of_mistakes and config.oracle not in task.oracles:
        raise UsageError(
            f"the expert of {config.task} cannot be asked by the oracle {config.oracle}; choose "
            + " or ".join(task.oracles)
        )
    if row.cost_to_go is mistakes and not finite:
        require(config.gradient == "likelihood", "gradient", config.gradient, "likelihood where actions are vectors")
    if config.oracle not in KNOW_EVERY_ACTION and row.cost_to_go is cost_of_mistakes:
        knows = f"the oracle {config.oracle} does not know what the other actions cost"
        if "taken-action" not in row.gradients:
            raise UsageError(f"{knows}, which the method {config.method} needs; use --method aggrevated")
        require(config.gradient == "taken-action", "gradient", config.gradient, f"taken-action: {knows}")
    known(config.gradient, f"gradient for {config.method}", row.gradients)
    known(config.optimiser, "optimiser", OPTIMISERS)
    known(config.solver, "solver", SOLVERS)


def check_numbers(config: Config) -> None:
    """Each number in its range."""
    for name in AT_LEAST_1:
        require(getattr(config, name) >= 1, name, getattr(config, name), "at least 1")
    every = config.validate_every
    require(config.iterations % every == 0, "validate_every", every, f"a divisor of the {config.iterations} iterations")
    for name in ("learning_rate", "start_rate", "delta_kl", "damping"):
        require(0 < getattr(config, name) < float("inf"), name, getattr(config, name), "a positive number")
    for name in ("mixing", "mixing_decay"):
        require(0 <= getattr(config, name) <= 1, name, getattr(config, name), "between 0 and 1")
    require(0 <= config.entropy < float("inf"), "entropy", config.entropy, "0 or more")
    require(0 <= config.dropout < 1, "dropout", config.dropout, "0 or more, and below 1")
    for name in ("seed", "data_seed", "queried_steps", "demonstrations", "annealed", "warps"):
        require(getattr(config, name) >= 0, name, getattr(config, name), "0 or more")
    require(-20 <= config.log_deviation <= 2, "log_deviation", config.log_deviation, "between -20 and 2")


def check_policy(config: Config) -> None:
    """Widths that the policy can have, an update that can learn it."""
    if config.policy in CELLS or tasks()[config.task].world == "parsing":
        require(len(config.hidden) == 1, "hidden", config.hidden, f"one width for the policy {config.policy}")
    require(all(width >= 1 for width in config.hidden), "hidden", config.hidden, "widths of at least 1")
    if config.policy == "contextual":
        require(config.hidden[0] % 2 == 0, "hidden", config.hidden, "even: half of it reads forwards, half backwards")
    if (config.policy == "kernel-svm") != (config.update == "support-vectors"):
        raise UsageError(f"the policy {config.policy} cannot be learned by the update {config.update}; choose others")
    if config.policy == "kernel-svm":
        require(config.start == "random", "start", config.start, "random for the policy kernel-svm")


AT_LEAST_1 = (
    *("iterations", "trajectories", "horizon", "rollouts", "start_steps"),
    *("validation_episodes", "validate_every", "test_episodes", "checkpoint_every"),
)
IDLE = {  # settings that an update does not look at
    "natural": ("learning_rate", "optimiser"),
    "regular": ("delta_kl", "damping", "solver"),
    "follow-the-leader": ("delta_kl", "damping", "solver", "optimiser", "annealed", "entropy"),
    "support-vectors": (
        *("delta_kl", "damping", "solver", "optimiser", "annealed", "entropy", "learning_rate"),
        *("gradient", "hidden", "dropout"),
    ),
}
IDLE_IN = {  # and a world
    "control": ("system", "dropout", "geometry", "warps", "crohme", "sets", "single_writer", "data_seed"),
    "parsing": ("horizon", "validation_episodes", "test_episodes", "log_deviation", "expert"),
}


def refuse_idle(config: Config, given: dict[str, Any]) -> None:
    """A `UsageError` for the first setting that was given and would have no effect."""
    asks_for_q = METHODS[config.method].cost_to_go is cost_of_mistakes
    idle = dict.fromkeys(IDLE[config.update], f"on the update {config.update}; choose another --update")
    if not asks_for_q:
        names = ("oracle", "queried_steps", "rollouts")
        idle |= dict.fromkeys(names, f"on the method {config.method}; choose another --method")
    elif config.oracle != "monte-carlo":
        idle |= dict.fromkeys(("queried_steps", "rollouts"), "without the oracle monte-carlo; choose that --oracle")
    if config.start != "supervised":
        names = ("start_steps", "start_rate", "demonstrations")
        idle |= dict.fromkeys(names, "on a random start; choose --start supervised")
    world = tasks()[config.task].world
    idle |= dict.fromkeys(IDLE_IN[world], f"on {config.task}; choose another task")
    if config.crohme:
        idle |= dict.fromkeys(("sets", "single_writer"), "on real ink; leave --crohme out")
    if tasks()[config.task].finite and world == "control":
        idle["log_deviation"] = f"on {config.task}, whose actions are a finite set; choose another task"
    for name, why in idle.items():
        if given.get(name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} has no effect {why}, or leave it out")


def require(holds: bool, name: str, value: object, rule: str) -> None:
    """A `UsageError` that names the setting, its value and the rule, unless it holds."""
    if not holds:
        raise UsageError(f"--{name.replace('_', '-')} is {value}, but must be {rule}")


def known(name: str, kind: str, among: Iterable[str]) -> str:
    """`name`, if it is one of those that exist; else a `UsageError` that lists them and guesses what was meant."""
    names = list(among)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, 1)
    guess = f" (did you mean {near[0]}?)" if near else ""
    raise UsageError(f"unknown {kind} {name!r}{guess}: choose one of {', '.join(names)}")


def from_facts(facts: Facts, source: object) -> Config:
    """The config that `Config.facts` wrote, checked again; a `DataError` names the file where it does not fit."""
    names, version = {field.name for field in fields(Config)}, facts.pop("version", None)
    if set(facts) != names or version != __version__:
        raise DataError(f"{source} is not a config of version {__version__}; start a new run with 'aggrevated train'")
    try:
        config = resolve(**(facts | {"hidden": tuple(facts["hidden"])}))
        for name, kind in get_type_hints(Config).items():
            if type(getattr(config, name)) not in ((int, float) if kind is float else (get_origin(kind) or kind,)):
                raise TypeError(f"{name} is {getattr(config, name)!r}")
        return config
    except (UsageError, TypeError) as error:
        raise DataError(f"{source} holds settings that cannot be ({error}); restore it or start a new run") from error
