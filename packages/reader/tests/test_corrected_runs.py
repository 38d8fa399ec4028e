"""Runs on corrected pages: misread pages are read right afterwards, with any way to use the run; all else stays."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aggrevated.config.resolver import config_from_dict, resolve_config
from aggrevated.core.errors import DataError, UnusedSettingError, UsageError
from aggrevated.parsing.pages.page import Page
from aggrevated.storage import digest_tensors
from aggrevated.training.evaluation import evaluate_run
from aggrevated.training.run_folder import Run
from aggrevated.training.trainer import train
from aggrevated_reader import corrected_pages_problem, load_reader
from aggrevated_reader.learners.shipped_reader import load_builtin_reader
from aggrevated_reader.pages.generated import generate_page
from aggrevated_reader.pages.inkml_writing import to_inkml
from aggrevated_reader.reader_problem import ReaderEvaluationSettings
from helpers.small_runs import assert_resume_is_bit_identical, create_and_run, fit_run

SHORT = {"iterations": 4, "validate_every": 2, "trajectories": 4, "checkpoint_every": 1}
BOLD = {"iterations": 40, "validate_every": 20, "trajectories": 12, "learning_rate": 2e-3}


@pytest.fixture(scope="module", autouse=True)
def use_few_pages() -> Iterator[None]:
    """Use few pages besides the corrected ones."""
    with pytest.MonkeyPatch.context() as patch:
        for name, count in (("BESIDE", 30), ("CHOSEN_ON", 8), ("REPORTED", 8), ("OWN", 20), ("OWN_CHOSEN_ON", 4)):
            patch.setattr(corrected_pages_problem, name, count)
        yield


@pytest.fixture(scope="module")
def page() -> Page:
    """Return 1337≥-sinζ: the builtin reader misplaces `-` and `sin` and has no class ζ."""
    page = generate_page(18, 5, structures=False)
    return replace(page, symbols=(*page.symbols[:-1], "ζ"))


@pytest.fixture(scope="module")
def folder(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with only this page, corrected."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "page.inkml").write_bytes(to_inkml(page))
    return folder


@pytest.fixture(scope="module")
def trained_run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that learned the page, with large steps as there are few."""
    return create_and_run(
        tmp_path_factory.mktemp("runs") / "run", resolve_config("reader", corrected_pages=str(folder), **BOLD)
    )[0]


def test_corrected_run_reads_the_corrected_page_right(
    page: Page, folder: Path, trained_run: Run, tmp_path: Path
) -> None:
    before = load_reader().parse(folder / "page.inkml")
    assert before.heads != page.heads.tolist() and before.reading.labels[-1] == "a"
    after = load_reader(trained_run.folder).parse(folder / "page.inkml")
    assert after.heads == page.heads.tolist() and after.reading.labels == page.symbols
    load_reader(trained_run.folder).reads.save(tmp_path / "reader.safetensors")  # type: ignore[attr-defined]
    exported = load_reader(tmp_path / "reader.safetensors")
    assert exported.parse(folder / "page.inkml").text == after.text
    assert exported.metadata["task"] == "reader" and "--corrected-pages" in exported.metadata["command"]


def test_corrected_run_result_has_scores_before_and_after(trained_run: Run) -> None:
    metrics = fit_run(trained_run).more
    assert metrics["before_corrected_uas"] < metrics["corrected_uas"] == 1.0 and metrics["corrected_sets"] == 1
    assert metrics["before_corrected_names"] == 7 / 8 and metrics["corrected_names"] == 1.0
    assert metrics["test_return"] <= min(metrics["uas_micro"], metrics["names"]) and metrics["pages"] == 8
    assert {"corrected_uas", "corrected_names", "test_uas", "test_names"} <= {*trained_run.metrics()[-1].more}
    assert evaluate_run(trained_run, ReaderEvaluationSettings()).more["uas_micro"] == pytest.approx(
        metrics["uas_micro"]
    )


def test_evaluate_run_on_corrected_run_repeats_its_result(trained_run: Run) -> None:
    again = evaluate_run(trained_run, ReaderEvaluationSettings())
    result = trained_run.result()
    assert result is not None
    for name in ("test_return", "ratio", "uas_micro", "names", "test_standard_error"):
        assert again.to_dict()[name] == pytest.approx(result.to_dict()[name]), name


