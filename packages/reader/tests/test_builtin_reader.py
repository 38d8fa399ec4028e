"""The builtin reader: small, with a card, and as accurate as the card states."""

import pytest

from aggrevated.core.hardware import single_thread
from aggrevated_reader.page_reader import BUILTIN_READER_FILE, LoadedReader
from aggrevated_reader.pages.generated import generate_pages
from aggrevated_reader.reader_problem import evaluate_reader


@pytest.fixture(scope="module")
def reader():
    return LoadedReader.load()


def test_builtin_reader_is_small_and_has_metadata(reader):
    assert BUILTIN_READER_FILE.stat().st_size < 5_000_000
    assert (
        reader.metadata["command"].startswith("aggrevated train reader") and "crohme" not in reader.metadata["command"]
    )
    assert 0.85 < reader.metadata["test_return"] <= 1 and len(reader.policy.classes) > 90


def test_builtin_reader_reads_unseen_pages(reader):
    """The standard error of a hundred pages is about .015: the bound is four of them below the value of 500 pages."""
    with single_thread():
        found = evaluate_reader(reader.policy, generate_pages(100, seed=424_242))
    assert found["uas_micro"] > 0.85 and found["names"] > 0.88 and found["calibration_error"] < 0.06
    assert found["expected_loss"] == pytest.approx(found["loss"], rel=0.4)


def test_builtin_reader_confident_arcs_are_right_more_often(reader):
    pages = generate_pages(100, seed=424_243)
    right = []
    sure = []
    for page, found in zip(pages, reader.read(pages), strict=True):
        right += (found.heads == page.heads).tolist()
        sure += found.arc_confidence.tolist()
    doubtful = [good for good, how in zip(right, sure, strict=True) if how < 0.7]
    certain = [good for good, how in zip(right, sure, strict=True) if how >= 0.9]
    assert sum(certain) / len(certain) > 0.93 and sum(doubtful) / len(doubtful) < 0.75 and len(doubtful) > 20
