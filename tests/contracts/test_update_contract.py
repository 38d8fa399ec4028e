"""The contract of updates: they resume from their state, do nothing without a gradient, and keep weights finite."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
import torch

import aggrevated.updates
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles import CostToGo
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.learners.kernel import KernelPolicy, SupportVectorUpdate
from aggrevated.policies import Policy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.mixture import MixturePolicy
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import Update
from aggrevated.updates.exponentiated import ExponentiatedUpdate
from aggrevated.updates.fisher_solvers import solve_conjugate_gradient, solve_held_out
from aggrevated.updates.follow_the_leader import FollowTheLeaderUpdate
from aggrevated.updates.natural import NaturalUpdate
from aggrevated.updates.policy_mixture import MixtureUpdate, searn_weights, smile_weights
from aggrevated.updates.regular import RegularUpdate
from aggrevated.updates.safe_step import MAX_HALVINGS
from helpers.parser_policies import WIDTH, corpus, demonstrated, features_of
from helpers.tiny_mdp import flat, random_costs, random_trajectories, randomise, with_vectors

UPDATES = {  # for any policy
    "regular, Adam": lambda rate=0.01: RegularUpdate(rate),
    "regular, plain": lambda rate=0.1: RegularUpdate(rate, torch.optim.SGD),
    "regular, momentum": lambda rate=0.1: RegularUpdate(
        rate, lambda theta, lr: torch.optim.SGD(theta, lr=lr, momentum=0.9)
    ),
    "regular, to a target": lambda rate=0.01: RegularUpdate(rate, target_kl=0.01, normalize_costs=True),
    "regular, plain to a target": lambda rate=0.02: RegularUpdate(
        rate, torch.optim.SGD, target_kl=0.01, normalize_costs=True
    ),
    "natural": lambda rate=0.01: NaturalUpdate(delta_kl=rate),
    "natural, per state": lambda rate=0.01: NaturalUpdate(
        damping=0.03, per_state=5, target_kl=rate, normalize_costs=True
    ),
    "natural, held out": lambda rate=0.01: NaturalUpdate(
        damping=0.0, solver=solve_held_out, target_kl=rate, normalize_costs=True
    ),
    "natural, CG": lambda rate=0.01: NaturalUpdate(delta_kl=rate, solver=solve_conjugate_gradient),
    "follow the leader": lambda rate=0.01: FollowTheLeaderUpdate(rate, steps=5, minibatch_size=4, buffer_size=10),
}
KINDS = {  # of policies, for a head
    "feed-forward": lambda head: FeedForwardPolicy(3, head, hidden=(5,)),
    "window": lambda head: WindowPolicy(3, head, hidden=(5,), width=2),
    "lstm": lambda head: RecurrentPolicy(3, head, 4, "lstm"),
    "gru": lambda head: RecurrentPolicy(3, head, 4, "gru"),
}
PAGES = corpus(most=6)


def gaussian_observations(n, scale=1.0):
    trajectories = random_trajectories(seed=n, dtype=np.float32)
    return trajectories, random_costs(trajectories, seed=n, scale=scale)


def one_hot_observations(n, scale=1.0):
    """Return trajectories with one-hot observations of three states, zero at padded steps, and costs."""
    trajectories, costs = gaussian_observations(n, scale)
    states_one_hot = (
        np.eye(3, dtype=np.float32)[trajectories.observations.argmax(axis=2)] * trajectories.mask[..., None]
    )
    return replace(trajectories, observations=states_one_hot), costs


def demonstrations(n, scale=1.0):
    """Return parses by the expert, and the zero-one costs of all actions."""
    trajectories, costs = demonstrated(PAGES, n, count=4)
    return trajectories, replace(costs, values=costs.values * np.float32(scale))


def kernel_machine(seed):
    """Return a kernel policy that is uniform, for any seed."""
    policy = KernelPolicy(Projection(np.zeros(WIDTH), np.eye(WIDTH)), 4)
    return policy.with_pages(features_of(PAGES), PAGES.lengths)


@dataclass(frozen=True)
class Case:
    """An update with a policy and data for it."""

    make: Callable[..., Update]  # function of a learning rate or a similar setting, or of nothing
    policy: Callable[[int], Policy]  # from a seed
    data: Callable[..., tuple[Trajectories, CostToGo]] = gaussian_observations  # from n and a scale of the costs
    by_gradient: bool = True  # whether the update is one gradient step, not a fit to all data


CASES = {
    f"{update}, {kind}": Case(make, lambda seed, kind=kind: randomise(KINDS[kind](CategoricalHead(3)), seed))
    for update, make in UPDATES.items()
    for kind in KINDS
}
CASES["exponentiated, table"] = Case(
    lambda rate=0.3: ExponentiatedUpdate(rate, normalize_costs=False),
    lambda seed: randomise(FeedForwardPolicy(3, CategoricalHead(3), hidden=()), seed),
    one_hot_observations,
)
for form, eta in {"all data": 0.0, "newest data": 1.0}.items():
    for kind in KINDS:
        CASES[f"exponentiated, {form}, {kind}"] = Case(
            lambda rate=0.01, eta=eta: ExponentiatedUpdate(
                eta, learning_rate=rate, steps=5, minibatch_size=32, buffer_size=10
            ),
            lambda seed, kind=kind: randomise(KINDS[kind](CategoricalHead(3)), seed),
            by_gradient=False,
        )
CASES["support vectors, kernel machine"] = Case(
    lambda rate=10.0: SupportVectorUpdate(regularisation=rate, buffer_size=10),
    kernel_machine,
    demonstrations,
    by_gradient=False,
)
CASES |= {
    f"{shares.__name__}, mixture of {kind}": Case(
        lambda rate=0.05, shares=shares: MixtureUpdate(shares, 0.3, rate, steps=20),
        lambda seed, kind=kind: MixturePolicy(
            randomise(KINDS[kind](CategoricalHead(3)), seed, 0.3), CategoricalHead(3)
        ),
        by_gradient=False,
    )
    for shares, kind in (
        (searn_weights, "feed-forward"),
        (smile_weights, "feed-forward"),
        (searn_weights, "lstm"),
        (smile_weights, "window"),
    )
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_gradient = pytest.mark.parametrize(
    "case", [case for case in CASES.values() if case.by_gradient], ids=[n for n, c in CASES.items() if c.by_gradient]
)


def run(case, update, policy, iterations):
    return [update(policy, all_actions_loss, *case.data(n)) for n in iterations]


def copy_tensors(tensors):
    """Return a copy of a state or of weights."""
    return {name: tensor.clone() for name, tensor in tensors.items()}


def assert_equal(one, other):
    """Assert that names and bits are the same."""
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_update_contract_covers_every_update_class():
    """A new update needs a case: every class with `__call__`, `state` and `restore` is an update."""
    modules = [import_module(f"aggrevated.updates.{one.name}") for one in iter_modules(aggrevated.updates.__path__)]
    classes = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    found = {
        kind for kind in classes if {"__call__", "state", "restore"} <= {n for cls in kind.__mro__ for n in vars(cls)}
    }
    assert found == {type(case.make()) for case in CASES.values()} - {SupportVectorUpdate}


@every_case
def test_update_lowers_loss(case):
    policy = case.policy(0)
    update = case.make()
    trajectories, costs = case.data(0)
    before = all_actions_loss(policy, trajectories, costs).item()
    for _ in range(10):
        step = update(policy, all_actions_loss, trajectories, costs)
    assert all_actions_loss(policy, trajectories, costs).item() < before
    assert step.step_halvings == 0
    if case.by_gradient:
        assert 0 < step.kl < 0.5 and step.gradient_norm > 0


@every_case
def test_update_resumes_from_state_with_identical_bits(case):
    uninterrupted = case.make()
    policy = case.policy(0)
    run(case, uninterrupted, policy, range(3))
    state = copy_tensors(uninterrupted.state())
    weights = copy_tensors(policy.state_dict())
    steps = run(case, uninterrupted, policy, range(3, 6))

    resumed = case.make()
    restored_policy = case.policy(9)
    restored_policy.load_state_dict(weights)
    resumed.restore(state)
    assert run(case, resumed, restored_policy, range(3, 6)) == steps
    assert_equal(restored_policy.state_dict(), policy.state_dict())


@every_case
def test_update_state_is_a_copy(case):
    update = case.make()
    policy = case.policy(0)
    run(case, update, policy, range(2))
    state = update.state()
    before = copy_tensors(state)
    run(case, update, policy, range(2, 4))
    assert_equal(state, before)


@every_case
def test_update_restore_copies_state(case):
    """Two runs restored from one checkpoint in memory share no moments."""
    first = case.make()
    run(case, first, case.policy(0), range(2))
    state = copy_tensors(first.state())
    before = copy_tensors(state)
    second = case.make()
    second.restore(state)
    run(case, second, case.policy(0), range(2, 4))
    assert_equal(state, before)


@every_case
def test_update_state_is_empty_before_first_step(case):
    update = case.make()
    assert update.state() == {}
    update.restore({})
    run(case, update, case.policy(0), [0])


@every_case
def test_update_does_not_modify_inputs(case):
    trajectories, costs = case.data(0)
    before = deepcopy((trajectories, costs))
    case.make()(case.policy(0), all_actions_loss, trajectories, costs)
    for given, then in zip((trajectories, costs), before, strict=True):
        for field in fields(given):
            np.testing.assert_array_equal(getattr(given, field.name), getattr(then, field.name), err_msg=field.name)


@every_gradient
def test_gradient_update_without_gradient_keeps_policy(case):
    policy = case.policy(0)
    (trajectories, costs) = case.data(0)
    before = flat(policy)
    step = case.make()(policy, all_actions_loss, trajectories, replace(costs, values=np.zeros_like(costs.values)))
    np.testing.assert_array_equal(flat(policy), before)
    assert (step.loss, step.gradient_norm, step.step_halvings) == (0.0, 0.0, 0)
    assert step.kl == pytest.approx(0.0, abs=1e-7)


@every_case
@pytest.mark.parametrize("scale", [1e-30, 1e10, 1e30, 1e37])
def test_update_keeps_policy_finite_with_huge_costs(case, scale):
    policy = case.policy(0)
    update = case.make()
    for n in range(3):
        update(policy, all_actions_loss, *case.data(n, scale))
        assert_sound(policy, case)
    update(policy, all_actions_loss, *case.data(3))
    assert_sound(policy, case)


@every_case
@pytest.mark.parametrize("rate", [1e10, 1e30])
@pytest.mark.parametrize("loss", [all_actions_loss, best_action_nll_loss])
def test_update_keeps_policy_finite_with_huge_learning_rate(case, rate, loss):
    policy = case.policy(0)
    update = case.make(rate)
    for n in range(3):
        step = update(policy, loss, *case.data(n))
        assert_sound(policy, case)
        assert 0 <= step.step_halvings <= MAX_HALVINGS


@every_case
def test_update_result_is_finite_with_huge_costs(case):
    """The results are written to metrics.jsonl, and JSON has no infinity."""
    step = case.make()(case.policy(0), all_actions_loss, *case.data(0, scale=1e30))
    assert all(math.isfinite(number) for number in (step.loss, step.gradient_norm, step.kl)), step


@every_gradient
def test_gradient_update_counts_step_halvings(case):
    """A step that is hundreds of times too long is shortened to max_kl or skipped, and the result counts halvings."""
    update = case.make(1e4)
    policy = case.policy(0)
    update.max_kl = 0.01
    before = flat(policy)
    step = update(policy, all_actions_loss, *case.data(0))
    assert step.step_halvings > 0 and step.kl <= 0.01
    assert (step.step_halvings == MAX_HALVINGS) == bool((flat(policy) == before).all())


def assert_sound(policy, case):
    """Assert that every weight and every probability is finite."""
    trajectories, _ = case.data(0)
    observations = torch.from_numpy(trajectories.observations)
    mask = torch.from_numpy(trajectories.mask)
    with torch.no_grad():
        probs = policy.distribution(observations, mask).probs
    assert all(torch.isfinite(weight).all() for weight in policy.state_dict().values())
    assert torch.isfinite(probs).all()
    torch.testing.assert_close(probs.sum(-1), torch.ones(mask.shape), rtol=0, atol=1e-5)


# ---- continuous actions, for the updates of any policy

make_update = pytest.mark.parametrize("make", UPDATES.values(), ids=UPDATES)
every_policy = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("name", [name for name in UPDATES if name != "follow the leader"])
def test_update_of_recurrent_gaussian_policy_prefers_cheap_actions(cell, name):
    """As in REINFORCE, a step makes cheap actions more likely and expensive ones less likely."""
    policy = randomise(RecurrentPolicy(3, GaussianHead(2), 4, cell), 0)
    update = UPDATES[name]()
    trajectories = with_vectors(random_trajectories(dtype=np.float32), size=2)
    costs = random_costs(trajectories, actions=None)
    observations, mask, actions = map(
        torch.from_numpy, (trajectories.observations, trajectories.mask, trajectories.actions)
    )

    def weighted_log_likelihood():
        with torch.no_grad():
            log_probability = policy.distribution(observations, mask).log_prob(actions)
        return float((log_probability * torch.from_numpy(costs.values))[mask].mean())

    before = weighted_log_likelihood()
    step = update(policy, taken_action_loss, trajectories, costs)
    assert step.step_halvings < 2 and 0 < step.kl < 0.5 and step.gradient_norm > 0
    assert weighted_log_likelihood() < before
    assert np.isfinite(flat(policy)).all()


def vectors(n, scale=1.0):
    """Return Gaussian trajectories with the cost-to-go of taken actions and with expert actions."""
    trajectories = with_vectors(random_trajectories(seed=n, dtype=np.float32), size=2, seed=n)
    costs = random_costs(trajectories, actions=None, seed=n, scale=scale)
    expert_actions = with_vectors(trajectories, size=2, seed=n + 100).actions
    return trajectories, CostToGo(costs.values, costs.weight, expert_actions=expert_actions)


def loss_for(update):
    """Return a loss that the update accepts: follow the leader rejects costs of taken actions."""
    return best_action_nll_loss if isinstance(update, FollowTheLeaderUpdate) else taken_action_loss


def gaussian(kind, seed=0):
    """Return a Gaussian policy of a kind."""
    return randomise(KINDS[kind](GaussianHead(2)), seed)


@every_policy
@make_update
def test_update_of_gaussian_policy_resumes_with_identical_bits(make, kind):
    uninterrupted = make()
    policy = gaussian(kind)
    loss = loss_for(uninterrupted)
    for n in range(3):
        uninterrupted(policy, loss, *vectors(n))
    state = {name: tensor.clone() for name, tensor in uninterrupted.state().items()}
    resumed = make()
    restored_policy = gaussian(kind, 9)
    restored_policy.load_state_dict({name: tensor.clone() for name, tensor in policy.state_dict().items()})
    resumed.restore(state)
    for n in range(3, 6):
        assert uninterrupted(policy, loss, *vectors(n)) == resumed(restored_policy, loss, *vectors(n))
    np.testing.assert_array_equal(flat(restored_policy), flat(policy))


@every_policy
@make_update
@pytest.mark.parametrize("scale", [1e-30, 1e10, 1e30])
def test_update_keeps_gaussian_policy_finite_with_huge_costs(make, kind, scale):
    policy = gaussian(kind)
    update = make()
    for n in range(3):
        step = update(policy, loss_for(update), *vectors(n, scale))
        assert all(math.isfinite(number) for number in (step.loss, step.gradient_norm, step.kl)), step
    observations = torch.from_numpy(random_trajectories(dtype=np.float32).observations)
    with torch.no_grad():
        distribution = policy.distribution(observations, torch.ones(observations.shape[:2]))
    assert np.isfinite(flat(policy)).all()
    assert torch.isfinite(distribution.mean).all() and (distribution.stddev > 0).all()
