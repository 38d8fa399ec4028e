"""What a sweep is asked for, and what that comes to for a trial."""

import re

import pytest

from aggrevated.cli import parse_command
from aggrevated.core.errors import DataError, UsageError
from aggrevated.sweeps.request import SweepRequest
from helpers.fake_runs import asked

RATES = "learning-rate=0.001,0.01"
UPDATES = "update=regular,exponentiated"


def test_what_has_no_effect_beside_a_choice_is_left_out_there() -> None:
    what = asked(RATES, UPDATES)
    assert what.effective({"learning_rate": 0.01, "update": "regular"}) == {"learning_rate": 0.01, "update": "regular"}
    assert what.effective({"learning_rate": 0.01, "update": "exponentiated"}) == {"update": "exponentiated"}
    config, kept = what.resolved({"learning_rate": 0.01, "update": "exponentiated"})
    assert config.update.name == "exponentiated" and "learning_rate" not in kept and kept["iterations"] == 2


def test_what_is_fixed_is_left_out_as_well_where_it_has_no_effect() -> None:
    what = asked("update=natural,exponentiated", delta_kl=0.01)
    what.check()
    assert what.resolved({"update": "natural"})[0].update.delta_kl == 0.01
    assert "delta_kl" not in what.resolved({"update": "exponentiated"})[1]


def test_the_shape_of_a_schedule_is_left_out_beside_another_schedule() -> None:
    what = asked("alpha-schedule=geometric,linear", "alpha-decay=0.1..0.9:2", alpha_start=0.5)
    what.check()
    assert what.effective({"alpha_schedule": "linear", "alpha_decay": 0.1}) == {"alpha_schedule": "linear"}


@pytest.mark.parametrize(
    ("varied", "given", "words"),
    [
        ((), {}, "nothing varies; say what does, for example --vary"),
        ((RATES,), {"update": "natural"}, "--learning-rate has no effect on the update natural: it is of --update"),
        ((RATES, "update=natural,exponentiated"), {}, "--learning-rate has no effect on the update natural"),
        ((RATES, UPDATES), {"delta_kl": 0.1}, "--delta-kl has no effect on the update regular"),
        ((UPDATES,), {"update": "natural"}, "--update is both varied and fixed; leave one of them out"),
        (("method=dagger,sl",), {"method": "lols"}, "--method is both varied and fixed; leave one of them out"),
        (("seed=1,2",), {}, "--seed does not vary: every trial has as many seeds as --seeds says; leave it out"),
        (("horizon=100,200",), {}, "--horizon is both varied and fixed"),
        (("learning-rate=-1..1:2",), {"update": "regular"}, "--learning-rate is -1.0, but must be a positive number"),
        (("alpha-start=0,1,2",), {}, "--alpha-start is 2.0, but must be between 0 and 1"),
        (("update=natural,bogus",), {}, "unknown update 'bogus'"),
        (("policy=mlp,window,lsmt",), {}, "unknown policy 'lsmt' (did you mean lstm?)"),
        (("method=dagger,daggr",), {}, "unknown method 'daggr' (did you mean dagger?)"),
        (
            ("alpha-start=0..0.5",),
            {},
            "a grid needs the number of points: --vary alpha_start=0.0..0.5:5; or choose --search tpe",
        ),
        (
            ("alpha-start=0..0.5:5",),
            {"search": "tpe"},
            "the points of --vary alpha_start=0.0..0.5:5 have no effect on --search tpe",
        ),
        ((UPDATES,), {"search": "bayes"}, "unknown search 'bayes': choose one of grid, tpe"),
        ((UPDATES,), {"trials": 0}, "--trials is 0, but must be at least 1"),
        ((UPDATES,), {"seeds": 0}, "--seeds is 0, but must be at least 1"),
        ((UPDATES,), {"sampler_seed": -1}, "--sampler-seed is -1, but must be 0 or more"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(varied: tuple[str, ...], given: dict, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        asked(*varied, **given).check()
    assert words in str(caught.value)


def test_what_decides_what_is_measured_does_not_vary() -> None:
    what = asked("horizon=100,200")
    fixed = {name: value for name, value in what.fixed.items() if name != "horizon"}
    with pytest.raises(UsageError, match="--horizon does not vary: it decides what is measured, not how well; fix it"):
        SweepRequest(what.task, what.method, what.varied, fixed, "grid", 2).check()


def test_the_command_of_a_trial_is_one_that_train_takes_and_means_the_same() -> None:
    what = asked(RATES, UPDATES, "hidden=16,64 32", "advantage=True,False", seeds=3, seed=5, method="aggrevated")
    settings = {"learning_rate": 0.001, "update": "regular", "hidden": (64, 32), "advantage": False}
    command = what.command(settings)
    assert command.startswith("aggrevated train cartpole ") and command.endswith(" --trials 3")
    for words in ("--learning-rate 0.001", "--hidden 64 32", "--no-advantage", "--seed 5", "--update regular"):
        assert words in command
    train = parse_command(command.split()[1:])
    assert train.trials == 3
    assert what.command({"update": "exponentiated"}).count("--learning-rate") == 0
    other = asked("method=dagger,sl").command({"method": "dagger"})
    assert re.match(r"aggrevated train cartpole --method dagger --iterations 2 ", other) and "--trials" not in other


def test_what_was_asked_is_read_as_it_was_written() -> None:
    what = asked("learning-rate=1e-4..1e-1:log:3", UPDATES, "hidden=16,64 32", seeds=2, critic_hidden=(8,))
    assert SweepRequest.read(what.to_dict(), "sweep.json") == what
    for broken in ({}, what.to_dict() | {"varied": ["nothing"]}, what.to_dict() | {"task": "cartpoll"}):
        with pytest.raises(DataError, match=r"sweep\.json does not say what was asked"):
            SweepRequest.read(broken, "sweep.json")
