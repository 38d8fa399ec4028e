"""Resolver: precedence of settings, checks of values, and errors for settings without effect."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from aggrevated import __version__
from aggrevated.config import Config
from aggrevated.config.resolver import (
    OPTION_NAMES,
    REGISTRIES,
    config_from_dict,
    list_component_names,
    list_setting_names,
    resolve_config,
    select_head,
)
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.registry import list_task_names
from aggrevated.core.settings import get_declared_settings
from aggrevated.methods import METHODS
from aggrevated.oracles import Feedback
from aggrevated.policies import get_input_size
from aggrevated.tasks import Preset, find_task

CARTPOLE = find_task("cartpole")


def task_with_presets(*rows: Preset):
    return replace(CARTPOLE, presets=rows)


def test_resolve_config_prefers_user_then_preset_then_method_then_declared_value() -> None:
    plain = task_with_presets()
    assert resolve_config(plain).loop.alpha_start == 0.0  # declared by the loop
    assert resolve_config(plain, "sl").loop.alpha_start == 1.0  # implied by the method
    task = task_with_presets(Preset({"alpha_start": 0.25}))
    assert resolve_config(task, "sl").loop.alpha_start == 0.25  # preset of the task
    assert resolve_config(task, "sl", alpha_start=0.75).loop.alpha_start == 0.75  # given by the user


def test_resolve_config_prefers_the_last_preset_that_applies() -> None:
    rows = (
        Preset({"iterations": 1}),
        Preset({"iterations": 2}, method="aggrevated", update="regular", policy="gru", start="supervised"),
        Preset({"iterations": 3}, update="regular"),
        Preset({"iterations": 4}, policy="lstm"),
    )
    assert resolve_config(task_with_presets(*rows)).loop.iterations == 100  # presets do not apply to the default update
    assert (
        resolve_config(replace(task_with_presets(), defaults=rows[:1])).loop.iterations == 1
    )  # except the defaults of the task
    assert resolve_config(task_with_presets(*rows), update="natural").loop.iterations == 1
    assert resolve_config(task_with_presets(*rows), update="regular").loop.iterations == 3
    assert (
        resolve_config(task_with_presets(*rows), update="regular", policy="gru", start="supervised").loop.iterations
        == 3
    )
    assert (
        resolve_config(task_with_presets(*rows[:2]), update="regular", policy="gru", start="supervised").loop.iterations
        == 2
    )
    assert resolve_config(task_with_presets(*rows), update="regular", policy="lstm").loop.iterations == 4


def test_resolve_config_lets_a_later_preset_choose_another_component() -> None:
    rows = Preset({"update": "regular"}, method="aggrevated"), Preset({"update": "natural"}, policy="lstm")
    assert resolve_config(task_with_presets(*rows)).update.name == "regular"
    assert resolve_config(task_with_presets(*rows), policy="lstm").update.name == "natural"
    assert resolve_config(task_with_presets(*rows), policy="lstm", update="regular").update.name == "regular"


@pytest.mark.parametrize("name", list_task_names())
def test_task_presets_name_only_settings_that_the_task_has(name: str) -> None:
    task = find_task(name)
    known = list_setting_names(task) | {name for head in ("log_deviation",) for name in (head,)}
    assert {setting for row in task.presets for setting in row.settings} <= known


def list_configs() -> list[Config]:
    configs = []
    for name in list_task_names():
        task = find_task(name)
        for method in METHODS:
            for policy in list_component_names(task, "policy"):
                try:
                    configs.append(resolve_config(task, method, policy=policy))
                except UsageError as error:
                    known = "kernel-svm", "does not return the costs of all actions", "mixed", "mixes policies for"
                    known += ("without --corrected-pages",)
                    assert any(known_part in str(error) for known_part in known)
    return configs


def test_config_of_every_combination_survives_json_and_pickle() -> None:
    configs = list_configs()
    assert len(configs) > 100
    for config in configs:
        assert config_from_dict(config.to_dict(), "here") == config
        assert pickle.loads(pickle.dumps(config)) == config


def test_setting_names_are_unique_among_the_components_of_a_config() -> None:
    for config in list_configs():
        names = [name for component in config.components.values() for name in component.to_values()]
        assert len(names) == len(set(names)), config.to_dict()


@pytest.mark.parametrize("slot", REGISTRIES)
def test_builtin_components_have_docstrings_and_describe_every_setting(slot: str) -> None:
    registry = REGISTRIES[slot]
    assert len(registry.builtin) >= 2
    for name, component in registry.builtin.items():
        assert component.name == name and component.__doc__ and component.__module__.startswith(registry.package)
        for setting in get_declared_settings(component).values():
            assert setting.metadata["words"].endswith("."), (component, setting.name)


NATURAL = {"update": "natural"}
LOKI = {"method": "loki", "reinforcement": "reward-to-go"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learning_rate": 0.1}, "--learning-rate has no effect on the update exponentiated: it belongs to --update"),
        ({"delta_kl": 0.1}, "--delta-kl has no effect on the update exponentiated: it belongs to --update natural"),
        ({"log_prob_decay": 0.1}, r"--log-prob-decay is 0\.1, but must be 0 without --eta"),
        ({"gradient": "taken-action"}, "--gradient has no effect on the update exponentiated; choose another"),
        ({"update": "regular", "delta_kl": 0.1}, "on the update regular: it belongs to --update natural; choose that"),
        ({"start_steps": 3}, "--start-steps has no effect on the start random: it belongs to --start supervised"),
        ({"query_steps": 3}, "--query-steps has no effect on the oracle q-star: it belongs to --oracle lols or"),
        ({"method": "dagger", "query_steps": 3}, "--query-steps has no effect on the method dagger"),
        (
            {"method": "reinforce", "oracle": "monte-carlo"},
            "unknown oracle for reinforce .*: choose one of reward-to-go, c",
        ),
        ({"method": "thor", "oracle": "q-star"}, "unknown oracle for thor 'q-star': choose one of truncated"),
        ({"method": "tnpg", "reinforcement": "critic"}, "unknown reinforcement for tnpg 'critic': choose one of none"),
        ({"method": "tnpg", "gae_lambda": 0.9}, "on the oracle reward-to-go: it belongs to --oracle critic"),
        (
            {"method": "loki", "reinforcement": "reward-to-go", "gae_lambda": 0.9},
            "on the reinforcement reward-to-go: it belongs to --reinforcement critic",
        ),
        ({"method": "tnpg", "imitation_max": 9}, "--imitation-max has no effect on the method tnpg"),
        (
            {"method": "aggrevate", "reinforcement": "critic"},
            "critic does not return the costs of all",
        ),
        (
            {"method": "loki", "update": "natural", "gradient": "all-actions"},
            "but the oracle q-star, then critic, returns only what the",
        ),
        ({"method": "loki", "update": "follow-the-leader"}, "the update follow-the-leader needs what every action cos"),
        ({"method": "thor", "planning_horizon": 0}, "--planning-horizon is 0, but must be at least 1"),
        ({"log_deviation": 1.0}, "--log-deviation has no effect on cartpole, whose actions are a finite set"),
        ({"augmented_copies": 3}, "--augmented-copies has no effect on cartpole; choose another task"),
        ({"iteration": 3}, "unknown setting --iteration .did you mean --iterations"),
        ({"iterations": "many"}, "--iterations is 'many', but must be a whole number"),
        ({"iterations": True}, "--iterations is True, but must be a whole number"),
        (NATURAL | {"damping": float("nan")}, "--damping is nan, but must be 0 or more"),
        (
            {"damping": 0.0, "update": "natural"},
            "--damping is 0.0, but must be a positive number for the solver closed-form",
        ),
        (
            {"delta_kl": 0.1, "target_kl": 0.1, "update": "natural"},
            "--delta-kl is 0.1, but must be positive if --target-kl is 0",
        ),
        (
            {"delta_kl": 0.0, "update": "natural"},
            "--delta-kl is 0.0, but must be positive if --target-kl is 0",
        ),
        ({"hidden": (8, "x")}, "--hidden is .8, 'x'., but must be whole numbers"),
        (
            {"solver": "magic", "update": "natural"},
            "--solver is magic, but must be one of closed-form, conjugate-gradient",
        ),
        ({"iterations": 10, "validate_every": 3}, "--validate-every is 3, but must be a divisor of the 10 iterations"),
        ({"update": "follow-the-leader", "entropy": 0.1}, "--entropy is 0.1, but must be 0 for the update follow"),
        ({"gradient": "taken-action", "update": "follow-the-leader"}, "the update follow-the-leader needs what every"),
        ({"method": "reinforce", "gradient": "all-actions"}, "the gradient all-actions needs what every action costs"),
        ({"method": "searn", "alpha_start": 0.5}, r"--alpha-start is 0\.5, but must be 1\.0 with the update searn"),
        ({"method": "smile", "beta": 0.2, "alpha_decay": 0.9}, r"--alpha-decay is 0\.9, but must be 0\.8 with the"),
        ({"method": "smile", "start": "supervised"}, "--start is supervised, but must be random for the update smile"),
        ({"method": "smile", "entropy": 0.1}, r"--entropy is 0\.1, but must be 0 for the update smile"),
        ({"method": "smile", "beta": 0.0}, r"--beta is 0\.0, but must be above 0, and 1 at most"),
        ({"method": "tnpg", "update": "regular"}, "unknown update for tnpg 'regular': choose one of natural"),
    ],
)
def test_resolve_config_refuses_impossible_combinations_in_one_sentence(settings, words) -> None:
    with pytest.raises(UsageError, match=words):
        resolve_config("cartpole", **settings)


def test_mixture_updates_imply_the_roll_in_schedule_and_it_is_checked() -> None:
    """The share of the expert in the roll-in policy is its share in the mixture of policies."""
    for method in ("searn", "smile"):
        config = resolve_config("cartpole", method, beta=0.25)
        loop = config.loop
        assert (loop.alpha_start, loop.alpha_schedule, loop.alpha_decay) == (1.0, "geometric", 0.75)
        changed = config.to_dict() | {"loop": config.to_dict()["loop"] | {"alpha_decay": 0.5}}
        with pytest.raises(DataError, match=r"--alpha-decay is 0\.5, but must be 0\.75 with the update"):
            config_from_dict(changed, "here")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"delta_kl": 1e-4, "target_kl": 0.0, "damping": 10.0, "solver": "closed-form", "cost_scale": "raw"}),
        ({"target_kl": 0.03}, {"delta_kl": 0.0, "target_kl": 0.03, "damping": 10.0}),
        ({"target_kl": 0.0}, {"delta_kl": 1e-4, "target_kl": 0.0}),
        ({"solver": "per-state", "target_kl": 0.03}, {"delta_kl": 0.0, "damping": 0.01}),
        ({"solver": "held-out", "damping": 0.5}, {"delta_kl": 1e-4, "damping": 0.5}),
        ({"solver": "conjugate-gradient"}, {"damping": 10.0, "cg_iterations": 10}),
        ({"solver": "conjugate-gradient", "damping": 0.0, "cg_iterations": 7}, {"damping": 0.0, "cg_iterations": 7}),
        ({"update": "regular"}, {"learning_rate": 0.03, "target_kl": 0.0, "cost_scale": "raw"}),
        ({"update": "regular", "target_kl": 0.01}, {"learning_rate": 0.03, "target_kl": 0.01}),
    ],
    ids=str,
)
def test_gradient_update_defaults_follow_from_the_given_step_size_settings(given, expected) -> None:
    update = resolve_config("cartpole", **({"update": "natural"} | given)).update
    assert {name: getattr(update, name) for name in expected} == expected


def test_gradient_updates_of_a_task_without_presets_are_scale_free() -> None:
    task = replace(find_task("cartpole"), name="untuned", presets=())
    natural, regular = (resolve_config(task, update=name).update for name in ("natural", "regular"))
    assert (natural.solver, natural.target_kl, natural.cost_scale) == ("per-state", 0.02, "advantage-rms")
    assert (regular.target_kl, regular.cost_scale) == (0.02, "advantage-rms")
    assert resolve_config(task, update="natural", delta_kl=1e-3).update.target_kl == 0.0
    assert resolve_config(task, update="regular", learning_rate=0.1).update.target_kl == 0.0


def test_resolve_config_accepts_lists_for_widths_and_integers_for_floats() -> None:
    config = resolve_config("cartpole", update="natural", hidden=[8, 8], damping=3)
    assert config.policy.hidden == (8, 8) and config.update.damping == 3


@pytest.mark.parametrize(
    "change",
    [
        {"version": "0.1.0"},
        {"task": "nowhere"},
        {"method": "magic"},
        {"update": {"name": "natural"}},
        {"update": {"name": "magic"}},
        {"loop": None},
        {"more": 1},
        {"problem": {"name": "algebra"}},
    ],
)
def test_config_from_dict_refuses_a_changed_config(change) -> None:
    with pytest.raises(DataError, match="here"):
        config_from_dict(resolve_config("cartpole").to_dict() | change, "here")


def test_config_from_dict_refuses_a_config_of_the_first_version() -> None:
    old = {"task": "cartpole", "method": "aggrevated", "update": "natural", "seed": 0, "version": "0.1.0"}
    with pytest.raises(DataError, match=f"here is not a config of version {__version__}; start a new run"):
        config_from_dict(old, "here")


def test_select_head_and_input_size_refuse_unsupported_spaces() -> None:
    with pytest.raises(UsageError, match=r"no head supports actions of type MultiDiscrete.*add a head"):
        select_head(MultiDiscrete([3, 2]))
    with pytest.raises(UsageError, match=r"no head supports actions of type Box\(2, 2\)"):
        select_head(Box(0, 1, (2, 2)))
    with pytest.raises(UsageError, match=r"cannot read observations of type Dict.*flatten them"):
        get_input_size(Dict({"a": Box(0, 1, (2,))}))
    assert select_head(Discrete(3)).is_discrete and not select_head(Box(0, 1, (2,))).is_discrete


def test_config_loss_feedback_follows_the_oracle_and_the_loss() -> None:
    assert resolve_config("cartpole").loss_feedback is Feedback.ALL_ACTIONS
    assert resolve_config("cartpole", update="natural", gradient="taken-action").loss_feedback is Feedback.TAKEN_ACTION
    assert resolve_config("cartpole", oracle="monte-carlo").loss.name == "all-actions"
    assert resolve_config("cartpole", oracle="monte-carlo", all_actions=False).loss.name == "taken-action"
    assert set(OPTION_NAMES.values()) == {"policy", "update", "start", "oracle", "reinforcement", "gradient"}


def test_resolve_config_refuses_a_preset_with_an_unknown_setting() -> None:
    with pytest.raises(UsageError, match=r"cartpole or the method aggrevated sets 'horizn' .did you mean horizon"):
        resolve_config(task_with_presets(Preset({"horizn": 3})), update="natural")


@pytest.mark.parametrize("task", [None, 3, object(), replace(CARTPOLE, problem=3)])
def test_resolve_config_refuses_an_object_that_is_not_a_task(task) -> None:
    with pytest.raises(UsageError, match="is not a task: pass its name, or a Task"):
        resolve_config(task)


def test_resolve_config_accepts_numpy_numbers() -> None:
    config = resolve_config("cartpole", temperature=np.float64(1e-3), iterations=np.int64(3), hidden=[np.int32(4)])
    assert config.to_dict() == resolve_config("cartpole", temperature=1e-3, iterations=3, hidden=(4,)).to_dict()
