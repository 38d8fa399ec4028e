"""Pages for training, validation and test share no writer and no string."""

import numpy as np
import pytest

from aggrevated.core.errors import AggrevatedError, DataError
from aggrevated.parsing.dataset import compute_features, load_dataset, make_corpus_and_features
from aggrevated.parsing.features.projection import COMPONENTS
from aggrevated.parsing.pages import handwriting
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import compute_uas, parse_batch
from aggrevated.parsing.splits import (
    Split,
    augment_pages,
    exclude_strings,
    load_crohme_split,
    load_evaluation_pages,
    load_page_split,
    split_by_writer,
)
from aggrevated.parsing.transitions.systems import SYSTEMS
from helpers.handwriting import LINES, crohme_like, write_folder


def load_generated_split(sets, seed, single_writer):
    return load_page_split("", sets, seed, single_writer)


def writers(pages):
    return {page.writer for page in pages}


def strings(pages):
    return {"".join(page.symbols) for page in pages}


def bits(pages):
    return [stroke.tobytes() for page in pages for strokes in page.ink for stroke in strokes]


def parts(split):
    return split.train, split.validation, split.test


@pytest.fixture(scope="module")
def all_generated():
    """Return the 400 sets that the experiments use."""
    return load_generated_split(400, 0, single_writer=False)


def test_generated_split_parts_share_no_writer_and_no_string(all_generated):
    hands = [writers(part) for part in parts(all_generated)]
    assert [len(part) for part in parts(all_generated)] == [320, 40, 40]
    assert [len(part) for part in hands] == [32, 4, 4] and len(set.union(*hands)) == 40
    text = [strings(part) for part in parts(all_generated)]
    assert not text[0] & text[1] and not text[0] & text[2] and not text[1] & text[2]


