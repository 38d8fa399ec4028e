"""Pictures of pages are read, or rejected with one sentence, for any bytes.

The long form is `AGGREVATED_IMAGES=2000 python -m pytest -n 0 -s packages/reader/tests/pictures/test_image.py`.
"""

import io
import os
import random
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from aggrevated.core.errors import DataError, StorageError
from aggrevated.parsing.features.crops import draw_crops
from aggrevated.parsing.pages.handwriting import generate_page_splits, write_page
from aggrevated.parsing.pages.page import Page
from aggrevated_reader.pictures import image
from aggrevated_reader.pictures.binarization import extract_parts
from aggrevated_reader.pictures.image import read_image
from aggrevated_reader.pictures.segmentation import read_page
from aggrevated_reader.pictures.thinning import skeletonize
from aggrevated_reader.pictures.thresholds import compute_otsu_threshold

IMAGES = int(os.environ.get("AGGREVATED_IMAGES", "100"))
# pixels: of a symbol, of its lines, around the page
HEIGHT = 70
PEN = 5
MARGIN = 60


def draw_page(page: Page) -> tuple[Image.Image, np.ndarray]:
    """Return the page as a scan, dark grey on white, and the boxes [n, 4] of its symbols in pixels."""
    boxes = page.boxes
    scale = HEIGHT / float(np.median((boxes[:, 2:] - boxes[:, :2]).max(axis=1)))
    low = boxes[:, :2].min(axis=0)
    size = ((boxes[:, 2:].max(axis=0) - low) * scale + 2 * MARGIN).astype(int)
    picture = Image.new("L", (2 * int(size[0]), 2 * int(size[1])), 255)
    pen = ImageDraw.Draw(picture)
    for stroke in (stroke for strokes in page.ink for stroke in strokes):
        points = [(float(x), float(y)) for x, y in ((stroke - low) * scale + MARGIN) * 2]
        pen.line(points, 20, 2 * PEN, joint="curve")
        for point in points:
            pen.circle(point, PEN, 20)
    return picture.resize((int(size[0]), int(size[1])), Image.Resampling.LANCZOS), (
        boxes - [*low, *low]
    ) * scale + MARGIN


