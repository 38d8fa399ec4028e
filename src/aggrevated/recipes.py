"""The methods of the paper as rows: the start, what a mistake costs, the gradient, the update. One loop for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from aggrevated.cost_to_go import Oracle
from aggrevated.cost_to_go.advantage import Advantage, Taken
from aggrevated.cost_to_go.disagreement import disagreement
from aggrevated.cost_to_go.monte_carlo import MonteCarlo
from aggrevated.cost_to_go.q_star import QStar
from aggrevated.cost_to_go.realised import Realised
from aggrevated.cost_to_go.value_function import ValueFunction
from aggrevated.losses import Loss
from aggrevated.losses.all_actions import all_actions
from aggrevated.losses.likelihood import likelihood
from aggrevated.losses.taken_action import taken_action
from aggrevated.simulators import Simulator
from aggrevated.updates.solvers import closed_form, conjugate_gradient

if TYPE_CHECKING:
    from aggrevated.runs.config import Config

OracleMaker = Callable[["Config", Any, Simulator], Oracle]  # from the settings, the expert and the simulator


@dataclass(frozen=True)
class Method:
    """One row of the table below."""

    title: str
    start: str  # "random" or "supervised", unless the user or the task says otherwise (line 2)
    cost_to_go: OracleMaker  # (line 6)
    gradients: tuple[str, ...]  # those that fit its cost-to-go, the usual one first (line 6)
    updates: tuple[str, ...]  # likewise (line 7)
    mixing: float = 0.0  # α, unless the user says otherwise (line 4)
    imitates: bool = True  # whether the expert is asked what a mistake costs


def cost_of_mistakes(config: Config, expert: Any, simulator: Simulator) -> Oracle:
    """Q*, from the expert in the way that the task or the user chose."""
    return ORACLES[config.oracle](config, expert, simulator)


def q_function(config: Config, expert: Any, simulator: Simulator) -> Oracle:
    """Q* of every action, from an expert that knows it; or of the action taken only, if the gradient wants no more."""
    oracle = less_baseline(config, QStar(expert))
    return Taken(oracle) if config.gradient == "taken-action" else oracle


def monte_carlo(config: Config, expert: Any, simulator: Simulator) -> Oracle:
    """Q* of the action taken, by rolling the expert out."""
    return MonteCarlo(simulator, expert, config.queried_steps or None, config.rollouts, config.advantage)


def value_function(config: Config, expert: Any, simulator: Simulator) -> Oracle:
    """Q* of the action taken, from the expert's critic."""
    return ValueFunction(expert, config.advantage)


def mistakes(config: Config, expert: Any, simulator: Simulator) -> Oracle:
    """What the expert would have done."""
    return disagreement(expert, simulator.action_space)


def own_costs(config: Config, expert: Any, simulator: Simulator) -> Oracle:
    """What the learner itself paid; the expert is not asked."""
    return less_baseline(config, Realised())


def less_baseline(config: Config, oracle: Oracle) -> Oracle:
    """The oracle, in its variance-reduced form if that was asked for."""
    return Advantage(oracle) if config.advantage else oracle


ORACLES: dict[str, OracleMaker] = {
    "q-network": q_function,
    "monte-carlo": monte_carlo,
    "value-function": value_function,
    "gold": q_function,
}

# fmt: off
ALL, TAKEN, ANY = ("all-actions",), ("taken-action",), ("all-actions", "taken-action")
LIKELY = ("likelihood", "all-actions")
BOTH, LEADER = ("natural", "regular"), ("follow-the-leader",)
FITS = (*LEADER, "regular", "support-vectors")
METHODS = {  #           title         start         cost-to-go        gradient updates
    "aggrevated": Method("AggreVaTeD", "random",     cost_of_mistakes, ANY,     BOTH),
    "aggrevate":  Method("AggreVaTe",  "random",     cost_of_mistakes, ALL,     LEADER),
    "dagger":     Method("DAgger",     "random",     mistakes,         LIKELY,  FITS),
    "sl":         Method("SL",         "random",     mistakes,         LIKELY,  FITS, mixing=1.0),
    "reinforce":  Method("REINFORCE",  "random",     own_costs,        TAKEN,   ("regular",), imitates=False),
    "tnpg":       Method("TNPG",       "random",     own_costs,        TAKEN,   ("natural",), imitates=False),
    "sl-rl":      Method("SL-RL",      "supervised", own_costs,        TAKEN,   BOTH, imitates=False),
}
# fmt: on

GRADIENTS: dict[str, Loss] = {"all-actions": all_actions, "taken-action": taken_action, "likelihood": likelihood}
SOLVERS = {"closed-form": closed_form, "conjugate-gradient": conjugate_gradient}
OPTIMISERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
