"""The page, the figure and the numbers of untuned.py: what was asked, what was measured, and what is missing."""

import io
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from math import ceil, inf, nan, sqrt
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from aggrevated.experts.loading import shipped
from aggrevated.files import Facts, read_json, write_atomically
from aggrevated.plots.learning_curves import BOUND, tidy
from aggrevated.tasks import find_task
from newcomers import LONGEST, SHORTEST
from untuned import CASES

OURS, RIVALS = "aggrevated", ("dagger", "dagger, few", "sl", "sl-rl")
SMALL = ("1 units", "2 units", "4 units", "linear")
THINNED = 40  # points of a curve in the JSON, at most
COLOURS = {
    "aggrevated": "#0072B2", "natural": "#009E73", "loki": "#56B4E9",
    "dagger": "#D55E00", "dagger, few": "#F0A070", "sl": "#E69F00", "sl-rl": "#CC79A7",
}  # fmt: skip
PEERS = {"ppo": ("PPO", "#000000"), "trpo": ("TRPO", "#5E3C99"), "dagger": ("DAgger of imitation", "#8C3A00")}
PACKAGES = ("aggrevated", "torch", "numpy", "gymnasium", "mujoco", "box2d")
MET, SHORT, MISSING = "met", "falls short", "missing"


@dataclass(frozen=True)
class Run:
    """One seed of a row: what it ended with, and the best return on validation after so many simulator steps."""

    result: Facts
    steps: np.ndarray  # [1 + iterations], the policy it started with first
    best: np.ndarray  # [1 + iterations]
    queries: np.ndarray  # [1 + iterations]
    expert: float  # its return on the episodes of the curve

    @classmethod
    def read(cls, path: Path) -> "Run":
        """From a file of `untuned.py run`."""
        facts = read_json(path)
        result, names = facts["result"], facts["points_are"]
        steps, best, queries = (
            [point[names.index(name)] for point in facts["points"]]
            for name in ("simulator_steps", "best_return", "oracle_queries")
        )
        first = result["start_simulator_steps"], result["initial_return"]
        curve = np.array([first[0], *steps]), np.maximum.accumulate([first[1], *best])
        expert = facts.get("expert_on_validation")
        expert = result["expert_return"] if expert is None else expert
        asked = np.array([queries[0] if first[0] else 0, *queries])  # what a start has asked is not told apart
        return cls(result, *curve, asked, expert)

    def reached(self, level: float) -> float:
        """The simulator steps after which the best return is no lower than that; inf if it never is."""
        there = self.best >= level
        return float(self.steps[there.argmax()]) if there.any() else inf

    def best_at(self, budget: float, bill: str = "steps") -> float:
        """The best return by then: the last one where the run has ended, NaN before its start has."""
        place = int(np.searchsorted(getattr(self, bill), budget, side="right")) - 1
        return float(self.best[place]) if place >= 0 else nan

    def at_ratio(self, ratio: float) -> float:
        """The return that has this ratio to the expert's, both counted from the lowest."""
        world = find_task(self.result["task"]).world
        lowest = world.lowest(world.horizon)
        return lowest + ratio * (self.result["expert_return"] - lowest)


Runs = Mapping[tuple[str, str], Mapping[int, Run]]  # by case and row, then by seed
Peers = Mapping[tuple[str, str], Sequence[tuple[np.ndarray, np.ndarray]]]  # by peer and task: (steps, best) per seed


@dataclass(frozen=True)
class Target:
    """What was asked, and what was measured."""

    case: str
    row: str
    asked: str
    measured: str
    seeds: int
    verdict: str


def report(runs: Path, results: Path) -> int:
    """Write untuned.{json,md,png} in `results` from the runs in the one folder and the peers' curves in the other."""
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
    """The runs of the cases there are, and the names of files that belong to none."""
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
    """Their best returns so far: kinder to them than their curves as they are, and what ours are."""
    files = [read_json(path) for path in sorted(folder.glob("*.json"))]
    return {
        (facts["peer"], facts["task"]): [
            (np.array(one["steps"]), np.maximum.accumulate(one["returns"])) for one in facts["curves"].values()
        ]
        for facts in files
    }


def missing_rows(made: Runs) -> list[tuple[str, str]]:
    """Cases and rows without a run."""
    return [key for key, seeds in made.items() if not seeds]


# what was asked


def all_targets(made: Runs, peers: Peers) -> Iterable[Target]:
    """Every target, in the order of the page."""

    def passes(case: str, asked: str, level: Callable[[Run], float], within: int, row: str = OURS) -> Target:
        return reaching(made, case, row, f"{asked} within {within:,} steps", level, within)

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
    """Its return on the episodes of the curve."""
    return run.expert


