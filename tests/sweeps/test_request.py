"""Sweep requests, and the config and parameters of their trials."""

import re

import pytest

from aggrevated.cli import parse_command
from aggrevated.core.errors import DataError, UsageError
from aggrevated.sweeps.request import SweepRequest, choose_search
from aggrevated.sweeps.search_space import parse_variations
from aggrevated.tasks import find_task
from helpers.fake_runs import make_request

RATES = "learning-rate=0.001,0.01"
UPDATES = "update=regular,exponentiated"


def test_effective_parameters_leave_out_settings_without_effect() -> None:
    request = make_request(RATES, UPDATES)
    both = {"learning-rate": "0.01", "update": "regular"}
    assert request.select_effective_params(both) == both
    assert request.select_effective_params({"learning-rate": "0.01", "update": "exponentiated"}) == {
        "update": "exponentiated"
    }
    config, settings = request.resolve({"learning_rate": 0.01, "update": "exponentiated"})
    assert config.update.name == "exponentiated" and "learning_rate" not in settings and settings["iterations"] == 2


def test_effective_parameters_of_ranges_have_few_digits() -> None:
    request = make_request("learning-rate=1e-4..1e-1:log", search="tpe", update="regular")
    assert request.select_effective_params({"learning-rate": 0.00123456789}) == {"learning-rate": 0.001235}


def test_fixed_settings_are_left_out_where_they_have_no_effect() -> None:
    request = make_request("update=natural,exponentiated", delta_kl=0.01)
    request.check()
    assert request.resolve({"update": "natural"})[0].update.delta_kl == 0.01
    assert "delta_kl" not in request.resolve({"update": "exponentiated"})[1]


def test_shape_of_a_schedule_is_left_out_with_another_schedule() -> None:
    request = make_request("alpha-schedule=geometric,linear", "alpha-decay=0.1..0.9:2", alpha_start=0.5)
    request.check()
    assert request.select_effective_params({"alpha-schedule": "linear", "alpha-decay": 0.1}) == {
        "alpha-schedule": "linear"
    }


