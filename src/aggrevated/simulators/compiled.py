"""Simulators that run inside compiled loops, by number, since compiled code cannot take objects."""

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import njit_cached
from aggrevated.simulators import Simulator
from aggrevated.simulators.acrobot import NUMBERS as ACROBOT_NUMBERS
from aggrevated.simulators.acrobot import SEEN as ACROBOT_SEEN
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.acrobot import observe_row as observe_acrobot
from aggrevated.simulators.acrobot import reset_row as reset_acrobot
from aggrevated.simulators.acrobot import step_row as step_acrobot
from aggrevated.simulators.cartpole import NUMBERS as CARTPOLE_NUMBERS
from aggrevated.simulators.cartpole import SEEN as CARTPOLE_SEEN
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.cartpole import observe_row as observe_cartpole
from aggrevated.simulators.cartpole import reset_row as reset_cartpole
from aggrevated.simulators.cartpole import step_row as step_cartpole
from aggrevated.simulators.partial_observation import ColumnSelection, PartialObservationSimulator

CARTPOLE = 0
ACROBOT = 1


@dataclass(frozen=True)
class CompiledForm:
    """A simulator as a compiled loop takes it."""

    number: int
    state: int  # size of a state
    width: int  # size of an observation before columns are selected
    columns: Array  # indices of the columns that the learner observes


def find_compiled_form(simulator: Simulator) -> CompiledForm | None:
    """Return the compiled form of a simulator, or None where it has none.

    A subclass of CartPole or Acrobot may behave otherwise and has no compiled form.
    """
    if type(simulator) is not PartialObservationSimulator:
        return find_compiled_with_columns(simulator, None)
    view = simulator.view
    if isinstance(view, ColumnSelection) and view.simulator is simulator.simulator:
        return find_compiled_with_columns(view.simulator, np.array(view.columns))
    return None


def find_compiled_with_columns(simulator: Simulator, columns: Array | None) -> CompiledForm | None:
    """Return the compiled form with these observed columns (None: all), or None for other simulators."""
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
        reset_cartpole(seed, state)
    else:
        reset_acrobot(seed, state)


@njit_cached
def observe_row(simulator, state, observation):  # type: ignore[no-untyped-def]
    """Write the full observation of a state."""
    if simulator == CARTPOLE:
        observe_cartpole(state, observation)
    else:
        observe_acrobot(state, observation)


@njit_cached
def step_row(simulator, state, action):  # type: ignore[no-untyped-def]
    """Overwrite a state with the next one and return (cost, whether the episode has ended)."""
    if simulator == CARTPOLE:
        return -1.0, step_cartpole(state, action)
    done = step_acrobot(state, action)
    return 0.0 if done else 1.0, done
