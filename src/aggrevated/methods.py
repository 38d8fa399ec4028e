"""Methods of the paper and later ones: combinations of start, oracle, loss and update for one loop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aggrevated.core.errors import UsageError
from aggrevated.core.registry import find_entry_points, load_entry_point
from aggrevated.core.settings import check_known

EXPERT_ORACLE = ("asked",)  # any oracle of Q* that the task's expert supports
ANY_COMPATIBLE = "others"  # among updates: any other compatible one


@dataclass(frozen=True)
class Method:
    """A method as a combination of components of Algorithm 1; options can select other compatible ones.

    Attributes:
        title: name in figures and tables.
        start: how the policy starts (line 2).
        oracles: oracles, the default first; or EXPERT_ORACLE (line 6).
        losses: losses by preference; the first that fits the oracle is the default (line 6).
        updates: updates, the default first (line 7).
        settings: settings whose defaults differ from the components' defaults.
        queries_expert: whether the expert is queried for costs.
        reinforcement: reinforcement that follows imitation, with EXPERT_ORACLE only (line 6).
    """

    title: str
    start: str
    oracles: tuple[str, ...]
    losses: tuple[str, ...]
    updates: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    queries_expert: bool = True
    reinforcement: str = "none"

    def list_allowed_components(self, slot: str) -> tuple[str, ...]:
        """List the components that define the method in a slot.

        Args:
            slot: slot of a config, such as "update".

        Returns:
            The only allowed names, or an empty tuple if any compatible component is allowed.
        """
        closed = self.oracles != EXPERT_ORACLE
        is_fixed = {"update": ANY_COMPATIBLE not in self.updates, "oracle": closed, "reinforcement": closed}
        names = {"update": self.updates, "oracle": self.oracles, "reinforcement": (self.reinforcement,)}
        return names[slot] if is_fixed.get(slot) else ()


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
ENTRY_POINT_GROUP = "aggrevated.methods"  # entry points of other packages' methods


def list_method_names() -> list[str]:
    """Return the names of all methods."""
    return [*METHODS, *find_entry_points(ENTRY_POINT_GROUP)]


def find_method(name: str) -> Method:
    """Return the method of that name, or raise a `UsageError` that lists all names."""
    if name in METHODS:
        return METHODS[name]
    loaded = load_entry_point(find_entry_points(ENTRY_POINT_GROUP)[check_known(name, "method", list_method_names())])
    if not isinstance(loaded, Method):
        raise UsageError(f"the method {name} of an installed package is not a Method; fix or uninstall it")
    return loaded