def beyond_expert(run: Run) -> float:
    """How much better than the expert, on the same test episodes."""
    return run.result["test_return"] - run.result["expert_return"]


def accuracy(run: Run) -> float:
    """Of the tagger, whose wrong tags cost 1 each: the share of right ones in a sentence of mean length."""
    return 1 + run.result["test_return"] / ((SHORTEST + LONGEST) / 2)


def reaching(made: Runs, case: str, row: str, asked: str, level: Callable[[Run], float], within: int) -> Target:
    """Met if every seed gets there, and their mean in time."""
    runs = made[case, row].values()
    if not runs:
        return Target(case, row, asked, "no run", 0, MISSING)
    steps = [run.reached(level(run)) for run in runs]
    there = [one for one in steps if one < inf]
    never = f"; never in {len(steps) - len(there)} of {len(steps)} seeds" if len(there) < len(steps) else ""
    in_time = f"; in time in {sum(one <= within for one in steps)} of {len(steps)} seeds" if there else ""
    low, high = min(level(run) for run in runs), max(level(run) for run in runs)
    levels = number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"
    measured = f"return {levels} after {spread(there, 0)} steps{in_time}{never}" if there else never.strip("; ")
    return Target(case, row, asked, measured, len(steps), verdict(np.mean(steps) <= within))


def ending(made: Runs, case: str, asked: str, value: Callable[[Run], float], least: float, prefix: str = "") -> Target:
    """Met if the mean over seeds is no lower."""
    runs = made[case, OURS].values()
    if not runs:
        return Target(case, OURS, asked, "no run", 0, MISSING)
    values = [value(run) for run in runs]
    return Target(case, OURS, asked, prefix + spread(values, 3), len(values), verdict(np.mean(values) >= least))


def not_below(made: Runs, case: str, others: Sequence[str]) -> Target:
    """Met if the mean ratio is no lower than that of any other."""
    ratios = {row: [run.result["ratio"] for run in made[case, row].values()] for row in (OURS, *others)}
    present = [row for row in others if ratios[row]]
    measured = "; ".join(f"{row} {spread(of, 3)}" if of else f"{row} missing" for row, of in ratios.items())
    asked = f"ratio not below {' nor '.join(others)} in the end"
    if not ratios[OURS] or not present:
        return Target(case, OURS, asked, measured, len(ratios[OURS]), MISSING)
    behind = [row for row in present if np.mean(ratios[OURS]) < np.mean(ratios[row])]
    close = [row for row in behind if compare(ratios[OURS], ratios[row]) == "equal"]
    measured += f" (within a standard error of {', '.join(close)})" if close else ""
    outcome = SHORT if behind else MET if len(present) == len(others) else MISSING
    return Target(case, OURS, asked, measured, len(ratios[OURS]), outcome)


def ahead_of_peer(made: Runs, peers: Peers, case: str, row: str, peer: str = "trpo") -> Target:
    """Met if our mean is above the peer's mean at every point of the peer's."""
    runs, theirs = list(made[case, row].values()), peers.get((peer, CASES[case][0]))
    asked = f"ahead of {PEERS[peer][0]}'s own curve at every number of steps"
    if not runs or not theirs:
        return Target(case, row, asked, "no run" if not runs else "no curve of the peer", len(runs), MISSING)
    at = np.unique(np.concatenate([steps[steps > 0] for steps, _ in theirs]))
    his = mean_curve(theirs, at)
    bill = shipped()[CASES[case][0]].step
    ours, later = (mean_curve([(run.steps + late, run.best) for run in runs], at) for late in (0, bill))
    behind = at[~(ours > his)]
    where = f"; not at {', '.join(f'{one:,.0f}' for one in behind[:6])}{' …' * (len(behind) > 6)}" * bool(len(behind))
    measured = (
        f"ahead at {np.sum(ours > his)} of {len(at)} points up to {at[-1]:,.0f} steps{where}; with the {bill:,} steps "
        f"of the expert's own training on our bill, at {np.sum(later > his)} of {len(at)}"
    )
    return Target(case, row, asked, measured, len(runs), verdict(not len(behind)))


def mean_curve(curves: Iterable[tuple[np.ndarray, np.ndarray]], at: np.ndarray) -> np.ndarray:
    """[len(at)]: the mean over seeds; NaN where one has not begun."""
    return np.mean([held(steps, best, at) for steps, best in curves], axis=0)


