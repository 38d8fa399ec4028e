"""`aggrevated sweep`, as its users call it."""

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
HERE = ["--engine", "in-process"]  # starting other processes takes longer than these runs do
SWEEP = ["sweep", "cartpole", *TINY, "--out", "sweep"]
TPE = ["--vary", "learning-rate=1e-3..1e-1:log", "--vary", "update=regular,exponentiated", "--seeds", "1"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_grid_command_of_the_best_trial_gives_the_same_weights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = [*SWEEP, "--update", "regular", "--vary", "learning-rate=0.001..0.1:log:2", "--seeds", "2", "--seed", "3"]
    found = json.loads(said([*grid, "--workers", "1", "--json"], capsys))
    assert found["sweep"] == "sweep" and found["request"]["search"] == "grid" and len(found["trials"]) == 2
    best = found["best"]
    assert found["trials"][0] == {name: value for name, value in best.items() if name != "command"}
    assert best["validation"] > found["trials"][1]["validation"]  # the best is first
    seeds = [here / f"sweep/trial-{best['trial']:03d}/seed-{seed}/result.json" for seed in (3, 4)]
    results = [json.loads(path.read_text()) for path in seeds]
    assert best["best_returns"] == [result["best_return"] for result in results]
    again = json.loads(said([*shlex.split(best["command"])[1:], *HERE, "--json"], capsys))
    assert again["weights_sha256"] == [result["weights_sha256"] for result in results]
    page = (here / "sweep/sweep.md").read_text()
    assert (
        best["command"] in page and "learning-rate=0.001..0.1:log:2" in page and "not used to choose a policy" in page
    )
    rows = json.loads(said(["compare", "sweep/trial-000", "sweep/trial-001", "--json"], capsys))
    assert [row["trials"] for row in rows] == [2, 2]


def test_tpe_trials_are_the_same_for_any_number_of_workers(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tpe = [*SWEEP[:-2], *TPE, "--trials", "10", "--json", "--out"]
    one = json.loads(said([*tpe, "one", "--workers", "1"], capsys))
    three = json.loads(said([*tpe, "three", "--workers", "3"], capsys))
    assert one | {"sweep": "three"} == three and len(one["trials"]) == 10


def test_sweep_killed_goes_on_by_resume_to_the_same_trials(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tpe = [*SWEEP[:-2], *TPE, "--trials", "10", *HERE, "--out"]
    whole = json.loads(said([*tpe, "whole", "--json"], capsys))
    command = [sys.executable, "-m", "aggrevated", *tpe, "killed"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not (here / "killed/trial-003/seed-0/result.json").is_file():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert not (here / "killed/trial-009").exists()
    killed = json.loads(said(["resume", "killed", *HERE, "--json"], capsys))
    assert whole | {"sweep": "killed"} == killed


def test_tpe_prints_a_table_and_goes_on_with_more_trials_and_by_resume(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tpe = [*SWEEP, *TPE, *HERE]
    main([*tpe, "--trials", "3"])
    shown = capsys.readouterr()
    assert "3 trials of 1 seed" in shown.out and "learning-rate" in shown.out and "\x1b" not in shown.err
    assert "sweep: sweep, tpe, up to 3 trials" in shown.err and "3/3 trials: best so far" in shown.err
    assert "the best again:  aggrevated train cartpole --iterations 2" in shown.out
    first = json.loads(said([*tpe, "--json"], capsys))  # as many as before
    assert len(first["trials"]) == 3 and first["importance"] == {}  # of so few, nothing can be said
    longer = json.loads(said([*tpe, "--trials", "5", "--json"], capsys))
    assert len(longer["trials"]) == 5 and all(trial in longer["trials"] for trial in first["trials"])
    assert json.loads(said(["resume", "sweep", *HERE, "--json"], capsys)) == longer
    code, sentence = failure([*tpe, "--trials", "4"], capsys)
    assert code == 2 and "sweep holds a sweep of 5 trials, more than the 4 requested now" in sentence
    code, sentence = failure(["resume", "sweep", "--iterations", "9"], capsys)
    assert code == 2 and "--iterations has no effect on sweep, which is a sweep" in sentence
    journal = here / "sweep/study.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"regular", b"natural"))
    code, sentence = failure(["resume", "sweep", *HERE], capsys)
    assert code == 65 and "sweep/study.jsonl does not hold the trials of this sweep" in sentence
    assert sentence.count("\n") == 2  # what it does, and why it does not


def test_sweep_of_many_trials_says_how_important_settings_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vary = ["--vary", "learning-rate=1e-3..1e-1:log:12", "--vary", "alpha-start=0,0.5", "--update", "regular"]
    found = json.loads(said([*SWEEP, *vary, "--seeds", "1", *HERE, "--json"], capsys))
    assert list(found["importance"]) == ["learning-rate", "alpha-start"]
    assert sum(found["importance"].values()) == pytest.approx(1.0) and min(found["importance"].values()) >= 0.0
    assert "| setting | importance |" in (here / "sweep/sweep.md").read_text()
    drawn = (here / "sweep/sweep.svg").read_text()
    assert "learning-rate" in drawn and "importance" in drawn
    first = (here / "sweep/sweep.png").read_bytes()
    with Image.open(here / "sweep/sweep.png") as picture:
        assert picture.width >= 1200 and np.asarray(picture.convert("L")).std() > 10  # it is not empty
    said(["resume", "sweep", *HERE], capsys)
    assert (here / "sweep/sweep.png").read_bytes() == first and (here / "sweep/sweep.svg").read_text() == drawn


def test_trials_that_fail_are_told_and_only_if_all_fail_the_command_does(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = Trainer.fit

    def some_fail(trainer, run, *rest, **more):
        if run.config.loop.alpha_start > limit[0]:
            raise DataError("everything diverged; make it less")
        return fit(trainer, run, *rest, **more)

    limit = [0.5]
    monkeypatch.setattr(Trainer, "fit", some_fail)
    vary = ["--vary", "alpha-start=0,0.9", "--seeds", "1", *HERE]
    main([*SWEEP, *vary])
    shown = capsys.readouterr()
    assert "2 trials of 1 seed, 1 failed" in shown.out
    assert shown.err.count("trial 001 failed: everything diverged; make it less") == 1
    assert "- trial 001: everything diverged; make it less" in (here / "sweep/sweep.md").read_text()
    found = json.loads(said(["resume", "sweep", *HERE, "--json"], capsys))
    assert found["trials"][1]["failed"] == "everything diverged; make it less"
    limit[0] = -1.0
    code, sentence = failure([*SWEEP[:-1], "other", *vary], capsys)
    assert code == 1 and "all 2 trials of other failed; the first: everything diverged; make it less" in sentence


def test_code_that_is_not_trusted_ends_resume_and_is_no_trial_that_failed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mine.py").write_text(Path(gymnasium_environments.__file__).read_text())
    task = ["mine:make", "--expert", "mine:lazy", "--vary", "temperature=0.05,0.1", "--seeds", "1"]
    whole = json.loads(said(["sweep", *task, *TINY, *HERE, "--out", "sweep", "--json"], capsys))
    journal = here / "sweep/study.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    command = [sys.executable, "-m", "aggrevated", "resume", "sweep"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 65 and "is Python code, which is not run because a file names it" in done.stderr
    assert json.loads(said(["resume", "sweep", *HERE, "--trust-code", "--json"], capsys)) == whole


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
def test_sweep_refuses_in_one_sentence_with_exit_code_2_and_writes_nothing(
    arguments: str, words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, sentence = failure(["sweep", *arguments.split()], capsys)
    assert code == 2 and words in sentence and "Traceback" not in sentence, sentence
    assert list(here.iterdir()) == []


def test_sweep_without_optuna_is_refused_in_a_sentence_and_leaves_no_folder(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main([*SWEEP[:-1], "before", "--vary", "alpha-start=0,1", "--seeds", "1", *HERE])
    for name in [name for name in sys.modules if name.startswith("aggrevated.sweeps")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    capsys.readouterr()
    for search in ("grid", "tpe"):
        code, sentence = failure([*SWEEP, "--vary", "alpha-start=0,1", "--search", search], capsys)
        assert code == 2 and "a sweep needs Optuna: pip install 'aggrevated[optuna]'" in sentence
    code, sentence = failure(["resume", "before"], capsys)
    assert code == 2 and "pip install 'aggrevated[optuna]'" in sentence
    assert [path.name for path in here.iterdir()] == ["before"]


def test_help_imports_neither_torch_nor_optuna() -> None:
    code = "import sys; from aggrevated.cli import main\ntry: main(sys.argv[1:])\nfinally: "
    code += "assert not {'torch', 'optuna'} & set(sys.modules), sys.modules.keys()"
    for words in (["--help"], ["train", "--help"], ["sweep", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_help_of_a_task_has_the_options_of_everything_that_varies(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sweep", "cartpole", "--vary", "update=natural,regular", "--help-all"])
    text = capsys.readouterr().out
    assert all(option in text for option in ("--vary", "--delta-kl", "--learning-rate", "--search"))
    assert "--temperature" not in text
