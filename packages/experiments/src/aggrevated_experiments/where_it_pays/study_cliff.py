"""Where it pays: a cliff, where mistakes differ greatly in cost, and policies too small to avoid them."""

from aggrevated.tasks import FigureRow, find_task
from aggrevated_experiments.method_comparison.spec import Case
from aggrevated_experiments.method_comparison.study import MethodStudy
from aggrevated_experiments.where_it_pays.simulators.cliff import FALL, STONES

UNITS = (1, 2, 4, 8, 16)

CLIFF = MethodStudy(
    name="pays-cliff",
    title="A cliff: mistakes that differ in cost, and students of 1 to 16 units",
    question="Does it matter to know what a mistake costs, where the student is too small to make none?",
    task=find_task("cliff"),
    varied="hidden units of the student",
    cases=tuple(Case(n, f"{n} unit{'s' if n > 1 else ''}", {"hidden": (n,)}) for n in UNITS),
    methods={
        "AggreVaTeD (exponentiated)": FigureRow("aggrevated", "exponentiated"),
        "AggreVaTeD (regular)": FigureRow("aggrevated", "regular"),
        "AggreVaTeD (natural)": FigureRow("aggrevated", "natural"),
        "DAgger": FigureRow("dagger", "follow-the-leader"),
        "SL": FigureRow("sl", "follow-the-leader"),
    },
    settings={"budget": 30_000, "trajectories": 20, "validation_episodes": 200},
    measures=("final", "steps"),
    tells=("reached", "difference"),
    within=0.25,
    log_x=True,
    notes=(
        f"A fall costs {FALL:g} and ends the walk; the largest stone costs {STONES:g}. The expert is dynamic "
        "programming and free: its Q* takes no simulator steps, and every action has its own cost, so that what DAgger "
        "is told to do is never one of several equally good ones. What to do is simple near the edge and needs "
        "several units among the stones, where most of the steps are. The step size of DAgger and SL is "
        "the best of .003, .01, .03, .1 and .3 for DAgger with 16 units, on seeds 0, 10 and 11; "
        "AggreVaTeD has its defaults. Policies are tested as they are, by drawing actions.",
    ),
)
FIGURES = (CLIFF,)
