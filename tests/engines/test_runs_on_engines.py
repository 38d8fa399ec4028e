"""The result of a run depends neither on the engine nor on the block size."""

import json
from dataclasses import asdict
from functools import cache

import pytest

from aggrevated.cli import main
from aggrevated.engines import IN_PROCESS, InProcessEngine
from aggrevated.engines.processes import ProcessEngine
from aggrevated.training.run_folder import Run
from aggrevated.training.trainer import train
from helpers.small_runs import fit_run

FEW = {"iterations": 2, "validation_episodes": 9, "test_episodes": 8}
RUNS = {
    "cartpole": {"task": "cartpole", "horizon": 60, "trajectories": 8, **FEW},
    "mixed": {"task": "cartpole", "horizon": 60, "trajectories": 8, "alpha_start": 0.5, "update": "natural", **FEW},
    "rolled out": {"task": "acrobot", "oracle": "monte-carlo", "horizon": 30, "trajectories": 8, **FEW},
    "lstm": {"task": "acrobot-partial", "policy": "lstm", "horizon": 60, "trajectories": 8, **FEW},
    "hopper": {"task": "hopper", "horizon": 25, "trajectories": 8, **FEW},
    "hopper, critic": {"task": "hopper", "method": "loki", "horizon": 25, "trajectories": 8, **FEW},
    "reinforce": {"task": "cartpole", "method": "reinforce", "horizon": 60, "trajectories": 8, **FEW},
    "algebra": {"task": "algebra", "generated_pages": 12, "trajectories": 8, "iterations": 2, "fit_steps": 4},
    "dagger": {"task": "algebra", "method": "dagger", "policy": "contextual", "generated_pages": 12, "iterations": 2},
}


@cache
def run_result(name: str, folder, engine) -> dict:
    """Train, and return metrics, result and config without times and folder."""
    settings = dict(RUNS[name])
    run = train(settings.pop("task"), settings.pop("method", "aggrevated"), out=folder, engine=engine, **settings)
    found = asdict(run.result())
    lines = [asdict(line) | {"seconds": 0, "cpu_seconds": 0} for line in run.metrics()]
    return {
        "lines": lines,
        **found,
        "seconds": 0,
        "cpu_seconds": 0,
        "run_folder": "",
        "config": (folder / "config.json").read_text(),
    }


@pytest.fixture(scope="module")
def in_process_result(tmp_path_factory):
    """Return a function that gives the result of a run in process, with all trajectories in one block."""
    folder = tmp_path_factory.mktemp("alone")
    return lambda name: run_result(name, folder / name, IN_PROCESS)


@pytest.mark.parametrize("block", [1, 7, 50])
@pytest.mark.parametrize("name", RUNS)
def test_run_result_does_not_depend_on_the_block_size(name, block, in_process_result, tmp_path):
    assert run_result(name, tmp_path / "run", InProcessEngine(block)) == in_process_result(name)


@pytest.mark.parametrize("name", RUNS)
def test_run_result_is_the_same_in_processes(name, in_process_result, tmp_path):
    with ProcessEngine(2, block=3) as engine:
        assert run_result(name, tmp_path / "run", engine) == in_process_result(name)


@pytest.mark.parametrize("name", ["cartpole", "lstm", "hopper", "algebra"])
def test_run_result_is_the_same_on_ray(name, in_process_result, tmp_path, ray_engine):
    assert run_result(name, tmp_path / "run", ray_engine) == in_process_result(name)


def test_run_resumes_with_another_engine(in_process_result, tmp_path):
    class StoppedError(Exception):
        pass

    def stop(line):
        if line.iteration == 1:
            raise StoppedError

    settings = RUNS["cartpole"] | {"checkpoint_every": 1}
    with ProcessEngine(2) as engine, pytest.raises(StoppedError):
        train(settings.pop("task"), out=tmp_path / "run", progress=stop, engine=engine, **settings)
    run = Run.open(tmp_path / "run")
    fit_run(run)
    assert run.result().weights_sha256 == in_process_result("cartpole")["weights_sha256"]


SMALL = "--iterations 2 --horizon 40 --trajectories 3 --validation-episodes 4 --test-episodes 4"


def test_trials_are_the_same_for_any_number_of_workers(tmp_path, capsys):
    found = []
    for engine_options in ("--engine in-process", "--workers 1", "--workers 2"):
        out = tmp_path / engine_options.replace(" ", "")
        main(f"train cartpole {SMALL} --trials 2 --out {out} --json {engine_options}".split())
        trials = json.loads(capsys.readouterr().out)["trials"]
        found.append([trial["weights_sha256"] for trial in trials])
        assert "workers" not in (out / "trial-00/config.json").read_text()
    assert found[0] == found[1] == found[2] and len(set(found[0])) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--engine mpi", "--engine is mpi, but must be one of in-process, processes, ray"),
        ("--workers 0", "--workers is 0, but must be at least 1"),
        ("--block-size 0", "--block-size is 0, but must be at least 1"),
        ("--ray-address 127.0.0.1:1", "--ray-address is for --engine ray"),
        ("--trials 2 --block-size 3", "--block-size has no effect on several runs"),
        ("--engine in-process --workers 2", "--workers has no effect on --engine in-process"),
    ],
)
def test_train_command_refuses_invalid_engine_options(options, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main(f"train cartpole {SMALL} --out {tmp_path / 'run'} {options}".split())
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
