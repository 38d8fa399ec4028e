"""Splits of pages for a reader: validation pages are not training pages."""

from aggrevated.parsing.splits import load_crohme_split
from aggrevated_reader import splits
from helpers.handwriting import crohme_like


def test_load_reader_split_never_trains_on_validation_strings(tmp_path, monkeypatch):
    """Also where a generated validation page equals one of the real expressions."""
    crohme_like(tmp_path)
    ink = load_crohme_split(tmp_path, 0, core=False)
    monkeypatch.setattr(splits, "generate_pages", lambda count, seed: ink.train[:2])
    split = splits.load_reader_split(str(tmp_path), 20, 0, 0.0)
    chosen_on = {page.symbols for page in split.validation}
    assert chosen_on & {page.symbols for page in ink.train} and split.rewriting
    assert not chosen_on & {page.symbols for page in [*split.train, *split.rewriting]}