def test_evaluate_run_reads_other_corrected_pages(page: Page, trained_run: Run, tmp_path: Path) -> None:
    (tmp_path / "page.inkml").write_bytes(to_inkml(page))
    (tmp_path / "unknown.inkml").write_bytes(to_inkml(page, heads=False))
    found = evaluate_run(trained_run, ReaderEvaluationSettings(corrected_pages=str(tmp_path), verbose=True)).more
    assert found["uas_micro"] == found["names"] == 1.0 and found["pages"] == 1
    assert list(found["files_left_out"].values()) == [("unknown.inkml",)]
    with pytest.raises(UsageError, match="--crohme and --corrected-pages name different pages; give one of them"):
        evaluate_run(trained_run, ReaderEvaluationSettings("ink", str(tmp_path)))


def test_corrected_run_starts_from_the_builtin_reader_with_its_classes(folder: Path, tmp_path: Path) -> None:
    still = {**SHORT, "iterations": 1, "validate_every": 1, "learning_rate": 1e-12}
    run, result = create_and_run(tmp_path / "run", resolve_config("reader", corrected_pages=str(folder), **still))
    known = load_builtin_reader()
    policy = run.policy
    own = {name: w for name, w in policy.state_dict().items() if name not in ("names", "sureness", "costs.correction")}
    assert digest_tensors(own) == digest_tensors({name: known.state_dict()[name] for name in own})
    assert policy.classes == (*known.classes, "ζ")  # type: ignore[attr-defined]
    assert result.more["uas_micro"] == result.more["before_uas"] and result.start_simulator_steps == 0
    assert evaluate_run(run, ReaderEvaluationSettings(corrected_pages=str(folder))).more["names"] == 7 / 8
    assert evaluate_run(run, ReaderEvaluationSettings()).more["names"] == pytest.approx(result.more["before_names"])


def test_corrected_run_resumes_bit_identically(folder: Path, tmp_path: Path) -> None:
    assert_resume_is_bit_identical(tmp_path, resolve_config("reader", corrected_pages=str(folder), **SHORT), 1, 2)


def test_corrected_run_rejects_a_changed_page_on_resume(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "page.inkml").write_bytes(to_inkml(page))
    run, _ = create_and_run(tmp_path / "run", resolve_config("reader", corrected_pages=str(folder), **SHORT))
    longer = Run(run.folder, run.config.with_settings(iterations=6))
    (folder / "page.inkml").write_bytes(to_inkml(replace(page, symbols=("2", *page.symbols[1:]))))
    with pytest.raises(DataError):
        fit_run(Run(longer.folder, config_from_dict(longer.config.to_dict(), "config.json")))


@pytest.mark.parametrize("method", ["aggrevated", "aggrevate", "dagger", "sl", "reinforce", "sl-rl"])
def test_every_method_on_corrected_pages_starts_from_the_builtin_reader(method: str) -> None:
    config = resolve_config("reader", method, corrected_pages="folder")
    assert (config.policy.name, config.start.name) == ("builtin", "builtin")
    assert config.problem.label == ", corrected pages" and config.problem.metric_name == "heads with names"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"crohme": "ink"}, "--crohme has no effect on corrected pages; leave out one of the two"),
        ({"generated_pages": 40}, "--generated-pages has no effect on corrected pages"),
        ({"augmented_copies": 3}, "--augmented-copies has no effect on corrected pages"),
        ({"single_writer": True}, "--single-writer has no effect on pages by many writers"),
        ({"hidden": (64,)}, "--hidden has no effect on the policy builtin"),
    ],
)
def test_resolve_config_rejects_settings_without_effect_on_corrected_pages(
    given: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UnusedSettingError, match=sentence):
        resolve_config("reader", corrected_pages="folder", **given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"corrected_pages": "folder", "policy": "reading"},
            "--policy is reading, but must be builtin with --corrected-pages, which train the builtin reader",
        ),
        (
            {"corrected_pages": "folder", "transition_system": "arc-hybrid"},
            "--transition-system is arc-hybrid, but must be arc-eager with --corrected-pages",
        ),
        (
            {"policy": "builtin"},
            "--policy is builtin, but must be another one without --corrected-pages; or give --corrected-pages",
        ),
        ({"start": "builtin"}, "--start is builtin, but must be another one: it fits --policy builtin only"),
    ],
)
def test_resolve_config_rejects_components_that_do_not_fit_corrected_pages(
    given: dict[str, str], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        resolve_config("reader", **given)


def test_corrected_run_rejects_empty_folder_without_making_a_run(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    with pytest.raises(DataError, match=r"holds no \.inkml files"):
        train("reader", out=tmp_path / "run", corrected_pages=str(tmp_path / "pages"), **SHORT)
    assert not (tmp_path / "run").exists()