def held(steps: np.ndarray, best: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The best return by each number of steps; it stays where it is after the last, and is NaN before the first."""
    places = np.searchsorted(steps, at, side="right") - 1
    return np.where(places >= 0, best[places], nan)


def verdict(met: bool) -> str:
    """In a word."""
    return MET if met else SHORT


# beside DAgger, SL and SL-RL

BESIDE = ("end", "equal_steps", "equal_queries")
Pair = tuple[Sequence[float], Sequence[float], str]  # our returns, theirs, and when


def compare(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Which mean is higher; equal if they differ by no more than the standard error of the difference."""
    difference = np.mean(ours) - np.mean(theirs)
    error = sqrt(sum(np.var(one, ddof=1) / len(one) if len(one) > 1 else 0.0 for one in (ours, theirs)))
    return "equal" if abs(difference) <= error else "ahead" if difference > 0 else "behind"


def beside(made: Runs, case: str) -> list[str]:
    """Three cells: against each of the others in the end, at equal simulator steps, and at equal oracle queries."""
    ours = list(made[case, OURS].values())
    others = {row: list(made[case, row].values()) for row in RIVALS if (case, row) in made}
    absent = [row for row in others if not others[row]]
    note = f" ({', '.join(absent)} missing)" if absent else ""
    if not ours or len(absent) == len(others):
        return [f"missing{note}"] * 3
    present = {row: runs for row, runs in others.items() if runs}
    end = {row: (tested(ours), tested(runs), "") for row, runs in present.items()}
    return [against(one) + note for one in (end, at_equal(ours, present, "steps"), at_equal(ours, present, "queries"))]


def tested(runs: Sequence[Run]) -> list[float]:
    """The returns on fresh episodes."""
    return [run.result["test_return"] for run in runs]


def at_equal(ours: Sequence[Run], others: Mapping[str, Sequence[Run]], bill: str) -> dict[str, Pair]:
    """Ours and each of the others after as much of the bill as both have run up."""
    pairs = {}
    for row, theirs in others.items():
        budget = min(getattr(run, bill)[-1] for run in (*ours, *theirs))
        values = ([run.best_at(budget, bill) for run in runs] for runs in (ours, theirs))
        pairs[row] = (*values, f" after {budget:,.0f}")
    return pairs


def against(pairs: Mapping[str, Pair]) -> str:
    """Of whom we are ahead, to whom equal, and behind whom and by how much."""
    words: dict[str, list[str]] = {"ahead of": [], "equal to": [], "**behind**": []}
    for row, (ours, theirs, when) in pairs.items():
        word = compare(ours, theirs)
        told = f"{row} ({number(float(np.mean(ours)))}, {number(float(np.mean(theirs)))}{when})"
        words[{"ahead": "ahead of", "equal": "equal to", "behind": "**behind**"}[word]].append(told)
    return "; ".join(f"{word} {', '.join(rows)}" for word, rows in words.items() if rows)


# the numbers


def numbers(made: Runs, targets: Sequence[Target]) -> Facts:
    """All that the page says, and the curves, for JSON."""
    rows = {case: {row: summary(made[case, row]) for row in CASES[case][2]} for case in CASES}
    return {
        "commands": commands(made),
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "versions": versions(),
        "experts_own_training": {name: card.step for name, card in shipped().items()},
        "targets": [asdict(target) for target in targets],
        "beside": {case: dict(zip(BESIDE, beside(made, case), strict=True)) for case in compared()},
        "missing": [f"{case}; {row}" for case, row in missing_rows(made)],
        "cases": rows,
    }


def as_json(facts: Facts) -> str:
    """Indented, but a list of numbers is one line."""
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    return re.sub(r'\[[^][{}"]*\]', lambda found: " ".join(found[0].split()), text) + "\n"


def summary(runs: Mapping[int, Run]) -> Facts:
    """Of one row: a number per seed."""
    keys = ("test_return", "expert_return", "ratio", "best_return", "initial_return", "simulator_steps",
            "start_simulator_steps", "oracle_steps", "oracle_queries", "validation_steps", "seconds", "diverged",
            "uas_micro")  # fmt: skip
    results = [run.result for run in runs.values()]
    kept = {key: [result[key] for result in results] for key in keys if results and key in results[0]}
    curves = {str(seed): {"steps": (thin := thinned(run))[0], "best_return": thin[1]} for seed, run in runs.items()}
    return {"seeds": list(runs), **kept, "curves": curves}


def thinned(run: Run) -> tuple[list[int], list[float]]:
    """At most so many points of the curve, denser at the beginning; the first and the last among them."""
    last = len(run.steps) - 1
    places = np.unique(np.r_[0, np.geomspace(1, max(last, 1), THINNED - 1).round().astype(int)])
    return run.steps[places].tolist(), run.best[places].round(4).tolist()


def commands(made: Runs) -> list[str]:
    """Those that make these runs."""
    wanted: dict[tuple[int, str], list[str]] = {}
    for case, (_, _, rows) in CASES.items():
        seeds = {row: max(made[case, row], default=-1) + 1 for row in rows}
        for count in set(seeds.values()) - {0}:
            named = [row for row in rows if seeds[row] == count]
            wanted.setdefault((count, ";".join(named) if len(named) < len(rows) else ""), []).append(case)
    return [
        f'python benchmarks/untuned.py run --seeds {count} --only "{";".join(cases)}"'
        + f' --rows "{rows}"' * bool(rows)
        for (count, rows), cases in sorted(wanted.items(), reverse=True)
    ]


def versions() -> dict[str, str]:
    """Of what is installed where this runs."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def compared() -> list[str]:
    """Cases with our row and another that is an imitator's."""
    return [case for case, (_, _, rows) in CASES.items() if OURS in rows and any(row in rows for row in RIVALS)]


# the page


def page(made: Runs, peers: Peers, targets: Sequence[Target], strangers: Sequence[str]) -> str:
    """For people."""
    return "\n".join([
        *introduction(made, peers),
        *how_it_went(targets),
        "| case | row | asked | measured | seeds | |", "|---|---|---|---|---|---|",
        *[table_row(one.case, one.row, one.asked, one.measured, one.seeds, strong(one.verdict)) for one in targets],
        "", "*Within so many steps* is met if the mean over seeds is, and every seed gets there. What is reached on "
        "the way is a maximum over validations, and optimistic; what is reached in the end is measured on fresh "
        "episodes.",
        "", "## Beside DAgger, SL and SL-RL", "",
        "AggreVaTeD against each of them by mean (ours first, then theirs); *equal* where the means differ by no more "
        "than the standard error of their difference over seeds; one that has not begun is behind. In the end: the "
        "test return. At equal steps, or queries: the best return on validation when both have used so many; in "
        "reinforcement learning nobody is asked, and it may go on for any number of steps.", "",
        "| case | in the end | at equal simulator steps | at equal oracle queries |", "|---|---|---|---|",
        *[table_row(case, *beside(made, case)) for case in compared()],
        "", "## All rows", "",
        "Means over seeds; in brackets the lowest and the highest. Simulator steps are those of start, roll-ins and "
        "oracle; the steps of validation came on top.", "",
        "| case | row | seeds | test return | expert | ratio | simulator steps | validation steps | oracle queries | "
        "seconds |", "|---|---|---|---|---|---|---|---|---|---|",
        *[table_row(*cells(case, row, made[case, row])) for case, row in made],
        "", *what_is_missing(made, strangers),
    ]) + "\n"  # fmt: skip


def introduction(made: Runs, peers: Peers) -> list[str]:
    """What was done, and what the curves are."""
    tested = find_task("cartpole").world.test_episodes
    pages = {run.result["sets"] for runs in made.values() for run in runs.values() if "sets" in run.result}
    of_pages = f" (algebra: on its {', '.join(map(str, sorted(pages)))} test pages, parsed greedily)" if pages else ""
    of_peers = ", ".join(f"{PEERS[peer][0]} on {task} ({len(c)})" for (peer, task), c in peers.items())
    bills = ", ".join(f"{name} {card.step:,} ({card.algorithm.split()[0]})" for name, card in shipped().items())
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
        "memory, seeds 0 and 1. Seeds 4 to 9 were not looked at before.", "",
        "No number of simulator steps, in a curve or a target, has validation in it, which chooses the "
        f"policy: {on_top(made)}. "
        "Nor have the peers' steps those of the episodes that they were measured on.", "",
        f"Peers (dotted; seeds in brackets): {of_peers or 'missing'}. Theirs is the best mean return so far of their "
        "most likely actions on test episodes, against the steps that they took to learn "
        "([how](../../benchmarks/README.md#learning-curves-of-peers)).", "",
        "The experts' own training is in no curve of an imitator. In environment steps it took, up to the checkpoint "
        f"that is shipped: {bills}. The experts of the newcomers are written by hand.", "",
        "Commands:", "", "```", *(commands(made) or ["(no runs)"]), "python benchmarks/untuned.py report", "```", "",
        f"Python {platform.python_version()}, {listed}; {os.cpu_count()} cores, two runs at once (versions and cores "
        "of where this page was made). All numbers, and thinned curves: [untuned.json](untuned.json).", "",
    ]  # fmt: skip


