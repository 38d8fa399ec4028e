"""The methods of the paper as rows: where they start, what a mistake costs, which gradient, which update. One loop for all."""

from collections.abc import Callable
from dataclasses import dataclass

from aggrevated.cost_to_go import Oracle
from aggrevated.cost_to_go.advantage import Advantage
from aggrevated.cost_to_go.disagreement import Disagreement
from aggrevated.cost_to_go.q_star import QStar
from aggrevated.cost_to_go.realised import realised
from aggrevated.experts import ValueExpert
from aggrevated.gradients import Loss
from aggrevated.gradients.all_actions import all_actions
from aggrevated.gradients.likelihood import likelihood
from aggrevated.gradients.taken_action import taken_action


@dataclass(frozen=True)
class Method:
    """One row of the table."""

    title: str
    start: str  # "random" or "supervised" (line 2)
    cost_to_go: Callable[[ValueExpert, int], Oracle]  # from the expert and the number of actions (line 6)
    loss: Loss  # (line 6)
    updates: tuple[str, ...]  # those it can use, the usual one first (line 7)
    mixing: float = 0.0  # α, unless the user says otherwise (line 4)


def q_star(expert: ValueExpert, actions: int) -> Oracle:
    return QStar(expert)


def own_costs(expert: ValueExpert, actions: int) -> Oracle:
    return realised


LEADER = ("follow-the-leader",)

# fmt: off
METHODS = {
    "aggrevated": Method("AggreVaTeD", "random",     q_star,       all_actions,  ("natural", "regular")),
    "aggrevate":  Method("AggreVaTe",  "random",     q_star,       all_actions,  LEADER),
    "dagger":     Method("DAgger",     "random",     Disagreement, likelihood,   LEADER),
    "sl":         Method("SL",         "random",     Disagreement, likelihood,   LEADER, mixing=1.0),
    "reinforce":  Method("REINFORCE",  "random",     own_costs,    taken_action, ("regular",)),
    "tnpg":       Method("TNPG",       "random",     own_costs,    taken_action, ("natural",)),
    "sl-rl":      Method("SL-RL",      "supervised", own_costs,    taken_action, ("natural", "regular")),
}
# fmt: on
