"""Config: invalid and misspelled settings raise an error of one sentence."""

import pickle
from typing import Any

import pytest

from aggrevated.config.resolver import config_from_dict, resolve_config
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.registry import list_task_names
from aggrevated.methods import METHODS


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"iterations": "5"}, "--iterations is '5', but must be a whole number"),
        ({"horizon": True}, "--horizon is True, but must be a whole number"),
        ({"expert": 3}, "--expert is 3, but must be a text"),
        ({"hidden": 8}, "--hidden is 8, but must be whole numbers"),
        ({"iteratons": 5}, r"unknown setting --iteratons \(did you mean --iterations"),
        ({"policy": 3}, "unknown policy 3: choose one of cnn, mlp, lstm, gru, window"),
    ],
)
def test_resolve_config_refuses_values_of_wrong_types_in_one_sentence(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_config("cartpole", **given)


def test_config_with_settings_changes_the_component_that_has_the_setting() -> None:
    config = resolve_config("cartpole")
    other = config.with_settings(iterations=8, horizon=30, temperature=0.5)
    values = other.update.to_values()
    assert (other.loop.iterations, other.problem.to_values()["horizon"], values["temperature"]) == (8, 30, 0.5)
    assert config == resolve_config("cartpole")
    with pytest.raises(UsageError, match=r"unknown setting 'iteratons' \(did you mean iterations\?\)"):
        config.with_settings(iteratons=8)


@pytest.mark.parametrize("task", list_task_names())
@pytest.mark.parametrize("method", METHODS)
def test_config_from_dict_restores_to_dict_and_refuses_unknown_components(task: str, method: str) -> None:
    if method == "aggrevate" and task in ("hopper", "walker"):
        with pytest.raises(UsageError, match="use --method aggrevated"):
            resolve_config(task, method)
        return
    if method in ("searn", "smile") and task in ("hopper", "walker", "algebra", "reader"):
        with pytest.raises(UsageError, match=r"use --method aggrevated|for finite actions|cannot be mixed"):
            resolve_config(task, method)
        return
    config = resolve_config(task, method)
    assert config_from_dict(config.to_dict(), "here") == config
    for slot in config.components:
        with pytest.raises(DataError, match="here holds invalid settings"):
            config_from_dict(config.to_dict() | {slot: {"name": "nothing"}}, "here")


@pytest.mark.parametrize("task", list_task_names())
def test_config_pickle_leaves_out_the_built_problem(task: str) -> None:
    config = resolve_config(
        task, **({"generated_pages": 20, "augmented_copies": 0} if task in ("algebra", "reader") else {})
    )
    assert config.built_problem is config.built_problem
    unpickled = pickle.loads(pickle.dumps(config))
    assert unpickled == config and "built_problem" not in vars(unpickled)
    assert not {"simulator", "loaded_expert"} & set(vars(unpickled.problem))
