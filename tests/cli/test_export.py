"""The command `aggrevated export` writes files that are used without the run."""

import json
from pathlib import Path

import numpy as np
import pytest

from aggrevated import load_policy
from aggrevated.cli import main
from aggrevated.training.run_folder import Run
from helpers.command_line import failure, said

SMALL = ["--iterations", "2", "--trajectories", "2", "--horizon", "30", "--validation-episodes", "3"]
SMALL += ["--test-episodes", "4"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    main(["train", "cartpole", "--out", "run", *SMALL])
    return Run.open("run")


def test_export_command_without_options_writes_policy_and_card_into_the_run(run, capsys):
    facts = json.loads(said(["export", "run", "--json"], capsys))
    assert facts == {"run": "run", "out": "run/p.safetensors", "model_card": "run/card.md"}
    policy = load_policy("run/p.safetensors")
    observation = np.full(4, 0.1, np.float32)
    assert policy.metadata["task"] == "cartpole" and policy.metadata["weights_sha256"] == run.result().weights_sha256
    for sign in (1, -1):
        actions = [either.predict(sign * observation, deterministic=True)[0] for either in (policy, run.policy)]
        assert actions[0] == actions[1]
    assert Path("run/card.md").read_text().startswith("# A policy for")


def test_export_command_writes_checked_onnx_file_with_metadata(run, capsys):
    onnx = pytest.importorskip("onnx", reason="pip install 'aggrevated[onnx]'")
    pytest.importorskip("onnxruntime", reason="pip install 'aggrevated[onnx]'")
    facts = json.loads(said(["export", "run", "--onnx", "p.onnx", "--json"], capsys))
    assert facts["onnx"] == "p.onnx" and 0 <= facts["largest_difference"] <= 1e-5
    assert set(facts) == {"run", "onnx", "largest_difference"} and not Path("run/p.safetensors").exists()
    metadata = {prop.key: prop.value for prop in onnx.load("p.onnx").metadata_props}
    assert metadata["task"] == "cartpole" and metadata["command"].startswith("aggrevated train cartpole")


def test_export_command_exports_the_best_of_several_trials(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["train", "cartpole", "--out", "runs", "--trials", "2", "--engine", "processes", *SMALL])
    best = max((Run.open(f"runs/trial-0{i}") for i in range(2)), key=lambda run: run.result().best_return)
    facts = json.loads(said(["export", "runs", "--out", "p.safetensors", "--json"], capsys))
    assert facts["run"] == str(best.folder) and load_policy("p.safetensors").metadata["seed"] == best.config.loop.seed


@pytest.mark.parametrize("option", ["--out", "--onnx", "--model-card"])
def test_export_command_refuses_other_file_suffixes_before_writing(option, run, capsys):
    code, sentence = failure(["export", "run", option, "p.txt"], capsys)
    assert code == 2 and "a file name that ends in ." in sentence and not Path("p.txt").exists()


def test_export_command_refuses_a_folder_that_is_not_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, sentence = failure(["export", "nowhere"], capsys)
    assert code == 65 and "nowhere is not a run" in sentence