def on_top(made: Runs) -> str:
    """How much more validation took, in the row where that is least and where it is most."""
    shares = {}
    for (case, row), runs in made.items():
        if runs:
            validation, learning = (
                np.mean([run.result[key] for run in runs.values()]) for key in ("validation_steps", "simulator_steps")
            )
            shares[f"{case}, row {row}"] = validation / learning
    if not shares:
        return "of which there are no runs yet"
    least, most = min(shares, key=lambda name: shares[name]), max(shares, key=lambda name: shares[name])
    return (
        f"it took {shares[least]:.2g} times ({least}) to {shares[most]:.2g} times ({most}) as many steps on top, "
        "in the table of all rows"
    )


def how_it_went(targets: Sequence[Target]) -> list[str]:
    """The targets in a sentence, with those that fall short by name."""
    by = {word: [one for one in targets if one.verdict == word] for word in (MET, SHORT, MISSING)}
    lines = ["## Targets", "", f"{len(by[MET])} of {len(targets)} are met."]
    for word, verb in ((SHORT, "fall short"), (MISSING, "lack runs, and are neither")):
        if by[word]:
            lines[-1] += f" {len(by[word])} {verb}: " + "; ".join(f"{one.case} ({one.asked})" for one in by[word]) + "."
    return [*lines, ""]


