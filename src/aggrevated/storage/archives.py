"""Archives of others: zip and npz, read with limits."""

import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.storage.atomic import open_regular_file, truncate_message

MAX_MEMBERS = 1_000  # Stable-Baselines3 writes 7
MAX_READ = 1 << 20  # bytes at a time: also the largest directory
CHUNK = 1 << 18


class LimitedReader:
    """A file that gives no more than MAX_READ bytes at a time; `ZipFile` would read any directory in one piece."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.seek = file.seek
        self.tell = file.tell

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(MAX_READ + 1 if size < 0 else min(size, MAX_READ + 1))
        if len(data) > MAX_READ:
            raise DataError(f"its directory has more than {MAX_READ:,} bytes")
        return data


def open_zip(file: BinaryIO) -> ZipFile:
    """The zip file, of which nothing was read but its directory."""
    archive = ZipFile(LimitedReader(file))
    if len(archive.infolist()) > MAX_MEMBERS:
        raise DataError(f"it has more than {MAX_MEMBERS:,} parts")
    return archive


def read_chunks(archive: ZipFile, member: ZipInfo, most: int) -> Iterator[bytes]:
    """The bytes of one of its members, piece by piece; `DataError` if there are more than `most` or than it says."""
    name = member.filename
    if member.file_size > most:
        raise DataError(f"its {name} has {member.file_size:,} bytes, and {most:,} are the most")
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or member.flag_bits & 1:
        raise DataError(f"its {name} is encrypted, or compressed in an unusual way")
    with archive.open(member) as part:
        size = 0
        while piece := part.read(CHUNK):
            size += len(piece)
            yield piece
    if size != member.file_size:
        raise BadZipFile(f"its {name} is cut off")


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
    count = math.prod(shape)
    start = data.tell()
    if min(shape, default=1) < 0 or count * dtype.itemsize != len(data.getbuffer()) - start:
        raise DataError(f"its {name} is not of the size that it says")
    array = np.frombuffer(data.getbuffer(), dtype, count, start)
    return array.reshape(shape, order="F" if by_columns else "C").copy()
