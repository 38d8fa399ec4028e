"""Simulators for experts of all kinds."""

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
    """[12] where they are."""
    return simulator.observe(states)[:, 0]
