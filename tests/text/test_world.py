"""The task `text`: its world, its settings, what it refuses, and that it learns."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aggrevated.config.building import set_up
from aggrevated.config.resolving import resolve
from aggrevated.errors import DataError, IdleError, StorageError, UsageError
from aggrevated.runs.executing import train
from aggrevated.tasks import find_task
from aggrevated.text.conllu import write_conllu
from aggrevated.text.generated import generated
from aggrevated.text.policy import SentencePolicy
from aggrevated.text.reading import SentenceReader
from aggrevated.text.scoring import TextScore
from aggrevated.text.world import OnSentences

TEXT = find_task("text")
SMALL = {"hidden": (24,), "word": 24, "width": 32, "rows": 512}


def written(path: Path, sentences) -> Path:
    blocks = [write_conllu(one, one.heads, one.labels, [""] * len(one)) for one in sentences]
    path.write_text("".join(blocks))
    return path


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("treebank")
    sentences = generated(120, seed=4)
    return written(folder / "train.conllu", sentences[:100]), written(folder / "dev.conllu", sentences[100:])


def test_a_treebank_is_learned_from_chosen_on_and_reported(treebank):
    train_file, dev_file = map(str, treebank)
    config = resolve(TEXT, data=train_file, dev=dev_file, **SMALL)
    library = config.world.library()
    assert len(library.train) == 100 and len(library.validation) == 20
    assert np.array_equal(library.test, library.validation)
    assert "--dev" in config.world.notice
    with_test = resolve(TEXT, data=train_file, dev=dev_file, test=dev_file, **SMALL).world
    assert len(with_test.library().test) == 20 and "--test" not in with_test.notice
    split = resolve(TEXT, data=train_file, **SMALL).world.library()
    assert [len(part) for part in (split.train, split.validation, split.test)] == [80, 10, 10]


def test_what_does_not_fit_is_refused_in_a_sentence(treebank, tmp_path):
    train_file, dev_file = map(str, treebank)
    with pytest.raises(UsageError, match="--dev needs --data"):
        resolve(TEXT, dev=dev_file)
    with pytest.raises(UsageError, match="--test needs --dev"):
        resolve(TEXT, data=train_file, test=dev_file)
    with pytest.raises(IdleError, match="--sentences has no effect"):
        resolve(TEXT, data=train_file, sentences=50)
    with pytest.raises(StorageError):
        resolve(TEXT, data=str(tmp_path / "none.conllu"), **SMALL).world.library()
    few = written(tmp_path / "few.conllu", generated(5, seed=0))
    with pytest.raises(DataError, match="too few to split"):
        resolve(TEXT, data=str(few), **SMALL).world.library()
    with pytest.raises(DataError, match="--longest"):
        resolve(TEXT, data=train_file, longest=1, **SMALL).world.library()


def test_it_learns_generated_sentences(tmp_path):
    """A short run comes far above where it began, knows what it does not know, and parses what it never saw."""
    run = train(
        "text", out=tmp_path / "run", sentences=400, iterations=30, validate_every=15, trajectories=32, seed=1,
        fit_rate=0.01, dropout=0.1, **SMALL,
    )  # fmt: skip
    result = run.result()
    assert result is not None
    first, best = run.metrics()[0], result.best_return
    assert best > 0.5 > first.current_return, (first, best)
    facts = result.facts()
    assert set(TextScore.__dataclass_fields__) - {"expert_episodes"} <= set(facts)
    assert facts["uas"] > 0.6 and facts["calibration_error"] < 0.08
    policy = run.policy
    assert isinstance(policy, SentencePolicy)
    (parsed,) = SentenceReader(policy).parse_text("the old dog sees a small house .")
    assert parsed.sentence.words[1] == "old" and (parsed.heads == 0).sum() == 1
    assert 0 <= parsed.expected_loss <= len(parsed.sentence)
    assert parsed.conllu().count("ExpectedLoss=") == 8 and "# expected_loss = " in parsed.conllu()


def test_a_policy_that_sees_tags_wants_them(tmp_path):
    run = train("text", out=tmp_path / "run", sentences=40, iterations=1, validate_every=1, trajectories=2,
                see_tags=True, **SMALL)  # fmt: skip
    reader = SentenceReader(run.policy)
    with pytest.raises(DataError, match="--see-tags"):
        reader.parse_text("a dog sleeps")
    assert len(list(reader.parse(generated(3, seed=9)))) == 3


def test_sentences_come_out_in_their_order_with_the_same_parse_alone_and_together(tmp_path):
    run = train("text", out=tmp_path / "run", sentences=40, iterations=1, validate_every=1, trajectories=2, **SMALL)
    reader, sentences = SentenceReader(run.policy), generated(30, seed=11)
    together = list(reader.parse(iter(sentences)))
    assert [one.sentence for one in together] == sentences
    for one in together[::9]:
        (alone,) = reader.read([one.sentence])
        assert np.array_equal(alone.heads, one.heads) and alone.labels == one.labels
        np.testing.assert_allclose(alone.arc_right, one.arc_right, atol=1e-5)


def test_tags_that_are_to_be_seen_have_to_be_there(tmp_path, treebank):
    bare = [replace(one, tags=("_",) * len(one)) for one in generated(30, seed=2)]
    path = written(tmp_path / "bare.conllu", bare)
    with pytest.raises(DataError, match="--see-tags"):
        set_up(resolve(TEXT, data=str(path), see_tags=True, **SMALL))
    config = resolve(TEXT, data=str(treebank[0]), see_tags=True, **SMALL)
    with pytest.raises(DataError, match="--see-tags"):
        OnSentences(conllu=str(path)).measure(config.world, set_up(config).learner.policy)


def test_a_file_that_was_written_again_is_read_again(tmp_path):
    path = written(tmp_path / "data.conllu", generated(30, seed=2))
    world = resolve(TEXT, data=str(path), **SMALL).world
    before = world.library().key
    written(path, generated(31, seed=3))
    assert world.library().key != before


def test_names_that_cannot_be_printed_are_no_classes(tmp_path):
    odd = [replace(one, labels=("a\u00a0b", *one.labels[1:])) for one in generated(30, seed=2)]
    config = resolve(TEXT, data=str(written(tmp_path / "odd.conllu", odd)), **SMALL)
    assert "a\u00a0b" not in set_up(config).learner.policy.label_names


def test_text_in_python_is_cut_like_text_in_files():
    policy = set_up(resolve(TEXT, sentences=40, **SMALL)).learner.policy
    reader = SentenceReader(policy)
    assert reader.read([]) == [] and reader.parse_text("") == []
    assert [len(one.sentence) for one in reader.parse_text("w " * 1100)] == [500, 500, 100]


def test_what_an_evaluation_leaves_out_is_said(tmp_path, treebank):
    config = resolve(TEXT, data=str(treebank[0]), **SMALL)
    policy = set_up(config).learner.policy
    round_about = replace(generated(1, seed=5)[0], words=("a", "b", "c"), heads=np.array([2, 1, 0]),
                          labels=("det", "dep", "root"), tags=("X",) * 3, fine_tags=("_",) * 3)  # fmt: skip
    path = written(tmp_path / "some.conllu", [*generated(4, seed=6), round_about])
    facts = OnSentences(conllu=str(path)).measure(config.world, policy)
    assert facts["sentences"] == 4 and facts["left_out"] == {"a cycle": 1} and "ended" not in facts
    whole = written(tmp_path / "cut.conllu", generated(4, seed=6)).read_text()
    path.write_text(whole[:-9])  # in the middle of the last line
    facts = OnSentences(conllu=str(path), reliability=True).measure(config.world, policy)
    assert facts["sentences"] == 3 and "newline" in facts["ended"] and facts["reliability"]["heads"]
