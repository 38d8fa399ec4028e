"""Where it pays: locked doors and keys, from one to three."""

from aggrevated.reports.versus import Case, Versus
from aggrevated.tasks import Row, find_task

DOORS, SIZE, BUDGET = (1, 2, 3), 6, 20_000  # steps for each door: with more of them, episodes are longer
MIXED = {"mixing": 0.5, "mixing_decay": 0.9}  # without it, most roll-ins ran to the horizon at first
TUNING = (
    "What was tried before, by hand and not evenly. On seed 0, which is one of these trials, in grids of 6, 8 and "
    "10 with one or two doors: for the exponentiated update K = 10, 20 and 50, with and without mixing, one other "
    "temperature and one deeper network; for DAgger K = 10 and 50, with and without mixing; for the others one or "
    "two runs. H was 100 at first, and was shortened, and mixing taken, because most roll-ins of the "
    "exponentiated update ran to the horizon, and its policy was worse than DAgger's; and doors are varied "
    "instead of sizes, with which these two were equal. On seed 100, size 6: for the regular update seven "
    "settings of K, of its step and of its KL with one door (K = 10 was best); for the natural one and TNPG K = "
    "10 and 50; for SL-RL K = 10 and 50 and 10 to 500 demonstrations, of which more were better, and 300 are as "
    "many as the budget of --quick has room for. SL was never tuned."
)
KEYS = Versus(
    name="pays-keys",
    title="Doors and keys: more and more doors",
    question="How many doors can be learned from so many steps, with and without somebody who knows the way?",
    task=find_task("keys"),
    varied="locked doors, each with a key",
    cases=tuple(
        Case(doors, f"{doors} door{'s' * (doors > 1)}", {"size": SIZE, "doors": doors, "budget": BUDGET * doors})
        for doors in DOORS
    ),
    methods={
        "AggreVaTeD (exponentiated)": Row("aggrevated", "exponentiated", settings=MIXED),
        "AggreVaTeD (natural)": Row("aggrevated", "natural", settings=MIXED),
        "AggreVaTeD (regular)": Row("aggrevated", "regular", settings=MIXED | {"trajectories": 10}),
        "DAgger": Row("dagger", "follow-the-leader", settings=MIXED),
        "SL": Row("sl", "follow-the-leader"),
        "SL-RL (critic)": Row("sl-rl", "natural", settings={"oracle": "critic", "demonstrations": 300}),
        "TNPG (critic)": Row("tnpg", "natural", settings={"oracle": "critic"}),
    },
    settings={"trajectories": 50, "validate_every": 5},
    tells=("reached", "difference"),
    within=0.05,
    notes=(
        f"Rooms of a grid of {SIZE} × {SIZE} cells, doors, keys, start and goal are drawn anew for every episode; each "
        "step costs 1 until the goal, and the ratio is of steps saved, (R + H)/(R* + H) with H = 2 · size · (doors + "
        "1). The expert is breadth-first search over place and keys: its Q* is exact, and takes no simulator steps. "
        "The learner remembers nothing, sees which of the 5 × 5 cells around it are barred, and has a compass for "
        "goal, keys and doors. In the roll-ins of AggreVaTeD and DAgger the expert takes half of the steps at first "
        "(α_n = 0.5 · 0.9^(n−1)), in those of SL all. "
        f"Every trial has {BUDGET:,} steps for each door.",
        TUNING,
    ),
)
FIGURES = (KEYS,)
