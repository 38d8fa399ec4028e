"""The simulators that run inside of compiled loops, by number: compiled code cannot take one as an argument."""

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import compiled
from aggrevated.simulators import Simulator
from aggrevated.simulators.acrobot import NUMBERS as ACROBOT_NUMBERS
from aggrevated.simulators.acrobot import SEEN as ACROBOT_SEEN
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.acrobot import advance as advance_acrobot
from aggrevated.simulators.acrobot import begin as begin_acrobot
from aggrevated.simulators.acrobot import look as look_at_acrobot
from aggrevated.simulators.cartpole import NUMBERS as CARTPOLE_NUMBERS
from aggrevated.simulators.cartpole import SEEN as CARTPOLE_SEEN
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.cartpole import advance as advance_cartpole
from aggrevated.simulators.cartpole import begin as begin_cartpole
from aggrevated.simulators.cartpole import look as look_at_cartpole
from aggrevated.simulators.partial_observation import Columns, Partial

CARTPOLE, ACROBOT = 0, 1


@dataclass(frozen=True)
class Compiled:
    """What a compiled loop needs to know of a simulator."""

    number: int
    state: int  # how many numbers a state has
    seen: int  # and what can be seen of it
    columns: Array  # which of these the learner sees


def compiled_form(simulator: Simulator) -> Compiled | None:
    """That of a simulator which has one. A class derived from it may be another simulator, and has none."""
    if type(simulator) is not Partial:
        return found(simulator, None)
    view = simulator.view
    if isinstance(view, Columns) and view.simulator is simulator.simulator:
        return found(view.simulator, np.array(view.columns))
    return None


def found(simulator: Simulator, columns: Array | None) -> Compiled | None:
    """The same, of which the learner sees these columns; None: all."""
    if type(simulator) is CartPole:
        return Compiled(
            CARTPOLE, CARTPOLE_NUMBERS, CARTPOLE_SEEN, np.arange(CARTPOLE_SEEN) if columns is None else columns
        )
    if type(simulator) is Acrobot:
        return Compiled(ACROBOT, ACROBOT_NUMBERS, ACROBOT_SEEN, np.arange(ACROBOT_SEEN) if columns is None else columns)
    return None


@compiled
def begin(simulator, seed, state):  # type: ignore[no-untyped-def]
    """Write the first state of the episode with this seed."""
    if simulator == CARTPOLE:
        begin_cartpole(seed, state)
    else:
        begin_acrobot(seed, state)


@compiled
def look(simulator, state, observation):  # type: ignore[no-untyped-def]
    """Write all that can be seen of a state."""
    if simulator == CARTPOLE:
        look_at_cartpole(state, observation)
    else:
        look_at_acrobot(state, observation)


@compiled
def advance(simulator, state, action):  # type: ignore[no-untyped-def]
    """Change the state to the next one: (its cost, whether the episode has ended)."""
    if simulator == CARTPOLE:
        return -1.0, advance_cartpole(state, action)
    done = advance_acrobot(state, action)
    return 0.0 if done else 1.0, done
