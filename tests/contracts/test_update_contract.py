"""What every update must keep: it goes on where it stopped, rests without a gradient, and never breaks a policy."""

import math

import numpy as np
import pytest
import torch

from aggrevated.cost_to_go import CostToGo
from aggrevated.losses.all_actions import all_actions
from aggrevated.losses.likelihood import likelihood
from aggrevated.losses.taken_action import taken_action
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.updates.follow_the_leader import FollowTheLeader
from aggrevated.updates.natural import Natural
from aggrevated.updates.regular import Regular
from aggrevated.updates.safe_step import MOST_HALVINGS
from aggrevated.updates.solvers import conjugate_gradient
from problems import flat, random_costs, random_trajectories, randomise, with_vectors

UPDATES = {
    "regular, Adam": lambda rate=0.01: Regular(rate),
    "regular, plain": lambda rate=0.1: Regular(rate, torch.optim.SGD),
    "regular, momentum": lambda rate=0.1: Regular(rate, lambda theta, lr: torch.optim.SGD(theta, lr=lr, momentum=0.9)),
    "natural": lambda rate=0.01: Natural(delta_kl=rate),
    "natural, CG": lambda rate=0.01: Natural(delta_kl=rate, solver=conjugate_gradient),
    "follow the leader": lambda rate=0.01: FollowTheLeader(rate, steps=5, minibatch=4, capacity=10),
}
make_update = pytest.mark.parametrize("make", UPDATES.values(), ids=UPDATES)


POLICIES = {
    "feed-forward": lambda: FeedForwardPolicy(3, CategoricalHead(3), hidden=(5,)),
    "window": lambda: WindowPolicy(3, CategoricalHead(3), hidden=(5,), width=2),
    "lstm": lambda: RecurrentPolicy(3, CategoricalHead(3), 4, "lstm"),
    "gru": lambda: RecurrentPolicy(3, CategoricalHead(3), 4, "gru"),
}
every_policy = pytest.mark.parametrize("kind", POLICIES)


def small_policy(seed=0, kind="feed-forward"):
    return randomise(POLICIES[kind](), seed)


def data(n, scale=1.0):
    trajectories = random_trajectories(seed=n, dtype=np.float32)
    return trajectories, random_costs(trajectories, seed=n, scale=scale)


def run(update, policy, iterations):
    return [update(policy, all_actions, *data(n)) for n in iterations]


@every_policy
@make_update
def test_it_goes_downhill(make, kind):
    policy, update = small_policy(kind=kind), make()
    trajectories, costs = data(0)
    before = all_actions(policy, trajectories, costs).item()
    for _ in range(10):
        step = update(policy, all_actions, trajectories, costs)
    assert all_actions(policy, trajectories, costs).item() < before
    assert step.halvings == 0 and 0 < step.kl < 0.5 and step.gradient_norm > 0


@every_policy
@make_update
def test_state_and_restore_go_on_with_identical_bits(make, kind):
    straight, policy = make(), small_policy(kind=kind)
    run(straight, policy, range(3))
    state = {name: tensor.clone() for name, tensor in straight.state().items()}
    weights = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    steps = run(straight, policy, range(3, 6))

    resumed, again = make(), small_policy(9, kind)
    again.load_state_dict(weights)
    resumed.restore(state)
    assert run(resumed, again, range(3, 6)) == steps
    np.testing.assert_array_equal(flat(again), flat(policy))


@make_update
def test_what_state_gave_does_not_change_afterwards(make):
    update, policy = make(), small_policy()
    run(update, policy, range(2))
    state = update.state()
    before = {name: tensor.clone() for name, tensor in state.items()}
    run(update, policy, range(2, 4))
    assert state.keys() == before.keys()
    assert all(torch.equal(state[name], before[name]) for name in state)


@make_update
def test_what_was_restored_from_does_not_change_afterwards(make):
    """One checkpoint in memory, two runs from it: the second must not find the first one's moments."""
    first = make()
    run(first, small_policy(), range(2))
    state = {name: tensor.clone() for name, tensor in first.state().items()}
    before = {name: tensor.clone() for name, tensor in state.items()}
    second = make()
    second.restore(state)
    run(second, small_policy(), range(2, 4))
    assert all(torch.equal(state[name], before[name]) for name in state)


@make_update
def test_state_before_the_first_step_is_nothing(make):
    update = make()
    assert update.state() == {}
    update.restore({})
    run(update, small_policy(), [0])


@every_policy
@make_update
def test_without_a_gradient_nothing_changes(make, kind):
    policy, trajectories = small_policy(kind=kind), random_trajectories(dtype=np.float32)
    nothing = CostToGo(np.zeros((*trajectories.mask.shape, 3), np.float32), trajectories.mask.astype(np.float32))
    before = flat(policy)
    step = make()(policy, all_actions, trajectories, nothing)
    np.testing.assert_array_equal(flat(policy), before)
    assert (step.loss, step.gradient_norm, step.halvings) == (0.0, 0.0, 0)
    assert step.kl == pytest.approx(0.0, abs=1e-7)


@every_policy
@make_update
@pytest.mark.parametrize("scale", [1e-30, 1e10, 1e30, 1e37])
def test_huge_costs_never_break_the_policy(make, scale, kind):
    policy, update = small_policy(kind=kind), make()
    for n in range(3):
        update(policy, all_actions, *data(n, scale))
        assert_sound(policy)
    update(policy, all_actions, *data(3))
    assert_sound(policy)


