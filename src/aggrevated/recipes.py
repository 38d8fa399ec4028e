"""The methods of the paper as rows: the start, what a mistake costs, the gradient, the update. One loop for all."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from aggrevated.cost_to_go import Oracle
from aggrevated.cost_to_go.disagreement import Disagreement
from aggrevated.cost_to_go.q_star import QStar
from aggrevated.cost_to_go.realised import Realised
from aggrevated.experts import ValueExpert
from aggrevated.gradients import Loss
from aggrevated.gradients.all_actions import all_actions
from aggrevated.gradients.likelihood import likelihood
from aggrevated.gradients.taken_action import taken_action
from aggrevated.updates.solvers import closed_form, conjugate_gradient


@dataclass(frozen=True)
class Method:
    """One row of the table below."""

    title: str
    start: str  # "random" or "supervised" (line 2)
    cost_to_go: Callable[[ValueExpert, int], Oracle]  # from the expert and the number of actions (line 6)
    gradients: tuple[str, ...]  # those that fit its cost-to-go, the usual one first (line 6)
    updates: tuple[str, ...]  # likewise (line 7)
    mixing: float = 0.0  # α, unless the user says otherwise (line 4)


def q_star(expert: ValueExpert, actions: int) -> Oracle:
    """Q*, from the expert."""
    return QStar(expert)


def own_costs(expert: ValueExpert, actions: int) -> Oracle:
    """What the learner itself paid; the expert is not asked."""
    return Realised()


# fmt: off
ALL, TAKEN, ANY = ("all-actions",), ("taken-action",), ("all-actions", "taken-action")
LIKELY = ("likelihood", "all-actions")
BOTH, LEADER = ("natural", "regular"), ("follow-the-leader",)
METHODS = {  #           title         start         cost-to-go    gradient updates
    "aggrevated": Method("AggreVaTeD", "random",     q_star,       ANY,     BOTH),
    "aggrevate":  Method("AggreVaTe",  "random",     q_star,       ALL,     LEADER),
    "dagger":     Method("DAgger",     "random",     Disagreement, LIKELY,  LEADER),
    "sl":         Method("SL",         "random",     Disagreement, LIKELY,  LEADER, mixing=1.0),
    "reinforce":  Method("REINFORCE",  "random",     own_costs,    TAKEN,   ("regular",)),
    "tnpg":       Method("TNPG",       "random",     own_costs,    TAKEN,   ("natural",)),
    "sl-rl":      Method("SL-RL",      "supervised", own_costs,    TAKEN,   BOTH),
}
# fmt: on

GRADIENTS: dict[str, Loss] = {"all-actions": all_actions, "taken-action": taken_action, "likelihood": likelihood}
SOLVERS = {"closed-form": closed_form, "conjugate-gradient": conjugate_gradient}
OPTIMISERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
