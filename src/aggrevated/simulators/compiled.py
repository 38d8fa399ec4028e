"""The simulators that run inside of compiled loops, by number: compiled code cannot take one as an argument."""

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import njit_cached
from aggrevated.simulators import Simulator
from aggrevated.simulators.acrobot import NUMBERS as ACROBOT_NUMBERS
from aggrevated.simulators.acrobot import SEEN as ACROBOT_SEEN
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.acrobot import observe_row as look_at_acrobot
from aggrevated.simulators.acrobot import reset_row as begin_acrobot
from aggrevated.simulators.acrobot import step_row as advance_acrobot
from aggrevated.simulators.cartpole import NUMBERS as CARTPOLE_NUMBERS
from aggrevated.simulators.cartpole import SEEN as CARTPOLE_SEEN
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.cartpole import observe_row as look_at_cartpole
from aggrevated.simulators.cartpole import reset_row as begin_cartpole
from aggrevated.simulators.cartpole import step_row as advance_cartpole
from aggrevated.simulators.partial_observation import ColumnSelection, PartialObservationSimulator

CARTPOLE = 0
ACROBOT = 1


@dataclass(frozen=True)
class CompiledForm:
    """What a compiled loop needs to know of a simulator."""

    number: int
    state: int  # how many numbers a state has
    seen: int  # and what can be seen of it
    columns: Array  # which of these the learner sees


def find_compiled_form(simulator: Simulator) -> CompiledForm | None:
    """That of a simulator which has one. A class derived from it may be another simulator, and has none."""
    if type(simulator) is not PartialObservationSimulator:
        return find_compiled_with_columns(simulator, None)
    view = simulator.view
    if isinstance(view, ColumnSelection) and view.simulator is simulator.simulator:
        return find_compiled_with_columns(view.simulator, np.array(view.columns))
    return None


def find_compiled_with_columns(simulator: Simulator, columns: Array | None) -> CompiledForm | None:
    """The same, of which the learner sees these columns; None: all."""
    if type(simulator) is CartPole:
        return CompiledForm(
            CARTPOLE, CARTPOLE_NUMBERS, CARTPOLE_SEEN, np.arange(CARTPOLE_SEEN) if columns is None else columns
        )
    if type(simulator) is Acrobot:
        return CompiledForm(
            ACROBOT, ACROBOT_NUMBERS, ACROBOT_SEEN, np.arange(ACROBOT_SEEN) if columns is None else columns
        )
    return None


@njit_cached
def reset_row(simulator, seed, state):  # type: ignore[no-untyped-def]
    """Write the first state of the episode with this seed."""
    if simulator == CARTPOLE:
        begin_cartpole(seed, state)
    else:
        begin_acrobot(seed, state)


@njit_cached
def observe_row(simulator, state, observation):  # type: ignore[no-untyped-def]
    """Write all that can be seen of a state."""
    if simulator == CARTPOLE:
        look_at_cartpole(state, observation)
    else:
        look_at_acrobot(state, observation)


@njit_cached
def step_row(simulator, state, action):  # type: ignore[no-untyped-def]
    """Change the state to the next one: (its cost, whether the episode has ended)."""
    if simulator == CARTPOLE:
        return -1.0, advance_cartpole(state, action)
    done = advance_acrobot(state, action)
    return 0.0 if done else 1.0, done
