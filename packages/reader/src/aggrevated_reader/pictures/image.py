"""Reading of untrusted pictures of handwritten pages as pen strokes.

For any bytes the result is the ink or a `DataError` that names the file and the remedy. It takes less than
four seconds and 500 MB, or one second and 300 MB up to 16 megapixels. Size and kind are checked in the header
before decoding.
"""

import io
import re
import struct
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.page import Strokes
from aggrevated.storage import read_limited
from aggrevated_reader.pictures.binarization import ExtractedInk, extract_ink

MAX_BYTES = 64 << 20
MAX_PIXELS = 51_000_000  # the camera of a phone makes 12, 24 or 48 million
MAX_BUFFERED = 25_000_000  # pixels of formats whose decoder keeps several copies: progressive JPEG, WebP
MAX_SIDE = 20_000
MAX_CHUNKS = 10_000  # of a PNG
MAX_MARKERS = 10_000  # of a JPEG
MAX_SCANS = 12  # of a JPEG; progressive ones have 10, and each costs a pass over the picture
STRIP = 1_000_000  # pixels that are converted to gray at once
LONGEST = 1_600  # pixels of the longer side in which ink is searched

TOO_LARGE = f"{MAX_BYTES >> 20} MB; save the picture smaller"
SHRINK = "shrink it to 7,000 × 7,000 or fewer"
PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
RIFF = b"RIFF"
PDF = b"%PDF-"
ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".pdf")
KINDS = "a picture (PNG, JPEG, WebP)"
# Rotations to upright, by EXIF orientation.
UPRIGHT = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_270, 8: Image.Transpose.ROTATE_90}


def read_image(path: Path) -> list[Strokes]:
    """Return the ink of a picture: for each connected piece its centerlines, in pixels with y downwards.

    Light ink on dark paper is read, too; the ink is what covers less of the page.

    Args:
        path: A PNG, JPEG or WebP, or a PDF, whose first page is read (with the extra `pdf`).

    Raises:
        DataError: The file is not a readable picture of handwriting.
    """
    return read_image_ink(path).parts


def read_image_ink(path: Path) -> ExtractedInk:
    """Return the ink of a PNG, JPEG or WebP, or of the first page of a PDF (with the extra `pdf`)."""
    return parse_image_ink(read_image_bytes(path), str(path))


def read_image_bytes(path: Path) -> bytes:
    """Return the bytes of a picture; raise a DataError if the file is too large."""
    return read_limited(path, MAX_BYTES, "a picture", TOO_LARGE)


def parse_image_ink(data: bytes, name: str) -> ExtractedInk:
    """Return the ink of a picture in memory.

    Args:
        data: The bytes of a PNG, JPEG, WebP or PDF.
        name: The name of the file in messages.

    Raises:
        DataError: The bytes are not a readable picture of handwriting.
    """
    if len(data) > MAX_BYTES:
        raise DataError(f"{name} is larger than {TOO_LARGE}")
    try:
        return extract_ink(*_decode_image(data))
    except DataError as error:
        raise DataError(f"{name}: {error}") from error


def is_image(start: bytes) -> bool:
    """Return whether a file that begins with these 12 or more bytes is a PNG, JPEG, WebP or PDF."""
    return start.startswith((PNG, JPEG, PDF)) or (start.startswith(RIFF) and start[8:12] == b"WEBP")


# From bytes to gray pixels.


def _decode_image(data: bytes) -> tuple[Image.Image, float]:
    """Return the upright grayscale picture, its longer side at most LONGEST, and the factor of shrinking."""
    if data.startswith(PDF):
        from aggrevated_reader.pictures.pdf import render_first_page  # imported here: pypdfium2 is an extra

        return render_first_page(data, LONGEST), 1.0
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            Image.open(io.BytesIO(_prepare_bytes(data)), formats=("PNG", "JPEG", "WEBP")) as picture,
        ):
            size = _check_size(picture)
            picture.draft("L", (LONGEST, LONGEST))  # a JPEG is decoded no larger than needed
            picture.load()
            gray = _to_grey(picture)
            factor = max(size) / max(gray.size)
            turn = int(picture.getexif().get(0x0112, 1))  # a phone held sideways writes 6 or 8
            return (gray.transpose(UPRIGHT[turn]) if turn in UPRIGHT else gray), factor
    except DataError:
        raise
    except Image.DecompressionBombError as error:
        raise DataError(f"it has far too many pixels; {SHRINK}") from error
    except Exception as error:  # decoders do not document their errors on hostile bytes
        reason = re.sub(r"\s+", " ", str(error))[:60]
        raise DataError(
            f"it is damaged or cut off ({type(error).__name__}: {reason}); save the picture again"
        ) from error


