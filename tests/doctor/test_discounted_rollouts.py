"""Rollouts with several discounts at once."""

import numpy as np

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.doctor.probes import run_discounted_rollouts
from aggrevated.experts.loading import load_expert
from aggrevated.oracles.monte_carlo import rollout_expert_cost
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators.cartpole import CartPole


def test_run_discounted_rollouts_undiscounted_matches_the_monte_carlo_oracle() -> None:
    simulator = CartPole(120)
    expert = load_expert("cartpole", simulator)
    trajectories = roll_in(simulator, RollInPolicy(expert, None, 1.0), derive_seeds(0, SeedPurpose.TEST, 0, 6))
    indices = np.arange(6)
    times = np.array([0, 5, 5, 40, 119, 80])
    states = trajectories.states[indices, times]
    first = np.array([0, 1, 0, 1, 0, 1])
    rollouts = run_discounted_rollouts(simulator, expert, states, times, first, (0.9, 1.0))
    expected, _ = rollout_expert_cost(simulator, expert, states, times, first)
    assert np.array_equal(rollouts.get_costs(1.0), expected)
    assert (rollouts.left <= 120 - times).all()
    assert np.allclose(rollouts.get_costs(0.9), -(1 - 0.9**rollouts.left) / 0.1)  # every step costs −1
    infinite_costs = rollouts.estimate_infinite_costs(0.9, -1.0)
    assert np.allclose(infinite_costs[rollouts.cut], -10) and np.array_equal(
        infinite_costs[~rollouts.cut], rollouts.get_costs(0.9)[~rollouts.cut]
    )
    assert rollouts.cut.any()
