"""Where it pays: the combination lock, at lengths from 2 to 20."""

from aggrevated.tasks import FigureRow, find_task
from aggrevated_experiments.method_comparison.spec import Case
from aggrevated_experiments.method_comparison.study import MethodStudy
from aggrevated_experiments.where_it_pays.simulators.lock import DIGITS

LENGTHS = (2, 4, 6, 8, 10, 14, 20)
EPISODES = 2000  # episodes per trial, for each length


def count_brute_force_steps(case: Case) -> float:
    """Return the mean steps until the lock opens if all combinations are tried without repetition."""
    return float(case.x * (DIGITS**case.x + 1) / 2)


LOCK = MethodStudy(
    name="pays-lock",
    title="The combination lock: exponential against polynomial",
    question="How do simulator steps grow with the length of a lock, with and without somebody who knows the cost of a "
    "wrong digit?",
    task=find_task("lock"),
    varied="digits L of the lock",
    cases=tuple(Case(n, f"L = {n}", {"combination_length": n, "budget": EPISODES * n}) for n in LENGTHS),
    methods={
        "AggreVaTeD (exponentiated)": FigureRow("aggrevated", "exponentiated"),
        "AggreVaTeD (regular)": FigureRow("aggrevated", "regular"),
        "DAgger": FigureRow("dagger", "follow-the-leader"),
        "SL": FigureRow("sl", "follow-the-leader"),
        "REINFORCE": FigureRow("reinforce", "regular"),
        "TNPG": FigureRow("tnpg", "natural"),
    },
    settings={"trajectories": 25},
    within=0.05,
    lines={"steps": {"any RL at least, in the mean: L (4^L + 1)/2": count_brute_force_steps}},
    notes=(
        f"Every trial has {EPISODES:,} episodes of L steps, and the combination is the same in all of them. The expert "
        "knows it and is free: its Q* is a formula and takes no simulator steps. A wrong digit leads to a dead end "
        "that looks like the right way, so that without an expert an episode tells one thing only, whether one of 4^L "
        "combinations is the right one: no way of learning from that needs fewer than (4^L + 1)/2 episodes in the "
        "mean. DAgger and SL are told the right digit also where it does not help any more, in a dead end, "
        "and SL never sees one.",
    ),
)
FIGURES = (LOCK,)
