"""Pages of docs/results: a short trial of each, run again, has the published bits."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from aggrevated.core.hardware import single_thread
from aggrevated.kernels.numerics import compute_numerics_fingerprint, describe_numerics_difference
from aggrevated.reports import digest_numbers
from aggrevated_experiments.figures import find_figure, fingerprint_short_run

RESULTS = Path(__file__).parents[3] / "docs/results"
sys.path.append(str(RESULTS.parents[1] / "benchmarks"))


def load_published_pages() -> dict[str, Any]:
    """Return the numbers of the pages that have a digest."""
    pages = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    return {name: page for name, page in pages.items() if isinstance(page, dict) and "bits" in page}


def list_pages_with_short_trials() -> list[str]:
    return [name for name, page in load_published_pages().items() if page.get("short")]


def test_every_results_page_with_runs_has_a_short_trial() -> None:
    from results import PAGES, PARTS, WITHOUT_RUNS

    without = {*WITHOUT_RUNS, "parsing-curves", *(part for parts in PARTS.values() for part in parts)}
    assert set(list_pages_with_short_trials()) == {name for name in load_published_pages() if name in PAGES} - without


@pytest.mark.parametrize("name", list_pages_with_short_trials())
def test_fingerprint_short_run_equals_the_published_one(name: str) -> None:
    page = load_published_pages()[name]
    if other := describe_numerics_difference(page["machine"]["numerics"], compute_numerics_fingerprint()):
        pytest.skip(f"the page was made with {other}: bits are not promised to be the same here")
    with single_thread():
        assert fingerprint_short_run(find_figure(name)) == page["short"]


@pytest.mark.parametrize("name", load_published_pages())
def test_digest_numbers_equals_the_published_digest(name: str) -> None:
    page = load_published_pages()[name]
    assert digest_numbers(page) == page["bits"] and page["machine"]["cores"]


def test_digest_numbers_ignores_seconds_and_machines() -> None:
    page = {"ratio": 1.25, "trials": [{"cpu_seconds": 3.0, "steps": 5}], "machine": {"cores": 2}}
    slow = {"ratio": 1.25, "trials": [{"cpu_seconds": 4.0, "steps": 5}], "machine": {"cores": 64}, "bits": "x"}
    other = {"ratio": 1.25, "trials": [{"cpu_seconds": 3.0, "steps": 6}]}
    assert digest_numbers(page) == digest_numbers(slow) != digest_numbers(other)


def test_every_results_page_has_a_figure_and_fits_its_time_budget() -> None:
    from results import ALL, MOST, PAGES

    assert all(find_figure(name) for name in PAGES)
    assert max(page.minutes for page in PAGES.values()) <= MOST
    assert sum(page.minutes for page in PAGES.values()) <= ALL