def encode(picture: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def write_file(tmp_path: Path, data: bytes, name: str = "page.png") -> Path:
    (tmp_path / name).write_bytes(data)
    return tmp_path / name


def is_right(page: Page, boxes: np.ndarray) -> bool:
    """Return whether each box is at its symbol, up to a quarter of the mean symbol size."""
    return len(page) == len(boxes) and bool((np.abs(page.boxes - boxes) < HEIGHT / 4).all())


PAGE = write_page(["10(x+2)=a+b", "c×d=e/4"], writer=4, seed=1)
PICTURE, BOXES = draw_page(PAGE)


# Readable pictures.


def test_read_page_recovers_most_generated_pages_from_pictures(tmp_path: Path) -> None:
    pages = [page for part in generate_page_splits(25, 10, seed=5) for page in part]
    found = []
    for page in pages:
        picture, boxes = draw_page(page)
        found.append(is_right(read_page(write_file(tmp_path, encode(picture))), boxes))
    assert np.mean(found) >= 0.95


def make_shaded_picture() -> Image.Image:
    """Light from the left: the paper at the right is darker than the ink at the left."""
    grey = np.asarray(PICTURE) * 0.6 + 100
    return Image.fromarray((grey * np.linspace(1, 0.35, grey.shape[1])).astype(np.uint8))


def make_transparent_picture(mode: str) -> Image.Image:
    picture = Image.new("LA", PICTURE.size, (20, 0))
    picture.putalpha(PICTURE.point(lambda level: 255 - level))
    return picture.convert(mode)


def make_noisy_picture() -> Image.Image:
    noise = np.random.default_rng(0).normal(0, 12, PICTURE.size[::-1])
    return Image.fromarray(np.clip(np.asarray(PICTURE) * 0.8 + 20 + noise, 0, 255).astype(np.uint8))


def make_16_bit_picture() -> bytes:
    deep = (np.asarray(PICTURE).astype(np.uint16) * 257).astype(">u2")
    return b"".join(b"\0" + np.repeat(row, 3).tobytes() for row in deep)


KINDS = {
    "grey": lambda: encode(PICTURE),
    "light on dark": lambda: encode(PICTURE.point(lambda level: 255 - level)),
    "colour": lambda: encode(PICTURE.convert("RGB")),
    "two colours": lambda: encode(PICTURE.convert("1", dither=Image.Dither.NONE)),
    "palette": lambda: encode(PICTURE.convert("P")),
    "16 bits of colour": lambda: make_png(*PICTURE.size, 16, 2, make_16_bit_picture()),
    "WebP": lambda: encode(PICTURE.convert("RGB"), "WEBP", quality=60),
    "16 bits": lambda: encode(Image.fromarray(np.asarray(PICTURE).astype(np.uint16) * 257)),
    "transparent grey": lambda: encode(make_transparent_picture("LA")),
    "transparent colour": lambda: encode(make_transparent_picture("RGBA")),
    "transparent palette": lambda: encode(PICTURE.convert("P"), transparency=255),
    "shaded": lambda: encode(make_shaded_picture()),
    "noisy": lambda: encode(make_noisy_picture()),
    "JPEG": lambda: encode(PICTURE, "JPEG", quality=60),
    "progressive JPEG": lambda: encode(PICTURE.convert("RGB"), "JPEG", progressive=True),
    "CMYK JPEG": lambda: encode(PICTURE.convert("CMYK"), "JPEG"),
    "with texts": lambda: insert_chunk(encode(PICTURE), b"tEXt", b"Title\0x" * 99),
}


@pytest.mark.parametrize("kind", KINDS)
def test_read_page_reads_each_kind_of_picture(tmp_path: Path, kind: str) -> None:
    assert is_right(read_page(write_file(tmp_path, KINDS[kind]())), BOXES)


def test_read_page_keeps_coordinates_of_a_shrunk_picture(tmp_path: Path) -> None:
    large = PICTURE.resize((PICTURE.width * 3, PICTURE.height * 3), Image.Resampling.BICUBIC)
    page = read_page(write_file(tmp_path, encode(large)))
    assert is_right(Page("", "", page.symbols, page.heads, tuple(tuple(s / 3 for s in ink) for ink in page.ink)), BOXES)


@pytest.mark.parametrize(("turn", "back"), [(3, 180), (6, 90), (8, 270)])
def test_read_page_follows_exif_orientation(tmp_path: Path, turn: int, back: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = turn
    photograph = encode(PICTURE.rotate(back, expand=True), "JPEG", exif=exif)
    assert is_right(read_page(write_file(tmp_path, photograph, "page.jpg")), BOXES)


def test_read_page_gives_crops_similar_to_those_of_the_strokes(tmp_path: Path) -> None:
    page = read_page(write_file(tmp_path, encode(PICTURE)))
    assert page.symbols == ("?",) * len(PAGE) and not page.heads.any()
    seen = draw_crops(page.ink) / 255.0
    meant = draw_crops(PAGE.ink) / 255.0
    likeness = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(seen, meant, strict=True)]
    assert np.mean(likeness) > 0.8


def test_parts_of_picture_drop_specks_and_keep_dots() -> None:
    picture = Image.new("L", (400, 200), 255)
    pen = ImageDraw.Draw(picture)
    pen.line([(50, 50), (50, 150)], 0, 5)
    pen.circle((150, 100), 3, 0)
    for x in (200, 250, 300):
        pen.point([(x, 100), (x + 1, 100), (x, 101), (x + 1, 101)], 0)
    parts = extract_parts(picture)
    assert len(parts) == 2


def test_otsu_threshold_separates_two_peaks() -> None:
    histogram = np.zeros(256, int)
    histogram[[10, 11, 12, 200, 201]] = [5, 9, 5, 2, 2]
    threshold, contrast = compute_otsu_threshold(histogram)
    assert 12 <= threshold < 200 and contrast == pytest.approx(200.5 - 11)
    assert compute_otsu_threshold(np.bincount([7, 7], minlength=256))[1] == 0.0


def test_skeletonize_gives_thin_lines_with_the_same_components() -> None:
    from scipy import ndimage

    ink = np.asarray(PICTURE) < 128
    line = skeletonize(ink)
    everywhere = np.ones((3, 3))
    assert (line <= ink).all() and ndimage.label(line, everywhere)[1] == ndimage.label(ink, everywhere)[1] > 18
    assert not ndimage.binary_erosion(line, np.ones((2, 2))).any()
    assert ink.sum() / line.sum() == pytest.approx(PEN, abs=1.2)


# Rejected pictures.


def make_chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def insert_chunk(data: bytes, name: bytes, body: bytes) -> bytes:
    """Return a PNG with one more chunk after its header."""
    return data[:33] + make_chunk(name, body) + data[33:]


def make_png(width: int, height: int, depth: int = 8, colour: int = 0, rows: bytes = b"") -> bytes:
    header = make_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return image.PNG + header + make_chunk(b"IDAT", zlib.compress(rows, 1)) + make_chunk(b"IEND", b"")


def make_grid_ink(step: int, wide: int, side: int = 1600) -> Image.Image:
    y, x = np.mgrid[:side, :side]
    return Image.fromarray(np.where((y % step < wide) & (x % step < wide), 0, 255).astype(np.uint8))


SENTENCES = {
    "not a picture": (b"GIF89a", r"it is neither PNG, JPEG, WebP nor PDF; save the picture as one of these"),
    "nothing": (b"", r"it is neither PNG, JPEG, WebP nor PDF"),
    "half": (encode(PICTURE)[:-400], r"it is cut off; save the picture again"),
    "half a JPEG": (
        encode(PICTURE, "JPEG")[:2000],
        r"it is damaged or cut off \(OSError: .*\); save the picture again",
    ),
    "without pixels": (make_png(50, 50), r"it is damaged or cut off \(.*\); save the picture again"),
    "a bomb": (make_png(60_000, 60_000), r"it has far too many pixels; shrink it to 7,000 × 7,000 or fewer"),
    "a poster": (make_png(10_000, 10_000), r"it has 10,000 × 10,000 pixels; shrink it to 7,000 × 7,000 or fewer"),
    "a ribbon": (make_png(1, 100_000), r"it has 1 × 100,000 pixels; shrink it"),
    "crumbs": (encode(PICTURE)[:33] + make_chunk(b"IDAT", b"") * 10_001, r"it has more than 10,000 chunks; save"),
    "scans": (
        encode(PICTURE, "JPEG")[:-2] + b"\xff\xda" * 13,
        r"it has more scans or segments than any camera writes",
    ),
    "blank": (encode(Image.new("L", (300, 200), 230)), r"its ink does not stand out from the paper; give a picture"),
    "one pixel": (encode(Image.new("L", (1, 1), 0)), r"its ink does not stand out from the paper"),
    "a photograph": (
        encode(make_grid_ink(20, 12)),
        r"\d+% of it is ink: that is not a page of algebra; cut away what is not",
    ),
    "dust": (encode(make_grid_ink(60, 9)), r"it has 72[89] separate blots of ink: that is not a page of algebra; give"),
}


def test_read_image_ignores_data_appended_to_jpeg(tmp_path: Path) -> None:
    data = encode(PICTURE, "JPEG")
    plain, longer = (read_image(write_file(tmp_path, more)) for more in (data, data + b"\xff\xda" * 1000))
    assert len(plain) == len(longer) > 0


@pytest.mark.parametrize("fault", SENTENCES)
def test_read_page_raises_data_error_for_each_faulty_picture(tmp_path: Path, fault: str) -> None:
    data, sentence = SENTENCES[fault]
    path = write_file(tmp_path, data)
    with pytest.raises(DataError, match=sentence) as raised:
        read_image(path)
    assert str(raised.value).startswith(f"{path}: ") and "\n" not in str(raised.value)


def test_read_page_rejects_large_files_and_non_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"page\.png is larger than 64 MB; save the picture smaller"):
        read_image(write_file(tmp_path, encode(PICTURE) + bytes(image.MAX_BYTES)))
    with pytest.raises(DataError, match=r"is not a regular file; give the path of a picture"):
        read_image(tmp_path)
    with pytest.raises(StorageError, match=r"cannot use .*none\.png: .*; check the path"):
        read_image(tmp_path / "none.png")


