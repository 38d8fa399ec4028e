"""NumPy's .npz files that others made: arrays of numbers only, of the size that they say, and nothing pickled."""

import io
import math
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy

from aggrevated.core.arrays import Array
from aggrevated.errors import DataError
from aggrevated.storage.untrusted import open_regular_file, truncate_message
from aggrevated.storage.zips import open_zip, read_chunks

KINDS = "fiub"
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(path: Path, what: str, most: int) -> dict[str, Array]:
    """The arrays of numbers in a file, by name; what is no such array is left out, and `most` bytes are read of each.

    A `DataError` says `what` the file should be.
    """
    with open_regular_file(path, what) as file:
        try:
            with open_zip(file) as archive:
                found = {name: read_array(archive, name, most) for name in archive.namelist() if name.endswith(".npy")}
        except OSError:
            raise
        except Exception as error:  # what decoders may say about hostile bytes is not written down anywhere
            raise DataError(
                f"{path} is not {what} ({truncate_message(error)}); save it again with numpy.savez"
            ) from error
    return {name.removesuffix(".npy"): array for name, array in found.items() if array is not None}


def read_array(archive: ZipFile, name: str, most: int) -> Array | None:
    """One array; None where it is not of numbers."""
    data = io.BytesIO(b"".join(read_chunks(archive, archive.getinfo(name), most)))
    version = npy.read_magic(data)
    if version not in HEADERS:
        raise DataError(f"its {name} is of version {version}")
    shape, by_columns, dtype = HEADERS[version](data)
    if dtype.kind not in KINDS:
        return None
    count, start = math.prod(shape), data.tell()
    if min(shape, default=1) < 0 or count * dtype.itemsize != len(data.getbuffer()) - start:
        raise DataError(f"its {name} is not of the size that it says")
    array = np.frombuffer(data.getbuffer(), dtype, count, start)
    return array.reshape(shape, order="F" if by_columns else "C").copy()