def cells(case: str, row: str, runs: Mapping[int, Run]) -> list[object]:
    """Of a row of the table of all rows."""
    if not runs:
        return [case, row, 0, "missing", *[""] * 6]
    of = {key: [run.result[key] for run in runs.values()] for key in next(iter(runs.values())).result}
    ratio = "" if None in of["ratio"] else spread(of["ratio"], 3)
    counts = [
        f"{np.mean(of[key]):,.0f}" for key in ("simulator_steps", "validation_steps", "oracle_queries", "seconds")
    ]
    digits = 3 if np.max(np.abs([*of["test_return"], *of["expert_return"]])) < 10 else 1
    broken = f" ({sum(map(bool, of['diverged']))} diverged)" if any(of["diverged"]) else ""
    expert_return = f"{np.mean(of['expert_return']):.{digits}f}"
    return [case, row, len(runs), spread(of["test_return"], digits) + broken, expert_return, ratio, *counts]


def what_is_missing(made: Runs, strangers: Sequence[str]) -> list[str]:
    """Rows without a run, rows with fewer seeds than others of the case, and files that belong nowhere."""
    lines = [f"Missing, without a single run: {'; '.join(map(', row '.join, missing_rows(made))) or 'nothing'}."]
    uneven = []
    for case, (_, _, rows) in CASES.items():
        most = max(len(made[case, row]) for row in rows)
        uneven += [
            f"{case}, row {row}: {len(made[case, row])} of {most}" for row in rows if 0 < len(made[case, row]) < most
        ]
    if uneven:
        lines.append(f"With fewer seeds than other rows of the case: {'; '.join(uneven)}.")
    if strangers:
        lines.append(f"Files that belong to no case or row, and are in no table: {', '.join(strangers)}.")
    return lines


def table_row(*values: object) -> str:
    """In Markdown."""
    return f"| {' | '.join(map(str, values))} |"


def strong(word: str) -> str:
    """What is not as asked stands out."""
    return word if word == MET else f"**{word}**"


def spread(values: Sequence[float], digits: int) -> str:
    """Mean [lowest, highest]."""
    mean, low, high = (f"{value:,.{digits}f}" for value in (np.mean(values), min(values), max(values)))
    return f"{mean} [{low}, {high}]"


def number(value: float) -> str:
    """As many digits as a reader wants."""
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


# the figure


def draw(made: Runs, peers: Peers, path: Path) -> None:
    """A panel for each main case; LOKI's, which is a case of its own, is in that of its task."""
    panels = [case for case in CASES if not case.endswith((*SMALL, ", loki"))]
    columns = 3
    figure = Figure(figsize=(11, 2.75 * ceil(len(panels) / columns) + 1.0), layout="constrained")
    grid = figure.subplots(ceil(len(panels) / columns), columns, squeeze=False)
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
    """The rows of a case, its expert, its peers; what is missing is said."""
    tidy(axes)
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
    """The mean over seeds, and for ours the range."""
    first = max(1, min(steps[steps > 0][0] for steps, _ in curves))
    at = np.geomspace(first, max(steps[-1] for steps, _ in curves), points)
    values = np.array([held(steps, best, at) for steps, best in curves])
    axes.plot(at, values.mean(axis=0), style, color=colour, linewidth=1.7, label=label)
    if style == "-" and len(values) > 1:
        axes.fill_between(at, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.13, linewidth=0)
