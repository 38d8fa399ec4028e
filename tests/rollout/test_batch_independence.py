"""A trajectory is computed alone and in company with the same bits, and so are returns and what oracles say of it."""

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
def parts(request):
    """(config, its world, a policy that is not indifferent)."""
    task, settings = request.param
    if task in ("hopper", "walker"):
        pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    config = resolve_config(task, "aggrevated", **settings)
    world = config.problem.build(0)
    head = config.head.build(world.simulator.action_space)
    return config, world, randomise(config.policy.build(world.simulator.observation_space, head, 0), 1, 0.3)


def same_lanes(part, whole, first):
    """Whether the trajectories of a block are those of the whole that begin at `first`."""
    for k in range(part.count):
        length = int(part.mask[k].sum())
        assert length == whole.mask[first + k].sum()
        for name in ("states", "observations", "actions", "costs"):
            mine, theirs = (getattr(one, name)[i, :length] for one, i in ((part, k), (whole, first + k)))
            np.testing.assert_array_equal(mine, theirs, err_msg=name)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_roll_ins_in_blocks(parts, alpha):
    _, world, policy = parts
    mixture = RollInPolicy(world.expert, policy.actor(), alpha)
    whole = roll_in(world.simulator, mixture, SEEDS)
    for size in BLOCKS:
        for first in range(0, len(SEEDS), size):
            same_lanes(roll_in(world.simulator, mixture, SEEDS[first : first + size]), whole, first)


def test_returns_in_blocks(parts):
    _, world, policy = parts
    whole, steps = evaluate_returns(policy, world.simulator, SEEDS)
    for size in BLOCKS:
        blocks = [evaluate_returns(policy, world.simulator, SEEDS[i : i + size]) for i in range(0, len(SEEDS), size)]
        np.testing.assert_array_equal(np.concatenate([returns for returns, _ in blocks]), whole)
        assert sum(count for _, count in blocks) == steps


def test_what_an_oracle_says_of_blocks(parts):
    config, world, policy = parts
    oracle = config.oracle.build(world.simulator, world.expert)
    trajectories = roll_in(world.simulator, RollInPolicy(world.expert, policy.actor(), 0.0), SEEDS)
    whole = oracle(trajectories, policy)
    for first in range(0, trajectories.count, 7):
        rows = np.arange(first, min(first + 7, trajectories.count))
        part = oracle(trajectories.take(rows), policy)
        for name, array in part.arrays.items():
            np.testing.assert_array_equal(array, whole.arrays[name][rows], err_msg=name)
