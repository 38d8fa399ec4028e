"""Simulators for tests of experts, and some of their states."""

import numpy as np
import pytest

from helpers.line_simulator import line, pushed


@pytest.fixture(scope="module")
def simulator():
    return line()


@pytest.fixture(scope="module")
def push_simulator():
    return pushed()


@pytest.fixture
def states(simulator):
    return simulator.reset(np.arange(12, dtype=np.uint64))


@pytest.fixture
def places(simulator, states):
    """Return the position of each state, [12]."""
    return simulator.observe(states)[:, 0]
