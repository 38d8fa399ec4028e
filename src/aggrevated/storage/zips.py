"""Zip files that others made: what they say of themselves is checked before anything is unpacked, and held to after."""

from collections.abc import Iterator
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from aggrevated.errors import DataError

MAX_MEMBERS = 1_000  # Stable-Baselines3 writes 7
MAX_READ = 1 << 20  # bytes at a time: also the largest directory
CHUNK = 1 << 18


class LimitedReader:
    """A file that gives no more than MAX_READ bytes at a time; `ZipFile` would read any directory in one piece."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.seek, self.tell = file.seek, file.tell

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