def test_load_page_split_is_deterministic_and_can_use_a_single_writer():
    one = load_generated_split(20, 3, single_writer=True)
    assert len({writer for part in parts(one) for writer in writers(part)}) == 1
    assert (
        bits(one.train)
        == bits(load_generated_split(20, 3, True).train)
        != bits(load_generated_split(20, 4, True).train)
    )
    assert bits(load_page_split("", 20, 3, True).test) == bits(one.test)


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_expert_parses_every_generated_page_exactly(all_generated, system):
    """UAS 1 is possible on every page for both transition systems."""
    pages = [page for part in parts(all_generated) for page in part]
    parser = Parser(Corpus.from_pages(pages), np.arange(400), in_order=True, system=system)
    heads = parse_batch(parser.expert, parser)
    assert compute_uas(heads, parser.gold) == (1.0, 1.0, 1.0)
    for page, found in zip(pages, heads, strict=True):
        assert found[: len(page)].tolist() == page.heads.tolist()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder: twelve writers with a line each and "x=y+1"; two more in dev/, with one known line."""
    path = tmp_path_factory.mktemp("ink")
    common = [("x=y+1", writer) for writer in range(12)]
    write_folder(path / "train", [*zip(LINES, range(12), strict=True), *common])
    write_folder(path / "dev", [("a-1=b", 20), (LINES[0], 21)])
    return path


@pytest.mark.parametrize("seed", [0, 1])
def test_load_crohme_split_parts_share_no_writer_and_no_string(folder, seed):
    split = load_crohme_split(folder, seed)
    assert len(writers(split.validation)) == 1  # a tenth of twelve
    assert not writers(split.train) & writers(split.validation)
    assert not writers(split.test) & (writers(split.train) | writers(split.validation))
    assert strings(split.test) == {"a-1=b", LINES[0]}
    assert not strings(split.train) & (strings(split.validation) | strings(split.test))
    (held,) = writers(split.validation)
    held_out_line = LINES[int(held[1:])]
    assert strings(split.train) == set(LINES) - {held_out_line, LINES[0]}  # all other lines are there
    assert "x=y+1" in strings(split.validation) and LINES[0] not in strings(split.validation)


def test_load_crohme_split_selects_writers_by_seed(folder):
    held = [tuple(writers(load_crohme_split(folder, seed).validation)) for seed in range(5)]
    assert len(set(held)) > 1 and held[0] == tuple(writers(load_crohme_split(folder, 0).validation))


def test_load_crohme_split_divides_a_folder_without_parts(folder):
    split = load_crohme_split(folder / "train", 0)
    hands = [writers(part) for part in parts(split)]
    assert [len(part) for part in hands[1:]] == [1, 1]
    assert not hands[0] & hands[1] and not hands[0] & hands[2] and not hands[1] & hands[2]
    text = [strings(part) for part in parts(split)]
    assert not text[0] & (text[1] | text[2]) and not text[1] & text[2]
    assert len(split.train) == 10  # of ten writers, without the line that all have


def test_load_crohme_split_rejects_a_single_writer(tmp_path):
    write_folder(tmp_path / "ink", [(line, 3) for line in LINES[:4]])
    sentence = r"all 4 expressions are by one writer; give a folder with several, to hold some out"
    with pytest.raises(DataError, match=sentence):
        load_crohme_split(tmp_path / "ink", 0)
    with pytest.raises(DataError, match=sentence):
        split_by_writer([make_page("w", "a=b"), *[make_page("w", "c=d")] * 3], 0)


def test_dataset_rejects_folder_of_identical_strings(tmp_path):
    write_folder(tmp_path / "ink" / "train", [("a=b+c", writer) for writer in range(5)])
    write_folder(tmp_path / "ink" / "dev", [("x=y", 9)])
    with pytest.raises(AggrevatedError):
        load_dataset(str(tmp_path / "ink"), 0, 0, False, 0)


def make_page(writer, line):
    dot = (np.zeros((1, 2)),)
    return Page("page", writer, tuple(line), np.zeros(len(line), int), (dot,) * len(line))


def test_split_by_writer_holds_out_a_tenth_of_the_writers():
    pages = [make_page(f"w{i % 30}", f"{i}=x") for i in range(90)]
    rest, held = split_by_writer(pages, 0)
    assert len(writers(held)) == 3 and len(held) == 9 and len(rest) == 81
    assert rest == [page for page in pages if page.writer not in writers(held)]


def test_exclude_strings_compares_symbol_by_symbol():
    pages = [make_page("a", "1=x"), make_page("a", "x=1"), make_page("b", "1=x")]
    assert exclude_strings(pages, [make_page("c", "1=x")]) == [pages[1]]
    assert exclude_strings(pages, []) == pages


def test_load_evaluation_pages_prefers_the_dev_folder(folder):
    assert strings(load_evaluation_pages(folder)) == {"a-1=b", LINES[0]}
    assert len(load_evaluation_pages(folder / "train")) == 24


def test_augment_pages_changes_ink_but_not_symbols_or_heads():
    split = load_generated_split(20, 0, False)
    pages = split.train
    copies = [augment_pages(split, copy) for copy in (0, 0, 1)]
    assert bits(copies[0]) == bits(copies[1]) != bits(copies[2])
    for page, copy in zip(pages, copies[2], strict=True):
        assert (copy.name, copy.writer, copy.symbols) == (page.name, page.writer, page.symbols)
        assert copy.heads.tolist() == page.heads.tolist()
        assert [[stroke.shape for stroke in strokes] for strokes in copy.ink] == [
            [stroke.shape for stroke in strokes] for strokes in page.ink
        ]
    assert not set(bits(copies[2])) & set(bits(pages))
    height = np.median(np.ptp(pages[0].boxes[:, 1::2], axis=1))
    assert np.abs(copies[2][0].boxes - pages[0].boxes).max() < height  # at the same positions, with the same size
    twins = augment_pages(Split([pages[0], pages[0]], [], []), 0)
    assert not set(bits(twins[:1])) & set(bits(twins[1:]))  # the augmentation of each page is random


def test_augment_pages_composes_single_lines_in_every_other_copy():
    """Lines of one writer only, each used once; the root of the first line heads the other roots."""
    lines = [make_page(f"w{place % 3}", f"{place}=x+{place}") for place in range(10, 40)]
    split = Split(lines, [], [], single_lines=True)
    assert [page.symbols for page in augment_pages(split, 0)] == [page.symbols for page in lines]
    composed = augment_pages(split, 1)
    assert sorted(symbol for page in composed for symbol in page.symbols) == sorted(
        symbol for page in lines for symbol in page.symbols
    )
    assert {len(page) // 7 for page in composed} == {1, 2, 3} and len(composed) < 30
    for page in composed:
        numbers = {int("".join(page.symbols[start : start + 2])) for start in range(0, len(page), 7)}
        assert {f"w{number % 3}" for number in numbers} == {page.writer}
    assert bits(augment_pages(split, 1)) == bits(composed)
    assert [page.symbols for page in augment_pages(split, 3)] != [page.symbols for page in composed]


def test_dataset_has_every_page_in_its_part_with_tree_and_features():
    found = load_dataset("", 20, 5, False, 2)
    split = load_generated_split(20, 5, False)
    assert [len(part) for part in (found.train, found.validation, found.test)] == [3 * 16, 2, 2]
    assert np.concatenate([found.train, found.validation, found.test]).tolist() == list(range(52))
    laid_out = [*split.train, *augment_pages(split, 0), *augment_pages(split, 1), *split.validation, *split.test]
    corpus, features = make_corpus_and_features(laid_out, found.projection)
    np.testing.assert_array_equal(found.corpus.lengths, corpus.lengths)
    np.testing.assert_array_equal(found.corpus.gold, corpus.gold)
    assert found.features.shape == features.shape and found.features.dtype == np.float32
    np.testing.assert_allclose(found.features, features, atol=1e-4)
    assert np.abs(found.features[0] - found.features[16]).max() > 0.1  # a copy is not the page itself
    other = load_dataset("", 20, 5, False, 1)
    assert other.key != found.key and len(other.train) == 32


def test_compute_features_fits_projection_to_training_pages_only():
    """The projection uses original pages only; neither copies nor other parts affect it."""
    split = load_generated_split(20, 5, False)
    alone = compute_features(Split(split.train, split.validation[:1], split.test[:1]), 0)
    found = compute_features(split, 1)
    for name in ("centre", "matrix"):
        assert (found[name] == alone[name]).all()
    train_features = found["features"][: sum(map(len, split.train))]
    assert train_features.shape[1] == COMPONENTS + 8 and train_features.mean(dim=0).abs().max() < 1e-3


def test_dataset_of_real_ink_has_the_expected_parts(tmp_path):
    found = load_dataset(str(crohme_like(tmp_path / "crohme")), 400, 0, False, 1)
    assert [len(part) for part in (found.train, found.validation, found.test)] == [22, 1, 3]  # a line each
    parser = Parser(found.corpus, found.test, in_order=True)
    assert compute_uas(parse_batch(parser.expert, parser), parser.gold)[0] == 1.0


def test_load_page_split_equals_handwriting_generated():
    assert [bits(part) for part in parts(load_generated_split(20, 1, False))] == [
        bits(part) for part in handwriting.generate_page_splits(20, seed=1)
    ]
