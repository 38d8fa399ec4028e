"""The page, the figure and the numbers of untuned.py: targets, measurements, and missing rows."""

import io
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from math import ceil, floor, inf, log10, nan
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from aggrevated.core.statistics import Estimate
from aggrevated.experts.loading import read_builtin_expert_cards
from aggrevated.plots.learning_curves import BOUND, style_axes
from aggrevated.storage import JsonDict, read_json, write_atomically
from aggrevated.tasks import find_task
from aggrevated_experiments.paired_statistics import estimate_paired_difference
from newcomers import LONGEST, SHORTEST
from untuned import CASES, planned

OURS = "aggrevated"
RIVALS = ("dagger", "sl", "sl-rl")
SMALL = ("1 units", "2 units", "4 units", "linear")
THINNED = 40  # points of a curve in the JSON, at most
COLOURS = {
    "aggrevated": "#0072B2", "natural": "#009E73", "loki": "#56B4E9",
    "dagger": "#D55E00", "sl": "#E69F00", "sl-rl": "#CC79A7",
}  # fmt: skip
PEERS = {"ppo": ("PPO", "#000000"), "trpo": ("TRPO", "#5E3C99"), "dagger": ("DAgger of imitation", "#8C3A00")}
PACKAGES = ("aggrevated", "torch", "numpy", "gymnasium", "mujoco", "box2d")
COMMANDS = ["python benchmarks/untuned.py run", "python benchmarks/untuned.py report"]
MET = "met"
SHORT = "falls short"
MISSING = "missing"


@dataclass(frozen=True)
class Run:
    """One seed of a row: its result, and the best return on validation by simulator steps."""

    result: JsonDict
    steps: np.ndarray  # [1 + iterations], starting with the initial policy
    best: np.ndarray  # [1 + iterations]
    queries: np.ndarray  # [1 + iterations]
    expert: float  # its return on the episodes of the curve

    @classmethod
    def read(cls, path: Path) -> "Run":
        """Read a file of `untuned.py run`."""
        facts = read_json(path)
        result = facts["result"]
        names = facts["points_are"]
        steps, best, queries = (
            [point[names.index(name)] for point in facts["points"]]
            for name in ("simulator_steps", "best_return", "oracle_queries")
        )
        first = result["start_simulator_steps"], result["initial_return"]
        curve = np.array([first[0], *steps]), np.maximum.accumulate([first[1], *best])
        expert = facts.get("expert_on_validation")
        expert = result["expert_return"] if expert is None else expert
        queried = np.array([queries[0] if first[0] else 0, *queries])  # a start's queries are not recorded separately
        return cls(result, *curve, queried, expert)

    def reached(self, level: float) -> float:
        """Return the simulator steps after which the best return is at least the level; inf: never."""
        there = self.best >= level
        return float(self.steps[there.argmax()]) if there.any() else inf

    def best_at(self, budget: float, bill: str = "steps") -> float:
        """Return the best return by then: the last one after the end of the run, NaN before the end of its start."""
        place = int(np.searchsorted(getattr(self, bill), budget, side="right")) - 1
        return float(self.best[place]) if place >= 0 else nan

    def at_ratio(self, ratio: float) -> float:
        """Return the return with this ratio to the expert's, both counted from the worst possible return."""
        problem = find_task(self.result["task"]).problem
        lowest = problem.worst_return(problem.horizon)
        return lowest + ratio * (self.result["expert_return"] - lowest)


Runs = Mapping[tuple[str, str], Mapping[int, Run]]  # by case and row, then by seed
Peers = Mapping[tuple[str, str], Sequence[tuple[np.ndarray, np.ndarray]]]  # by peer and task: (steps, best) per seed


@dataclass(frozen=True)
class Target:
    """A target and its measurement."""

    case: str
    row: str
    asked: str
    measured: str
    seeds: int
    verdict: str


