"""Readers of untrusted zip and npz archives, with limits on their sizes."""

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
MAX_READ = 1 << 20  # bytes per read, and so of the zip's directory
CHUNK = 1 << 18


class LimitedReader:
    """A file that refuses to read more than MAX_READ bytes at once; `ZipFile` reads directories of any size."""

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
    """Open a zip file and read its directory only."""
    archive = ZipFile(LimitedReader(file))
    if len(archive.infolist()) > MAX_MEMBERS:
        raise DataError(f"it has more than {MAX_MEMBERS:,} members")
    return archive


def read_chunks(archive: ZipFile, member: ZipInfo, max_size: int) -> Iterator[bytes]:
    """Yield the bytes of a member in chunks, and raise if their number exceeds `max_size` or is not as declared."""
    name = member.filename
    if member.file_size > max_size:
        raise DataError(f"its {name} has {member.file_size:,} bytes, but at most {max_size:,} are read")
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or member.flag_bits & 1:
        raise DataError(f"its {name} is encrypted, or its compression is not supported")
    with archive.open(member) as file:
        size = 0
        while chunk := file.read(CHUNK):
            size += len(chunk)
            yield chunk
    if size != member.file_size:
        raise BadZipFile(f"its {name} is cut off")


KINDS = "fiub"
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(path: Path, expected: str, max_size: int) -> dict[str, Array]:
    """Return the numeric arrays in an .npz file by name; other arrays are skipped.

    Args:
        path: path of the file.
        what: description of the expected file, for errors: "an .npz file of demonstrations".
        max_size: largest size of one array, in bytes.

    Raises:
        DataError: the file is damaged, too large, or not an .npz.
    """
    with open_regular_file(path, expected) as file:
        try:
            with open_zip(file) as archive:
                names = [name for name in archive.namelist() if name.endswith(".npy")]
                arrays = {name: read_array(archive, name, max_size) for name in names}
        except OSError:
            raise
        except Exception as error:  # decoders may raise any exception for hostile bytes
            raise DataError(
                f"{path} is not {expected} ({truncate_message(error)}); save it again with numpy.savez"
            ) from error
    return {name.removesuffix(".npy"): array for name, array in arrays.items() if array is not None}


def read_array(archive: ZipFile, name: str, max_size: int) -> Array | None:
    """Return one array of an archive, or None if it is not numeric."""
    data = io.BytesIO(b"".join(read_chunks(archive, archive.getinfo(name), max_size)))
    version = npy.read_magic(data)
    if version not in HEADERS:
        raise DataError(f"its {name} has the unknown version {version}")
    shape, by_columns, dtype = HEADERS[version](data)
    if dtype.kind not in KINDS:
        return None
    count = math.prod(shape)
    start = data.tell()
    if min(shape, default=1) < 0 or count * dtype.itemsize != len(data.getbuffer()) - start:
        raise DataError(f"its {name} does not have the size that its header declares")
    array = np.frombuffer(data.getbuffer(), dtype, count, start)
    return array.reshape(shape, order="F" if by_columns else "C").copy()
