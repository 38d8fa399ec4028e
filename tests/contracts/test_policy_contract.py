"""What every policy must keep: its two faces are one policy, and an actor is a copy."""

import numpy as np
import pytest
import torch

from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from problems import flat, randomise

INPUTS, ACTIONS, K, T = 4, 3, 7, 9

POLICIES = {
    "linear": lambda: FeedForwardPolicy(INPUTS, CategoricalHead(ACTIONS), hidden=()),
    "one layer": lambda: FeedForwardPolicy(INPUTS, CategoricalHead(ACTIONS)),
    "two layers": lambda: FeedForwardPolicy(INPUTS, CategoricalHead(ACTIONS), hidden=(32, 32)),
    "a bottleneck": lambda: FeedForwardPolicy(INPUTS, CategoricalHead(ACTIONS), hidden=(1,)),
    "wide": lambda: FeedForwardPolicy(INPUTS, CategoricalHead(ACTIONS), hidden=(64, 64)),
}


@pytest.fixture(params=POLICIES.values(), ids=POLICIES)
def policy(request):
    return randomise(request.param(), seed=5, scale=0.4)


def some_observations(shape=(K, T), seed=0):
    return np.random.default_rng(seed).normal(size=(*shape, INPUTS)).astype(np.float32)


def parameters_of(distribution):
    """The tensor that the actor's parameters must equal, up to what does not change the distribution."""
    return distribution.logits


def normalised(parameters):
    return parameters - np.logaddexp.reduce(parameters, axis=-1, keepdims=True)


def test_the_whole_sequence_agrees_with_one_step_after_the_other(policy):
    observations, actor = some_observations(), policy.actor()
    with torch.no_grad():
        whole = parameters_of(policy.distribution(torch.from_numpy(observations), torch.ones(K, T, dtype=torch.bool)))
    memory = actor.memory(K)
    for t in range(T):
        parameters, memory = actor.parameters(observations[:, t], memory)
        np.testing.assert_allclose(normalised(parameters), whole[:, t].numpy(), rtol=1e-6, atol=1e-6)


def test_forward_is_distribution(policy):
    observations, mask = torch.from_numpy(some_observations()), torch.ones(K, T, dtype=torch.bool)
    assert torch.equal(
        parameters_of(policy(observations, mask)), parameters_of(policy.distribution(observations, mask))
    )


def test_what_comes_later_or_beside_does_not_matter(policy):
    observations, mask = torch.from_numpy(some_observations()), torch.ones(K, T, dtype=torch.bool)
    with torch.no_grad():
        before = parameters_of(policy.distribution(observations, mask))
        observations[:, 5:] = 100.0
        observations[3] = -100.0
        after = parameters_of(policy.distribution(observations, mask))
    beside = [i for i in range(K) if i != 3]
    torch.testing.assert_close(after[beside, :5], before[beside, :5], rtol=0, atol=1e-6)


def test_an_actor_does_not_depend_on_the_lanes_beside_it(policy):
    """But for the last bit, which BLAS may round otherwise for another batch size: no action hangs on that."""
    observations, actor = some_observations(shape=(50,)), policy.actor()
    together, _ = actor.parameters(observations, actor.memory(50))
    for n in (1, 2, 3, 7, 49):
        part, _ = actor.parameters(observations[:n], actor.memory(n))
        np.testing.assert_allclose(part, together[:n], rtol=1e-5, atol=1e-6)


def test_an_actor_is_a_copy(policy):
    actor, observation = policy.actor(), some_observations(shape=(5,))
    before = actor.parameters(observation, actor.memory(5))[0].copy()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 1.0
    np.testing.assert_array_equal(actor.parameters(observation, actor.memory(5))[0], before)
    assert (policy.actor().parameters(observation, actor.memory(5))[0] != before).any()


def test_an_actor_changes_neither_observation_nor_memory(policy):
    actor, observation = policy.actor(), some_observations(shape=(5,))
    memory = actor.memory(5)
    before = observation.copy(), memory.copy()
    actor.parameters(observation, memory)
    np.testing.assert_array_equal(observation, before[0])
    np.testing.assert_array_equal(memory, before[1])


def test_noise_belongs_to_its_generator(policy):
    """Each trajectory's noise is the same whoever else draws, and [K, H, A] in shape."""
    actor = policy.actor()

    def generators(seeds):
        return [np.random.default_rng(seed) for seed in seeds]

    together = actor.noise(generators([1, 2, 3]), 20)
    assert together.shape[:2] == (3, 20)
    np.testing.assert_array_equal(actor.noise(generators([3]), 20)[0], together[2])


def test_predict_single_and_batch(policy):
    single, state = policy.predict(some_observations(shape=()), deterministic=True)
    assert np.shape(single) == () and len(state) == 1
    assert 0 <= single < ACTIONS
    batch, state = policy.predict(some_observations(shape=(6,)), deterministic=True)
    assert batch.shape == (6,) and len(state) == 6
    again, _ = policy.predict(some_observations(shape=(6,)), state, np.ones(6, bool), deterministic=True)
    np.testing.assert_array_equal(again, batch)
    stochastic, _ = policy.predict(some_observations(shape=(6,)))
    assert stochastic.shape == (6,)
    assert policy.predict(some_observations(shape=()))[0].shape == ()


def test_predict_deterministic_is_the_most_probable_action(policy):
    observations = some_observations(shape=(50,))
    with torch.no_grad():
        probs = policy.distribution(torch.from_numpy(observations)[:, None], torch.ones(50, 1)).probs[:, 0]
    chosen, _ = policy.predict(observations, deterministic=True)
    np.testing.assert_array_equal(chosen, probs.argmax(-1).numpy())


def test_predict_does_not_change_the_policy(policy):
    before = flat(policy)
    policy.predict(some_observations(shape=(6,)))
    np.testing.assert_array_equal(flat(policy), before)


def test_the_same_generator_makes_the_same_policy():
    first, second, third = (
        flat(FeedForwardPolicy(INPUTS, CategoricalHead(ACTIONS), generator=torch.Generator().manual_seed(seed)))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != third).any()
