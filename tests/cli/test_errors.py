"""Bad input: commands print one sentence with the remedy, return the documented exit code, and leave no files."""

import sys
from pathlib import Path

import pytest
import torch

from aggrevated.config.resolver import resolve_config
from aggrevated.experts.loading import BUILTIN_WEIGHTS
from aggrevated.storage import load_checksummed, save_checksummed
from aggrevated.training.run_folder import Run
from helpers.command_line import failure

TINY = ["--iterations", "1", "--trajectories", "2", "--horizon", "20", "--validation-episodes", "2"]
CHOOSE = "choose that, or leave it out"
ROLLED_OUT = f"monte-carlo; {CHOOSE}"
TOO_MUCH = "the gradient all-actions needs what every action costs, but the oracle"
TOO_LITTLE = "returns only what the action taken costs; choose another --gradient"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            "train cartpoll",
            2,
            "unknown task 'cartpoll' (did you mean cartpole?): choose one of acrobot, acrobot-partial",
        ),
        ("train runs --out cartpole", 2, "unknown task 'runs'"),
        ("train --json cartpoll", 2, "unknown task 'cartpoll' (did you mean cartpole?)"),
        ("train --out cartpole acrobot", 2, "give the task before its options: aggrevated train acrobot"),
        ("train --method dagger", 2, "TASK"),
        ("train cartpole --horizn 3", 2, "unknown setting --horizn (did you mean --horizon?)"),
        ("train cartpole --method daggr", 2, "unknown method 'daggr' (did you mean dagger?)"),
        ("train cartpole --method tnpg --update regular", 2, "unknown update for tnpg 'regular'"),
        ("train cartpole --method reinforce --gradient all-actions", 2, f"{TOO_MUCH} reward-to-go {TOO_LITTLE}"),
        ("train cartpole --trajectories -1", 2, "--trajectories is -1, but must be 0 or more"),
        ("train cartpole --horizon -5", 2, "--horizon is -5, but must be at least 1"),
        ("train cartpole --update natural --damping 0", 2, "--damping is 0.0, but must be a positive number"),
        ("train cartpole --temperature 0", 2, "--temperature is 0.0, but must be a positive number"),
        ("train cartpole --decay-after -1", 2, "--decay-after is -1, but must be 0 or more"),
        ("train cartpole --validation-episodes -1", 2, "--validation-episodes is -1, but must be 0 or more"),
        (
            "train cartpole --update regular --learning-rate nan",
            2,
            "--learning-rate is nan, but must be a positive number",
        ),
        ("train cartpole --alpha-start 1.5", 2, "--alpha-start is 1.5, but must be between 0 and 1"),
        (
            "train cartpole --update natural --alpha-start 1 --gradient taken-action",
            2,
            "below 1 for taken-action, which needs actions",
        ),
        ("train hopper --alpha-start 1", 2, "below 1 for taken-action, which needs actions"),
        (
            "train cartpole --gradient taken-action",
            2,
            "--gradient has no effect on the update exponentiated; choose another --update, or leave it out",
        ),
        ("train cartpole --entropy 0.1", 2, "--entropy has no effect on the update exponentiated; choose another"),
        (
            "train cartpole --learning-rate 0.1",
            2,
            "--learning-rate has no effect on the update exponentiated: it belongs to --update follow-the-leader or "
            f"searn or smile or regular; {CHOOSE}",
        ),
        (
            "train cartpole --update regular --delta-kl 0.1",
            2,
            f"--delta-kl has no effect on the update regular: it belongs to --update natural; {CHOOSE}",
        ),
        ("train cartpole --update natural --alpha-start 1", 2, "below 1 for natural, which needs actions"),
        ("train cartpole --seed -1", 2, "--seed is -1, but must be 0 or more"),
        ("train cartpole --hidden 0", 2, "--hidden is (0,), but must be widths of at least 1"),
        (
            "train hopper --oracle bogus",
            2,
            "unknown oracle 'bogus': choose one of critic, lols, searn, monte-carlo",
        ),
        ("train hopper --start warm", 2, "unknown start 'warm': choose one of random, supervised"),
        ("train hopper --query-steps -1", 2, "--query-steps is -1, but must be 0 or more"),
        (
            "train hopper --query-rollouts 2",
            2,
            "the simulator hopper is deterministic, so a second roll-out would repeat",
        ),
        ("train hopper --query-rollouts 0", 2, "--query-rollouts is 0, but must be at least 1"),
        ("train hopper --start supervised --start-steps 0", 2, "--start-steps is 0, but must be at least 1"),
        ("train hopper --log-deviation 3", 2, "--log-deviation is 3.0, but must be between -20 and 2"),
        ("train hopper --log-deviation nan", 2, "--log-deviation is nan, but must be between -20 and 2"),
        ("train hopper --update natural --gradient all-actions", 2, f"{TOO_MUCH} monte-carlo {TOO_LITTLE}"),
        ("train hopper --method aggrevate", 2, "which the method aggrevate needs; use --method aggrevated"),
        (
            "train cartpole --oracle monte-carlo --no-all-actions --method aggrevate",
            2,
            "the oracle monte-carlo does not return the costs of all actions, which the method aggrevate needs",
        ),
        (
            "train cartpole --oracle monte-carlo --no-all-actions --update natural --gradient all-actions",
            2,
            f"{TOO_MUCH} monte-carlo {TOO_LITTLE}",
        ),
        ("train cartpole --method reinforce --oracle monte-carlo", 2, "unknown oracle for reinforce 'monte-carlo'"),
        (
            "train cartpole --log-deviation -1",
            2,
            "--log-deviation has no effect on cartpole, whose actions are a finite",
        ),
        (
            "train cartpole --start-steps 10",
            2,
            f"--start-steps has no effect on the start random: it belongs to --start supervised; {CHOOSE}",
        ),
        (
            "train cartpole --query-steps 5",
            2,
            f"--query-steps has no effect on the oracle q-star: it belongs to --oracle lols or searn or {ROLLED_OUT}",
        ),
        (
            "train hopper --oracle value-function --query-rollouts 1",
            2,
            f"--query-rollouts has no effect on the oracle value-function: it belongs to --oracle {ROLLED_OUT}",
        ),
        (
            "train hopper --method dagger --query-steps 5",
            2,
            "--query-steps has no effect on the method dagger; choose another --method",
        ),
        ("train hopper --expert walker", 65, "maps 17 observations to 6 actions, but hopper has 11 and 3"),
        ("train hopper --expert cartpole", 65, "pass a TRPO, PPO, A2C, SAC, TD3 or DDPG with an MlpPolicy"),
        ("train hopper --oracle q-star", 2, "q-star"),
        ("train cartpole --oracle value-function", 2, "value-function"),
        ("train hopper --method dagger --gradient all-actions", 2, "all-actions"),
        ("train cartpole --trials 0", 2, "--trials is 0, but must be at least 1"),
        ("train cartpole --expert acrobot", 65, "pass one that was trained in it"),
        ("train cartpole --expert nobody", 2, "no expert 'nobody': pass a file, or the name of a builtin expert"),
        ("train cartpole --out /proc/nowhere", 74, "check the path and its permissions"),
        ("resume nowhere", 65, "nowhere is not a run: it has no config.json"),
        ("evaluate nowhere", 65, "pass a folder that 'aggrevated train' made"),
        ("watch nowhere", 65, "nowhere is not a run"),
        ("compare", 2, "compare needs at least one run folder"),
        ("expert train ant", 2, "unknown task 'ant'"),
        ("expert evaluate cartpole --episodes 0", 2, "--episodes is 0"),
        ("train algebra --policy mlp", 2, "unknown policy 'mlp': choose one of contextual, lstm, reactive, kernel-svm"),
        ("train algebra --generated-pages 5", 2, "ask for at least 10 sets"),
        ("train algebra --horizon 5", 2, "--horizon has no effect on algebra; choose another task, or leave it out"),
        (
            "train algebra --transition-system arc",
            2,
            "--transition-system is arc, but must be one of arc-eager, arc-hybrid",
        ),
        ("train algebra --crohme absent", 74, "absent"),
        (
            "train algebra --crohme ink --generated-pages 20",
            2,
            "--generated-pages has no effect on real ink; leave out --generated-pages or --crohme",
        ),
        ("train algebra --method dagger --policy kernel-svm --update regular", 2, "cannot be learned by the update"),
        ("train cartpole --dropout 0.1", 2, "--dropout has no effect on cartpole"),
        ("train cartpole --update natural --entropy -1", 2, "--entropy is -1.0, but must be 0 or more"),
        (
            "train cartpole --update natural --anneal-iterations -2",
            2,
            "--anneal-iterations is -2, but must be 0 or more",
        ),
        ("train cartpole --validate-every 0", 2, "--validate-every is 0, but must be at least 1"),
        ("expert train algebra", 2, "algebra"),
        ("train cartpole --iterations many", 2, "--iterations"),
        ("frobnicate", 2, "frobnicate"),
    ],
)
def test_command_with_bad_arguments_prints_one_sentence_and_exits_with_code(
    arguments: str, code: int, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    exit_code, message = failure(arguments.split(), capsys)
    assert exit_code == code, message
    assert words in message
    assert "Traceback" not in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--episodes 0", "--episodes is 0, but must be at least 1"),
        ("--seed -1", "--seed is -1, but must be 0 or more"),
        ("--horizon 5", "--horizon has no effect on a run of cartpole; leave it out"),
    ],
)
def test_evaluate_command_refuses_impossible_options(
    option: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(tmp_path / "run", resolve_config("cartpole"))
    code, message = failure(["evaluate", str(run.folder), *option.split()], capsys)
    assert code == 2 and words in message and "Traceback" not in message


def test_train_command_refuses_expert_with_non_finite_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    weights, card = load_checksummed(BUILTIN_WEIGHTS / "cartpole.safetensors")
    last = sorted(weights)[-1]
    save_checksummed(
        tmp_path / "huge.safetensors", weights | {last: torch.full_like(weights[last], 3e38)}, card
    )  # finite weights with infinite sums
    code, message = failure(["train", "cartpole", "--expert", "huge.safetensors", "--out", "run", *TINY], capsys)
    assert code == 65
    assert "gave costs-to-go that are not finite" in message and "check its weights" in message


def test_train_command_reports_a_full_disk_and_leaves_no_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_disk_full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", raise_disk_full)
    code, message = failure(["train", "cartpole", "--out", str(tmp_path / "run"), *TINY], capsys)
    assert code == 74
    assert "No space left on device; free some space or choose another folder" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x05\x06" + bytes(18)])
def test_expert_evaluate_command_refuses_a_file_that_is_not_an_expert(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    for name in ("expert.zip", "expert.safetensors"):
        (tmp_path / name).write_bytes(content)
        code, message = failure(["expert", "evaluate", "cartpole", "--expert", str(tmp_path / name)], capsys)
        assert code == 65 and name in message


def test_resume_command_refuses_a_broken_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ('{"task": "cartpole"}', "{", '{"task": "x" }'):
        (tmp_path / "config.json").write_text(text)
        code, message = failure(["resume", str(tmp_path)], capsys)
        assert code == 65 and "config.json" in message


def test_main_help_imports_no_heavy_package() -> None:
    import subprocess

    script = "import sys\nfrom aggrevated.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    script += "assert not {'torch', 'numpy', 'gymnasium', 'matplotlib'} & set(sys.modules), 'a heavy import'"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
