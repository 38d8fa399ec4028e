"""Runs of the reader's task: generated pages, optional real ink, and the measurements on both."""

import numpy as np
import pytest

from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import UsageError
from aggrevated.training.evaluation import evaluate_run
from aggrevated.training.run_folder import Run
from aggrevated_reader.dataset import load_page_arrays
from aggrevated_reader.learners.reading_policy import ReadingPolicy
from aggrevated_reader.page_reader import LoadedReader
from aggrevated_reader.reader_problem import ReaderEvaluationSettings, ReaderProblemSettings
from aggrevated_reader.splits import load_reader_split
from helpers.handwriting import crohme_like
from helpers.small_runs import fit_run

TINY = {
    "generated_pages": 40,
    "augmented_copies": 1,
    "rasterized_fraction": 0.2,
    "hidden": (8,),
    "embedding_dim": 8,
    "start_steps": 2,
    "demonstrations": 8,
}
SHORT = {"iterations": 2, "validate_every": 1, "trajectories": 3, "checkpoint_every": 1}


@pytest.fixture(scope="module")
def reader_run(tmp_path_factory):
    """A finished run on generated pages alone."""
    run = Run.create(tmp_path_factory.mktemp("runs") / "run", resolve_config("reader", **TINY, **SHORT))
    fit_run(run)
    return run


def test_load_reader_split_mixes_generated_pages_with_real_ink(tmp_path):
    folder = crohme_like(tmp_path / "crohme")
    alone = load_reader_split("", 40, 0, 0.0)
    both = load_reader_split(str(folder), 40, 0, 0.0)
    assert len(alone.train) == 40 and not alone.rewriting
    names = {page.name for page in both.train}
    assert {page.name for page in alone.train} <= names and {page.name for page in both.rewriting} <= names
    assert len(both.rewriting) == 11 and {page.name for page in both.test} == {"000", "001", "002"}
    assert not {page.symbols for page in both.train} & {page.symbols for page in both.validation + both.test}


def test_load_reader_split_rasterizes_the_given_fraction_of_pages(tmp_path):
    plain, some, every = (load_reader_split("", 40, 0, share).train for share in (0.0, 0.4, 1.0))

    def changed_fraction(pages):
        return np.mean(
            [
                any(
                    not np.array_equal(a, b)
                    for x, y in zip(p.ink, q.ink, strict=True)
                    for a, b in zip(x, y, strict=False)
                )
                for p, q in zip(plain, pages, strict=True)
            ]
        )

    assert 0.1 < changed_fraction(some) < 0.8 and changed_fraction(every) > 0.9
    assert [page.symbols for page in plain] == [page.symbols for page in every]


def test_load_page_arrays_labels_every_symbol_by_its_class():
    found = load_page_arrays("", 40, 0, 0, 0.0)
    split = load_reader_split("", 40, 0, 0.0)
    symbols = [symbol for page in (*split.train, *split.validation, *split.test) for symbol in page.symbols]
    assert [found.names[label] if label >= 0 else None for label in found.labels] == [
        symbol if symbol in found.names else None for symbol in symbols
    ]
    assert len(found.features) == len(symbols) == found.corpus.lengths.sum() == len(found.heads)


def test_reader_run_saves_a_policy_that_reads_pages(reader_run, tmp_path):
    policy = reader_run.policy
    assert isinstance(policy, ReadingPolicy) and policy.classes
    page = load_reader_split("", 40, 0, 0.0).test[0]
    (found,) = LoadedReader(policy).read([page])
    assert len(found.labels) == len(page)
    LoadedReader(policy).save(tmp_path / "reader.safetensors")
    back = LoadedReader.load(tmp_path / "reader.safetensors")
    assert back.read([page])[0].labels == found.labels
    assert back.metadata["task"] == "reader" and back.metadata["command"].startswith("aggrevated train reader --")
    assert {"test_uas", "test_names"} <= {*reader_run.metrics()[-1].more}


def test_evaluate_run_of_reader_measures_names_kinds_and_calibration(reader_run, tmp_path):
    facts = evaluate_run(reader_run, ReaderEvaluationSettings()).more
    assert facts["uas_micro"] == pytest.approx(reader_run.result().more["uas_micro"])
    assert 0 <= facts["names"] <= 1 and 0 <= facts["calibration_error"] <= 1 and "brackets" in facts["by_page"]
    folder = crohme_like(tmp_path / "ink")
    (folder / "dev" / "broken.inkml").write_text("<ink>")
    real = evaluate_run(reader_run, ReaderEvaluationSettings(str(folder), verbose=True)).more
    assert real["by_page"]["core"]["pages"] == 3 and sum(real["left_out"].values()) == 1
    assert list(real["files_left_out"].values()) == [("broken.inkml",)]


def test_resolve_config_notice_counts_unusable_files(tmp_path):
    folder = crohme_like(tmp_path / "ink")
    (folder / "train" / "broken.inkml").write_text("<ink>")
    for task in ("reader", "algebra"):
        notice = resolve_config(task, crohme=str(folder)).problem.notice
        assert "1 of 13 InkML files cannot be used" in notice and notice.count("\n") == 0


def test_reader_task_rejects_single_writer():
    with pytest.raises(UsageError, match="--single-writer has no effect on pages by many writers"):
        resolve_config("reader", single_writer=True)
    assert ReaderProblemSettings().label == ""
