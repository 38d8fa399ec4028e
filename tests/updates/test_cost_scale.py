"""The running scale of A* by hand, and updates that are invariant to the unit of costs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles import CostToGo
from aggrevated.updates.cost_scale import RunningCostScale
from aggrevated.updates.fisher_solvers import solve_held_out
from aggrevated.updates.natural import NaturalUpdate
from aggrevated.updates.regular import RegularUpdate
from helpers.tiny_mdp import deep_policy, flat, random_costs, random_trajectories, with_legal

TRAJECTORIES = random_trajectories()
UPDATES_WITH_COST_SCALE = {
    "natural": lambda: NaturalUpdate(1e-3, damping=1.0, normalize_costs=True),
    "natural, per state": lambda: NaturalUpdate(per_state=5, target_kl=0.01, damping=0.03, normalize_costs=True),
    "natural, held out": lambda: NaturalUpdate(
        solver=solve_held_out, damping=0.0, target_kl=0.01, normalize_costs=True
    ),
    "regular, Adam": lambda: RegularUpdate(0.01, normalize_costs=True),
    "regular, Adam to a target": lambda: RegularUpdate(0.01, target_kl=0.01, normalize_costs=True),
    "regular, plain": lambda: RegularUpdate(0.1, torch.optim.SGD, normalize_costs=True),
    "regular, plain to a target": lambda: RegularUpdate(0.1, torch.optim.SGD, target_kl=0.01, normalize_costs=True),
}


def costs(values, weight):
    return CostToGo(np.array(values, np.float32), np.array(weight, np.float32))


def test_running_cost_scale_matches_hand_computed_value():
    """One trajectory of two steps, three actions: squares (0, 9, 16)/3 and (4, 0, 4)/3, so √(11/2)."""
    trajectories = random_trajectories(k=1, t=2)
    spread = RunningCostScale().include(costs([[[0, 3, 4], [2, 0, 2]]], [[1, 1]]), trajectories)
    assert spread.value == pytest.approx(np.sqrt((25 / 3 + 8 / 3) / 2), rel=1e-15)


def test_running_cost_scale_counts_each_queried_state_once():
    trajectories = random_trajectories(k=1, t=3)
    spread = RunningCostScale().include(costs([[3, 100, 4]], [[2, 0, 1]]), trajectories)
    assert (spread.squares, spread.states) == (25.0, 2.0)


def test_running_cost_scale_ignores_illegal_actions():
    trajectories = random_trajectories(k=1, t=1)
    trajectories = replace(trajectories, action_mask=np.array([[[True, False, True]]]))
    assert RunningCostScale().include(costs([[[1, 1000, 7]]], [[1]]), trajectories).value == 5.0


def test_running_cost_scale_over_iterations_equals_scale_of_all_data():
    spread = RunningCostScale()
    seen = []
    for n in range(5):
        trajectories = random_trajectories(seed=n)
        given = random_costs(trajectories, seed=n)
        spread = spread.include(given, trajectories)
        seen.append(given.values[trajectories.mask])
    assert spread.value == pytest.approx(np.sqrt(np.square(np.concatenate(seen)).mean()), rel=1e-14)


def test_running_cost_scale_of_zero_costs_is_1():
    nothing = random_costs(TRAJECTORIES, scale=0.0)
    assert RunningCostScale().include(nothing, TRAJECTORIES).value == 1.0


def test_running_cost_scale_divide_changes_values_only():
    given = replace(random_costs(TRAJECTORIES), entropy_bonus=0.4)
    divided = RunningCostScale(8.0, 2.0).divide(given)
    np.testing.assert_array_equal(divided.values, given.values / 2)
    assert (
        divided.entropy_bonus == 0.4 and divided.weight is given.weight and divided.values.dtype == given.values.dtype
    )


def test_running_cost_scale_round_trips_through_tensor():
    spread = RunningCostScale(1 / 3, 1e15 + 1)
    assert RunningCostScale.from_tensor(spread.to_tensor()) == spread


def weights_after(make, scale, loss=all_actions_loss, legal=False):
    """Return θ after four iterations with an entropy bonus and all costs multiplied by `scale`."""
    policy = deep_policy()
    update = make()
    for n in range(1, 5):
        trajectories = replace(random_trajectories(seed=n), n=n)
        trajectories = with_legal(trajectories, seed=n) if legal else trajectories
        given = random_costs(trajectories, actions=None if loss is taken_action_loss else 3, seed=n)
        update(policy, loss, trajectories, replace(given, values=given.values * scale, entropy_bonus=0.2))
    return flat(policy)


@pytest.mark.parametrize("loss", [all_actions_loss, taken_action_loss, best_action_nll_loss])
@pytest.mark.parametrize("make", UPDATES_WITH_COST_SCALE.values(), ids=UPDATES_WITH_COST_SCALE)
def test_updates_with_cost_scale_are_invariant_to_cost_unit(make, loss):
    """Exactly for a power of two, up to rounding for 1000; the entropy bonus has no unit."""
    moved = weights_after(make, 1.0, loss)
    np.testing.assert_array_equal(weights_after(make, 1024.0, loss), moved)
    np.testing.assert_allclose(weights_after(make, 1000.0, loss), moved, rtol=1e-5, atol=1e-8)
    assert np.abs(moved - flat(deep_policy())).max() > 1e-3


def test_regular_update_without_cost_scale_depends_on_cost_unit():
    def plain():
        return RegularUpdate(0.1, torch.optim.SGD)

    assert np.abs(weights_after(plain, 4.0) - weights_after(plain, 1.0)).max() > 1e-3


def test_natural_update_with_action_mask_is_invariant_to_cost_unit():
    make = UPDATES_WITH_COST_SCALE["natural, per state"]
    np.testing.assert_array_equal(weights_after(make, 1024.0, legal=True), weights_after(make, 1.0, legal=True))


@pytest.mark.parametrize("make", UPDATES_WITH_COST_SCALE.values(), ids=UPDATES_WITH_COST_SCALE)
def test_updates_save_cost_scale_in_state(make):
    update = make()
    policy = deep_policy()
    update(policy, all_actions_loss, TRAJECTORIES, random_costs(TRAJECTORIES))
    expected = RunningCostScale().include(random_costs(TRAJECTORIES), TRAJECTORIES)
    assert RunningCostScale.from_tensor(update.state()["cost_scale"]) == expected
