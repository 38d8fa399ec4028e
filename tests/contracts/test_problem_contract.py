"""The contract that every world keeps: what a task brings fits together, repeats itself, and can be written down."""

import pickle
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

from aggrevated.config import Config
from aggrevated.config.builder import build_algorithm_inputs, build_policy
from aggrevated.config.resolver import config_from_dict, resolve_config
from aggrevated.core.registry import list_task_names
from aggrevated.core.settings import declared_settings
from aggrevated.policies import Policy
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import Simulator
from aggrevated.storage import digest_tensors
from aggrevated.tasks import Task, find_task

SMALL = {
    "horizon": 20,
    "validation_episodes": 3,
    "test_episodes": 4,
    "generated_pages": 20,
    "augmented_copies": 1,
    "hidden": (8,),
}
SMALL |= {"sentences": 40, "rows": 64}
sys.path.insert(0, str(Path(__file__).parents[1] / "doubles"))
DOUBLES: dict[str, Task] = {name: import_module(f"{name}_package").TASK for name in ("corridor", "tagger")}
sys.path.pop(0)


@pytest.fixture(params=[*list_task_names(), *DOUBLES])
def task(request: pytest.FixtureRequest) -> Task:
    """Every shipped task, and those of somebody else."""
    return DOUBLES.get(request.param) or find_task(request.param)


def small(task: Task, **settings) -> Config:
    """A small run of the task."""
    plain = resolve_config(task)
    names = set(plain.settings)
    return resolve_config(task, **{name: value for name, value in SMALL.items() if name in names}, **settings)


def learned(config: Config) -> Policy:
    """A policy that the world has prepared."""
    return build_algorithm_inputs(config).learner.policy


def test_spaces_are_those_of_the_simulator(task: Task) -> None:
    config = small(task)
    observations, actions = config.problem.spaces()
    simulator = config.built_problem.simulator
    assert isinstance(simulator, Simulator) and simulator.horizon >= 1
    assert observations.shape == simulator.observation_space.shape and actions == simulator.action_space
    shown = simulator.observe(simulator.reset(np.arange(3, dtype=np.uint64)))
    assert shown.shape == (3, *observations.shape) and shown.dtype == np.float32


def test_policy_and_expert_act_in_it(task: Task) -> None:
    config = small(task)
    world = config.built_problem
    policy = learned(config)
    seeds = np.arange(3, dtype=np.uint64)
    for mixture in (RollInPolicy(None, policy.actor()), RollInPolicy(world.expert, None, 1.0)):
        assert roll_in(world.simulator, mixture, seeds).steps > 0


def test_validation_and_test_repeat_themselves_and_change_nothing(task: Task) -> None:
    config = small(task)
    world = config.built_problem
    policy = learned(config)
    learned_weights = digest_tensors(dict(policy.named_parameters()))
    told = world.validate(policy)
    before = digest_tensors(policy.state_dict())  # the first validation may correct how sure a policy says that it is
    assert world.validate(policy) == told
    first = world.test(policy)
    second = world.test(policy)
    assert first == second and first.to_dict() == second.to_dict()
    assert (
        digest_tensors(policy.state_dict()) == before
        and digest_tensors(dict(policy.named_parameters())) == learned_weights
    )
    assert {"expert_return", "test_return", "ratio"} <= set(first.to_dict())
    assert first.to_dict()["test_return"] == first.test_return
    assert all(np.isfinite(value) for value in world.monitor(policy).values())


def test_it_is_the_same_when_built_again_and_in_another_process(task: Task) -> None:
    config = small(task)
    again = small(task)
    sent = pickle.loads(pickle.dumps(config))
    worlds = [one.built_problem for one in (config, again, sent)]
    assert len({digest_tensors(dict(world.fingerprint)) for world in worlds}) == 1
    assert len({world.validate(learned(one)) for world, one in zip(worlds, (config, again, sent), strict=True)}) == 1


def test_a_blank_policy_takes_the_weights_of_a_learned_one(task: Task) -> None:
    config = small(task)
    policy = learned(config)
    blank = build_policy(config)
    blank.load_state_dict(policy.state_dict())
    config.built_problem.prepare(blank)
    assert config.built_problem.validate(blank) == config.built_problem.validate(policy)
    assert torch.equal(*(torch.cat([p.detach().flatten() for p in one.parameters()]) for one in (blank, policy)))


def test_settings_survive_being_written_and_tell_runs_apart(task: Task) -> None:
    config = small(task)
    assert config_from_dict(config.to_dict(), "here", task) == config
    assert declared_settings(type(config.problem)), "a world without settings is a world that nobody can vary"
    name, value = next((name, value) for name, value in config.problem.to_values().items() if type(value) is int)
    assert replace(config.problem, **{name: value + 1}) != config.problem


def test_it_can_be_evaluated_again(task: Task) -> None:
    config = small(task)
    how = config.problem.evaluation()
    few = {name: 4 for name, value in how.to_values().items() if type(value) is int}
    how = replace(how, **few)
    how.check_values()
    policy = learned(config)
    assert how.measure(config.problem, policy) == how.measure(config.problem, policy)
    assert {"expert_return", "test_return", "ratio"} <= set(how.measure(config.problem, policy))


def test_it_says_what_is_measured_and_what_a_legend_adds(task: Task) -> None:
    world = small(task).problem
    assert world.metric_name and world.digits >= 0 and isinstance(world.label + world.notice, str)
    assert world.expert_identity() == small(task).problem.expert_identity()
