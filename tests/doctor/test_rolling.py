"""Roll-outs with several discounts at once."""

import numpy as np

from aggrevated.core.rng import Purpose, seeds
from aggrevated.doctor.discounted_rollouts import roll_out
from aggrevated.experts.loading import load_expert
from aggrevated.oracles.monte_carlo import cost_of_following
from aggrevated.rollout.roll_in import Mixture, roll_in
from aggrevated.simulators.cartpole import CartPole


def test_undiscounted_it_is_what_the_monte_carlo_oracle_finds() -> None:
    simulator = CartPole(120)
    expert = load_expert("cartpole", simulator)
    of = roll_in(simulator, Mixture(expert, None, 1.0), seeds(0, Purpose.TEST, 0, 6))
    lanes, times = np.arange(6), np.array([0, 5, 5, 40, 119, 80])
    states, first = of.states[lanes, times], np.array([0, 1, 0, 1, 0, 1])
    rolled = roll_out(simulator, expert, states, times, first, (0.9, 1.0))
    expected, _ = cost_of_following(simulator, expert, states, times, first)
    assert np.array_equal(rolled.by(1.0), expected)
    assert (rolled.left <= 120 - times).all()
    assert np.allclose(rolled.by(0.9), -(1 - 0.9**rolled.left) / 0.1)  # every step costs −1
    on = rolled.going_on(0.9, -1.0)
    assert np.allclose(on[rolled.cut], -10) and np.array_equal(on[~rolled.cut], rolled.by(0.9)[~rolled.cut])
    assert rolled.cut.any()
