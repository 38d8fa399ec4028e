"""Files are written whole or not at all, and a checksummed file detects every flipped bit."""

import errno
import os
from pathlib import Path

import pytest
import torch

from aggrevated.core.errors import DataError, StorageError
from aggrevated.storage import (
    digest_tensors,
    load_checksummed,
    read_json,
    save_checksummed,
    write_atomically,
    write_json,
)

TENSORS = {"weight": torch.arange(6.0).reshape(2, 3), "bias": torch.tensor([1.5, -2.0])}


def test_load_checksummed_returns_what_was_saved(tmp_path: Path) -> None:
    save_checksummed(tmp_path / "a", TENSORS, {"n": 3, "name": "π"})
    tensors, facts = load_checksummed(tmp_path / "a")
    assert facts == {"n": 3, "name": "π"}
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_digest_tensors_depends_on_names_types_shapes_bytes_and_metadata() -> None:
    others = [
        {"weight": TENSORS["weight"], "bias2": TENSORS["bias"]},
        {"weight": TENSORS["weight"].double(), "bias": TENSORS["bias"]},
        {"weight": TENSORS["weight"].reshape(3, 2), "bias": TENSORS["bias"]},
        {"weight": TENSORS["weight"] + 1, "bias": TENSORS["bias"]},
    ]
    assert len({digest_tensors(TENSORS), digest_tensors(TENSORS, {"n": 1}), *map(digest_tensors, others)}) == 6
    assert digest_tensors({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # SHA-256 of "{}"


def test_load_checksummed_notices_every_flipped_bit_and_truncation(tmp_path: Path) -> None:
    save_checksummed(tmp_path / "a", TENSORS, {"n": 3})
    data = (tmp_path / "a").read_bytes()
    for place in range(len(data)):
        for bit in (0, 6):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            (tmp_path / "b").write_bytes(damaged)
            try:
                tensors, facts = load_checksummed(tmp_path / "b")
            except DataError:
                continue
            # White space in the header may change without changing the content that is read.
            assert facts == {"n": 3} and digest_tensors(tensors) == digest_tensors(TENSORS), place
    for length in range(len(data)):
        (tmp_path / "b").write_bytes(data[:length])
        with pytest.raises(DataError, match="damaged"):
            load_checksummed(tmp_path / "b")


def test_write_atomically_leaves_the_old_file_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(tmp_path / "config.json", {"old": True})

    def raise_disk_full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", raise_disk_full)
    with pytest.raises(StorageError, match=r"No space left on device; free some space") as caught:
        write_atomically(tmp_path / "config.json", b"new")
    assert caught.value.exit_code == 74
    assert read_json(tmp_path / "config.json") == {"old": True}
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "nul"])
def test_read_json_refuses_what_is_not_an_object_and_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(DataError, match=r"config\.json"):
        read_json(tmp_path / "config.json")
