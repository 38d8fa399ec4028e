"""Realistic pages are read right, and none is wrong without a doubt."""

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from thirty_pages import PAGES, main


@pytest.mark.timeout(300)
def test_builtin_reader_reads_most_photographed_pages_and_none_silently_wrong(tmp_path: Path) -> None:
    answers = main(tmp_path)
    counts = Counter(answers.values())
    assert len(PAGES) >= 30 and counts["right"] >= 27 and counts["wrong"] == 0, answers
