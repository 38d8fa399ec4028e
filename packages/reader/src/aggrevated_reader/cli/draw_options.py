"""Where drawings go."""

from pathlib import Path


def make_drawing_paths(file: Path, out: Path | None, alone: bool, which: str = "") -> dict[str, str]:
    """Those of a file, by their endings: named by `out`, else after the file; of several files in the folder `out`.

    `which` is added to the name where there are several of one file.
    """
    path = (out or Path(f"{file.stem}-tree")) if alone else (out or Path()) / f"{make_unique_drawing_name(file)}-tree"
    path = path.with_suffix("") if path.suffix in (".png", ".svg") else path
    return {ending: str(path.with_name(f"{path.name}{which}.{ending}")) for ending in ("svg", "png")}


def make_unique_drawing_name(file: Path) -> str:
    """A name that no other file of several has, for its drawing: a/page.png becomes a-page.png."""
    return "-".join(part for part in file.parts if part not in (file.anchor, ".", ".."))
