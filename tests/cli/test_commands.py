"""Commands of the command line, run with their arguments."""

import json
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from aggrevated.cli import discover_commands, main
from aggrevated.cli.console import print_table
from aggrevated.cli.options import EngineOptions
from aggrevated.config.resolver import OPTION_NAMES, list_component_names, resolve_config
from aggrevated.core.registry import list_task_names
from aggrevated.core.settings import get_declared_settings, to_flag
from aggrevated.methods import METHODS
from aggrevated.reports import comparison
from aggrevated.tasks import find_task
from aggrevated.training.run_folder import Run
from helpers.command_line import said

TINY = ["--iterations", "4", "--trajectories", "4", "--horizon", "60", "--validation-episodes", "4"]
TINY += ["--test-episodes", "20"]
KEYS = "task method update seed iterations expert_return initial_return best_return test_return ratio simulator_steps "
KEYS += "oracle_queries seconds cpu_seconds run_folder weights_sha256 expert_standard_error test_standard_error"
EVALUATED = "task method update seed run weights_sha256 expert_return expert_standard_error test_return "
EVALUATED += "test_standard_error ratio expert_diverged test_diverged episodes deterministic"


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_train_evaluate_resume_watch_and_compare_agree_on_one_run(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = json.loads(said(["train", "cartpole", "--json", *TINY], capsys))
    assert set(KEYS.split()) <= set(result)
    run = result["run_folder"]
    assert run == "runs/cartpole-aggrevated-exponentiated" and (working_folder / run / "curve.png").is_file()

    evaluated = json.loads(said(["evaluate", run, "--episodes", "30", "--json"], capsys))
    assert list(evaluated) == EVALUATED.split() and evaluated["weights_sha256"] == result["weights_sha256"]
    assert evaluated["test_standard_error"] >= 0 and evaluated["expert_standard_error"] >= 0

    resumed = json.loads(said(["resume", run, "--json"], capsys))
    assert resumed["weights_sha256"] == result["weights_sha256"]
    longer = json.loads(said(["resume", run, "--iterations", "6", "--json"], capsys))
    assert longer["iterations"] == 6

    watched = json.loads(said(["watch", run, "--json"], capsys))
    assert (working_folder / watched["gif"]).read_bytes().startswith(b"GIF89a")

    second = json.loads(said(["train", "cartpole", "--method", "dagger", "--json", *TINY], capsys))
    rows = json.loads(said(["compare", run, second["run_folder"], "--out", "both", "--json"], capsys))
    assert [row["method"] for row in rows] == ["aggrevated", "dagger"]
    assert (working_folder / "both.png").is_file() and (working_folder / "both.svg").is_file()


def test_train_command_chooses_a_new_default_folder_for_a_second_run(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (json.loads(said(["train", "cartpole", "--json", *TINY], capsys)) for _ in range(2))
    assert second["run_folder"] == first["run_folder"] + "-2"
    assert second["weights_sha256"] == first["weights_sha256"]


def test_train_command_trials_have_the_weights_of_single_runs(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    together = json.loads(said(["train", "cartpole", "--trials", "2", "--seed", "5", "--json", *TINY], capsys))
    alone = [json.loads(said(["train", "cartpole", "--seed", seed, "--json", *TINY], capsys)) for seed in ("5", "6")]
    assert [trial["weights_sha256"] for trial in together["trials"]] == [run["weights_sha256"] for run in alone]
    assert together["test_return"] == pytest.approx(sum(run["test_return"] for run in alone) / 2)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_train_command_stops_all_trials_on_a_signal(working_folder: Path, number: int, code: int) -> None:
    train = [sys.executable, "-m", "aggrevated", "train", "cartpole", "--trials", "6", "--out", "run"]
    train += ["--iterations", "5000"]
    # Processes in the background ignore SIGINT, and their children inherit this.
    restore_interrupts = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(train, stderr=subprocess.PIPE, text=True, preexec_fn=restore_interrupts) as process:
        try:
            while not list(working_folder.glob("run/*/checkpoints/*.safetensors")):
                assert process.poll() is None
                time.sleep(0.1)
            process.send_signal(number)
            stopped_at = time.monotonic()
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code and time.monotonic() - stopped_at < 15
    assert "Traceback" not in errors and not list(working_folder.glob("run/*/result.json"))


def test_resume_command_refuses_iterations_not_divisible_by_validate_every(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(["train", "cartpole", "--out", "run", "--validate-every", "2", *TINY], capsys)
    with pytest.raises(SystemExit) as caught:
        main(["resume", "run", "--iterations", "5"])
    assert caught.value.code == 2
    assert "--validate-every is 2, but must be a divisor of the 5 iterations" in capsys.readouterr().err
    assert json.loads(said(["resume", "run", "--iterations", "6", "--json"], capsys))["iterations"] == 6
    assert json.loads(said(["evaluate", "--json", "run", "--episodes", "3"], capsys))["episodes"] == 3


def test_train_command_accepts_options_before_the_task(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = json.loads(said(["train", "--json", "--out", "run", "--update", "regular", "cartpole", *TINY], capsys))
    assert (result["task"], result["update"], result["run_folder"]) == ("cartpole", "regular", "run")


def test_train_command_refuses_trials_in_a_used_folder(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(["train", "cartpole", "--out", "run", *TINY], capsys)
    with pytest.raises(SystemExit) as caught:
        main(["train", "cartpole", "--trials", "2", "--out", "run", *TINY])
    assert caught.value.code == 2 and not list(working_folder.glob("run/trial-*"))


def test_print_table_shows_every_number_whole_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = {"best_return": -182.94, "test_return": -184.49, "expert_return": -191.76, "ratio": 1.067}
    numbers |= {"ratio_low": 1.057, "ratio_high": 1.077}
    row = {"label": "AggreVaTeD, natural, lstm", "trials": 10, **numbers}
    monkeypatch.setattr(comparison, "summarize_group", lambda of: row)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    group = comparison.TrialGroup(row["label"], [Run(Path("nowhere"), resolve_config("acrobot-partial"))], [])
    print_table(comparison.make_comparison_table([group], ""), as_json=False)
    text = capsys.readouterr().out
    for number in ("-182.9", "-184.5", "-191.8", "1.067", "1.057-1.077"):
        assert number in text
    assert len(text.splitlines()[0]) <= 80  # the border has no color codes


def test_train_command_reports_null_ratio_when_expert_has_worst_return(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = json.loads(said(["train", "acrobot", "--json", *TINY], capsys))  # 60 steps are too few to swing up
    assert result["expert_return"] == -60 and result["ratio"] is None


def test_expert_commands_agree_on_mean_returns_of_builtin_experts(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cards = json.loads(said(["expert", "list", "--json"], capsys))
    assert 350 <= cards["cartpole"]["mean_return"] <= 400
    assert -95 <= cards["acrobot"]["mean_return"] <= -80
    for name, card in cards.items():
        measured = json.loads(said(["expert", "evaluate", name, "--episodes", "300", "--json"], capsys))
        error = (measured["standard_error"] ** 2 + card["standard_error"] ** 2) ** 0.5
        assert abs(measured["mean_return"] - card["mean_return"]) < 4 * error + 0.5


@pytest.mark.parametrize(
    "command",
    [[], *([name] for name in discover_commands(None)), *(["expert", x] for x in ("list", "train", "evaluate"))],
)
def test_command_help_has_two_examples(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert text.count(f"\n  aggrevated {' '.join(command)}") >= 2 if command else "subcommands" in text


def test_train_command_writes_json_to_stdout_and_plain_progress_to_stderr(working_folder: Path) -> None:
    command = [sys.executable, "-m", "aggrevated", "train", "cartpole", "--json", *TINY]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)) >= 15 and done.stdout.count("\n") == 1
    assert "4/4, validation return" in done.stderr and "\x1b" not in done.stderr


def read_help(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the text of --help-all in one line, without frames."""
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "--help-all"])
    assert caught.value.code == 0
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


OPTION = re.compile(r"(--[a-z][a-z-]*)(?= INT| FLOAT| TEXT| NAME| STR| PATH| [A-Z][a-z])")  # where it is explained


def split_options(text: str) -> dict[str, str]:
    """Return the explanation of each option in a help text."""
    _, *parts = OPTION.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


COMMON_OPTIONS = {
    "--config",
    "--trust-code",
    "--method",
    "--trials",
    "--out",
    "--json",
    *map(to_flag, OPTION_NAMES.values()),
}
COMMON_OPTIONS |= {to_flag(name) for name in EngineOptions.__dataclass_fields__}


@pytest.mark.parametrize("task", list_task_names())
def test_train_help_lists_settings_of_the_task_with_their_defaults(
    task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The help lists the settings of the chosen components only, and the names of all compatible components."""
    options = split_options(read_help(capsys, "train", task))
    config = resolve_config(task)
    settings = {
        (to_flag(f"no_{name}") if value is True else to_flag(name)): value for name, value in config.settings.items()
    }
    assert set(options) == set(settings) | COMMON_OPTIONS
    for option, value in settings.items():
        value_text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value) or "none"
        assert isinstance(value, bool) or f"(default: {value_text})" in options[option], option
    for slot, option in OPTION_NAMES.items():
        names = ", ".join(list_component_names(find_task(task), slot))
        assert f": {names}. (default: {getattr(config, slot).name})" in options[to_flag(option)], option


def test_train_help_lists_settings_of_the_chosen_components_only(capsys: pytest.CaptureFixture[str]) -> None:
    algebra, cartpole = (set(split_options(read_help(capsys, "train", task))) for task in ("algebra", "cartpole"))
    assert "--augmented-copies" in algebra and "--horizon" not in algebra
    assert {"--horizon", "--temperature"} <= cartpole
    assert not {"--augmented-copies", "--delta-kl", "--learning-rate", "--start-steps"} & cartpole
    natural = set(split_options(read_help(capsys, "train", "cartpole", "--update", "natural")))
    assert "--delta-kl" in natural and not {"--temperature", "--learning-rate"} & natural
    regular = set(split_options(read_help(capsys, "train", "cartpole", "--update", "regular", "--start=supervised")))
    assert {"--learning-rate", "--start-steps"} <= regular and "--delta-kl" not in regular
    assert "--start-steps" not in split_options(read_help(capsys, "train", "hopper"))
    assert (
        "(default: 4000)" in split_options(read_help(capsys, "train", "hopper", "--update", "natural"))["--start-steps"]
    )
    assert "--query-steps" not in split_options(read_help(capsys, "train", "hopper", "--method", "tnpg"))


def test_train_help_names_every_task_and_method(capsys: pytest.CaptureFixture[str]) -> None:
    text = read_help(capsys, "train")
    assert f"Tasks: {', '.join(list_task_names())}." in text
    for name in (*METHODS, *list_task_names()):
        assert name in text, name


def test_evaluate_help_lists_evaluation_settings_of_the_run(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(working_folder / "run", resolve_config("cartpole"))
    options = set(split_options(read_help(capsys, "evaluate", str(run.folder))))
    assert {to_flag(name) for name in get_declared_settings(run.config.problem.evaluation)} == options - {
        "--json",
        "--trust-code",
    }
