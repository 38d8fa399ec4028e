"""Engines under test; the Ray engine starts slowly, so all tests share one, and they are skipped without Ray."""

from importlib.util import find_spec

import pytest

from aggrevated.engines import InProcessEngine
from aggrevated.engines.processes import ProcessEngine

NO_RAY = "Ray is not installed: pip install 'aggrevated[ray]'"


@pytest.fixture(scope="session")
def ray_engine():
    if find_spec("ray") is None:
        pytest.skip(NO_RAY)
    from aggrevated.engines.ray import RayEngine

    with RayEngine(2) as engine:
        yield engine


@pytest.fixture(params=["in-process", "processes", "ray"])
def engine(request):
    if request.param == "ray":
        yield request.getfixturevalue("ray_engine")
    else:
        with InProcessEngine() if request.param == "in-process" else ProcessEngine(2) as started_engine:
            yield started_engine
