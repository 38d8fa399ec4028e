"""Syntax of --vary."""

from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from aggrevated.core.errors import UsageError
from aggrevated.sweeps.search_space import Variation, parse_variations
from aggrevated.tasks import find_task

CARTPOLE = find_task("cartpole")


def parse(word: str) -> Variation:
    (found,) = parse_variations([word], CARTPOLE, "aggrevated")
    return found


@pytest.mark.parametrize(
    ("word", "distribution"),
    [
        ("learning-rate=1e-4..1e-1:log", FloatDistribution(1e-4, 1e-1, log=True)),
        ("--learning-rate=1e-4..0.1:log:5", FloatDistribution(1e-4, 1e-1, log=True)),
        ("alpha-start=0..0.5", FloatDistribution(0.0, 0.5)),
        ("log-deviation=-3..-1", FloatDistribution(-3.0, -1.0)),
        ("iterations=10..200:log", IntDistribution(10, 200, log=True)),
        ("update=natural,exponentiated", CategoricalDistribution(["natural", "exponentiated"])),
        ("hidden=16,64 32", CategoricalDistribution(["16", "64 32"])),
    ],
)
def test_variation_has_optuna_distribution_and_is_read_as_it_is_written(word: str, distribution: object) -> None:
    found = parse(word)
    assert found.distribution == distribution
    assert parse(str(found)) == found


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("method=dagger, sl", ["dagger", "sl"]),
        ("iterations=50,100", [50, 100]),
        ("alpha-start=0,1", [0.0, 1.0]),
        ("hidden=16,64 32", [(16,), (64, 32)]),
        ("advantage=True,False", [True, False]),
        ("alpha-start=0..1:3", [0.0, 0.5, 1.0]),
        ("learning-rate=1e-4..1e-1:log:4", [1e-4, 1e-3, 1e-2, 1e-1]),
        ("learning-rate=1e-4..1e-1:log:5", [1e-4, 5.623e-4, 3.162e-3, 1.778e-2, 1e-1]),
        ("iterations=1..4:9", [1, 2, 3, 4]),
    ],
)
def test_variation_points_stand_for_these_settings(word: str, values: list[Any]) -> None:
    found = parse(word)
    settings = [found.to_value(point) for point in found.points]
    assert settings == values
    assert [type(one) for one in settings] == [type(one) for one in values]


def test_number_of_range_is_short_and_inside_of_it() -> None:
    assert parse("learning-rate=1e-4..1e-1:log").to_value(0.00123456789) == 0.001235
    assert parse("alpha-start=0..1").to_value(0.123456789) == 0.1235
    assert parse("alpha-start=0.123456..0.2").to_value(0.1234561) == 0.1235
    assert parse("alpha-start=0.12344..0.2").to_value(0.123441) == 0.12344
    assert parse("iterations=1..9").to_value(3.0) == 3


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("learning-rate", "--vary is 'learning-rate', but must be NAME=LOW..HIGH"),
        ("=1,2", "--vary is '=1,2', but must be NAME="),
        ("lerning-rate=1,2", "unknown setting --lerning-rate (did you mean --learning-rate?)"),
        ("trials=1,2", "unknown setting --trials"),
        ("augmented-copies=1,2", "--augmented-copies has no effect on cartpole; choose another task"),
        ("alpha-start=0.5..0.1", "'0.5..0.1', but must be from a LOW to a higher HIGH"),
        ("alpha-start=0.5..nan", "but must be from a LOW to a higher HIGH"),
        ("alpha-start=0..1:log", "but must be above 0 for a range that is :log"),
        ("alpha-start=0..1:lin", "but must be LOW..HIGH, LOW..HIGH:log or, for a grid"),
        ("alpha-start=..1", "but must be LOW..HIGH"),
        ("alpha-start=0..1..2", "--alpha-start is '1..2', but must be a number"),
        ("alpha-start=0..1:1", "but must be of at least 2 points"),
        ("iterations=1.5..3", "--iterations is '1.5', but must be a whole number"),
        ("iterations=many,few", "--iterations is 'many', but must be a whole number"),
        ("hidden=16,wide", "--hidden is 'wide', but must be whole numbers"),
        ("advantage=True,maybe", "--advantage is 'maybe', but must be True or False"),
        ("update=natural", "at least two choices; or fix it with --update natural"),
        ("update=natural,", "at least two choices"),
        ("update=natural,natural", "but must be choices that differ"),
        ("alpha-start=0.1,0.10", "but must be choices that differ"),
    ],
)
def test_variation_that_is_not_possible_is_refused_in_a_sentence(word: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(word)
    assert words in str(caught.value)


def test_setting_varies_once() -> None:
    with pytest.raises(UsageError, match="--alpha-start is varied twice; give all its values in one --vary"):
        parse_variations(["alpha-start=0,1", "alpha-start=0..1"], CARTPOLE, "aggrevated")


def test_file_of_an_expert_is_found_again_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.zip").touch()
    found = parse("expert=cartpole,mine.zip")
    assert found.ends == ("cartpole", str(tmp_path / "mine.zip"))
    assert str(found) == f"expert=cartpole,{tmp_path / 'mine.zip'}"