def report(runs: Path, results: Path) -> int:
    """Write untuned.{json,md,png} to `results` from the runs and the peers' curves."""
    made, strangers = read_runs(runs)
    peers = read_peers(results / "peers")
    targets = list(all_targets(made, peers))
    write_atomically(results / "untuned.json", as_json(numbers(made, targets)).encode())
    draw(made, peers, results / "untuned.png")
    text = page(made, peers, targets, strangers)
    write_atomically(results / "untuned.md", text.encode())
    absent = len(missing_rows(made))
    print(f"{sum(map(len, made.values()))} runs, {absent} rows missing: {results / 'untuned.md'}")
    for target in targets:
        print(f"{target.verdict:12} {target.case}; {target.row}: {target.asked}: {target.measured}")
    return 0


def read_runs(folder: Path) -> tuple[Runs, list[str]]:
    """Return the runs of known cases, and the names of files that belong to none."""
    made: dict[tuple[str, str], dict[int, Run]] = {(case, row): {} for case in CASES for row in CASES[case][2]}
    strangers = []
    for path in sorted(folder.glob("*.json")):
        case, row, seed = [*path.stem.split("; "), "", ""][:3]
        if (case, row) in made and seed.isdecimal():
            made[case, row][int(seed)] = Run.read(path)
        else:
            strangers.append(path.name)
    return {key: dict(sorted(seeds.items())) for key, seeds in made.items()}, strangers


def read_peers(folder: Path) -> Peers:
    """Return the peers' best returns so far, as for our runs; that favors them over their raw curves."""
    files = [read_json(path) for path in sorted(folder.glob("*.json"))]
    return {
        (facts["peer"], facts["task"]): [
            (np.array(one["steps"]), np.maximum.accumulate(one["returns"])) for one in facts["curves"].values()
        ]
        for facts in files
    }


def missing_rows(made: Runs) -> list[tuple[str, str]]:
    """Return cases and rows without a run."""
    return [key for key, seeds in made.items() if not seeds]


# targets


def all_targets(made: Runs, peers: Peers) -> Iterable[Target]:
    """Yield every target, in the order of the page."""

    def passes(case: str, goal: str, level: Callable[[Run], float], within: int, row: str = OURS) -> Target:
        return reaching(made, case, row, f"{goal} within {within:,} steps", level, within)

    def ends(case: str, what: str, key: str, least: float) -> Target:
        return ending(made, case, f"{what} ≥ {least:g} in the end", lambda run: run.result[key], least)

    yield passes("cartpole", "ratio 1.35", lambda run: run.at_ratio(1.35), 10_000)
    yield passes("acrobot", "the expert", expert, 2_000)
    yield ends("acrobot", "ratio", "ratio", 1.06)
    yield passes("acrobot-partial", "ratio 1", lambda run: run.at_ratio(1.0), 8_000)
    yield ends("acrobot-partial", "ratio", "ratio", 1.06)
    yield ends("acrobot-partial, memoryless", "ratio", "ratio", 0.55)
    for case in CASES:
        if case.endswith(SMALL):
            yield not_below(made, case, ("natural", "dagger"))
    yield ending(made, "tagger", "accuracy ≥ 0.99 in the end", accuracy, 0.99)
    yield ends("t-maze", "return", "test_return", 0.0)
    yield passes("pendulum", "the expert", expert, 150_000)
    yield ending(made, "lunar-lander", "its heuristic or better in the end", beyond_expert, 0.0, "return − expert's: ")
    yield passes("hopper", "the expert", expert, 45_000)
    yield passes("hopper, loki", "return 256", lambda run: 256.0, 92_000, "loki")
    yield passes("hopper, loki", "ratio 1.12", lambda run: run.at_ratio(1.12), 250_000, "loki")
    yield ahead_of_peer(made, peers, "walker", OURS)
    yield ahead_of_peer(made, peers, "walker, loki", "loki")
    yield ends("algebra", "UAS", "uas_micro", 0.994)
    yield ends("algebra, lstm", "UAS", "uas_micro", 0.914)


