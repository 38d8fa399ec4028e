"""Paths of drawings."""

from pathlib import Path


def make_drawing_paths(file: Path, out: Path | None, alone: bool, suffix: str = "") -> dict[str, str]:
    """Return the paths of a file's drawing by ending, svg and png.

    Args:
        file: The file of the page.
        out: The name of the drawing; for several files, the folder for the drawings. None: the file's name.
        alone: Whether this is the only file.
        suffix: What to add to the name if a file has several drawings.
    """
    path = (out or Path(f"{file.stem}-tree")) if alone else (out or Path()) / f"{make_unique_drawing_name(file)}-tree"
    path = path.with_suffix("") if path.suffix in (".png", ".svg") else path
    return {ending: str(path.with_name(f"{path.name}{suffix}.{ending}")) for ending in ("svg", "png")}


def make_unique_drawing_name(file: Path) -> str:
    """Return a name for a file's drawing that is unique among files: a/page.png becomes a-page.png."""
    return "-".join(part for part in file.parts if part not in (file.anchor, ".", ".."))
