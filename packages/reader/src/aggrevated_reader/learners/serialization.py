"""A policy that reads as one file: weights of two bytes each, its shape and a card. Nothing in it is run."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from torch import Tensor

from aggrevated import __version__, storage
from aggrevated.core.errors import DataError
from aggrevated.storage import JsonDict, truncate_message

FORMAT = "aggrevated reader 1"
MAX_BYTES = 64 << 20  # of a file: a reader has some three million
LARGEST = {"hidden": 1024, "embedding": 2048, "layers": 2}  # of a shape: a blank one takes some 300 MB, before weights
WHOLE = ("names", "sureness", "costs.correction", "projection.centre", "projection.matrix")  # that are not rounded
T = TypeVar("T")


def write(path: Path, weights: dict[str, Tensor], sizes: JsonDict, card: JsonDict) -> None:
    """Write it, sealed."""
    kept = {name: tensor if name in WHOLE else tensor.half() for name, tensor in weights.items()}
    storage.save_checksummed(path, kept, {"format": FORMAT, "version": __version__, "shape": sizes, "card": card})


def read(path: Path, make: Callable[[JsonDict, dict[str, Tensor], JsonDict], T]) -> T:
    """What `make` makes of its shape, weights and card; a `DataError` if that cannot be."""
    weights, facts = storage.load_checksummed(path, MAX_BYTES)
    if facts.get("format") != FORMAT:
        raise DataError(f"{path} is no reader; give a file that 'aggrevated export' made of a run of the task reader")
    try:
        check(facts["shape"], weights)
        return make(facts["shape"], weights, dict(facts["card"]))
    except Exception as error:  # it is anybody's file: what is wrong is noticed here and there
        raise DataError(
            f"{path} is no reader that this version, {__version__}, can make again "
            f"({truncate_message(error)}); make it again"
        ) from error


def check(shape: JsonDict, weights: dict[str, Tensor]) -> None:
    """A `ValueError` where sizes are beyond all bounds, or weights are no numbers."""
    for name, most in LARGEST.items():
        if type(shape[name]) is not int or not 0 < shape[name] <= most:
            raise ValueError(f"its {name} is {shape[name]!r}")
    if not all(tensor.isfinite().all() for tensor in weights.values()):
        raise ValueError("some of its weights are not finite")
