"""Page readers: pages in, readings out, and a file with metadata."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from aggrevated import storage
from aggrevated.core.errors import DataError
from aggrevated.parsing.features.symbols import extract_detailed_features
from aggrevated.parsing.pages.handwriting import write_page
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated_reader.learners.reading_policy import ReadingPolicy, fit_projection
from aggrevated_reader.page_reader import LoadedReader, attach_headless_to_root

PAGES = [write_page([line], writer, 0) for writer, line in enumerate(["x=3", "10(x+2)=a+b", "c×d=e", "5"])]


@pytest.fixture(scope="module")
def reader():
    """An untrained reader."""
    policy = ReadingPolicy(fit_projection(PAGES), SYSTEMS["arc-eager"], hidden=16, embedding=12, seed=3)
    policy.readout.weight.data *= 30
    policy.metadata = {"made": "by a test"}
    return LoadedReader(policy.with_names(("(", ")", "+", "=", "x")))


def is_same_reading(one, other):
    return (one.labels, one.text, one.heads.tolist(), one.strokes) == (
        other.labels,
        other.text,
        other.heads.tolist(),
        other.strokes,
    )


def test_loaded_reader_gives_label_head_and_line_of_every_symbol(reader):
    for page, found in zip(PAGES, reader.read(PAGES), strict=True):
        n = len(page)
        assert len(found.labels) == len(found.lines) == len(found.strokes) == n and found.symbols == page.symbols
        assert {*found.labels} <= {"(", ")", "+", "=", "x"}
        assert ((found.heads >= 0) & (found.heads <= n)).all() and (found.heads == 0).any()
        assert ((found.arc_confidence >= 0) & (found.arc_confidence <= 1)).all() and 0 <= found.expected_loss <= n
        np.testing.assert_array_equal(found.boxes, page.boxes)


def test_loaded_reader_reads_a_page_independently_of_other_pages(reader):
    together = reader.read(PAGES)
    for page, found in zip(PAGES, together, strict=True):
        blind = replace(page, symbols=("?",) * len(page), heads=np.zeros(len(page), int))
        (alone,) = reader.read([blind])
        assert is_same_reading(alone, found)
        np.testing.assert_allclose(alone.arc_confidence, found.arc_confidence, atol=1e-5)


def test_loaded_reader_accepts_a_page_without_symbols(reader):
    empty = replace(PAGES[0], symbols=(), heads=np.zeros(0, int), ink=())
    found = reader.read([PAGES[0], empty])
    assert [len(one.labels) for one in found] == [3, 0] and found[1].text == "" and found[1].to_dict()["symbols"] == []
    assert reader.read([]) == []


def test_page_reading_to_dict_is_json(reader):
    facts = json.loads(json.dumps(reader.read(PAGES)[1].to_dict()))
    assert {"text", "latex", "expected_loss", "symbols"} == {*facts} and len(facts["symbols"]) == 11
    assert {"number", "label", "label_confidence", "head", "arc_confidence", "line", "box", "strokes"} == {
        *facts["symbols"][0]
    }


def test_loaded_reader_round_trips_through_a_file(reader, tmp_path):
    reader.save(tmp_path / "reader.safetensors")
    back = LoadedReader.load(tmp_path / "reader.safetensors")
    assert back.metadata == {"made": "by a test"}
    for one, other in zip(reader.read(PAGES), back.read(PAGES), strict=True):
        assert is_same_reading(one, other)  # though most numbers are rounded to 16 bits
        np.testing.assert_allclose(one.label_confidence, other.label_confidence, atol=0.02)


def test_loaded_reader_load_rejects_invalid_files(reader, tmp_path):
    path = tmp_path / "reader.safetensors"
    reader.save(path)
    weights, facts = storage.load_checksummed(path)
    weights = {name: tensor.clone() for name, tensor in weights.items()}
    broken = {
        "not a reader": (weights, facts | {"format": "other"}),
        "its hidden is": (weights, facts | {"shape": facts["shape"] | {"hidden": 10**9}}),
        "its layers is": (weights, facts | {"shape": facts["shape"] | {"layers": 3}}),
        "its embedding is": (weights, facts | {"shape": facts["shape"] | {"embedding": 4096}}),
        "export it again": (weights, facts | {"shape": facts["shape"] | {"hidden": 32}}),
        "not finite": (weights | {"special": torch.full_like(weights["special"], torch.nan)}, facts),
        "no symbol names": (weights | {"names": torch.zeros_like(weights["names"])}, facts),
        "gaps between": (weights | {"names": weights["names"].roll(1, 0)}, facts),
        "can load": (weights | {"names": torch.full_like(weights["names"], 255)}, facts),
    }
    for words, (tensors, metadata) in broken.items():
        storage.save_checksummed(path, tensors, metadata)
        with pytest.raises(DataError, match=words):
            LoadedReader.load(path)


def test_attach_headless_to_root_sets_confidence_to_zero():
    heads, sure = attach_headless_to_root(np.array([2, 0, -1, 2]), np.array([0.9, 0.8, 0.7, 0.6]))
    assert heads.tolist() == [2, 0, 2, 2] and sure.tolist() == [0.9, 0.8, 0.0, 0.6]
    heads, _ = attach_headless_to_root(np.array([-1, 1, -1]), np.ones(3))
    assert heads.tolist() == [0, 1, 1]


def test_detailed_features_of_a_page_do_not_depend_on_other_pages():
    together = extract_detailed_features(PAGES)
    np.testing.assert_array_equal(extract_detailed_features(PAGES[1:2]), together[3:14])
