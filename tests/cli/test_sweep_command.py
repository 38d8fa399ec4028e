"""The command `aggrevated sweep`."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from aggrevated.cli import main
from aggrevated.core.errors import DataError
from aggrevated.training.trainer import Trainer
from helpers import gymnasium_environments
from helpers.command_line import failure, said

TINY = ["--iterations", "2", "--trajectories", "2", "--horizon", "30", "--validation-episodes", "2"]
TINY += ["--test-episodes", "5"]
IN_PROCESS = ["--engine", "in-process"]  # starting processes takes longer than these runs
SWEEP = ["sweep", "cartpole", *TINY, "--out", "sweep"]
TPE = ["--vary", "learning-rate=1e-3..1e-1:log", "--vary", "update=regular,exponentiated", "--seeds", "1"]


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_grid_command_of_the_best_trial_gives_the_same_weights(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = [*SWEEP, "--update", "regular", "--vary", "learning-rate=0.001..0.1:log:2", "--seeds", "2", "--seed", "3"]
    found = json.loads(said([*grid, "--workers", "1", "--json"], capsys))
    assert found["sweep"] == "sweep" and found["request"]["search"] == "grid" and len(found["trials"]) == 2
    best = found["best"]
    assert found["trials"][0] == {name: value for name, value in best.items() if name != "command"}
    assert best["validation"] > found["trials"][1]["validation"]  # the best is first
    seeds = [working_folder / f"sweep/trial-{best['trial']:03d}/seed-{seed}/result.json" for seed in (3, 4)]
    results = [json.loads(path.read_text()) for path in seeds]
    assert best["best_returns"] == [result["best_return"] for result in results]
    rerun = json.loads(said([*shlex.split(best["command"])[1:], *IN_PROCESS, "--json"], capsys))
    assert rerun["weights_sha256"] == [result["weights_sha256"] for result in results]
    page = (working_folder / "sweep/sweep.md").read_text()
    assert (
        best["command"] in page and "learning-rate=0.001..0.1:log:2" in page and "not used to choose a policy" in page
    )
    rows = json.loads(said(["compare", "sweep/trial-000", "sweep/trial-001", "--json"], capsys))
    assert [row["trials"] for row in rows] == [2, 2]


def test_tpe_trials_are_the_same_for_any_number_of_workers(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tpe = [*SWEEP[:-2], *TPE, "--trials", "10", "--json", "--out"]
    one = json.loads(said([*tpe, "one", "--workers", "1"], capsys))
    three = json.loads(said([*tpe, "three", "--workers", "3"], capsys))
    assert one | {"sweep": "three"} == three and len(one["trials"]) == 10


def test_sweep_resumed_after_kill_has_the_same_trials(working_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tpe = [*SWEEP[:-2], *TPE, "--trials", "10", *IN_PROCESS, "--out"]
    whole = json.loads(said([*tpe, "whole", "--json"], capsys))
    command = [sys.executable, "-m", "aggrevated", *tpe, "killed"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not (working_folder / "killed/trial-003/seed-0/result.json").is_file():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert not (working_folder / "killed/trial-009").exists()
    killed = json.loads(said(["resume", "killed", *IN_PROCESS, "--json"], capsys))
    assert whole | {"sweep": "killed"} == killed


def test_tpe_prints_a_table_and_continues_with_more_trials_and_by_resume(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tpe = [*SWEEP, *TPE, *IN_PROCESS]
    main([*tpe, "--trials", "3"])
    captured = capsys.readouterr()
    assert "3 trials of 1 seed" in captured.out and "learning-rate" in captured.out and "\x1b" not in captured.err
    assert "sweep: sweep, tpe, up to 3 trials" in captured.err and "3/3 trials: best so far" in captured.err
    assert "the best again:  aggrevated train cartpole --iterations 2" in captured.out
    first = json.loads(said([*tpe, "--json"], capsys))  # the same number of trials
    assert len(first["trials"]) == 3 and first["importance"] == {}  # too few trials for an importance
    longer = json.loads(said([*tpe, "--trials", "5", "--json"], capsys))
    assert len(longer["trials"]) == 5 and all(trial in longer["trials"] for trial in first["trials"])
    assert json.loads(said(["resume", "sweep", *IN_PROCESS, "--json"], capsys)) == longer
    code, message = failure([*tpe, "--trials", "4"], capsys)
    assert code == 2 and "sweep holds a sweep of 5 trials, more than the 4 requested now" in message
    code, message = failure(["resume", "sweep", "--iterations", "9"], capsys)
    assert code == 2 and "--iterations has no effect on sweep, which is a sweep" in message
    journal = working_folder / "sweep/study.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"regular", b"natural"))
    code, message = failure(["resume", "sweep", *IN_PROCESS], capsys)
    assert code == 65 and "sweep/study.jsonl does not hold the trials of this sweep" in message
    assert message.count("\n") == 2  # the progress line and the error


def test_sweep_of_many_trials_reports_importance_of_settings(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vary = ["--vary", "learning-rate=1e-3..1e-1:log:12", "--vary", "alpha-start=0,0.5", "--update", "regular"]
    found = json.loads(said([*SWEEP, *vary, "--seeds", "1", *IN_PROCESS, "--json"], capsys))
    assert list(found["importance"]) == ["learning-rate", "alpha-start"]
    assert sum(found["importance"].values()) == pytest.approx(1.0) and min(found["importance"].values()) >= 0.0
    assert "| setting | importance |" in (working_folder / "sweep/sweep.md").read_text()
    figure = (working_folder / "sweep/sweep.svg").read_text()
    assert "learning-rate" in figure and "importance" in figure
    first = (working_folder / "sweep/sweep.png").read_bytes()
    with Image.open(working_folder / "sweep/sweep.png") as picture:
        assert picture.width >= 1200 and np.asarray(picture.convert("L")).std() > 10  # the figure is not empty
    said(["resume", "sweep", *IN_PROCESS], capsys)
    assert (working_folder / "sweep/sweep.png").read_bytes() == first and (
        working_folder / "sweep/sweep.svg"
    ).read_text() == figure


def test_sweep_command_reports_failed_trials_and_fails_only_if_all_fail(
    working_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = Trainer.fit

    def fit_or_raise(trainer, run, *rest, **more):
        if run.config.loop.alpha_start > limit[0]:
            raise DataError("everything diverged; make it less")
        return fit(trainer, run, *rest, **more)

    limit = [0.5]
    monkeypatch.setattr(Trainer, "fit", fit_or_raise)
    vary = ["--vary", "alpha-start=0,0.9", "--seeds", "1", *IN_PROCESS]
    main([*SWEEP, *vary])
    captured = capsys.readouterr()
    assert "2 trials of 1 seed, 1 failed" in captured.out
    assert captured.err.count("trial 001 failed: everything diverged; make it less") == 1
    assert "- trial 001: everything diverged; make it less" in (working_folder / "sweep/sweep.md").read_text()
    found = json.loads(said(["resume", "sweep", *IN_PROCESS, "--json"], capsys))
    assert found["trials"][1]["failed"] == "everything diverged; make it less"
    limit[0] = -1.0
    code, message = failure([*SWEEP[:-1], "other", *vary], capsys)
    assert code == 1 and "all 2 trials of other failed; the first: everything diverged; make it less" in message


def test_sweep_resume_refuses_untrusted_code_without_a_failed_trial(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (working_folder / "mine.py").write_text(Path(gymnasium_environments.__file__).read_text())
    task = ["mine:make", "--expert", "mine:lazy", "--vary", "temperature=0.05,0.1", "--seeds", "1"]
    whole = json.loads(said(["sweep", *task, *TINY, *IN_PROCESS, "--out", "sweep", "--json"], capsys))
    journal = working_folder / "sweep/study.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    command = [sys.executable, "-m", "aggrevated", "resume", "sweep"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 65 and "is Python code, which is not run because a file names it" in done.stderr
    assert json.loads(said(["resume", "sweep", *IN_PROCESS, "--trust-code", "--json"], capsys)) == whole


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("cartpoll --vary alpha_start=0,1", "unknown task 'cartpoll' (did you mean cartpole?)"),
        ("--vary alpha_start=0,1 cartpoll", "unknown task 'cartpoll' (did you mean cartpole?)"),
        ("--out cartpole acrobot --vary alpha_start=0,1", "give the task before its options: aggrevated sweep acrobot"),
        ("cartpole", "no setting varies; add one"),
        ("cartpole --vary alpha_start", "--vary is 'alpha_start', but must be NAME=LOW..HIGH"),
        ("cartpole --vary alpha_strat=0,1", "unknown setting --alpha-strat (did you mean --alpha-start?)"),
        ("cartpole --vary alpha_start=0..2", "--alpha-start is 2.0, but must be between 0 and 1"),
        ("cartpole --vary alpha_start=1..0", "--alpha-start is '1..0', but must be from a LOW to a higher HIGH"),
        (
            "cartpole --vary alpha_start=0,1 --alpha-start 0.5",
            "--alpha-start is both varied and fixed; leave one of them out",
        ),
        ("cartpole --vary update=regular,natural --update natural", "--update is both varied and fixed"),
        ("cartpole --vary method=dagger,sl --method sl", "--method is both varied and fixed"),
        ("cartpole --vary seed=1,2", "--seed cannot vary"),
        ("cartpole --vary horizon=100,200", "--horizon cannot vary: it changes what the score measures"),
        ("algebra --vary generated_pages=100,200", "--generated-pages cannot vary: it changes what the score measures"),
        (
            "hopper --vary learning-rate=1e-4..1e-1:log --vary update=natural,exponentiated",
            "--learning-rate has no effect on the update natural: it belongs to --update follow-the-leader or",
        ),
        ("cartpole --vary alpha_start=0,1 --delta-kl 1", "--delta-kl has no effect on the update exponentiated"),
        ("cartpole --vary alpha_start=0,1 --horizn 3", "unknown setting --horizn (did you mean --horizon?)"),
        ("cartpole --vary alpha_start=0..1 --search grid", "a grid needs the number of points"),
        ("cartpole --vary alpha_start=0..1:3 --search tpe", "have no effect on --search tpe; leave them out"),
        ("cartpole --vary alpha_start=0,1 --search bayes", "unknown search 'bayes': choose one of grid, tpe"),
        ("cartpole --vary alpha_start=0,1 --trials 0", "--trials is 0, but must be at least 1"),
        ("cartpole --vary alpha_start=0,1 --seeds 0", "--seeds is 0, but must be at least 1"),
        ("cartpole --vary alpha_start=0,1 --workers 0", "--workers is 0, but must be at least 1"),
        (
            "cartpole --vary alpha_start=0,1 --engine cloud",
            "--engine is cloud, but must be one of in-process, processes",
        ),
    ],
)
def test_sweep_command_refuses_bad_arguments_with_exit_code_2_and_writes_nothing(
    arguments: str, words: str, working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, message = failure(["sweep", *arguments.split()], capsys)
    assert code == 2 and words in message and "Traceback" not in message, message
    assert list(working_folder.iterdir()) == []


def test_sweep_command_without_optuna_names_the_package_and_leaves_no_folder(
    working_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main([*SWEEP[:-1], "before", "--vary", "alpha-start=0,1", "--seeds", "1", *IN_PROCESS])
    for name in [name for name in sys.modules if name.startswith("aggrevated.sweeps")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    capsys.readouterr()
    for search in ("grid", "tpe"):
        code, message = failure([*SWEEP, "--vary", "alpha-start=0,1", "--search", search], capsys)
        assert code == 2 and "a sweep needs Optuna: pip install 'aggrevated[optuna]'" in message
    code, message = failure(["resume", "before"], capsys)
    assert code == 2 and "pip install 'aggrevated[optuna]'" in message
    assert [path.name for path in working_folder.iterdir()] == ["before"]


def test_help_imports_neither_torch_nor_optuna() -> None:
    code = "import sys; from aggrevated.cli import main\ntry: main(sys.argv[1:])\nfinally: "
    code += "assert not {'torch', 'optuna'} & set(sys.modules), sys.modules.keys()"
    for words in (["--help"], ["train", "--help"], ["sweep", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_sweep_help_lists_options_of_all_varied_components(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sweep", "cartpole", "--vary", "update=natural,regular", "--help-all"])
    text = capsys.readouterr().out
    assert all(option in text for option in ("--vary", "--delta-kl", "--learning-rate", "--search"))
    assert "--temperature" not in text
