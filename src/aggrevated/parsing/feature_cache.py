"""Features that took long to compute are kept between runs; a cache that is lost costs time, nothing else."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from torch import Tensor

from aggrevated import __version__
from aggrevated.core.errors import DataError, StorageError
from aggrevated.kernels import linear_algebra
from aggrevated.kernels.numerics import compute_numerics_fingerprint
from aggrevated.parsing import splits
from aggrevated.parsing.features import crops, geometry, hog, layout, projection, symbols
from aggrevated.parsing.pages import crohme
from aggrevated.parsing.pages.page import Page
from aggrevated.storage import load_checksummed, save_checksummed

MAX_CACHED_FILES = 8  # files, the newest


def cache_folder() -> Path:
    """Where they are kept: $AGGREVATED_CACHE, or the user's cache folder."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "aggrevated"
    return Path(os.environ.get("AGGREVATED_CACHE") or usual)


def cache_key(pages: Sequence[Page], *settings: object) -> str:
    """A digest of the pages, of what is to be done with them, and of the code and the arithmetic that do it."""
    sha = sha256(repr((__version__, compute_numerics_fingerprint(), *settings)).encode())
    for module in (crohme, crops, splits, hog, geometry, layout, symbols, projection, linear_algebra):
        sha.update(Path(module.__file__ or "").read_bytes())
    for page in pages:
        known = page.writer, page.symbols, page.heads.tolist(), [len(strokes) for strokes in page.ink]
        sha.update(repr(known).encode())
        for strokes in page.ink:
            for stroke in strokes:
                sha.update(repr(stroke.shape).encode() + stroke.tobytes())
    return sha.hexdigest()


def load_or_compute(key: str, make: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """What `make` gives, from the file of that key if there is an intact one."""
    path = cache_folder() / f"{key}.safetensors"
    with suppress(DataError, StorageError):
        return load_checksummed(path)[0]
    made = make()
    with suppress(StorageError, OSError):
        save_checksummed(path, made, {})
        for old in sorted(cache_folder().glob("*.safetensors"), key=lambda file: file.stat().st_mtime)[
            :-MAX_CACHED_FILES
        ]:
            old.unlink(missing_ok=True)
    return made
