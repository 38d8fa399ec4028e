"""The spread of A*, by hand; and steps that do not know in which unit costs are."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles import CostToGo
from aggrevated.updates.cost_scale import RunningCostScale
from aggrevated.updates.fisher_solvers import held_out
from aggrevated.updates.natural import NaturalUpdate
from aggrevated.updates.regular import RegularUpdate
from helpers.tiny_mdp import deep_policy, flat, random_costs, random_trajectories, with_legal

TRAJECTORIES = random_trajectories()
UNITLESS = {
    "natural": lambda: NaturalUpdate(1e-3, damping=1.0, in_spreads=True),
    "natural, per state": lambda: NaturalUpdate(per_state=5, target_kl=0.01, damping=0.03, in_spreads=True),
    "natural, held out": lambda: NaturalUpdate(solver=held_out, damping=0.0, target_kl=0.01, in_spreads=True),
    "regular, Adam": lambda: RegularUpdate(0.01, in_spreads=True),
    "regular, Adam to a target": lambda: RegularUpdate(0.01, target_kl=0.01, in_spreads=True),
    "regular, plain": lambda: RegularUpdate(0.1, torch.optim.SGD, in_spreads=True),
    "regular, plain to a target": lambda: RegularUpdate(0.1, torch.optim.SGD, target_kl=0.01, in_spreads=True),
}


def costs(values, weight):
    return CostToGo(np.array(values, np.float32), np.array(weight, np.float32))


def test_by_hand():
    """One trajectory of two steps, three actions: squares (0, 9, 16)/3 and (4, 0, 4)/3, so √(11/2)."""
    trajectories = random_trajectories(k=1, t=2)
    spread = RunningCostScale().including(costs([[[0, 3, 4], [2, 0, 2]]], [[1, 1]]), trajectories)
    assert spread.value == pytest.approx(np.sqrt((25 / 3 + 8 / 3) / 2), rel=1e-15)


def test_a_state_that_was_not_asked_counts_for_nothing_and_one_that_counts_twice_is_one_state():
    trajectories = random_trajectories(k=1, t=3)
    spread = RunningCostScale().including(costs([[3, 100, 4]], [[2, 0, 1]]), trajectories)
    assert (spread.squares, spread.states) == (25.0, 2.0)


def test_only_legal_actions_count():
    trajectories = random_trajectories(k=1, t=1)
    trajectories = replace(trajectories, action_mask=np.array([[[True, False, True]]]))
    assert RunningCostScale().including(costs([[[1, 1000, 7]]], [[1]]), trajectories).value == 5.0


def test_over_iterations_it_is_the_spread_of_all_at_once():
    spread = RunningCostScale()
    seen = []
    for n in range(5):
        trajectories = random_trajectories(seed=n)
        given = random_costs(trajectories, seed=n)
        spread = spread.including(given, trajectories)
        seen.append(given.values[trajectories.mask])
    assert spread.value == pytest.approx(np.sqrt(np.square(np.concatenate(seen)).mean()), rel=1e-14)


def test_nothing_to_pay_is_divided_by_1():
    nothing = random_costs(TRAJECTORIES, scale=0.0)
    assert RunningCostScale().including(nothing, TRAJECTORIES).value == 1.0


def test_divided_only_the_values_change():
    given = replace(random_costs(TRAJECTORIES), entropy_bonus=0.4)
    divided = RunningCostScale(8.0, 2.0).divide(given)
    np.testing.assert_array_equal(divided.values, given.values / 2)
    assert (
        divided.entropy_bonus == 0.4 and divided.weight is given.weight and divided.values.dtype == given.values.dtype
    )


def test_as_a_tensor_it_keeps_every_bit():
    spread = RunningCostScale(1 / 3, 1e15 + 1)
    assert RunningCostScale.of(spread.tensor()) == spread


def weights_after(make, scale, loss=all_actions_loss, legal=False):
    """θ after four iterations with an entropy bonus, all costs multiplied by `scale`."""
    policy = deep_policy()
    update = make()
    for n in range(1, 5):
        trajectories = replace(random_trajectories(seed=n), n=n)
        trajectories = with_legal(trajectories, seed=n) if legal else trajectories
        given = random_costs(trajectories, actions=None if loss is taken_action_loss else 3, seed=n)
        update(policy, loss, trajectories, replace(given, values=given.values * scale, entropy_bonus=0.2))
    return flat(policy)


@pytest.mark.parametrize("loss", [all_actions_loss, taken_action_loss, best_action_nll_loss])
@pytest.mark.parametrize("make", UNITLESS.values(), ids=UNITLESS)
def test_the_unit_of_cost_does_not_matter(make, loss):
    """Exactly for a power of two, to rounding for 1000; the entropy bonus has no unit either."""
    moved = weights_after(make, 1.0, loss)
    np.testing.assert_array_equal(weights_after(make, 1024.0, loss), moved)
    np.testing.assert_allclose(weights_after(make, 1000.0, loss), moved, rtol=1e-5, atol=1e-8)
    assert np.abs(moved - flat(deep_policy())).max() > 1e-3


def test_without_the_spread_it_does_matter():
    def plain():
        return RegularUpdate(0.1, torch.optim.SGD)

    assert np.abs(weights_after(plain, 4.0) - weights_after(plain, 1.0)).max() > 1e-3


def test_the_unit_does_not_matter_where_some_actions_are_illegal():
    make = UNITLESS["natural, per state"]
    np.testing.assert_array_equal(weights_after(make, 1024.0, legal=True), weights_after(make, 1.0, legal=True))


@pytest.mark.parametrize("make", UNITLESS.values(), ids=UNITLESS)
def test_the_spread_is_in_the_state(make):
    update = make()
    policy = deep_policy()
    update(policy, all_actions_loss, TRAJECTORIES, random_costs(TRAJECTORIES))
    expected = RunningCostScale().including(random_costs(TRAJECTORIES), TRAJECTORIES)
    assert RunningCostScale.of(update.state()["spread"]) == expected
