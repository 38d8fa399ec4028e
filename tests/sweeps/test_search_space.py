"""What --vary says."""

import pytest

from aggrevated.core.errors import UsageError
from aggrevated.sweeps.search_space import Choices, Range, format_value, parse_variations
from aggrevated.tasks import find_task

CARTPOLE = find_task("cartpole")


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("learning-rate=1e-4..1e-1:log", Range("learning_rate", 1e-4, 1e-1, log=True)),
        ("--learning-rate=1e-4..0.1:log:5", Range("learning_rate", 1e-4, 1e-1, log=True, count=5)),
        ("alpha-start=0..0.5", Range("alpha_start", 0.0, 0.5)),
        ("alpha-start=0..0.5:3", Range("alpha_start", 0.0, 0.5, count=3)),
        ("log-deviation=-3..-1", Range("log_deviation", -3.0, -1.0)),
        ("iterations=10..200:log", Range("iterations", 10, 200, whole=True, log=True)),
        ("update=natural,exponentiated", Choices("update", ("natural", "exponentiated"))),
        ("method=dagger, sl", Choices("method", ("dagger", "sl"))),
        ("iterations=50,100", Choices("iterations", (50, 100))),
        ("alpha-start=0,1", Choices("alpha_start", (0.0, 1.0))),
        ("hidden=16,64 32", Choices("hidden", ((16,), (64, 32)))),
        ("advantage=True,False", Choices("advantage", (True, False))),
    ],
)
def test_known_answers(word: str, meaning: Choices | Range) -> None:
    (found,) = parse_variations([word], CARTPOLE, "aggrevated")
    assert found == meaning
    assert parse_variations([str(found)], CARTPOLE, "aggrevated") == (meaning,)  # what is written down says the same
    kinds = {type(value) for value in found.ends}
    assert kinds == {type(value) for value in meaning.ends}  # whole numbers stay whole


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("learning-rate", "--vary is 'learning-rate', but must be NAME=LOW..HIGH"),
        ("=1,2", "--vary is '=1,2', but must be NAME="),
        ("lerning-rate=1,2", "unknown setting --lerning-rate (did you mean --learning-rate?)"),
        ("trials=1,2", "unknown setting --trials"),
        ("warps=1,2", "--augmented-copies has no effect on cartpole; choose another task"),
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
    ],
)
def test_what_says_nothing_that_can_be_is_refused_in_a_sentence(word: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_variations([word], CARTPOLE, "aggrevated")
    assert words in str(caught.value)


def test_a_setting_varies_once() -> None:
    with pytest.raises(UsageError, match="--alpha-start is varied twice; say all its values in one --vary"):
        parse_variations(["alpha-start=0,1", "alpha-start=0..1"], CARTPOLE, "aggrevated")


def test_the_points_of_a_grid() -> None:
    assert Range("x", 1e-4, 1e-1, log=True, count=4).points == (1e-4, 1e-3, 1e-2, 1e-1)
    assert Range("x", 1e-4, 1e-1, log=True, count=5).points == (1e-4, 5.623e-4, 3.162e-3, 1.778e-2, 1e-1)
    assert Range("x", 0.0, 1.0, count=3).points == (0.0, 0.5, 1.0)
    assert Range("x", 1, 4, whole=True, count=9).points == (1, 2, 3, 4)
    assert Choices("x", ("b", "a")).points == ("b", "a")


def test_a_number_is_short_and_inside_of_its_range() -> None:
    assert Range("x", 1e-4, 1e-1, log=True).tidy(0.00123456789) == 0.001235
    assert Range("x", 0.0, 1.0).tidy(0.123456789) == 0.1235
    assert Range("x", 990.0, 1000.0).tidy(993.123456) == 993.123
    assert Range("x", 0.123456, 0.2).tidy(0.1234561) == 0.123456
    assert Range("x", 1, 9, whole=True).tidy(3.0) == 3


def test_values_are_said_as_the_command_line_takes_them() -> None:
    assert [format_value(value) for value in (1e-05, (64, 32), "lstm", True)] == ["1e-05", "64 32", "lstm", "True"]


def test_a_file_of_an_expert_is_found_again_from_everywhere(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.zip").touch()
    (found,) = parse_variations(["expert=cartpole,mine.zip"], CARTPOLE, "aggrevated")
    assert found.ends == ("cartpole", str(tmp_path / "mine.zip"))