@pytest.mark.parametrize(
    ("varied", "given", "words"),
    [
        ((), {}, "no setting varies; add one, for example --vary"),
        ((RATES,), {"update": "natural"}, "--learning-rate has no effect on the update natural: it belongs to"),
        ((RATES, "update=natural,exponentiated"), {}, "--learning-rate has no effect on the update natural"),
        ((RATES, UPDATES), {"delta_kl": 0.1}, "--delta-kl has no effect on the update regular"),
        ((UPDATES,), {"update": "natural"}, "--update is both varied and fixed; leave one of them out"),
        (("method=dagger,sl",), {"method": "lols"}, "--method is both varied and fixed; leave one of them out"),
        (("seed=1,2",), {}, "--seed cannot vary: every trial runs as many seeds as --seeds says; leave it out"),
        (("horizon=100,200",), {}, "--horizon is both varied and fixed"),
        (("learning-rate=-1..1:2",), {"update": "regular"}, "--learning-rate is -1.0, but must be a positive number"),
        (("alpha-start=0,1,2",), {}, "--alpha-start is 2.0, but must be between 0 and 1"),
        (("update=natural,bogus",), {}, "unknown update 'bogus'"),
        (("policy=mlp,window,lsmt",), {}, "unknown policy 'lsmt' (did you mean lstm?)"),
        (("method=dagger,daggr",), {}, "unknown method 'daggr' (did you mean dagger?)"),
        (
            ("alpha-start=0..0.5",),
            {},
            "a grid needs the number of points: --vary alpha-start=0..0.5:5; or choose --search tpe",
        ),
        (
            ("alpha-start=0..0.5:5",),
            {"search": "tpe"},
            "the points of --vary alpha-start=0..0.5:5 have no effect on --search tpe",
        ),
        ((UPDATES,), {"search": "bayes"}, "unknown search 'bayes': choose one of grid, tpe"),
        ((UPDATES,), {"trials": 0}, "--trials is 0, but must be at least 1"),
        ((UPDATES,), {"seeds": 0}, "--seeds is 0, but must be at least 1"),
        ((UPDATES,), {"sampler_seed": -1}, "--sampler-seed is -1, but must be 0 or more"),
    ],
)
def test_request_that_is_not_possible_is_refused_in_a_sentence(
    varied: tuple[str, ...], given: dict, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        make_request(*varied, **given).check()
    assert words in str(caught.value)


def test_setting_that_decides_what_is_measured_does_not_vary() -> None:
    request = make_request("horizon=100,200")
    fixed = {name: value for name, value in request.fixed.items() if name != "horizon"}
    with pytest.raises(UsageError, match="--horizon cannot vary: it changes what the score measures; fix it"):
        SweepRequest(request.task, request.method, request.varied, fixed, "grid", 2).check()


def test_command_of_a_trial_is_one_that_train_takes_and_means_the_same() -> None:
    request = make_request(RATES, UPDATES, "hidden=16,64 32", "advantage=True,False", seeds=3, seed=5)
    params = {"learning-rate": "0.001", "update": "regular", "hidden": "64 32", "advantage": "False"}
    command = request.format_command(params)
    assert command.startswith("aggrevated train cartpole ") and command.endswith(" --trials 3")
    for words in ("--learning-rate 0.001", "--hidden 64 32", "--no-advantage", "--seed 5", "--update regular"):
        assert words in command
    train = parse_command(command.split()[1:])
    assert train.trials == 3
    assert request.format_command({"update": "exponentiated"}).count("--learning-rate") == 0
    other = make_request("method=dagger,sl").format_command({"method": "dagger"})
    assert re.match(r"aggrevated train cartpole --method dagger --iterations 2 ", other) and "--trials" not in other


def test_request_is_read_as_it_was_written() -> None:
    request = make_request("learning-rate=1e-4..1e-1:log:3", UPDATES, "hidden=16,64 32", seeds=2, critic_hidden=(8,))
    assert SweepRequest.from_dict(request.to_dict(), "sweep.json") == request
    for broken in ({}, request.to_dict() | {"varied": ["nothing"]}, request.to_dict() | {"task": "cartpoll"}):
        with pytest.raises(DataError, match=r"sweep\.json does not hold the request of a sweep"):
            SweepRequest.from_dict(broken, "sweep.json")


def test_grid_is_every_combination_with_the_last_setting_fastest() -> None:
    found = make_request("alpha-start=0..0.5:2", "iterations=1..3:3").grid
    assert [tuple(one.values()) for one in found] == [(0.0, 1), (0.0, 2), (0.0, 3), (0.5, 1), (0.5, 2), (0.5, 3)]
    assert [list(one) for one in found] == [["alpha-start", "iterations"]] * 6


def test_grid_has_combinations_once_that_differ_only_in_what_has_no_effect() -> None:
    found = make_request("learning-rate=0.1,0.2,0.3", UPDATES).grid
    assert [one.get("learning-rate") for one in found] == ["0.1", None, "0.2", "0.3"]
    assert [one["update"] for one in found] == ["regular", "exponentiated", "regular", "regular"]


def test_grid_of_too_many_combinations_is_refused() -> None:
    with pytest.raises(UsageError, match=r"has 40,000 combinations; give fewer points, or choose --search tpe"):
        make_request("temperature=0.1..1:200", "alpha-start=0..1:200").grid  # noqa: B018 - the property computes


@pytest.mark.parametrize(
    ("varied", "trials", "search"),
    [
        ([UPDATES], None, "grid"),
        ([UPDATES, "iterations=1,2,3"], 6, "grid"),
        ([UPDATES, "iterations=1,2,3"], 5, "tpe"),
        ([UPDATES, "learning-rate=1e-4..1e-1:log"], 64, "tpe"),
        ([UPDATES, "learning-rate=1e-4..1e-1:log:5"], 4, "grid"),
    ],
)
def test_default_search_is_a_grid_for_points_and_few_choices(
    varied: list[str], trials: int | None, search: str
) -> None:
    assert choose_search(parse_variations(varied, find_task("cartpole"), "aggrevated"), trials) == search
