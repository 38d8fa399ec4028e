from hashlib import sha256

import numpy as np
import pytest

from aggrevated.core.errors import DataError, UsageError
from aggrevated.parsing.pages.algebra import parse_heads
from aggrevated.parsing.pages.exercises import SYMBOLS
from aggrevated.parsing.pages.handwriting import (
    TEMPLATES,
    _sample_distinct_sets,
    generate_page_splits,
    write_page,
    write_symbol,
)
from helpers.handwriting import is_projective

LINES = ["10(x+2)=a+b", "c×d=e/4", "x=3"]


def bits(page):
    return b"".join(stroke.tobytes() for strokes in page.ink for stroke in strokes)


def test_templates_cover_every_symbol_and_vary_common_ones():
    assert set(TEMPLATES) == set(SYMBOLS)
    assert all(len(TEMPLATES[symbol]) >= 2 for symbol in "1479xaz+×")


def test_write_page_keeps_symbols_and_heads():
    page = write_page(LINES, writer=3, seed=5)
    assert page.symbols == tuple("".join(LINES)) and page.heads.tolist() == parse_heads(LINES).tolist()
    assert all(stroke.ndim == 2 and stroke.shape[1] == 2 and len(stroke) > 1 for s in page.ink for stroke in s)
    assert all(np.isfinite(stroke).all() for strokes in page.ink for stroke in strokes)


def test_write_page_is_deterministic_per_seed_and_writer():
    page = write_page(LINES, 3, 5)
    assert bits(page) == bits(write_page(LINES, 3, 5))
    assert bits(page) != bits(write_page(LINES, 3, 6)) and bits(page) != bits(write_page(LINES, 4, 5))


@pytest.mark.parametrize("writer", range(12))
def test_write_page_boxes_follow_reading_order_without_overlap(writer):
    page = write_page(LINES, writer, 0)
    start = 0
    above = -np.inf
    for line in LINES:
        boxes = page.boxes[start : start + len(line)]
        start += len(line)
        assert (boxes[1:, 0] > boxes[:-1, 2]).all()  # each symbol begins to the right of the end of the previous one
        assert (boxes >= 0).all()
        assert np.median(boxes[:, 1]) > above
        above = np.median(boxes[:, 3])


def test_write_page_varies_more_between_writers_than_within_one():
    def height(writer, seed):
        return np.median(np.ptp(write_page(LINES, writer, seed).boxes[:, 1::2], axis=1))

    within = np.std([[height(w, s) for s in range(4)] for w in range(8)], axis=1).mean()
    assert np.std([height(w, 0) for w in range(8)]) > 3 * within


def test_write_symbol_error_names_unknown_symbol():
    with pytest.raises(DataError, match="'Q'"):
        write_symbol("Q", 0, np.random.default_rng(0))


@pytest.fixture(scope="module")
def disjoint():
    return generate_page_splits(sets=100, writers=20, seed=1)


def strings(pages):
    return {"".join(page.symbols) for page in pages}


def test_generated_splits_80_10_10_with_disjoint_writers_and_strings(disjoint):
    train, validation, test = disjoint
    assert [len(part) for part in disjoint] == [80, 10, 10]
    writers = [{page.writer for page in part} for part in disjoint]
    assert [len(part) for part in writers] == [16, 2, 2] and len(set.union(*writers)) == 20
    assert not strings(train) & (strings(validation) | strings(test)) and not strings(validation) & strings(test)
    assert all(is_projective(page.heads) for part in disjoint for page in part)


def test_generated_with_single_writer_uses_one_writer():
    pages = [page for part in generate_page_splits(sets=20, seed=1, single_writer=True) for page in part]
    assert len(pages) == 20 and len({page.writer for page in pages}) == 1


def test_generated_is_bit_identical_per_seed(disjoint):
    repeated = generate_page_splits(sets=100, writers=20, seed=1)
    assert [[bits(page) for page in part] for part in repeated] == [[bits(page) for page in part] for part in disjoint]
    other = generate_page_splits(sets=100, writers=20, seed=2)
    assert strings(other[0]) != strings(disjoint[0])


def digest(pages):
    """Return the digest of all pages in thousandths of a pixel, since the last bits depend on the machine."""
    sha = sha256()
    for page in pages:
        sha.update(repr((page.name, page.writer, page.symbols, page.heads.tolist())).encode())
        for strokes in page.ink:
            sha.update(repr([np.rint(1000 * stroke).astype(int).tolist() for stroke in strokes]).encode())
    return sha.hexdigest()


def test_generated_pages_of_table_1_have_known_digests():
    assert [digest(part)[:16] for part in generate_page_splits()] == [
        "18d1d290f6ff503c",
        "d9b18db7df949334",
        "65fa2688ffc4d4de",
    ]


def test_generated_rejects_too_few_sets_or_writers():
    with pytest.raises(UsageError, match="at least 10 sets"):
        generate_page_splits(sets=5)
    with pytest.raises(UsageError, match="3 writers"):
        generate_page_splits(sets=50, writers=2)


def test_different_sets_share_no_long_line():
    sets = _sample_distinct_sets(200, np.random.default_rng(0))
    long = [line for lines in sets for line in set(lines) if len(line) > 5]
    assert len(long) == len(set(long)) and len({tuple(lines) for lines in sets}) == 200
