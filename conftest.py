"""Every test is repeatable: one thread, the same draws whatever ran before it, and nobody's cache is used."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None, max_examples=50)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Features of pages are kept in a folder of the tests' own, never in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGGREVATED_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def same_draws() -> None:
    """A policy made without a generator of its own does not depend on the tests that ran before in this process."""
    torch.manual_seed(0)