def test_skeletonize_rejects_large_blots() -> None:
    assert skeletonize(np.ones((9, 9), bool)).sum() == 1
    with pytest.raises(DataError, match="it has blots much wider than its lines; cut away what is not the page"):
        skeletonize(np.ones((90, 90), bool))


# Mutations.


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 3, 30])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def repeat_part(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    end = start + rng.choice([1, 12, 1000])
    return data[:end] + data[start:end] * rng.choice([1, 10, 1000]) + data[end:]


def change_header(data: bytes, rng: random.Random) -> bytes:
    """Change size, depth, color or interlacing, with a correct checksum."""
    sizes = [0, 1, 7, 300, 3999, 4000, 20_000, 65_535, 1 << 24, (1 << 31) - 1, (1 << 32) - 1]
    width = rng.choice(sizes)
    height = rng.choice(sizes)
    kind = [rng.choice([1, 2, 4, 8, 16]), rng.choice([0, 2, 3, 4, 6]), 0, 0, rng.choice([0, 1])]
    return data[:8] + make_chunk(b"IHDR", struct.pack(">II5B", width, height, *kind)) + data[33:]


def insert_extra_chunk(data: bytes, rng: random.Random) -> bytes:
    """Insert a chunk that a decoder may fail on."""
    names = [b"PLTE", b"tRNS", b"acTL", b"fcTL", b"iCCP", b"zTXt", b"eXIf", b"gAMA", b"IDAT", b"IHDR", b"IEND", b"????"]
    body = rng.choice([b"", rng.randbytes(9), b"a\0\0" + zlib.compress(bytes(10_000_000))])
    return insert_chunk(data, rng.choice(names), body)


def replace_whole(data: bytes, rng: random.Random) -> bytes:
    """Return a valid picture of another kind, as large as allowed."""
    depth, colour, bytes_each = rng.choice([(8, 0, 1), (8, 2, 3), (8, 6, 4), (16, 0, 2), (1, 0, 1 / 8), (8, 4, 2)])
    width, height = rng.choice([(4000, 4000), (20_000, 800), (800, 20_000), (600, 400), (600, 400)])
    row = bytes([rng.randrange(5)]) + rng.randbytes(200) * (int(width * bytes_each) // 200)
    return make_png(width, height, depth, colour, row * height)


def swap_jpeg_segments(data: bytes, rng: random.Random) -> bytes:
    """Return a JPEG with one segment replaced by another, or with many copies of one."""
    jpeg = encode(PICTURE, "JPEG", progressive=rng.random() < 0.5)
    places = [found.start() for found in re.finditer(rb"\xff[\xc0-\xfe]", jpeg)]
    start, end = sorted(rng.sample(places, 2))
    return jpeg[:end] + jpeg[start:end] * rng.choice([1, 5, 15]) + jpeg[rng.choice(places) :]


MUTATORS = (flip_bits, truncate, repeat_part, change_header, insert_extra_chunk, replace_whole, swap_jpeg_segments)
MODES = ("L", "RGB", "RGBA", "P", "1", "LA")


CHILD = r"""
import re, sys, time
from pathlib import Path
import scipy.ndimage
from aggrevated.core.errors import AggrevatedError
from aggrevated_reader.pictures.segmentation import read_page
def peak():  # in MB; ru_maxrss would count what the parent had before this process began
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) / 1024
for line in sys.stdin:
    began = time.process_time()
    try:
        page = read_page(Path(line.strip()))
        answer = "page" if abs(page.boxes).max() < 1e6 else "no page"
    except AggrevatedError as error:
        answer = f"{type(error).__name__} {error}"
    print(time.process_time() - began, peak(), repr(answer), flush=True)
"""


def make_mutant(originals: list[bytes], number: int, rng: random.Random) -> bytes:
    data = rng.choice(originals)
    for mutate in (MUTATORS[number % len(MUTATORS)], *rng.choices(MUTATORS, k=rng.choice([0, 0, 1]))):
        data = mutate(data or image.PNG, rng)
    return data


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
@pytest.mark.timeout(3600)
def test_mutated_pictures_give_pages_or_typed_errors_within_limits(tmp_path: Path) -> None:
    originals = [encode(PICTURE.convert(mode)) for mode in MODES]
    originals += [encode(PICTURE, "JPEG"), encode(PICTURE.convert("RGB"), "JPEG", progressive=True)]
    rng = random.Random(0)
    pages = 0
    slowest = 0.0
    most = 0.0
    sentences = set()
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdin is not None and run.stdout is not None
        for number in range(IMAGES):
            path = write_file(tmp_path, make_mutant(originals, number, rng))
            print(path, file=run.stdin, flush=True)
            took, peak, answer = run.stdout.readline().split(" ", 2)  # empty if the child died of another error
            slowest = max(slowest, float(took))
            most = float(peak)
            pages += "'page'" in answer
            if "page'" not in answer:
                assert f"DataError {path}" in answer and len(answer) < len(str(path)) + 300, answer
                sentences.add(re.sub(r"[\d(].*", "", answer.split(str(path))[1]))
    print(
        f"{IMAGES} mutated pictures: {pages} read, {len(sentences)} sentences; slowest {slowest:.2f} s, {most:.0f} MB"
    )
    assert slowest < 1 and most < 300 and 0 < pages < IMAGES and len(sentences) > 3, sentences