def _prepare_bytes(data: bytes) -> bytes:
    """Return the bytes without parts that only cost time; raise a DataError for unknown formats."""
    if data.startswith(PNG):
        return _strip_png(data)
    if data.startswith(JPEG):
        data = _truncate_jpeg(data)
        _check_jpeg(data)
        return data
    if is_image(data[:12]):
        if b"ANIM" in data[:64]:
            raise DataError("it is an animated WebP; save one picture of it")
        return data
    raise DataError("it is neither PNG, JPEG, WebP nor PDF; save the picture as one of these")


def _check_size(picture: Image.Image) -> tuple[int, int]:
    """Return the size of a picture that is not decoded yet; raise a DataError if it is too large."""
    width, height = picture.size
    buffered = picture.format == "WEBP" or "progressive" in picture.info
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise DataError(f"it has {width:,} × {height:,} pixels; {SHRINK}")
    if buffered and width * height > MAX_BUFFERED:
        raise DataError(
            f"it has {width:,} × {height:,} pixels, too many for a picture of its kind; save it as plain JPEG"
        )
    return width, height


def _strip_png(data: bytes) -> bytes:
    """Return the PNG without texts, profiles and animations, which cost time and memory."""
    # views, so that the 64 MB are copied only once, at the end
    parts = [memoryview(data)[:8]]
    offset = 8
    chunks = 0
    while offset < len(data) and chunks <= MAX_CHUNKS:
        if offset + 12 > len(data) or (end := offset + 12 + struct.unpack_from(">I", data, offset)[0]) > len(data):
            raise DataError("it is cut off; save the picture again")
        name = data[offset + 4 : offset + 8]
        if name in (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"):
            parts.append(memoryview(data)[offset:end])
        offset = end
        chunks = chunks + 1
        if name == b"IEND":
            break
    if chunks > MAX_CHUNKS:
        raise DataError(f"it has more than {MAX_CHUNKS:,} chunks; save the picture again")
    return b"".join(parts)


def _truncate_jpeg(data: bytes) -> bytes:
    """Return the JPEG without data that a phone appends, such as a short film."""
    offset = 2
    while offset + 4 <= len(data) and data[offset] == 0xFF:
        if data[offset + 1] == 0xDA:  # the scans begin; in them FF D9 is always the end
            end = data.find(b"\xff\xd9", offset)
            return data[: end + 2] if end >= 0 else data
        offset += 2 + struct.unpack_from(">H", data, offset + 2)[0]
    return data


def _check_jpeg(data: bytes) -> None:
    """Raise a DataError for a JPEG that would keep the decoder busy for minutes."""
    if data.count(b"\xff\xda") > MAX_SCANS or len(re.findall(rb"\xff[\x01-\xcf\xd8-\xfe]", data)) > MAX_MARKERS:
        raise DataError("it has more scans or segments than any camera writes; save the picture again")


def _to_grey(picture: Image.Image) -> Image.Image:
    """Return the picture in grayscale on white, shrunk, in strips: a full copy would take 200 MB."""
    width, height = picture.size
    factor = max(1, -(-max(width, height) // LONGEST))
    gray = Image.new("L", (-(-width // factor), -(-height // factor)))
    rows = factor * max(1, STRIP // (width * factor))
    for top in range(0, height, rows):
        strip = picture.crop((0, top, width, min(top + rows, height)))
        gray.paste(_to_opaque_grey(strip).reduce(factor), (0, top // factor))
    return gray


def _to_opaque_grey(strip: Image.Image) -> Image.Image:
    """Return the strip in grayscale, with white for transparent pixels."""
    if strip.mode.startswith("I"):  # 16 bits
        return Image.fromarray((np.asarray(strip) >> 8).astype(np.uint8))
    if strip.has_transparency_data:
        strip = strip.convert("RGBA")
        strip = Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip)
    return strip.convert("L")