@every_policy
@make_update
@pytest.mark.parametrize("rate", [1e10, 1e30])
@pytest.mark.parametrize("loss", [all_actions, likelihood])
def test_a_huge_learning_rate_never_breaks_the_policy(make, rate, loss, kind):
    policy, update = small_policy(kind=kind), make(rate)
    for n in range(3):
        step = update(policy, loss, *data(n))
        assert_sound(policy)
        assert 0 <= step.halvings <= MOST_HALVINGS


@make_update
def test_the_numbers_of_a_step_are_finite_whatever_the_costs(make):
    """They go into metrics.jsonl, and JSON knows no infinity."""
    step = make()(small_policy(), all_actions, *data(0, scale=1e30))
    assert all(math.isfinite(number) for number in (step.loss, step.gradient_norm, step.kl)), step


@make_update
def test_halvings_are_counted(make):
    """A step that is hundreds of times too long is either shortened to max_kl or not taken, and says so."""
    update = make(1e4)
    update.max_kl = 0.01
    policy = small_policy()
    before = flat(policy)
    step = update(policy, all_actions, *data(0))
    assert step.halvings > 0 and step.kl <= 0.01
    assert (step.halvings == MOST_HALVINGS) == bool((flat(policy) == before).all())


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("name", [name for name in UPDATES if name != "follow the leader"])
def test_continuous_actions_with_a_memory(cell, name):
    """As in REINFORCE: a step makes the vectors taken more likely where they were cheap, less where they were dear."""
    policy, update = randomise(RecurrentPolicy(3, GaussianHead(2), 4, cell), 0), UPDATES[name]()
    trajectories = with_vectors(random_trajectories(dtype=np.float32), size=2)
    costs = random_costs(trajectories, None)
    observations, mask, actions = map(
        torch.from_numpy, (trajectories.observations, trajectories.mask, trajectories.actions)
    )

    def weighted_log_likelihood():
        with torch.no_grad():
            log_probability = policy.distribution(observations, mask).log_prob(actions)
        return float((log_probability * torch.from_numpy(costs.values))[mask].mean())

    before = weighted_log_likelihood()
    step = update(policy, taken_action, trajectories, costs)
    assert step.halvings == 0 and 0 < step.kl < 0.5 and step.gradient_norm > 0
    assert weighted_log_likelihood() < before
    assert np.isfinite(flat(policy)).all()


def vectors(n, scale=1.0):
    """Gaussian trajectories with the cost-to-go of what was done, and with what an expert advised."""
    trajectories = with_vectors(random_trajectories(seed=n, dtype=np.float32), size=2, seed=n)
    costs = random_costs(trajectories, None, seed=n, scale=scale)
    advice = with_vectors(trajectories, size=2, seed=n + 100).actions
    return trajectories, CostToGo(costs.values, costs.weight, advice=advice)


def loss_for(update):
    """Follow the leader has no use for the cost of what was done in the past."""
    return likelihood if isinstance(update, FollowTheLeader) else taken_action


def gaussian(kind, seed=0):
    """The policy of that kind, for vectors."""
    head = GaussianHead(2)
    return randomise(
        {
            "feed-forward": lambda: FeedForwardPolicy(3, head, hidden=(5,)),
            "window": lambda: WindowPolicy(3, head, hidden=(5,), width=2),
            "lstm": lambda: RecurrentPolicy(3, head, 4, "lstm"),
            "gru": lambda: RecurrentPolicy(3, head, 4, "gru"),
        }[kind](),
        seed,
    )


@every_policy
@make_update
def test_gaussian_policies_go_on_with_identical_bits(make, kind):
    straight, policy = make(), gaussian(kind)
    loss = loss_for(straight)
    for n in range(3):
        straight(policy, loss, *vectors(n))
    state = {name: tensor.clone() for name, tensor in straight.state().items()}
    resumed, again = make(), gaussian(kind, 9)
    again.load_state_dict({name: tensor.clone() for name, tensor in policy.state_dict().items()})
    resumed.restore(state)
    for n in range(3, 6):
        assert straight(policy, loss, *vectors(n)) == resumed(again, loss, *vectors(n))
    np.testing.assert_array_equal(flat(again), flat(policy))


@every_policy
@make_update
@pytest.mark.parametrize("scale", [1e-30, 1e10, 1e30])
def test_huge_costs_never_break_a_gaussian_policy(make, kind, scale):
    policy, update = gaussian(kind), make()
    for n in range(3):
        step = update(policy, loss_for(update), *vectors(n, scale))
        assert all(math.isfinite(number) for number in (step.loss, step.gradient_norm, step.kl)), step
    observations = torch.from_numpy(random_trajectories(dtype=np.float32).observations)
    with torch.no_grad():
        distribution = policy.distribution(observations, torch.ones(observations.shape[:2]))
    assert np.isfinite(flat(policy)).all()
    assert torch.isfinite(distribution.mean).all() and (distribution.stddev > 0).all()


def assert_sound(policy):
    """Every parameter and every probability is a number."""
    observations = torch.from_numpy(random_trajectories(dtype=np.float32).observations)
    with torch.no_grad():
        probs = policy.distribution(observations, torch.ones(observations.shape[:2])).probs
    assert np.isfinite(flat(policy)).all()
    assert torch.isfinite(probs).all()
    torch.testing.assert_close(probs.sum(-1), torch.ones(observations.shape[:2]), rtol=0, atol=1e-5)
