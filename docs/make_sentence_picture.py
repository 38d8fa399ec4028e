"""Make docs/images/sentence-tree.png, from generated sentences only: `python docs/make_sentence_picture.py`."""

from pathlib import Path
from tempfile import TemporaryDirectory

import aggrevated
from aggrevated.plots.sentence_tree import draw_sentence

SENTENCE = "The old teacher who knows Anna saw the small dog with a telescope yesterday ."
IMAGES = Path(__file__).parent / "images"
SETTINGS = {"sentences": 1000, "iterations": 60, "trajectories": 32, "validate_every": 20, "fit_rate": 0.01}
SMALL = {"hidden": (32,), "word": 32, "width": 48, "rows": 1024, "dropout": 0.1}

if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        run = aggrevated.train("text", out=Path(folder) / "run", seed=0, **SETTINGS, **SMALL)
        reader = aggrevated.load_sentence_reader(run.folder)
        (parsed,) = reader.parse_text(SENTENCE)
        print(parsed.conllu())
        draw_sentence(parsed, IMAGES / "sentence-tree")
    (IMAGES / "sentence-tree.svg").unlink(missing_ok=True)
