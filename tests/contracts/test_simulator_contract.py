"""The contract of simulators, for the simulators of the library."""

import numpy as np
import pytest
from gymnasium.spaces import Box

from aggrevated.parsing.parser import Parser
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.mujoco import ROBOTS, MuJoCo
from aggrevated.simulators.partial_observation import PartialObservationSimulator
from aggrevated.simulators.tabular import TabularSimulator, make_random_mdps
from aggrevated.tasks.acrobot_partial import make_partial_acrobot
from helpers.parser_policies import corpus
from helpers.simulator_contract import SimulatorContract
from helpers.tiny_mdp import TinyMdp, Walk


def only_the_time(state):
    return (state[:, 1:2] / 3).astype(np.float32)


SIMULATORS = [CartPole(horizon=40), Acrobot(horizon=40), TinyMdp(), make_partial_acrobot(40), Walk()]
SIMULATORS.append(TabularSimulator(*(array[0] for array in make_random_mdps(1, 4, 3, 0)), horizon=9))
SIMULATORS.append(PartialObservationSimulator(TinyMdp(), only_the_time, Box(0.0, 1.0, (1,)), "tiny, only the time"))
SIMULATORS += [MuJoCo(name, 40, threads=2) for name in ROBOTS]
SIMULATORS += [Parser(corpus(most=12), np.arange(5, 30), system=s, name=s.name) for s in SYSTEMS.values()]


@pytest.mark.parametrize("simulator", SIMULATORS, ids=lambda simulator: simulator.name)
class TestLibrarySimulators(SimulatorContract):
    """The contract, for every simulator of the library."""
