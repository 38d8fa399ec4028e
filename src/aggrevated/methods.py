"""Methods, the paper's and later ones, as rows: start, what a mistake costs, gradient, update. One loop for all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aggrevated.core.registry import load, offered
from aggrevated.core.settings import known
from aggrevated.errors import UsageError

ASKED = ("asked",)  # the cost-to-go: Q*, in whichever way the task's expert can be asked for it
OTHERS = "others"  # among updates: and whatever else fits


@dataclass(frozen=True)
class Method:
    """One row of the table below; all in it can be chosen otherwise, as far as it fits."""

    title: str
    start: str  # (line 2)
    cost_to_go: tuple[str, ...]  # oracles, the usual one first; or ASKED (line 6)
    losses: tuple[str, ...]  # by preference: the first that fits the oracle is the usual one (line 6)
    updates: tuple[str, ...]  # the usual one first (line 7)
    settings: Mapping[str, Any] = field(default_factory=dict)  # others than the usual ones
    imitates: bool = True  # whether the expert is asked what a mistake costs
    reinforcement: str = "none"  # what follows the imitation, where the expert is ASKED (line 6)

    def only(self, place: str) -> tuple[str, ...]:
        """The pieces that it is defined by, where no others can be chosen; nothing where they can."""
        asked = self.cost_to_go == ASKED
        closed = {"update": OTHERS not in self.updates, "oracle": not asked, "reinforcement": not asked}
        names = {"update": self.updates, "oracle": self.cost_to_go, "reinforcement": (self.reinforcement,)}
        return names[place] if closed.get(place) else ()


# fmt: off
ALL, TAKEN, ANY = ("all-actions",), ("taken-action",), ("all-actions", "taken-action")
LIKELIHOOD = ("likelihood", "all-actions")
ADVISED, OWN, TRUNCATED = ("disagreement",), ("realised", "critic"), ("truncated",)
EXPONENTIATED, GRADIENT = ("exponentiated", "natural", "regular", OTHERS), ("natural", "regular", OTHERS)
LEADER = ("follow-the-leader",)
FIT = (*LEADER, "regular", OTHERS)
NEWEST = ("regular", *LEADER, OTHERS)
EXPERT_ACTS = {"mixing": 1.0, "mixing_decay": 1.0}
LESS_AND_LESS = {"mixing": 1.0, "mixing_schedule": "inverse-sigmoid"}
METHODS = {  #           title         start         cost-to-go   gradient    updates
    "aggrevated": Method("AggreVaTeD", "random",     ASKED,       ANY,        EXPONENTIATED),
    "aggrevate":  Method("AggreVaTe",  "random",     ASKED,       ALL,        LEADER),
    "dagger":     Method("DAgger",     "random",     ADVISED,     LIKELIHOOD, FIT),
    "sl":         Method("SL",         "random",     ADVISED,     LIKELIHOOD, FIT, EXPERT_ACTS),
    "reinforce":  Method("REINFORCE",  "random",     OWN,         TAKEN,      ("regular",), imitates=False),
    "tnpg":       Method("TNPG",       "random",     OWN,         TAKEN,      ("natural",), imitates=False),
    "sl-rl":      Method("SL-RL",      "supervised", OWN,         TAKEN,      GRADIENT, imitates=False),
    "thor":       Method("THOR",       "random",     TRUNCATED,   TAKEN,      GRADIENT),
    "loki":       Method("LOKI",       "random",     ASKED,       TAKEN,      EXPONENTIATED, reinforcement="critic"),
} | {  # of others             title                 start     cost-to-go  gradient    updates
    "lols":               Method("LOLS",               "random", ("lols",),  ANY,        GRADIENT),
    "searn":              Method("SEARN",              "random", ("searn",), ALL,        ("searn",)),
    "smile":              Method("SMILe",              "random", ADVISED,    LIKELIHOOD, ("smile",)),
    "scheduled-sampling": Method("Scheduled sampling", "random", ADVISED,    LIKELIHOOD, NEWEST, LESS_AND_LESS),
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
