"""The temperature schedule: small costs of the projection target that add up over an episode."""

import numpy as np
import pytest
import torch

from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates.dataset_aggregation import TrainingData
from aggrevated.updates.temperature import (
    DECAY_FACTOR,
    MIN_FACTOR,
    TemperatureSchedule,
    compute_expected_cost_per_episode,
)
from helpers.single_steps import all_action_costs, make_policy


def one_episode(costs):
    """Return one trajectory in which the cost of every action is known, from costs [T, A]."""
    costs = np.asarray(costs, np.float32)
    length = len(costs)
    trajectories = Trajectories(
        states=np.zeros((1, length, 0)),
        observations=np.zeros((1, length, 3), np.float32),
        actions=np.zeros((1, length), int),
        costs=np.zeros((1, length)),
        mask=np.ones((1, length), bool),
        by_expert=np.zeros((1, length), bool),
        horizon=length,
        alpha=0.0,
        seeds=np.zeros(1, np.uint64),
    )
    cost_to_go = all_action_costs(costs)
    return TrainingData(trajectories, type(cost_to_go)(costs[None], np.ones((1, length), np.float32)))


def costs_of_a_long_episode(steps=100):
    """Return costs of one mistake of 100 and many mistakes that cost little."""
    costs = np.tile([0.0, 0.1, 1.0], (steps, 1))
    costs[0] = [0.0, 100.0, 100.0]
    return costs


def test_expected_cost_per_episode_matches_hand_computed_sum():
    """Two steps, π = (1/2, 1/4, 1/4): 1/4 · 4 + 1/4 · 8 and 1/2 · 2, the second with weight 2."""
    pi = torch.tensor([[[0.5, 0.25, 0.25]] * 2])
    cost = torch.tensor([[[0.0, 4.0, 8.0], [2.0, 0.0, 0.0]]])
    assert (
        compute_expected_cost_per_episode(pi, cost, torch.ones(1, 2, 3, dtype=torch.bool), torch.tensor([[1.0, 2.0]]))
        == 5.0
    )


def test_temperature_schedule_lowers_tau_until_target_cost_is_allowed():
    """By hand: the cost of the target over the episode at the returned τ, and at the τ before it."""
    costs = costs_of_a_long_episode()
    policy = make_policy()
    schedule = TemperatureSchedule(0.02)
    tau = schedule.compute_temperature(0.5, policy, one_episode(costs))
    assert MIN_FACTOR < schedule.factor < 1 and tau == 0.5 * schedule.factor
    unit = np.abs(costs).mean()

    def cost(tau):
        odds = np.exp(-np.clip(costs / unit, -5, 5) / tau)
        return float((odds * costs).sum(1) @ (1 / odds.sum(1)))

    assert cost(tau) <= 0.02 * schedule.worst_policy_cost < cost(tau / DECAY_FACTOR)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_temperature_schedule_is_invariant_to_cost_unit(unit):
    one = TemperatureSchedule(0.02)
    other = TemperatureSchedule(0.02)
    costs = costs_of_a_long_episode()
    assert one.compute_temperature(0.5, make_policy(), one_episode(costs)) == other.compute_temperature(
        0.5, make_policy(), one_episode(unit * costs)
    )


def test_temperature_schedule_keeps_tau_of_cheap_target_or_when_disabled():
    short = one_episode([[0.0, 10.0, 10.0]])
    assert TemperatureSchedule(0.02).compute_temperature(0.07, make_policy(), short) == 0.07
    assert (
        TemperatureSchedule(0.0).compute_temperature(5.0, make_policy(), one_episode(costs_of_a_long_episode())) == 5.0
    )


def test_temperature_schedule_stops_at_min_factor():
    """All actions cost almost the same, so no τ is low enough."""
    schedule = TemperatureSchedule(1e-12)
    assert (
        schedule.compute_temperature(0.07, make_policy(), one_episode([[0.0, 1e-3, 1.0]] * 50))
        == 0.07 * schedule.factor
    )
    assert schedule.factor <= MIN_FACTOR
