"""Methods, the paper's and later ones, as rows: start, what a mistake costs, gradient, update. One loop for all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aggrevated.core.errors import UsageError
from aggrevated.core.registry import find_entry_points, load_entry_point
from aggrevated.core.settings import check_known

EXPERT_ORACLE = ("asked",)  # the cost-to-go: Q*, in whichever way the task's expert can be asked for it
ANY_COMPATIBLE = "others"  # among updates: and whatever else fits


@dataclass(frozen=True)
class Method:
    """One row of the table below; all in it can be chosen otherwise, as far as it fits."""

    title: str
    start: str  # (line 2)
    oracles: tuple[str, ...]  # oracles, the usual one first; or ASKED (line 6)
    losses: tuple[str, ...]  # by preference: the first that fits the oracle is the usual one (line 6)
    updates: tuple[str, ...]  # the usual one first (line 7)
    settings: Mapping[str, Any] = field(default_factory=dict)  # others than the usual ones
    queries_expert: bool = True  # whether the expert is asked what a mistake costs
    reinforcement: str = "none"  # what follows the imitation, where the expert is ASKED (line 6)

    def list_allowed_components(self, place: str) -> tuple[str, ...]:
        """The pieces that it is defined by, where no others can be chosen; nothing where they can."""
        asked = self.oracles == EXPERT_ORACLE
        closed = {"update": ANY_COMPATIBLE not in self.updates, "oracle": not asked, "reinforcement": not asked}
        names = {"update": self.updates, "oracle": self.oracles, "reinforcement": (self.reinforcement,)}
        return names[place] if closed.get(place) else ()


ALL_ACTIONS = ("all-actions",)
TAKEN_ACTION = ("taken-action",)
ALL_OR_TAKEN_ACTIONS = ("all-actions", "taken-action")
LIKELIHOOD = ("likelihood", "all-actions")
ZERO_ONE_ORACLE = ("zero-one",)
LEARNER_COST_ORACLES = ("reward-to-go", "critic")
EXPONENTIATED_UPDATES = ("exponentiated", "natural", "regular", ANY_COMPATIBLE)
GRADIENT_UPDATES = ("natural", "regular", ANY_COMPATIBLE)
FTL = ("follow-the-leader",)
FTL_OR_REGULAR_UPDATES = (*FTL, "regular", ANY_COMPATIBLE)
REGULAR_OR_FTL_UPDATES = ("regular", *FTL, ANY_COMPATIBLE)
EXPERT_ACTS = {"alpha_start": 1.0, "alpha_decay": 1.0}
DECAYING_ALPHA = {"alpha_start": 1.0, "alpha_schedule": "inverse-sigmoid"}

# fmt: off
METHODS = {  # title, start (line 2), oracles and losses (line 6), updates (line 7)
    "aggrevated": Method("AggreVaTeD", "random", EXPERT_ORACLE, ALL_OR_TAKEN_ACTIONS, EXPONENTIATED_UPDATES),
    "aggrevate": Method("AggreVaTe", "random", EXPERT_ORACLE, ALL_ACTIONS, FTL),
    "dagger": Method("DAgger", "random", ZERO_ONE_ORACLE, LIKELIHOOD, FTL_OR_REGULAR_UPDATES),
    "sl": Method("SL", "random", ZERO_ONE_ORACLE, LIKELIHOOD, FTL_OR_REGULAR_UPDATES, EXPERT_ACTS),
    "reinforce": Method("REINFORCE", "random", LEARNER_COST_ORACLES, TAKEN_ACTION, ("regular",), queries_expert=False),
    "tnpg": Method("TNPG", "random", LEARNER_COST_ORACLES, TAKEN_ACTION, ("natural",), queries_expert=False),
    "sl-rl": Method("SL-RL", "supervised", LEARNER_COST_ORACLES, TAKEN_ACTION, GRADIENT_UPDATES, queries_expert=False),
    "thor": Method("THOR", "random", ("truncated-horizon",), TAKEN_ACTION, GRADIENT_UPDATES),
    "loki": Method("LOKI", "random", EXPERT_ORACLE, TAKEN_ACTION, EXPONENTIATED_UPDATES, reinforcement="critic"),
    # methods of other papers
    "lols": Method("LOLS", "random", ("lols",), ALL_OR_TAKEN_ACTIONS, GRADIENT_UPDATES),
    "searn": Method("SEARN", "random", ("searn",), ALL_ACTIONS, ("searn",)),
    "smile": Method("SMILe", "random", ZERO_ONE_ORACLE, LIKELIHOOD, ("smile",)),
    "scheduled-sampling": Method(
        "Scheduled sampling", "random", ZERO_ONE_ORACLE, LIKELIHOOD, REGULAR_OR_FTL_UPDATES, DECAYING_ALPHA),
}
# fmt: on
ENTRY_POINT_GROUP = "aggrevated.methods"  # of entry points, by which other packages offer rows


def list_method_names() -> list[str]:
    """The names of all methods there are."""
    return [*METHODS, *find_entry_points(ENTRY_POINT_GROUP)]


def find_method(name: str) -> Method:
    """The row of that name, or a `UsageError` that lists them all."""
    if name in METHODS:
        return METHODS[name]
    row = load_entry_point(find_entry_points(ENTRY_POINT_GROUP)[check_known(name, "method", list_method_names())])
    if not isinstance(row, Method):
        raise UsageError(f"the method {name} of an installed package is no Method; mend or remove it")
    return row
