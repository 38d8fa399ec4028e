"""Trajectories, returns and costs-to-go are bit for bit the same in a batch of any size."""

import numpy as np
import pytest

from aggrevated.config.resolver import resolve_config
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.validation import evaluate_returns
from helpers.tiny_mdp import randomise

SEEDS = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 20)
BLOCKS = (1, 7, 13)


@pytest.fixture(
    scope="module",
    params=[
        ("cartpole", {}),
        ("acrobot", {"hidden": (64, 64)}),
        ("acrobot-partial", {}),
        ("acrobot-partial", {"policy": "gru"}),
        ("acrobot-partial", {"policy": "window"}),
        ("hopper", {"horizon": 40}),
        ("walker", {"horizon": 40}),
    ],
    ids=lambda param: " ".join(map(str, (param[0], *param[1].values()))),
)
def problem_case(request):
    """Return a config, its problem and a random policy."""
    task, settings = request.param
    if task in ("hopper", "walker"):
        pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    config = resolve_config(task, "aggrevated", **settings)
    problem = config.problem.build(0)
    head = config.head.build(problem.simulator.action_space)
    return config, problem, randomise(config.policy.build(problem.simulator.observation_space, head, 0), 1, 0.3)


def assert_block_equals_whole(block, whole, first):
    """Assert that the trajectories of a block equal those of the whole batch from index `first` on."""
    for k in range(block.count):
        length = int(block.mask[k].sum())
        assert length == whole.mask[first + k].sum()
        for name in ("states", "observations", "actions", "costs"):
            mine, theirs = (getattr(one, name)[i, :length] for one, i in ((block, k), (whole, first + k)))
            np.testing.assert_array_equal(mine, theirs, err_msg=name)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_roll_in_in_blocks_equals_roll_in_of_whole_batch(problem_case, alpha):
    _, problem, policy = problem_case
    mixture = RollInPolicy(problem.expert, policy.actor(), alpha)
    whole = roll_in(problem.simulator, mixture, SEEDS)
    for size in BLOCKS:
        for first in range(0, len(SEEDS), size):
            assert_block_equals_whole(roll_in(problem.simulator, mixture, SEEDS[first : first + size]), whole, first)


def test_evaluate_returns_in_blocks_equals_whole_batch(problem_case):
    _, problem, policy = problem_case
    whole, steps = evaluate_returns(policy, problem.simulator, SEEDS)
    for size in BLOCKS:
        blocks = [evaluate_returns(policy, problem.simulator, SEEDS[i : i + size]) for i in range(0, len(SEEDS), size)]
        np.testing.assert_array_equal(np.concatenate([returns for returns, _ in blocks]), whole)
        assert sum(count for _, count in blocks) == steps


def test_oracle_on_blocks_equals_oracle_on_whole_batch(problem_case):
    config, problem, policy = problem_case
    oracle = config.oracle.build(problem.simulator, problem.expert)
    trajectories = roll_in(problem.simulator, RollInPolicy(problem.expert, policy.actor(), 0.0), SEEDS)
    whole = oracle(trajectories, policy)
    for first in range(0, trajectories.count, 7):
        rows = np.arange(first, min(first + 7, trajectories.count))
        block = oracle(trajectories.take(rows), policy)
        for name, array in block.arrays.items():
            np.testing.assert_array_equal(array, whole.arrays[name][rows], err_msg=name)
