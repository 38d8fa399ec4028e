"""The contract of simulators for the simulators of the studies."""

import pytest

from aggrevated_experiments.where_it_pays.simulators.keys import Keys, MaskedKeys
from aggrevated_experiments.where_it_pays.simulators.packing import Packing
from helpers.simulator_contract import SimulatorContract

SIMULATORS = [Keys(horizon=40), MaskedKeys(horizon=40), Packing()]


@pytest.mark.parametrize("simulator", SIMULATORS, ids=lambda simulator: simulator.name)
class TestStudySimulators(SimulatorContract):
    """Contract of simulators for the simulators of the studies."""
