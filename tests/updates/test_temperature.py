"""How warm a goal may be: small costs that add up over an episode."""

import numpy as np
import pytest
import torch
from test_projected import policy_of, told

from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates.dataset_aggregation import TrainingData
from aggrevated.updates.temperature import DECAY_FACTOR, MIN_FACTOR, TemperatureSchedule, expected_cost_per_episode


def episode(costs):
    """One trajectory of so many steps, in which every action's cost is known: [T, A]."""
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
    cost_to_go = told(costs)
    return TrainingData(trajectories, type(cost_to_go)(costs[None], np.ones((1, length), np.float32)))


def costs_of_a_long_episode(steps=100):
    """One mistake that costs 100, and many that hardly cost anything."""
    costs = np.tile([0.0, 0.1, 1.0], (steps, 1))
    costs[0] = [0.0, 100.0, 100.0]
    return costs


def test_the_cost_of_an_episode_is_that_of_all_its_steps():
    """Two steps, π = (1/2, 1/4, 1/4): 1/4 · 4 + 1/4 · 8 and 1/2 · 2, the second counting twice."""
    pi = torch.tensor([[[0.5, 0.25, 0.25]] * 2])
    cost = torch.tensor([[[0.0, 4.0, 8.0], [2.0, 0.0, 0.0]]])
    assert expected_cost_per_episode(pi, cost, torch.ones(1, 2, 3, dtype=torch.bool), torch.tensor([[1.0, 2.0]])) == 5.0


def test_tau_falls_until_the_goal_costs_a_small_part_of_what_the_policy_did():
    """By hand: the goal's cost over the episode at the τ that comes out, and at the one before it."""
    costs = costs_of_a_long_episode()
    policy = policy_of()
    warmth = TemperatureSchedule(0.02)
    tau = warmth.tau(0.5, policy, episode(costs))
    assert MIN_FACTOR < warmth.factor < 1 and tau == 0.5 * warmth.factor
    unit = np.abs(costs).mean()

    def cost(tau):
        odds = np.exp(-np.clip(costs / unit, -5, 5) / tau)
        return float((odds * costs).sum(1) @ (1 / odds.sum(1)))

    assert cost(tau) <= 0.02 * warmth.worst_policy_cost < cost(tau / DECAY_FACTOR)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_it_knows_no_units(unit):
    one = TemperatureSchedule(0.02)
    other = TemperatureSchedule(0.02)
    costs = costs_of_a_long_episode()
    assert one.tau(0.5, policy_of(), episode(costs)) == other.tau(0.5, policy_of(), episode(unit * costs))


def test_a_cheap_goal_stays_as_warm_as_it_is_and_so_does_any_where_nothing_is_asked():
    short = episode([[0.0, 10.0, 10.0]])
    assert TemperatureSchedule(0.02).tau(0.07, policy_of(), short) == 0.07
    assert TemperatureSchedule(0.0).tau(5.0, policy_of(), episode(costs_of_a_long_episode())) == 5.0


def test_it_ends_somewhere():
    """Where all actions cost alike but for the last bits, no τ is cold enough."""
    warmth = TemperatureSchedule(1e-12)
    assert warmth.tau(0.07, policy_of(), episode([[0.0, 1e-3, 1.0]] * 50)) == 0.07 * warmth.factor
    assert warmth.factor <= MIN_FACTOR
