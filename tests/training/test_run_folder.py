"""Runs are reproducible bit for bit, also after a stop anywhere and after a damaged checkpoint."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from aggrevated.config import Config
from aggrevated.config.resolver import REGISTRIES, resolve_config
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.hardware import THREADS_VARIABLE
from aggrevated.experts.loading import BUILTIN_WEIGHTS
from aggrevated.kernels.numerics import KERNEL_OUTPUTS_KEY, compute_numerics_fingerprint
from aggrevated.methods import ANY_COMPATIBLE, METHODS, TAKEN_ACTION
from aggrevated.oracles.critic import CriticOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.storage import digest_tensors, exclusive_lock, load_checksummed, save_checksummed
from aggrevated.training.run_folder import Run, check_folder_unused
from aggrevated.training.session import ignore_message
from aggrevated.training.trainer import Trainer, train
from helpers.small_runs import (
    SMALL,
    assert_resume_is_bit_identical,
    create_and_run,
    fit_run,
    make_small_config,
    stop_after,
    without_time,
)

UPDATES = REGISTRIES["update"].names()
ROWS = [
    (method, update)
    for method, row in METHODS.items()
    for update in (UPDATES if ANY_COMPATIBLE in row.updates else row.updates)
    if (method, update) != ("sl", "natural")  # these do not fit together, nor does
    if update not in ("follow-the-leader", "searn", "smile") or row.losses != TAKEN_ACTION
]


@pytest.mark.parametrize(("method", "update"), ROWS)
def test_run_of_every_method_resumes_bit_for_bit(tmp_path: Path, method: str, update: str) -> None:
    assert_resume_is_bit_identical(tmp_path, make_small_config(method, update), 3, 2)


@pytest.mark.parametrize(
    ("method", "update", "horizon"),
    [
        ("aggrevated", "regular", 110),
        ("aggrevated", "natural", 110),
        ("aggrevated", "exponentiated", 110),
        ("dagger", "follow-the-leader", 20),
    ],
)
@pytest.mark.parametrize("policy", ["lstm", "gru", "window"])
def test_run_with_recurrent_or_window_policy_resumes_bit_for_bit(
    tmp_path: Path, policy: str, method: str, update: str, horizon: int
) -> None:
    """The expert often acts, so episodes end at different times and the memory must drop trajectories."""
    few = SMALL | {"iterations": 3, "trajectories": 4, "horizon": horizon, "test_episodes": 10, "checkpoint_every": 1}
    often = {"alpha_start": 0.9, "alpha_decay": 0.9}
    config = resolve_config("acrobot-partial", method, update=update, policy=policy, hidden=(8,), **few, **often)
    assert_resume_is_bit_identical(tmp_path, config, 1, 1)
    lines = Run.open(tmp_path / "whole").metrics()
    assert len({line.kl for line in lines}) == 3 and all(line.kl > 0 for line in lines)  # the policy changed
    assert horizon == 20 or any(line.roll_in_return > -horizon for line in lines)  # episodes ended


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("tnpg", {"oracle": "critic"}),
        ("reinforce", {"oracle": "critic", "policy": "lstm", "gae_lambda": 0.5}),
        ("sl-rl", {"oracle": "critic", "entropy": 0.1}),
        ("loki", {"reinforcement": "critic", "imitation_max": 3}),
        ("loki", {"reinforcement": "critic", "imitation_max": 9}),  # still imitating while the critic learns
    ],
)
def test_run_with_critic_saves_it_and_resumes_bit_for_bit(tmp_path: Path, method: str, given: dict[str, Any]) -> None:
    assert_resume_is_bit_identical(tmp_path, make_small_config(method, **given), 3, 2)
    tensors, _ = load_checksummed(tmp_path / "whole/checkpoints/000006.safetensors")
    assert any(name.startswith("oracle.") and name.endswith("network.0.weight") for name in tensors)


def test_resume_check_notices_a_critic_that_is_not_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CriticOracle, "restore", lambda self, state: None)
    with pytest.raises(AssertionError):
        assert_resume_is_bit_identical(tmp_path, make_small_config("tnpg", oracle="critic"), 3)


@pytest.mark.parametrize(("method", "update"), [("reinforce", "regular"), ("tnpg", "natural")])
def test_reinforcement_learning_run_with_lstm_resumes_bit_for_bit(tmp_path: Path, method: str, update: str) -> None:
    few = SMALL | {"iterations": 3, "trajectories": 4, "test_episodes": 10}
    assert_resume_is_bit_identical(
        tmp_path, resolve_config("cartpole", method, update=update, policy="lstm", **few), 1, 1
    )


FEW = {"trajectories": 4, "horizon": 10, "validation_episodes": 5, "test_episodes": 5}


def make_hopper_config(method: str = "aggrevated", **given: Any) -> Config:
    """Return the config of a short run of Hopper with a small supervised start."""
    supervised = resolve_config("hopper", method, **given).start.name == "supervised"
    return resolve_config("hopper", method, **FEW, **given, **({"start_steps": 20} if supervised else {}))


@pytest.mark.parametrize(
    ("method", "update", "given"),
    [
        ("aggrevated", "natural", {"query_steps": 3}),
        ("aggrevated", "regular", {"query_steps": 0}),
        ("aggrevated", "natural", {"oracle": "value-function", "start": "random", "alpha_start": 0.5}),
        ("aggrevated", "natural", {"policy": "lstm", "hidden": (8,)}),
        ("dagger", "follow-the-leader", {}),
        ("reinforce", "regular", {"start": "supervised"}),
        ("tnpg", "natural", {}),
        ("thor", "natural", {"planning_horizon": 3}),
    ],
)
def test_hopper_run_resumes_bit_for_bit(tmp_path: Path, method: str, update: str, given: dict[str, Any]) -> None:
    config = make_hopper_config(method, update=update, iterations=4, checkpoint_every=1, **given)
    assert_resume_is_bit_identical(tmp_path, config, 2)
    lines = Run.open(tmp_path / "whole").metrics()
    assert len({line.kl for line in lines}) == 4 and all(line.kl > 0 for line in lines)  # the policy changed
    oracle_steps = [line.oracle_steps for line in lines]
    rolled_out = config.oracle.name == "monte-carlo" and method == "aggrevated"
    assert (0 < oracle_steps[0] < oracle_steps[1] < oracle_steps[2] < oracle_steps[3]) == rolled_out and (
        oracle_steps[3] > 0
    ) == rolled_out
    assert lines[-1].diverged_trajectories == 0


@pytest.mark.parametrize("update", ["exponentiated", "natural"])
def test_hopper_run_weights_do_not_depend_on_the_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update: str
) -> None:
    found = set()
    for threads in ("1", "3"):
        monkeypatch.setenv(THREADS_VARIABLE, threads)
        config = make_hopper_config(update=update, iterations=2, query_steps=3)
        found.add(create_and_run(tmp_path / threads, config)[1].weights_sha256)
    assert len(found) == 1


def test_hopper_run_counts_all_steps_and_queries(tmp_path: Path) -> None:
    """K = 4 episodes of H = 10 steps, none ends early: demonstrations, 2 roll-ins, and 2 · 4 · 3 queries in pairs."""
    config = make_hopper_config(update="natural", iterations=2, query_steps=3)
    run, result = create_and_run(tmp_path / "run", config)
    assert result.oracle_queries == 40 + 2 * 4 * 3
    assert result.simulator_steps - result.oracle_steps == 40 + 2 * 40
    assert 2 * 2 * 4 * (1 + 2 + 3) <= result.oracle_steps <= 2 * 2 * 4 * (8 + 9 + 10)
    assert result.oracle_steps == run.metrics()[-1].oracle_steps


@pytest.mark.parametrize("update", ["exponentiated", "regular"])
@pytest.mark.parametrize("policy", ["lstm", "gru", "window", "mlp"])
def test_run_policy_has_the_class_and_weights_of_its_config(tmp_path: Path, policy: str, update: str) -> None:
    """`Run.policy` returns a policy of the configured class, not one with equal shapes and another class."""
    few = SMALL | {"iterations": 1, "trajectories": 2, "test_episodes": 4, "validation_episodes": 4}
    run, result = create_and_run(
        tmp_path / "run", resolve_config("acrobot-partial", update=update, policy=policy, **few)
    )
    chosen = Run.open(run.folder).policy
    assert isinstance(chosen, {"mlp": FeedForwardPolicy, "window": WindowPolicy}.get(policy, RecurrentPolicy))
    if isinstance(chosen, RecurrentPolicy):
        assert isinstance(chosen.recurrent, {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[policy])
        assert chosen.recurrent.hidden_size == 32  # as in the paper, for every update
    assert digest_tensors(chosen.state_dict()) == result.weights_sha256


@pytest.mark.parametrize("policy", ["lstm", "gru"])
def test_recurrent_policy_refuses_several_widths(policy: str) -> None:
    with pytest.raises(UsageError, match=f"--hidden is .* one width for the policy {policy}"):
        resolve_config("acrobot-partial", "aggrevated", policy=policy, hidden=(16, 16))


def test_run_with_more_iterations_continues_to_the_same_weights(tmp_path: Path) -> None:
    _, expected = create_and_run(tmp_path / "long", make_small_config(iterations=8))
    run, _ = create_and_run(tmp_path / "short", make_small_config(iterations=4))
    longer = replace(run, config=run.config.with_settings(iterations=8))
    assert fit_run(longer).weights_sha256 == expected.weights_sha256


def test_run_folder_has_all_documented_files_and_fields(tmp_path: Path) -> None:
    run, result = create_and_run(tmp_path / "run", make_small_config())
    names = {path.name for path in run.folder.iterdir()}
    assert {"config.json", "metrics.jsonl", "checkpoints", "policy.safetensors", "result.json"} <= names
    assert (run.folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (run.folder / "curve.svg").read_bytes()
    assert [line.iteration for line in run.metrics()] == [1, 2, 3, 4, 5, 6]
    wanted = "task method update seed iterations expert_return initial_return best_return test_return ratio "
    wanted += "simulator_steps oracle_queries seconds run_folder weights_sha256"
    assert set(wanted.split()) <= set(result.to_dict())
    assert result.weights_sha256 == digest_tensors(run.policy.state_dict())
    line = run.metrics()[0]
    assert {"current_return", "best_return", "loss", "gradient_norm", "kl", "simulator_steps", "seconds"} <= set(
        line.to_dict()
    )


def test_runs_with_different_seeds_have_different_weights(tmp_path: Path) -> None:
    hashes = {create_and_run(tmp_path / str(seed), make_small_config(seed=seed))[1].weights_sha256 for seed in range(3)}
    assert len(hashes) == 3


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_run_skips_damaged_checkpoints_with_a_warning(tmp_path: Path, damage: str, count: int) -> None:
    sentences: list[str] = []
    run, expected = create_and_run(tmp_path / "run", make_small_config())
    newest = sorted((run.folder / "checkpoints").iterdir(), reverse=True)
    for path in newest[:count]:
        data = bytearray(path.read_bytes())
        data[-3] ^= 4
        path.write_bytes({"flip": bytes(data), "truncate": bytes(data[:-40]), "empty": b""}[damage])
    (run.folder / "result.json").unlink()
    again = fit_run(run, warn=sentences.append)
    assert again.weights_sha256 == expected.weights_sha256
    assert sum(" is damaged" in sentence for sentence in sentences) == count
    assert any("restarting the run" in sentence for sentence in sentences) == (count == 3)


def test_run_repairs_a_truncated_metrics_file(tmp_path: Path) -> None:
    run, expected = create_and_run(tmp_path / "run", make_small_config())
    lines = without_time(run.metrics())
    path = run.folder / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-150])
    (run.folder / "result.json").unlink()
    assert fit_run(run).weights_sha256 == expected.weights_sha256
    assert without_time(run.metrics()) == lines


@pytest.mark.parametrize(("update", "own"), [("natural", {"damping": 3.0}), ("exponentiated", {"temperature": 0.3})])
def test_run_refuses_a_changed_config(tmp_path: Path, update: str, own: dict[str, Any]) -> None:
    run, _ = create_and_run(tmp_path / "run", make_small_config(update=update))
    (run.folder / "result.json").unlink()
    for settings in (own, {"hidden": (32,)}):
        changed = replace(run, config=run.config.with_settings(**settings))
        with pytest.raises(DataError, match=r"its expert or its pages changed"):
            fit_run(changed)
        assert Run.open(run.folder).config == run.config  # nothing is written before validation
    with pytest.raises(DataError, match=r"does not match policy\.safetensors"):
        _ = replace(run, config=run.config.with_settings(hidden=(32,))).policy


@pytest.mark.parametrize(
    ("there", "words"),
    [({"numpy": "1.0"}, r"numpy 1\.0 \(here "), ({KERNEL_OUTPUTS_KEY: "0"}, "a processor that rounds differently")],
)
def test_run_of_another_machine_is_refused_without_ignore_numerics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: dict[str, str], words: str
) -> None:
    run = Run.create(tmp_path / "run", make_small_config())
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(
            "aggrevated.training.session.compute_numerics_fingerprint", lambda: compute_numerics_fingerprint() | there
        )
        stop_after(run, 3)
    with pytest.raises(DataError, match=f"was started with {words}.*--ignore-numerics"):
        fit_run(run)
    warnings: list[str] = []
    fit_run(run, warn=warnings.append, ignore_numerics=True)
    assert len(warnings) == 1 and "would have other bits" in warnings[0]
    fit_run(Run.open(run.folder))  # this run has ended


def test_run_moved_to_another_folder_reports_the_new_folder(tmp_path: Path) -> None:
    run, _ = create_and_run(tmp_path / "run", make_small_config())
    moved = Run.open(run.folder.rename(tmp_path / "elsewhere"))
    assert fit_run(moved).run_folder == str(tmp_path / "elsewhere")


def test_run_does_not_blame_its_folder_for_errors_of_callbacks(tmp_path: Path) -> None:
    def raise_broken_pipe(_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(BrokenPipeError):
        fit_run(Run.create(tmp_path / "run", make_small_config()), raise_broken_pipe)


def test_run_refuses_another_expert_under_the_same_name(tmp_path: Path) -> None:
    weights, card = load_checksummed(BUILTIN_WEIGHTS / "cartpole.safetensors")
    save_checksummed(tmp_path / "mine.safetensors", weights, card)
    run = Run.create(tmp_path / "run", make_small_config(expert=str(tmp_path / "mine.safetensors")))
    stop_after(run, 3)
    save_checksummed(tmp_path / "mine.safetensors", {name: -w for name, w in weights.items()}, card)
    with pytest.raises(DataError, match="its expert or its pages changed"):
        fit_run(Run.open(run.folder))  # the config holds the loaded expert


def test_run_with_more_iterations_has_no_result_until_it_ends(tmp_path: Path) -> None:
    run, result = create_and_run(tmp_path / "run", make_small_config(iterations=4))
    longer = replace(run, config=run.config.with_settings(iterations=40))
    stop_after(longer, 3)
    again = Run.open(run.folder)
    assert again.config.loop.iterations == 40 and again.result() is None
    assert (
        again.load_partial_result().iterations == 6
        and again.load_partial_result().initial_return == result.initial_return
    )
    with exclusive_lock(run.folder), pytest.raises(UsageError, match="in use"):
        fit_run(replace(run, config=run.config.with_settings(iterations=80)))
    assert Run.open(run.folder).config.loop.iterations == 40


def test_run_refuses_an_existing_folder_and_a_second_writer(tmp_path: Path) -> None:
    run, _ = create_and_run(tmp_path / "run", make_small_config())
    with pytest.raises(UsageError, match="exists already"):
        Run.create(run.folder, run.config)
    with exclusive_lock(run.folder), pytest.raises(UsageError, match="in use by another process"):
        fit_run(run)
    with pytest.raises(UsageError, match=r"exists already: choose another"):
        check_folder_unused(tmp_path)


def test_train_leaves_no_folder_when_an_expert_cannot_be_built(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="maps 6 observations to 3 actions, but cartpole has 4 and 2"):
        train("cartpole", expert="acrobot", out=tmp_path / "run", say=ignore_message)
    assert not (tmp_path / "run").exists()


def test_trainer_refuses_a_run_of_another_config(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", make_small_config())
    with pytest.raises(UsageError, match=r"another config than this trainer; use Trainer\(run.config\)"):
        Trainer(make_small_config(seed=1)).fit(run)


def test_run_rewrites_a_removed_policy(tmp_path: Path) -> None:
    run, expected = create_and_run(tmp_path / "run", make_small_config())
    (run.folder / "policy.safetensors").unlink()
    again = fit_run(Run.open(str(run.folder)))
    assert again.weights_sha256 == expected.weights_sha256 == digest_tensors(run.policy.state_dict())
