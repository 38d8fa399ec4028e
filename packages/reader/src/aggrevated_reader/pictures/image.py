"""A picture of a handwritten page as pen strokes: read with suspicion, told apart from its paper, thinned to lines.

Whatever the bytes are, the answer is the ink or a `DataError` that names the file and the remedy, in less than four
seconds and 500 MB (a second and 300 MB up to 16 megapixels): size and kind are checked in the header, before anything
is decoded.
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
MAX_BUFFERED = 25_000_000  # pixels of what a decoder keeps several times: progressive JPEG, WebP
MAX_SIDE = 20_000
MAX_CHUNKS = 10_000  # of a PNG
MAX_MARKERS = 10_000  # of a JPEG
MAX_SCANS = 12  # of a JPEG; progressive ones have 10, and each costs a pass over the whole picture
STRIP = 1_000_000  # pixels that are made grey at a time
LONGEST = 1_600  # pixels of the longer side that the ink is looked for in

TOO_LARGE = f"{MAX_BYTES >> 20} MB; save the picture smaller"
SHRINK = "shrink it to 7,000 × 7,000 or fewer"
PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
RIFF = b"RIFF"
PDF = b"%PDF-"
ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".pdf")
KINDS = "a picture (PNG, JPEG, WebP)"
# What turns a picture upright, by its EXIF orientation.
UPRIGHT = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_270, 8: Image.Transpose.ROTATE_90}


def read_image(path: Path) -> list[Strokes]:
    """The ink of a picture: for each piece that hangs together, its middle lines, in pixels with y downwards.

    Light ink on dark paper will do as well; the ink is what covers less of the page.
    """
    return read_image_ink(path).parts


def read_image_ink(path: Path) -> ExtractedInk:
    """What a PNG, JPEG or WebP shows, or the first page of a PDF (with the extra `pdf`)."""
    return parse_image_ink(read_image_bytes(path), str(path))


def read_image_bytes(path: Path) -> bytes:
    """All of such a file, if it is not too large."""
    return read_limited(path, MAX_BYTES, "a picture", TOO_LARGE)


def parse_image_ink(data: bytes, name: str) -> ExtractedInk:
    """What the bytes of such a file show; `name` is what messages call it."""
    if len(data) > MAX_BYTES:
        raise DataError(f"{name} is larger than {TOO_LARGE}")
    try:
        return extract_ink(*_decode_image(data))
    except DataError as error:
        raise DataError(f"{name}: {error}") from error


def is_image(start: bytes) -> bool:
    """Whether a file that starts so, with 12 bytes at least, is a PNG, a JPEG, a WebP or a PDF."""
    return start.startswith((PNG, JPEG, PDF)) or (start.startswith(RIFF) and start[8:12] == b"WEBP")


# From bytes to grey pixels.


def _decode_image(data: bytes) -> tuple[Image.Image, float]:
    """The picture in shades of grey, upright, its longer side at most LONGEST; and by how much it is shrunk."""
    if data.startswith(PDF):
        from aggrevated_reader.pictures.pdf import render_first_page  # only then: it is an extra

        return render_first_page(data, LONGEST), 1.0
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            Image.open(io.BytesIO(_prepare_bytes(data)), formats=("PNG", "JPEG", "WEBP")) as picture,
        ):
            size = _check_size(picture)
            picture.draft("L", (LONGEST, LONGEST))  # a JPEG is decoded no larger than needed
            picture.load()
            grey = _to_grey(picture)
            shrunk = max(size) / max(grey.size)
            turn = int(picture.getexif().get(0x0112, 1))  # a phone held sideways writes 6 or 8
            return (grey.transpose(UPRIGHT[turn]) if turn in UPRIGHT else grey), shrunk
    except DataError:
        raise
    except Image.DecompressionBombError as error:
        raise DataError(f"it has far too many pixels; {SHRINK}") from error
    except Exception as error:  # what a decoder may say about hostile bytes is not written down anywhere
        reason = re.sub(r"\s+", " ", str(error))[:60]
        raise DataError(
            f"it is damaged or cut off ({type(error).__name__}: {reason}); save the picture again"
        ) from error


def _prepare_bytes(data: bytes) -> bytes:
    """The bytes without what only costs time, or a `DataError` if they are none of the kinds that are read."""
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
    """The size of a picture that is not yet decoded, if it is not too large."""
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
    """The PNG without what only costs time and memory: texts, profiles, animations."""
    # views: no copy of 64 MB but the one at the end
    kept = [memoryview(data)[:8]]
    at = 8
    chunks = 0
    while at < len(data) and chunks <= MAX_CHUNKS:
        if at + 12 > len(data) or (end := at + 12 + struct.unpack_from(">I", data, at)[0]) > len(data):
            raise DataError("it is cut off; save the picture again")
        name = data[at + 4 : at + 8]
        if name in (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"):
            kept.append(memoryview(data)[at:end])
        at = end
        chunks = chunks + 1
        if name == b"IEND":
            break
    if chunks > MAX_CHUNKS:
        raise DataError(f"it has more than {MAX_CHUNKS:,} chunks; save the picture again")
    return b"".join(kept)


def _truncate_jpeg(data: bytes) -> bytes:
    """The JPEG without what a phone appends, such as a short film."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        if data[at + 1] == 0xDA:  # the scans begin; in them FF D9 can only be the end
            end = data.find(b"\xff\xd9", at)
            return data[: end + 2] if end >= 0 else data
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return data


def _check_jpeg(data: bytes) -> None:
    """Refuse what would keep the decoder busy for minutes."""
    if data.count(b"\xff\xda") > MAX_SCANS or len(re.findall(rb"\xff[\x01-\xcf\xd8-\xfe]", data)) > MAX_MARKERS:
        raise DataError("it has more scans or segments than any camera writes; save the picture again")


def _to_grey(picture: Image.Image) -> Image.Image:
    """Shades of grey on white paper, shrunk; strip by strip, as a whole copy would take 200 MB more."""
    width, height = picture.size
    factor = max(1, -(-max(width, height) // LONGEST))
    grey = Image.new("L", (-(-width // factor), -(-height // factor)))
    rows = factor * max(1, STRIP // (width * factor))
    for top in range(0, height, rows):
        strip = picture.crop((0, top, width, min(top + rows, height)))
        grey.paste(_to_opaque_grey(strip).reduce(factor), (0, top // factor))
    return grey


def _to_opaque_grey(strip: Image.Image) -> Image.Image:
    """In shades of grey; what is transparent is white."""
    if strip.mode.startswith("I"):  # 16 bits
        return Image.fromarray((np.asarray(strip) >> 8).astype(np.uint8))
    if strip.has_transparency_data:
        strip = strip.convert("RGBA")
        strip = Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip)
    return strip.convert("L")
