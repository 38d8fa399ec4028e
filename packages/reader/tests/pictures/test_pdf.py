"""A page of a PDF is read like a picture of the page, or rejected with one sentence."""

import io
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from aggrevated.core.errors import DataError, UsageError
from aggrevated_reader.pictures import pdf
from aggrevated_reader.pictures.segmentation import read_page


def draw_paper() -> Image.Image:
    picture = Image.new("L", (600, 300), 255)
    pen = ImageDraw.Draw(picture)
    pen.line([(80, 80), (80, 200)], 0, 8)
    pen.line([(160, 130), (240, 130)], 0, 8)
    pen.line([(160, 160), (240, 160)], 0, 8)
    pen.ellipse((320, 80, 400, 200), outline=0, width=8)
    return picture


def write_file(folder: Path, data: bytes) -> Path:
    (folder / "page.pdf").write_bytes(data)
    return folder / "page.pdf"


def encode_pdf(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PDF")
    return file.getvalue()


def test_read_page_reads_the_first_page_of_a_pdf(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2", reason="pypdfium2 is not installed")
    page = read_page(write_file(tmp_path, encode_pdf(draw_paper())))
    assert len(page) == 3
    across = page.boxes[:, 0] / page.boxes[-1, 2]
    assert across == pytest.approx([0.2, 0.4, 0.8], abs=0.03)


def test_read_page_rejects_damaged_pdf(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2", reason="pypdfium2 is not installed")
    for data in (b"%PDF-1.7\n", encode_pdf(draw_paper())[:200], b"%PDF-" + bytes(range(256)) * 99):
        path = write_file(tmp_path, data)
        with pytest.raises(DataError, match=r"page\.pdf: its first page cannot be drawn: it is damaged, locked or too"):
            read_page(path)


def test_read_page_without_pypdfium2_names_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "CHILD", "raise SystemExit(3)")
    with pytest.raises(
        UsageError, match=r"reading PDF needs pypdfium2: pip install './packages/reader\[pdf\]'; or save"
    ):
        read_page(write_file(tmp_path, encode_pdf(draw_paper())))


def test_read_page_stops_a_pdf_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "CHILD", "import time; time.sleep(9)")
    monkeypatch.setattr(pdf, "SECONDS", 1)
    with pytest.raises(DataError, match="its first page takes more than 1 seconds to draw; save it as a picture"):
        read_page(write_file(tmp_path, encode_pdf(draw_paper())))


def test_read_page_imports_nothing_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pypdfium2", "resource"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w').close()")
    path = write_file(tmp_path, encode_pdf(draw_paper()))
    monkeypatch.chdir(tmp_path)
    with suppress(UsageError):  # where its library is not installed
        read_page(path)
    assert not Path("imported").exists()