def expert(run: Run) -> float:
    """Return the expert's return on the episodes of the curve."""
    return run.expert


def beyond_expert(run: Run) -> float:
    """Return the excess over the expert on the same test episodes."""
    return run.result["test_return"] - run.result["expert_return"]


def accuracy(run: Run) -> float:
    """Return the tagger's share of correct tags in a sentence of mean length; a wrong tag costs 1."""
    return 1 + run.result["test_return"] / ((SHORTEST + LONGEST) / 2)


def reaching(made: Runs, case: str, row: str, goal: str, level: Callable[[Run], float], within: int) -> Target:
    """Return a target that is met if every seed reaches the level, and their mean does in time."""
    runs = made[case, row].values()
    if not runs:
        return Target(case, row, goal, "no run", 0, MISSING)
    steps = [run.reached(level(run)) for run in runs]
    there = [one for one in steps if one < inf]
    never = f"; never in {len(steps) - len(there)} of {len(steps)} seeds" if len(there) < len(steps) else ""
    in_time = f"; in time in {sum(one <= within for one in steps)} of {len(steps)} seeds" if there else ""
    low = min(level(run) for run in runs)
    high = max(level(run) for run in runs)
    levels = number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"
    measured = f"return {levels} after {spread(there, 0)} steps{in_time}{never}" if there else never.strip("; ")
    return Target(case, row, goal, measured, len(steps), verdict(np.mean(steps) <= within))


def ending(made: Runs, case: str, goal: str, value: Callable[[Run], float], least: float, prefix: str = "") -> Target:
    """Return a target that is met if the mean over seeds is at least the value."""
    runs = made[case, OURS].values()
    if not runs:
        return Target(case, OURS, goal, "no run", 0, MISSING)
    values = [value(run) for run in runs]
    return Target(case, OURS, goal, prefix + spread(values, 3), len(values), verdict(np.mean(values) >= least))


def not_below(made: Runs, case: str, others: Sequence[str]) -> Target:
    """Return a target that is met if the mean ratio over common seeds is at least that of every other row."""
    goal = f"ratio not below {' nor '.join(others)} in the end"
    pairs = {row: Pair.in_the_end(made[case, OURS], made[case, row], "ratio") for row in others}
    seeds = len(made[case, OURS])
    if not all(pair.seeds for pair in pairs.values()):
        absent = ", ".join(row for row, pair in pairs.items() if not pair.seeds)
        return Target(case, OURS, goal, f"no seeds in common with {absent}", seeds, MISSING)
    differences = "; ".join(f"less {row} {pair}" for row, pair in pairs.items())
    ours = spread([run.result["ratio"] for run in made[case, OURS].values()], 3)
    met = all(pair.difference.value >= 0 for pair in pairs.values())
    return Target(case, OURS, goal, f"{ours}; {differences}", seeds, verdict(met))


def ahead_of_peer(made: Runs, peers: Peers, case: str, row: str, peer: str = "trpo") -> Target:
    """Return a target that is met if our mean is above the peer's mean at all of the peer's points."""
    runs = list(made[case, row].values())
    theirs = peers.get((peer, CASES[case][0]))
    goal = f"ahead of {PEERS[peer][0]}'s own curve at every number of steps"
    if not runs or not theirs:
        return Target(case, row, goal, "no run" if not runs else "no curve of the peer", len(runs), MISSING)
    at = np.unique(np.concatenate([steps[steps > 0] for steps, _ in theirs]))
    peer_mean = mean_curve(theirs, at)
    bill = read_builtin_expert_cards()[CASES[case][0]].step
    ours, later = (mean_curve([(run.steps + late, run.best) for run in runs], at) for late in (0, bill))
    behind = at[~(ours > peer_mean)]
    where = f"; not at {', '.join(f'{one:,.0f}' for one in behind[:6])}{' …' * (len(behind) > 6)}" * bool(len(behind))
    measured = (
        f"ahead at {np.sum(ours > peer_mean)} of {len(at)} points up to {at[-1]:,.0f} steps{where}; with the {bill:,} "
        f"steps of the expert's own training on our bill, at {np.sum(later > peer_mean)} of {len(at)}"
    )
    return Target(case, row, goal, measured, len(runs), verdict(not len(behind)))


