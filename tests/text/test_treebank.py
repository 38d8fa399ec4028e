"""A treebank tells what was left out of it, and which of its trees are not projective."""

import tarfile
import time
from pathlib import Path

import pytest

from aggrevated.errors import DataError, StorageError
from aggrevated.text.projective import is_projective, projectivised, tree_fault
from aggrevated.text.treebank import load

ARCHIVE = Path(__file__).parents[3] / "shared/data/ud/ud_english_ewt.tar.xz"


def rows(*heads: int) -> str:
    """A sentence with these heads, up to its blank line."""
    return "".join(f"{n}\tw{n}\t_\tX\tY\t_\t{head}\tdep\t_\t_\n" for n, head in enumerate(heads, 1)) + "\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "en-dev.conllu"
    path.write_text(text)
    return path


def test_a_whole_treebank_has_nothing_to_say(tmp_path: Path) -> None:
    found = load(written(tmp_path, rows(0) + rows(2, 0)))
    assert [len(one) for one in found.sentences] == [1, 2] and len(found) == 2
    assert not found.counts and found.notice == "" and found.not_projective == found.crossed_arcs == 0


def test_what_is_left_out_and_what_is_lifted_is_told(tmp_path: Path) -> None:
    text = rows(0) + rows(3, 0, 2) + rows(3, 0, 2, 1) + rows(0, 3, 2) * 2 + rows(2, 1) + rows(2, 0)
    found = load(written(tmp_path, text + "# a comment\n\n"))
    assert found.left_out == {"a cycle": 2, "no root": 1} and found.counts.total() == 4
    assert (found.not_projective, found.crossed_arcs) == (2, 3)
    assert found.sentences[1].heads.tolist() == [3, 0, 2]  # its true heads
    assert found.notice == (
        "en-dev.conllu: 3 sentences left out: a cycle (2), no root (1); 2 of 4 trees are not projective: learned from "
        "as lifted, scored against their true heads"
    )


def test_a_file_that_ends_in_the_middle_says_so(tmp_path: Path) -> None:
    found = load(written(tmp_path, rows(0) + rows(2, 0) + rows(2, 9, 0)[:-40]))
    assert len(found) == 2 and found.left_out == {"cut off at the end of the file": 1}
    assert found.notice == (
        "en-dev.conllu: 1 sentence left out: cut off at the end of the file (1); it ends without a newline in line 7: "
        "what is whole up to there is used"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "it has no words"), ("# no words\n\n", r"comments without words \(1\)"), (rows(2, 1), r"no root \(1\)")],
)
def test_one_without_any_tree_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(DataError, match=rf"dev.conllu has no sentence that can be used \({why}\); give a CoNLL-U file"):
        load(written(tmp_path, text))


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot use .*absent: No such file or directory; check the path"):
        load(tmp_path / "absent")
    with pytest.raises(DataError, match=r"is not a regular file; give the path of a file of sentences"):
        load(tmp_path)
    with pytest.raises(DataError, match=r"en-dev.conllu: line 1 has 1 column and not 10"):
        load(written(tmp_path, "words\n"))


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    path = written(tmp_path, rows(0))
    assert load(path) is load(path)
    assert len(load(written(tmp_path, rows(0) * 2))) == 2


# The real data.


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not ARCHIVE.exists():
        pytest.skip(f"the treebank is not part of the project, and {ARCHIVE} is not there")
    folder = tmp_path_factory.mktemp("ud")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize(
    ("part", "sentences", "words", "not_projective", "arcs"),
    [("train", 12_544, 204_577, 288, 354), ("dev", 2_001, 25_147, 31, 36)],
)
def test_a_real_treebank_is_read_whole_and_fast(
    data: Path, part: str, sentences: int, words: int, not_projective: int, arcs: int
) -> None:
    began = time.process_time()
    found = load(data / f"en_ewt-{part}.conllu")
    lifted = [projectivised(one.heads) for one in found.sentences]
    assert time.process_time() - began < 20  # some 1.2 s for train
    assert len(found) == sentences and sum(map(len, found.sentences)) == words and not found.counts
    assert (found.not_projective, found.crossed_arcs) == (not_projective, arcs)
    assert all(is_projective(heads) and tree_fault(heads) is None for heads in lifted)
