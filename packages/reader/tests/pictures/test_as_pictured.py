"""Ink after drawing and tracing: close to the original, symbol by symbol, and deterministic per generator."""

import time

import numpy as np

from aggrevated.parsing.features.crops import draw_crops
from aggrevated.parsing.pages.handwriting import generate_page_splits, write_page
from aggrevated.parsing.pages.page import Page
from aggrevated_reader.pictures.rasterize_roundtrip import rasterize_and_trace

PAGES = [page for part in generate_page_splits(20, 5, seed=8) for page in part]


def test_rasterize_and_trace_keeps_symbol_positions() -> None:
    for seed, page in enumerate(PAGES):
        seen = rasterize_and_trace(page, np.random.default_rng(seed))
        size = np.ptp(page.boxes.reshape(-1, 2, 2), axis=1)
        unit = np.median(size.max(axis=1))
        assert seen.symbols == page.symbols and (seen.heads == page.heads).all()
        assert np.abs(seen.boxes - page.boxes).max() < 0.2 * unit  # a pen of 9 pixels for symbols of 40 is 0.225 wide


def test_rasterize_and_trace_gives_similar_but_different_ink() -> None:
    likeness = []
    for seed, page in enumerate(PAGES):
        seen, meant = (
            draw_crops(ink) / 255.0 for ink in (rasterize_and_trace(page, np.random.default_rng(seed)).ink, page.ink)
        )
        likeness += [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(seen, meant, strict=True)]
    assert 0.75 < np.mean(likeness) < 0.99


def test_rasterize_and_trace_is_deterministic_per_seed() -> None:
    page = PAGES[0]
    first, again, other = (rasterize_and_trace(page, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert np.array_equal(draw_crops(first.ink), draw_crops(again.ink)) and np.array_equal(first.boxes, again.boxes)
    assert not np.array_equal(first.boxes, other.boxes)


def test_rasterize_and_trace_handles_empty_pages_and_dots() -> None:
    generator = np.random.default_rng(0)
    empty = Page("", "", (), np.zeros(0, np.int64), ())
    assert rasterize_and_trace(empty, generator) is empty
    dot = (np.array([[5.0, 5.0]]),)
    rule = (np.array([[0.0, 0.0], [9e4, 0.0]]),)
    seen = rasterize_and_trace(Page("", "", ("·", "―", "·"), np.zeros(3, np.int64), (dot, rule, dot)), generator)
    assert np.isfinite(seen.boxes).all() and len(seen) == 3


def test_rasterize_and_trace_is_fast() -> None:
    page = write_page(["10(x+2)=a+b", "c×d=e/4"], writer=4, seed=1)
    rasterize_and_trace(page, np.random.default_rng(0))
    began = time.process_time()
    for seed in range(20):
        rasterize_and_trace(page, np.random.default_rng(seed))
    assert 20 * len(page) / (time.process_time() - began) > 500  # about 2,000 on an idle machine
