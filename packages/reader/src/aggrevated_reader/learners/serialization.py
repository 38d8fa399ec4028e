"""File format of readers: half-precision weights, sizes and a card. Loading a file runs no code from it."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from torch import Tensor

from aggrevated import __version__, storage
from aggrevated.core.errors import DataError
from aggrevated.storage import JsonDict, truncate_message

FORMAT = "aggrevated reader 1"
MAX_BYTES = 64 << 20  # of a file; a reader has about 3 million bytes
LARGEST = {"hidden": 1024, "embedding": 2048, "layers": 2}  # maximum sizes: a blank policy of these takes about 300 MB
# Tensors that are not rounded.
WHOLE = ("names", "sureness", "costs.correction", "projection.centre", "projection.matrix")
T = TypeVar("T")


def write(path: Path, weights: dict[str, Tensor], sizes: JsonDict, card: JsonDict) -> None:
    """Write a reader as one checksummed file."""
    tensors = {name: tensor if name in WHOLE else tensor.half() for name, tensor in weights.items()}
    storage.save_checksummed(path, tensors, {"format": FORMAT, "version": __version__, "shape": sizes, "card": card})


def read(path: Path, make: Callable[[JsonDict, dict[str, Tensor], JsonDict], T]) -> T:
    """Return what `make` builds from the sizes, weights and card in a file.

    Raises:
        DataError: The file is not a reader, or not one of this version.
    """
    weights, metadata = storage.load_checksummed(path, MAX_BYTES)
    if metadata.get("format") != FORMAT:
        raise DataError(f"{path} is not a reader; give a file that 'aggrevated export' made from a run of reader")
    try:
        check(metadata["shape"], weights)
        return make(metadata["shape"], weights, dict(metadata["card"]))
    except Exception as error:  # errors of untrusted files show up anywhere
        raise DataError(
            f"{path} is not a reader that aggrevated {__version__} can load "
            f"({truncate_message(error)}); export it again"
        ) from error


def check(shape: JsonDict, weights: dict[str, Tensor]) -> None:
    """Raise a ValueError if sizes are out of bounds or weights are not finite."""
    for name, most in LARGEST.items():
        if type(shape[name]) is not int or not 0 < shape[name] <= most:
            raise ValueError(f"its {name} is {shape[name]!r}")
    if not all(tensor.isfinite().all() for tensor in weights.values()):
        raise ValueError("some of its weights are not finite")
