"""Contract of problems: parts of a task are compatible, results are repeatable, settings can be saved."""

import pickle
from dataclasses import replace

import numpy as np
import torch

from aggrevated.config import Config
from aggrevated.config.builder import build_algorithm_inputs, build_policy
from aggrevated.config.resolver import config_from_dict, resolve_config
from aggrevated.core.settings import get_declared_settings
from aggrevated.policies import Policy
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import Simulator
from aggrevated.storage import digest_tensors
from aggrevated.tasks import Task

SMALL = {
    "horizon": 20,
    "validation_episodes": 3,
    "test_episodes": 4,
    "generated_pages": 20,
    "augmented_copies": 1,
    "hidden": (8,),
    "sentences": 40,
    "rows": 64,
}


def small_config(task: Task, **settings) -> Config:
    """Return the config of a small run of the task."""
    plain = resolve_config(task)
    names = set(plain.settings)
    return resolve_config(task, **{name: value for name, value in SMALL.items() if name in names}, **settings)


def make_policy(config: Config) -> Policy:
    """Return the initial policy of a small run, prepared by its problem."""
    return build_algorithm_inputs(config).learner.policy


class ProblemContract:
    """Tests of the problem of one task; a test module with a subclass `Test...` has a fixture `task`."""

    def test_problem_spaces_match_simulator(self, task: Task) -> None:
        config = small_config(task)
        observations, actions = config.problem.spaces()
        simulator = config.built_problem.simulator
        assert isinstance(simulator, Simulator) and simulator.horizon >= 1
        assert observations.shape == simulator.observation_space.shape and actions == simulator.action_space
        observation = simulator.observe(simulator.reset(np.arange(3, dtype=np.uint64)))
        assert observation.shape == (3, *observations.shape) and observation.dtype == np.float32

    def test_problem_accepts_policy_and_expert_in_roll_in(self, task: Task) -> None:
        config = small_config(task)
        problem = config.built_problem
        policy = make_policy(config)
        seeds = np.arange(3, dtype=np.uint64)
        for roll_in_policy in (RollInPolicy(None, policy.actor()), RollInPolicy(problem.expert, None, 1.0)):
            assert roll_in(problem.simulator, roll_in_policy, seeds).steps > 0

    def test_problem_validate_and_test_are_repeatable_and_keep_policy(self, task: Task) -> None:
        config = small_config(task)
        problem = config.built_problem
        policy = make_policy(config)
        weights = digest_tensors(dict(policy.named_parameters()))
        score = problem.validate(policy)
        before = digest_tensors(policy.state_dict())  # the first validation may calibrate the problem
        assert problem.validate(policy) == score
        first = problem.test(policy)
        second = problem.test(policy)
        assert first == second and first.to_dict() == second.to_dict()
        assert (
            digest_tensors(policy.state_dict()) == before and digest_tensors(dict(policy.named_parameters())) == weights
        )
        assert {"expert_return", "test_return", "ratio"} <= set(first.to_dict())
        assert first.to_dict()["test_return"] == first.test_return
        assert all(np.isfinite(value) for value in problem.monitor(policy).values())

    def test_problem_is_identical_when_rebuilt_and_after_pickling(self, task: Task) -> None:
        config = small_config(task)
        repeated = small_config(task)
        unpickled = pickle.loads(pickle.dumps(config))
        problems = [one.built_problem for one in (config, repeated, unpickled)]
        assert len({digest_tensors(dict(problem.fingerprint)) for problem in problems}) == 1
        assert (
            len(
                {
                    problem.validate(make_policy(one))
                    for problem, one in zip(problems, (config, repeated, unpickled), strict=True)
                }
            )
            == 1
        )

    def test_problem_prepares_blank_policy_for_saved_weights(self, task: Task) -> None:
        config = small_config(task)
        policy = make_policy(config)
        blank = build_policy(config)
        blank.load_state_dict(policy.state_dict())
        config.built_problem.prepare(blank)
        assert config.built_problem.validate(blank) == config.built_problem.validate(policy)
        assert torch.equal(*(torch.cat([p.detach().flatten() for p in one.parameters()]) for one in (blank, policy)))

    def test_problem_settings_round_trip_and_distinguish_runs(self, task: Task) -> None:
        config = small_config(task)
        assert config_from_dict(config.to_dict(), "here", task) == config
        assert get_declared_settings(type(config.problem)), "a problem without settings cannot be varied"
        name, value = next((name, value) for name, value in config.problem.to_values().items() if type(value) is int)
        assert replace(config.problem, **{name: value + 1}) != config.problem

    def test_problem_evaluation_is_repeatable(self, task: Task) -> None:
        config = small_config(task)
        evaluation = config.problem.evaluation()
        few = {name: 4 for name, value in evaluation.to_values().items() if type(value) is int}
        evaluation = replace(evaluation, **few)
        evaluation.check_values()
        policy = make_policy(config)
        assert evaluation.measure(config.problem, policy) == evaluation.measure(config.problem, policy)
        assert {"expert_return", "test_return", "ratio"} <= set(evaluation.measure(config.problem, policy))

    def test_problem_declares_metric_name_and_label(self, task: Task) -> None:
        problem = small_config(task).problem
        assert problem.metric_name and problem.digits >= 0 and isinstance(problem.label + problem.notice, str)
        assert problem.expert_identity() == small_config(task).problem.expert_identity()