def mean_curve(curves: Iterable[tuple[np.ndarray, np.ndarray]], at: np.ndarray) -> np.ndarray:
    """Return the mean over seeds, [len(at)]; NaN before the first point of any seed."""
    return np.mean([held(steps, best, at) for steps, best in curves], axis=0)


def held(steps: np.ndarray, best: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the best return by each number of steps: constant after the last point, NaN before the first."""
    places = np.searchsorted(steps, at, side="right") - 1
    return np.where(places >= 0, best[places], nan)


def verdict(met: bool) -> str:
    """Return the verdict as a word."""
    return MET if met else SHORT


# comparison with DAgger, SL and SL-RL


@dataclass(frozen=True)
class Pair:
    """Our returns and another row's, seed by seed."""

    ours: Sequence[float]
    theirs: Sequence[float]
    after: float | None = None  # the common amount of the bill; None: at the end

    @classmethod
    def in_the_end(cls, ours: Mapping[int, Run], theirs: Mapping[int, Run], key: str = "test_return") -> "Pair":
        """Pair results on fresh episodes."""
        both = sorted({*ours} & {*theirs})
        return cls(*([runs[seed].result[key] for seed in both] for runs in (ours, theirs)))

    @classmethod
    def at_equal(cls, bill: str, ours: Mapping[int, Run], theirs: Mapping[int, Run]) -> "Pair":
        """Pair the best validation returns at the largest amount of the bill that all runs have used."""
        both = sorted({*ours} & {*theirs})
        budget = min((getattr(runs[seed], bill)[-1] for seed in both for runs in (ours, theirs)), default=0)
        return cls(*([runs[seed].best_at(budget, bill) for seed in both] for runs in (ours, theirs)), float(budget))

    @property
    def seeds(self) -> int:
        return len(self.ours)

    @property
    def difference(self) -> Estimate:
        """Return our mean minus theirs with a Student-t interval, which has no width for one seed."""
        return estimate_paired_difference(np.array(self.ours), np.array(self.theirs))

    @property
    def word(self) -> str:
        """Return the outcome as a word."""
        if np.isnan([*self.ours, *self.theirs]).any():
            return "not begun"  # a start uses more than that
        if self.seeds < 2:
            return "one seed"
        return "ahead" if self.difference.low > 0 else "behind" if self.difference.high < 0 else "not told apart"

    def facts(self) -> JsonDict:
        """Return the pair for JSON."""
        at = {} if self.after is None else {"after": self.after}
        if self.word == "not begun":
            return {"seeds": self.seeds, "word": self.word, **at}
        means = {"ours": float(np.mean(self.ours)), "theirs": float(np.mean(self.theirs))}
        interval = self.difference.to_fields("difference") if self.seeds > 1 else {}
        return {"seeds": self.seeds, "word": self.word, **means, **interval, **at}

    def __str__(self) -> str:
        if self.word == "not begun":
            return f"a start takes more than {self.after:,.0f}"
        difference = f": {signed(self.difference)}" if self.seeds > 1 else ""
        at = "" if self.after is None else f", after {self.after:,.0f}"
        word = f"**{self.word}**" if self.word == "behind" else self.word
        return f"{word}{difference} ({number(float(np.mean(self.ours)))} and {number(float(np.mean(self.theirs)))}{at})"


BESIDE: Mapping[str, Callable[[Mapping[int, Run], Mapping[int, Run]], Pair]] = {
    "end": Pair.in_the_end,
    "equal_steps": partial(Pair.at_equal, "steps"),
    "equal_queries": partial(Pair.at_equal, "queries"),
}


def beside(made: Runs) -> dict[tuple[str, str], dict[str, Pair]]:
    """Return comparisons by case and rival: at the end, at equal simulator steps, and at equal oracle queries."""
    return {
        (case, row): {name: pair(made[case, OURS], made[case, row]) for name, pair in BESIDE.items()}
        for case, (_, _, rows) in CASES.items()
        for row in RIVALS
        if row in rows and {*made.get((case, OURS), ())} & {*made[case, row]}
    }


WORDS = ("ahead", "not told apart", "behind")  # of comparisons over two seeds or more


def tally(made: Runs, row: str) -> dict[str, dict[str, int]]:
    """Return the numbers of cases ahead of a rival, not told apart, and behind, by kind of comparison."""
    found = {name: [pairs[name].word for (_, rival), pairs in beside(made).items() if rival == row] for name in BESIDE}
    return {name: {word: words.count(word) for word in WORDS} for name, words in found.items()}


def in_words(counts: Mapping[str, int]) -> str:
    """Format counts as "3 ahead, 1 behind, of 4"."""
    return ", ".join(f"{count} {word}" for word, count in counts.items()) + f", of {sum(counts.values())}"


def signed(difference: Estimate) -> str:
    """Format as "+1.2 (+0.8 to +1.6)" with minus signs and the digits that the interval's width justifies."""
    width = (difference.high - difference.low) / 2
    digits = min(4, max(1, 1 - floor(log10(width)))) if width else 3
    value, low, high = (f"{one:+.{digits}f}".replace("-", "−") for one in difference)
    return f"{value} ({low} to {high})"


# the numbers


def numbers(made: Runs, targets: Sequence[Target]) -> JsonDict:
    """Return the numbers of the page, and the curves, for JSON."""
    rows = {case: {row: summary(made[case, row]) for row in CASES[case][2]} for case in CASES}
    return {
        "commands": COMMANDS,
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "versions": versions(),
        "experts_own_training": {name: card.step for name, card in read_builtin_expert_cards().items()},
        "targets": [asdict(target) for target in targets],
        "tally": {row: tally(made, row) for row in RIVALS},
        "beside": beside_facts(made),
        "missing": [f"{case}; {row}" for case, row in missing_rows(made)],
        "cases": rows,
    }


def beside_facts(made: Runs) -> JsonDict:
    """Return every comparison, by case, rival and kind."""
    found: dict[str, JsonDict] = {}
    for (case, row), pairs in beside(made).items():
        found.setdefault(case, {})[row] = {name: pair.facts() for name, pair in pairs.items()}
    return found


def as_json(facts: JsonDict) -> str:
    """Return indented JSON with lists of numbers on one line."""
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    return re.sub(r'\[[^][{}"]*\]', lambda found: " ".join(found[0].split()), text) + "\n"


def summary(runs: Mapping[int, Run]) -> JsonDict:
    """Return the numbers of one row, one per seed."""
    keys = ("test_return", "expert_return", "ratio", "best_return", "initial_return", "simulator_steps",
            "start_simulator_steps", "oracle_steps", "oracle_queries", "validation_steps", "cpu_seconds",
            "diverged_trajectories", "uas_micro")  # fmt: skip
    results = [run.result for run in runs.values()]
    columns = {key: [result[key] for result in results] for key in keys if results and key in results[0]}
    curves = {str(seed): {"steps": (thin := thinned(run))[0], "best_return": thin[1]} for seed, run in runs.items()}
    return {"seeds": list(runs), **columns, "curves": curves}


def thinned(run: Run) -> tuple[list[int], list[float]]:
    """Return at most THINNED points of the curve, denser at the beginning, with the first and the last."""
    last = len(run.steps) - 1
    places = np.unique(np.r_[0, np.geomspace(1, max(last, 1), THINNED - 1).round().astype(int)])
    return run.steps[places].tolist(), run.best[places].round(4).tolist()


def versions() -> dict[str, str]:
    """Return the versions of the installed packages."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


# the page


def page(made: Runs, peers: Peers, targets: Sequence[Target], strangers: Sequence[str]) -> str:
    """Return the page."""
    of_dagger = tally(made, "dagger")
    return "\n".join([
        *introduction(made, peers),
        *how_it_went(targets),
        "| case | row | asked | measured | seeds | |", "|---|---|---|---|---|---|",
        *[table_row(one.case, one.row, one.asked, one.measured, one.seeds, strong(one.verdict)) for one in targets],
        "", "*Within so many steps* is met if the mean over seeds is, and every seed gets there. What is reached on "
        "the way is a maximum over validations, and optimistic; what is reached in the end is measured on fresh "
        "episodes.",
        "", "## Beside DAgger, SL and SL-RL", "",
        "AggreVaTeD less each of them, seed by seed, with a 95 % interval by Student's t: *ahead* and *behind* where "
        "it does not hold 0, else *not told apart*; in brackets the means, ours first. In the end: the test return. At "
        "equal steps, or queries: the best return on validation when both have used so many; in reinforcement learning "
        "nobody is asked, and it may go on for any number of steps. The comparisons are not corrected for one another. "
        f"Beside DAgger, in the end: {in_words(of_dagger['end'])}; "
        f"at equal steps: {in_words(of_dagger['equal_steps'])}; at "
        f"equal queries: {in_words(of_dagger['equal_queries'])}.", "",
        "| case | beside | seeds | in the end | at equal simulator steps | at equal oracle queries |",
        "|---|---|---|---|---|---|",
        *[
            table_row(case, row, pairs["end"].seeds, *pairs.values())
            for (case, row), pairs in beside(made).items()
        ],
        "", "## All rows", "",
        "Means over seeds; in brackets the lowest and the highest. Simulator steps are those of start, roll-ins and "
        "oracle; the steps of validation came on top.", "",
        "| case | row | seeds | test return | expert | ratio | simulator steps | validation steps | oracle queries | "
        "CPU seconds |", "|---|---|---|---|---|---|---|---|---|---|",
        *[table_row(*cells(case, row, made[case, row])) for case, row in made],
        "", *what_is_missing(made, strangers),
    ]) + "\n"  # fmt: skip


def introduction(made: Runs, peers: Peers) -> list[str]:
    """Return the paragraphs on the runs and the curves."""
    tested = find_task("cartpole").problem.test_episodes
    pages = {run.result["pages"] for runs in made.values() for run in runs.values() if "pages" in run.result}
    of_pages = f" (algebra: on its {', '.join(map(str, sorted(pages)))} test pages, parsed greedily)" if pages else ""
    of_peers = ", ".join(f"{PEERS[peer][0]} on {task} ({len(c)})" for (peer, task), c in peers.items())
    bills = ", ".join(
        f"{name} {card.step:,} ({card.algorithm.split()[0]})" for name, card in read_builtin_expert_cards().items()
    )
    listed = ", ".join(f"{name} {number}" for name, number in versions().items())
    return [
        "# Everything at its defaults", "", "![Learning curves](untuned.png)", "",
        "The paper's tasks, and four that nobody tuned anything for ([newcomers.py](../../benchmarks/newcomers.py)), "
        "with every setting at its default unless the case names it. Curves show the best return on validation "
        "episodes so far against the simulator steps of start, roll-ins and oracle: the mean over seeds, and the range "
        "from the lowest to the highest; a run that has ended stays where it is. Test returns are of the chosen policy "
        f"on {tested:,} fresh episodes, with the policy sampled{of_pages}. *Ratio* is (R − lowest)/(R* − lowest), "
        "where the lowest is −H on Acrobot and 0 elsewhere; it is blank where the expert is not above that.", "",
        "*Default* means one setting for all tasks, not a blind one: it was chosen by looking at these very tasks, on "
        "seeds 0 to 3, among some forty variants, and the hand-over to the natural update on acrobot-partial without "
        "memory, seeds 0 and 1: of the seeds here only seed 4 was not looked at then. DAgger has as many iterations, "
        "and trajectories in each, as AggreVaTeD; with more, and with everything tuned at equal budgets, both are on "
        "the pages of the paper's tasks. Where the expert has a Q-network (CartPole, Acrobot) or a table, AggreVaTeD "
        "is told the costs of all actions for no simulator steps, where DAgger hears one action; elsewhere it rolls "
        "the expert out, and in the end has spent several times DAgger's steps: compare at equal steps.", "",
        "No number of simulator steps, in a curve or a target, has validation in it, which chooses the "
        f"policy: {on_top(made)}. "
        "Nor have the peers' steps those of the episodes that they were measured on.", "",
        f"Peers (dotted; seeds in brackets): {of_peers or 'missing'}. Theirs is the best mean return so far of their "
        "most likely actions on test episodes, against the steps that they took to learn "
        "([how](../../benchmarks/README.md#learning-curves-of-peers)).", "",
        "The experts' own training is in no curve of an imitator. In environment steps it took, up to the checkpoint "
        f"that is shipped: {bills}. The experts of the newcomers are written by hand.", "",
        "Commands:", "", "```", *COMMANDS, "```", "",
        f"Python {platform.python_version()}, {listed}; {os.cpu_count()} cores, two runs at once (versions and cores "
        "of where this page was made). All numbers, and thinned curves: [untuned.json](untuned.json).", "",
    ]  # fmt: skip


def on_top(made: Runs) -> str:
    """Return the extra steps of validation in the rows with the least and the most of them."""
    shares = {}
    for (case, row), runs in made.items():
        if runs:
            validation, learning = (
                np.mean([run.result[key] for run in runs.values()]) for key in ("validation_steps", "simulator_steps")
            )
            shares[f"{case}, row {row}"] = validation / learning
    if not shares:
        return "of which there are no runs yet"
    least = min(shares, key=lambda name: shares[name])
    most = max(shares, key=lambda name: shares[name])
    return (
        f"it took {shares[least]:.2g} times ({least}) to {shares[most]:.2g} times ({most}) as many steps on top, "
        "in the table of all rows"
    )


def how_it_went(targets: Sequence[Target]) -> list[str]:
    """Return a sentence on the targets, with the missed ones by name."""
    by = {word: [one for one in targets if one.verdict == word] for word in (MET, SHORT, MISSING)}
    lines = ["## Targets", "", f"{len(by[MET])} of {len(targets)} are met."]
    for word, verb in ((SHORT, "fall short"), (MISSING, "lack runs, and are neither")):
        if by[word]:
            lines[-1] += f" {len(by[word])} {verb}: " + "; ".join(f"{one.case} ({one.asked})" for one in by[word]) + "."
    return [*lines, ""]


def cells(case: str, row: str, runs: Mapping[int, Run]) -> list[object]:
    """Return the cells of a row in the table of all rows."""
    if not runs:
        return [case, row, 0, "missing", *[""] * 6]
    of = {key: [run.result[key] for run in runs.values()] for key in next(iter(runs.values())).result}
    ratio = "" if None in of["ratio"] else spread(of["ratio"], 3)
    counts = [
        f"{np.mean(of[key]):,.0f}" for key in ("simulator_steps", "validation_steps", "oracle_queries", "cpu_seconds")
    ]
    digits = 3 if np.max(np.abs([*of["test_return"], *of["expert_return"]])) < 10 else 1
    broken = f" ({sum(map(bool, of['diverged_trajectories']))} diverged)" if any(of["diverged_trajectories"]) else ""
    expert_return = f"{np.mean(of['expert_return']):.{digits}f}"
    return [case, row, len(runs), spread(of["test_return"], digits) + broken, expert_return, ratio, *counts]


def what_is_missing(made: Runs, strangers: Sequence[str]) -> list[str]:
    """Return rows without a run, rows with fewer seeds than planned, and unknown files."""
    lines = [f"Missing, without a single run: {'; '.join(map(', row '.join, missing_rows(made))) or 'nothing'}."]
    few = [
        f"{case}, row {row}: {len(runs)} of {planned(case, row)}"
        for (case, row), runs in made.items()
        if 0 < len(runs) < planned(case, row)
    ]
    if few:
        lines.append(f"With fewer seeds than planned: {'; '.join(few)}.")
    if strangers:
        lines.append(f"Files that belong to no case or row, and are in no table: {', '.join(strangers)}.")
    return lines


def table_row(*values: object) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(map(str, values))} |"


def strong(word: str) -> str:
    """Emphasize a verdict other than "met"."""
    return word if word == MET else f"**{word}**"


def spread(values: Sequence[float], digits: int) -> str:
    """Format as "mean [lowest, highest]"."""
    mean, low, high = (f"{value:,.{digits}f}" for value in (np.mean(values), min(values), max(values)))
    return f"{mean} [{low}, {high}]"


def number(value: float) -> str:
    """Format a number with sensible digits."""
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


# the figure


def draw(made: Runs, peers: Peers, path: Path) -> None:
    """Plot a panel for each main case with runs; LOKI's case is in the panel of its task."""
    panels = [
        case for case in CASES if not case.endswith((*SMALL, ", loki")) and any(made[case, r] for r in CASES[case][2])
    ]
    columns = 3
    rows = max(1, ceil(len(panels) / 3))
    figure = Figure(figsize=(11, 2.75 * rows + 1.0), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for case, axes in zip(panels, grid.flat, strict=False):
        panel(axes, case, made, peers)
    figure.supxlabel("simulator steps of start, roll-ins and oracle", fontsize=11)
    figure.supylabel("best return on validation episodes so far (algebra: UAS)", fontsize=11)
    handles = {
        label: handle
        for axes in grid.flat
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }  # fmt: skip
    order = sorted(handles, key=[*COLOURS, *(label for label, _ in PEERS.values()), "expert"].index)
    figure.legend([handles[label] for label in order], order, frameon=False, loc="outside upper center", ncols=5)
    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    write_atomically(path, buffer.getvalue())


def panel(axes: Axes, case: str, made: Runs, peers: Peers) -> None:
    """Plot the rows, expert and peers of a case, and name missing rows."""
    style_axes(axes)
    axes.set_title(case, fontsize=11)
    keys = [(name, row) for name in (case, f"{case}, loki") if name in CASES for row in CASES[name][2]]
    present = {row: list(made[name, row].values()) for name, row in keys if made[name, row]}
    for row, runs in present.items():
        band(axes, [(run.steps, run.best) for run in runs], row, COLOURS[row], "-")
    if present:
        level = np.mean([expert(run) for runs in present.values() for run in runs])
        axes.axhline(level, color=BOUND, linestyle="--", linewidth=1.3, label="expert", zorder=1)
    for (peer, task), curves in peers.items():
        if task == case:
            band(axes, curves, PEERS[peer][0], PEERS[peer][1], ":")
    absent = [row for _, row in keys if row not in present]
    if absent:
        text = "missing: " + (", ".join(absent) if present else "all rows")
        axes.text(0.98, 0.03, text, transform=axes.transAxes, ha="right", fontsize=8, color="#555555")
    if axes.get_lines():
        axes.set_xscale("log")
    else:
        axes.set(xticks=[], yticks=[])


def band(
    axes: Axes, curves: Sequence[tuple[np.ndarray, np.ndarray]], label: str, colour: str, style: str, points: int = 200
) -> None:
    """Plot the mean over seeds, and for our rows the range."""
    first = max(1, min(steps[steps > 0][0] for steps, _ in curves))
    at = np.geomspace(first, max(steps[-1] for steps, _ in curves), points)
    values = np.array([held(steps, best, at) for steps, best in curves])
    axes.plot(at, values.mean(axis=0), style, color=colour, linewidth=1.7, label=label)
    if style == "-" and len(values) > 1:
        axes.fill_between(at, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.13, linewidth=0)
