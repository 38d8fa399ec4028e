"""Methods, the paper's and others, as rows: the start, what a mistake costs, the gradient, the update. One loop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aggrevated.errors import UsageError
from aggrevated.settings import known
from aggrevated.shelves import load, offered

ASKED = "asked"  # the cost-to-go: Q*, in whichever way the task's expert can be asked for it
OTHERS = "others"  # among updates: and whatever else fits


@dataclass(frozen=True)
class Method:
    """One row of the table below; all in it can be chosen otherwise, as far as it fits."""

    title: str
    start: str  # (line 2)
    cost_to_go: str  # an oracle, or ASKED (line 6)
    losses: tuple[str, ...]  # by preference: the first that fits the oracle is the usual one (line 6)
    updates: tuple[str, ...]  # the usual one first (line 7)
    settings: Mapping[str, Any] = field(default_factory=dict)  # others than the usual ones
    imitates: bool = True  # whether the expert is asked what a mistake costs


# fmt: off
ALL, TAKEN, ANY = ("all-actions",), ("taken-action",), ("all-actions", "taken-action")
LIKELIHOOD = ("likelihood", "all-actions")
GRADIENT, LEADER = ("natural", "regular", OTHERS), ("follow-the-leader",)
FIT = (*LEADER, "regular", OTHERS)
NEWEST = ("regular", *LEADER, OTHERS)
EXPERT_ACTS = {"mixing": 1.0, "mixing_decay": 1.0}
LESS_AND_LESS = {"mixing": 1.0, "mixing_schedule": "inverse-sigmoid"}
METHODS = {  #           title         start         cost-to-go      gradient    updates
    "aggrevated": Method("AggreVaTeD", "random",     ASKED,          ANY,        GRADIENT),
    "aggrevate":  Method("AggreVaTe",  "random",     ASKED,          ALL,        LEADER),
    "dagger":     Method("DAgger",     "random",     "disagreement", LIKELIHOOD, FIT),
    "sl":         Method("SL",         "random",     "disagreement", LIKELIHOOD, FIT, EXPERT_ACTS),
    "reinforce":  Method("REINFORCE",  "random",     "realised",     TAKEN,      ("regular",), imitates=False),
    "tnpg":       Method("TNPG",       "random",     "realised",     TAKEN,      ("natural",), imitates=False),
    "sl-rl":      Method("SL-RL",      "supervised", "realised",     TAKEN,      GRADIENT, imitates=False),
} | {  # of others             title                 start     cost-to-go      gradient    updates
    "lols":               Method("LOLS",               "random", "lols",         ANY,        GRADIENT),
    "searn":              Method("SEARN",              "random", "searn",        ALL,        ("searn",)),
    "smile":              Method("SMILe",              "random", "disagreement", LIKELIHOOD, ("smile",)),
    "scheduled-sampling": Method("Scheduled sampling", "random", "disagreement", LIKELIHOOD, NEWEST, LESS_AND_LESS),
}
# fmt: on
GROUP = "aggrevated.methods"  # of entry points, by which other packages offer rows


def method_names() -> list[str]:
    """The names of all methods there are."""
    return [*METHODS, *offered(GROUP)]


def find_method(name: str) -> Method:
    """The row of that name, or a `UsageError` that lists them all."""
    if name in METHODS:
        return METHODS[name]
    row = load(offered(GROUP)[known(name, "method", method_names())])
    if not isinstance(row, Method):
        raise UsageError(f"the method {name} of an installed package is no Method; mend or remove it")
    return row
