"""Pictures with any content are read, or rejected with one sentence, fast and in little memory.

Few files are tried by default, and 1,000 with AGGREVATED_FAULTS=all.
"""

import io
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from helpers.hostile_files import check_mutated_files, mutate, needs_memory_figures, reading_process

PICTURE_READER = """
from aggrevated_reader.pictures.segmentation import read_page
READERS[".png"] = read_page
"""


def make_png() -> bytes:
    """Return a small PNG with a line on it."""
    page = Image.new("L", (120, 60), 255)
    ImageDraw.Draw(page).line((10, 10, 100, 50), 0, 4)
    file = io.BytesIO()
    page.save(file, "PNG")
    return file.getvalue()


@needs_memory_figures
@pytest.mark.timeout(7200)
def test_mutated_pictures_are_read_or_refused_soon_and_in_little_memory(tmp_path: Path) -> None:
    with reading_process(PICTURE_READER) as read:
        check_mutated_files(
            tmp_path,
            read,
            {"picture": (lambda _, number, chance: mutate(make_png(), number, chance), ".png")},
            {".png": lambda _: make_png()},
        )
