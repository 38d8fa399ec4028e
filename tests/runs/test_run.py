"""Runs: the same bits twice, after a stop anywhere, and after a damaged checkpoint."""

from dataclasses import replace
from pathlib import Path

import pytest

from aggrevated.errors import DataError, UsageError
from aggrevated.recipes import METHODS
from aggrevated.runs.run import Run, execute, only_one
from aggrevated.runs.storage import digest, unseal
from conftest import finished, small, without_time

ROWS = [(method, update) for method, row in METHODS.items() for update in row.updates]


class StoppedError(Exception):
    """Raised in the middle of a run, to stop it there."""


def stop_after(run: Run, iterations: int) -> None:
    """Start or resume the run, and break it off after so many iterations of this sitting."""
    left = [iterations]

    def count(_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise StoppedError

    with pytest.raises(StoppedError):
        execute(run, count, lambda sentence: None)


@pytest.mark.parametrize(("method", "update"), ROWS)
def test_every_method_runs_and_resumes_with_the_same_bits(tmp_path: Path, method: str, update: str) -> None:
    config = small(method, update)
    whole, expected = finished(tmp_path / "whole", config)
    broken = Run.create(tmp_path / "broken", config)
    stop_after(broken, 3)
    stop_after(Run.open(broken.folder), 2)
    result = execute(Run.open(broken.folder), lambda line: None, lambda sentence: None)
    assert result["weights_sha256"] == expected["weights_sha256"]
    assert result["test_return"] == expected["test_return"]
    assert without_time(broken.metrics()) == without_time(whole.metrics())
    last = "checkpoints/000006.safetensors"
    tensors, other = unseal(whole.folder / last)[0], unseal(broken.folder / last)[0]
    assert digest(tensors) == digest(other)


def test_more_iterations_continue_the_same_run(tmp_path: Path) -> None:
    _, expected = finished(tmp_path / "long", small(iterations=8))
    run, _ = finished(tmp_path / "short", small(iterations=4))
    longer = replace(run, config=replace(run.config, iterations=8))
    assert execute(longer, lambda line: None, lambda s: None)["weights_sha256"] == expected["weights_sha256"]


def test_a_run_leaves_what_it_promises(tmp_path: Path) -> None:
    run, result = finished(tmp_path / "run", small())
    names = {path.name for path in run.folder.iterdir()}
    assert {"config.json", "metrics.jsonl", "checkpoints", "policy.safetensors", "result.json"} <= names
    assert (run.folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (run.folder / "curve.svg").read_bytes()
    assert [line["iteration"] for line in run.metrics()] == [1, 2, 3, 4, 5, 6]
    wanted = "task method update seed iterations expert_return initial_return best_return test_return ratio "
    wanted += "simulator_steps oracle_queries seconds run weights_sha256"
    assert set(wanted.split()) <= set(result)
    assert result["weights_sha256"] == digest(run.policy().state_dict())
    line = run.metrics()[0]
    assert {"current_return", "best_return", "loss", "gradient_norm", "kl", "simulator_steps", "seconds"} <= set(line)


def test_another_seed_gives_other_bits(tmp_path: Path) -> None:
    hashes = {finished(tmp_path / str(seed), small(seed=seed))[1]["weights_sha256"] for seed in range(3)}
    assert len(hashes) == 3


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_damaged_checkpoints_are_passed_over(tmp_path: Path, damage: str, count: int, warnings_of: list[str]) -> None:
    run, expected = finished(tmp_path / "run", small())
    newest = sorted((run.folder / "checkpoints").iterdir(), reverse=True)
    for path in newest[:count]:
        data = bytearray(path.read_bytes())
        data[-3] ^= 4
        path.write_bytes({"flip": bytes(data), "truncate": bytes(data[:-40]), "empty": b""}[damage])
    again = execute(run, lambda line: None, warnings_of.append)
    assert again["weights_sha256"] == expected["weights_sha256"]
    assert len(warnings_of) == count and all("damaged" in sentence for sentence in warnings_of)


def test_a_torn_metrics_file_is_mended(tmp_path: Path) -> None:
    run, expected = finished(tmp_path / "run", small())
    lines = without_time(run.metrics())
    path = run.folder / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-150])
    assert execute(run, lambda line: None, lambda s: None)["weights_sha256"] == expected["weights_sha256"]
    assert without_time(run.metrics()) == lines


def test_a_changed_config_is_refused(tmp_path: Path) -> None:
    run, _ = finished(tmp_path / "run", small())
    changed = replace(run, config=replace(run.config, damping=3.0))
    with pytest.raises(DataError, match=r"config\.json was changed"):
        execute(changed, lambda line: None, lambda s: None)


def test_no_run_is_overwritten_and_no_two_write_at_once(tmp_path: Path) -> None:
    run, _ = finished(tmp_path / "run", small())
    with pytest.raises(UsageError, match="exists already"):
        Run.create(run.folder, run.config)
    with only_one(run.folder), pytest.raises(UsageError, match="in use by another process"):
        execute(run, lambda line: None, lambda s: None)


def test_nothing_is_left_by_a_run_that_cannot_begin(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="maps 6 observations to 3 actions, but cartpole has 4 and 2"):
        Run.create(tmp_path / "run", small(expert="acrobot"))
    assert not (tmp_path / "run").exists()
