"""What every policy must keep: its two faces are one policy, an actor is a copy, and a lane knows of no other."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch.distributions import Categorical

from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.mixture import MixturePolicy
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from helpers.tiny_mdp import flat, randomise

INPUTS = 4
ACTIONS = 3
K = 7
T = 9
LENGTHS = np.array([200, 1, 37, 120, 199, 2, 64])  # of K episodes


def finite():
    return CategoricalHead(ACTIONS)


def continuous():
    return GaussianHead(ACTIONS)


def mixture(newest):
    """Of the policy and two others of its kind, unlike it."""
    policy = MixturePolicy(newest, finite())
    for shares in ([1.0], [0.7, 0.3], [0.5, 0.2, 0.3]):
        randomise(policy, len(shares), 0.3)
        policy.renew(np.array(shares))
    return policy


POLICIES = {  # each from a torch.Generator, or from None
    "linear": lambda g: FeedForwardPolicy(INPUTS, finite(), (), g),
    "one layer": lambda g: FeedForwardPolicy(INPUTS, finite(), generator=g),
    "two layers": lambda g: FeedForwardPolicy(INPUTS, finite(), (32, 32), g),
    "a bottleneck": lambda g: FeedForwardPolicy(INPUTS, finite(), (1,), g),
    "wide": lambda g: FeedForwardPolicy(INPUTS, finite(), (64, 64), g),
    "one layer, Gaussian": lambda g: FeedForwardPolicy(INPUTS, continuous(), generator=g),
    "window": lambda g: WindowPolicy(INPUTS, finite(), generator=g),
    "window of 1": lambda g: WindowPolicy(INPUTS, finite(), generator=g, width=1),
    "window, Gaussian": lambda g: WindowPolicy(INPUTS, continuous(), generator=g, width=3),
    "LSTM": lambda g: RecurrentPolicy(INPUTS, finite(), generator=g),
    "LSTM of 1": lambda g: RecurrentPolicy(INPUTS, finite(), 1, generator=g),
    "LSTM, Gaussian": lambda g: RecurrentPolicy(INPUTS, continuous(), 8, generator=g),
    "GRU": lambda g: RecurrentPolicy(INPUTS, finite(), cell="gru", generator=g),
    "GRU of 1": lambda g: RecurrentPolicy(INPUTS, finite(), 1, "gru", g),
    "mixture": lambda g: mixture(FeedForwardPolicy(INPUTS, finite(), generator=g)),
    "mixture of one": lambda g: MixturePolicy(FeedForwardPolicy(INPUTS, finite(), generator=g), finite()),
    "mixture of windows": lambda g: mixture(WindowPolicy(INPUTS, finite(), generator=g, width=3)),
    "LSTMs, a mixture": lambda g: mixture(RecurrentPolicy(INPUTS, finite(), 8, generator=g)),
    "GRU, Gaussian": lambda g: RecurrentPolicy(INPUTS, continuous(), 8, "gru", g),
}
every_kind = pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)
with_a_finite_set = pytest.mark.parametrize(
    "make", [m for n, m in POLICIES.items() if "Gaussian" not in n], ids=[n for n in POLICIES if "Gaussian" not in n]
)
with_a_memory = pytest.mark.parametrize(
    "make",
    [m for n, m in POLICIES.items() if n[:3] in ("LST", "GRU")],
    ids=[n for n in POLICIES if n[:3] in ("LST", "GRU")],
)


@pytest.fixture(params=POLICIES.values(), ids=POLICIES)
def policy(request):
    return drawn(request.param)


def drawn(make):
    return randomise(make(None), seed=5, scale=0.4)


def some_observations(shape=(K, T), seed=0):
    return np.random.default_rng(seed).normal(size=(*shape, INPUTS)).astype(np.float32)


def all_taken(*shape):
    return torch.ones(*shape, dtype=torch.bool)


def whole(policy, observations, mask=None, legal=None):
    """The parameters of `distribution`, [K, T, A]."""
    mask = all_taken(*observations.shape[:2]) if mask is None else mask
    with torch.no_grad():
        return parameters_of(policy.distribution(torch.as_tensor(observations), mask, legal))


def parameters_of(distribution):
    """The tensor that the actor's parameters must equal, up to what does not change the distribution."""
    return distribution.logits if isinstance(distribution, Categorical) else distribution.mean


def comparable(policy, parameters):
    """An actor's parameters as `parameters_of` gives them: logits with their softmax divided out, or means."""
    if isinstance(policy_head(policy), GaussianHead):
        return parameters
    return parameters - np.logaddexp.reduce(parameters, axis=-1, keepdims=True)


def policy_head(policy):
    return policy.inner.head if isinstance(policy, WindowPolicy) else policy.head


def action_shape(policy):
    return (ACTIONS,) if isinstance(policy_head(policy), GaussianHead) else ()


def assert_close(found, expected):
    """To 3e-6: torch and our own loops sum in another order."""
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=3e-6)


def test_the_whole_sequence_agrees_with_one_step_after_the_other(policy):
    observations = some_observations()
    actor = policy.actor()
    expected = whole(policy, observations).numpy()
    memory = actor.memory(K)
    for t in range(T):
        parameters, memory = actor.parameters(observations[:, t], memory)
        assert_close(comparable(policy, parameters), expected[:, t])


@pytest.mark.parametrize("padding", [0.0, 50.0])
def test_they_agree_over_200_steps_of_episodes_that_end_at_different_times(policy, padding):
    """Ended lanes are dropped from the batch, and their memory with them; in the whole sequence they are padded."""
    observations = some_observations((K, 200))
    actor = policy.actor()
    mask = np.arange(200) < LENGTHS[:, None]
    observations[~mask] = padding
    expected = whole(policy, observations, torch.from_numpy(mask)).numpy()
    lanes = np.arange(K)
    memory = actor.memory(K)
    for t in range(200):
        live = mask[lanes, t]
        lanes = lanes[live]
        memory = memory[live]
        parameters, memory = actor.parameters(observations[lanes, t], memory)
        assert_close(comparable(policy, parameters), expected[lanes, t])
    assert lanes.tolist() == [0]


def test_the_head_of_the_two_is_the_same(policy):
    """With the same noise on top: the mean is the mode, and one deviation is a deviation."""
    observations = some_observations((50,))
    actor = policy.actor()
    parameters, _ = actor.parameters(observations, actor.memory(50))
    with torch.no_grad():
        distribution = policy.distribution(torch.from_numpy(observations)[:, None], all_taken(50, 1))
    assert_close(actor.choose(parameters, 0.0), distribution.mode[:, 0])
    if action_shape(policy):
        one = np.ones((50, ACTIONS), np.float32)
        assert_close(actor.choose(parameters, one), (distribution.mean + distribution.stddev)[:, 0])


def test_forward_is_distribution(policy):
    observations = torch.from_numpy(some_observations())
    mask = all_taken(K, T)
    assert torch.equal(
        parameters_of(policy(observations, mask)), parameters_of(policy.distribution(observations, mask))
    )


def test_what_comes_later_or_beside_does_not_matter(policy):
    observations = torch.from_numpy(some_observations())
    before = whole(policy, observations)
    observations[:, 5:] = 100.0
    observations[3] = -100.0
    after = whole(policy, observations)
    beside = [i for i in range(K) if i != 3]
    torch.testing.assert_close(after[beside, :5], before[beside, :5], rtol=0, atol=1e-6)


@with_a_memory
def test_what_came_before_matters(make):
    """To the end of 9 steps, by far more than rounding: a memory that is cleared at every step has none."""
    policy = drawn(make)
    observations = some_observations()
    before = whole(policy, observations)
    observations[:, 0] += 1.0
    changed = (whole(policy, observations) - before).abs().amax(dim=(0, 2))
    assert (changed > 1e-5).all(), changed


def test_an_actor_does_not_depend_on_the_lanes_beside_it(policy):
    """By no bit: chaotic physics would make it visible."""
    observations = some_observations((50, 4))
    actor = policy.actor()
    for n in (1, 2, 3, 7, 49):
        all_of_them = actor.memory(50)
        some = actor.memory(n)
        for t in range(4):
            together, all_of_them = actor.parameters(observations[:, t], all_of_them)
            part, some = actor.parameters(observations[:n, t], some)
            np.testing.assert_array_equal(part, together[:n])
            np.testing.assert_array_equal(some, all_of_them[:n])


def test_an_actor_is_a_copy(policy):
    actor = policy.actor()
    observation = some_observations(shape=(5,))
    noise = actor.noise([np.random.default_rng(0)], 5)[0]

    def output(of):
        parameters, memory = of.parameters(observation, of.memory(5))
        parameters, _ = of.parameters(observation, memory)
        return parameters.copy(), of.choose(parameters, noise)

    before = output(actor)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 1.0
    for now, then in zip(output(actor), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert (output(policy.actor())[0] != before[0]).any()


def test_an_actor_changes_neither_observation_nor_memory(policy):
    actor = policy.actor()
    observation = some_observations(shape=(5,))
    memory = actor.memory(5)
    for _ in range(3):  # the first memory is all zeros, and proves little
        before = observation.copy(), memory.copy()
        _, following = actor.parameters(observation, memory)
        np.testing.assert_array_equal(observation, before[0])
        np.testing.assert_array_equal(memory, before[1])
        assert following.shape == memory.shape
        memory = following


def test_noise_belongs_to_its_generator(policy):
    """Each trajectory's noise is the same whoever else draws, and [K, H, A] in shape."""
    actor = policy.actor()

    def generators(seeds):
        return [np.random.default_rng(seed) for seed in seeds]

    together = actor.noise(generators([1, 2, 3]), 20)
    assert together.shape == (3, 20, ACTIONS) and together.dtype == np.float32
    np.testing.assert_array_equal(actor.noise(generators([3]), 20)[0], together[2])


def test_predict_single_and_batch(policy):
    shape = action_shape(policy)
    single, state = policy.predict(some_observations(shape=()), deterministic=True)
    assert np.shape(single) == shape and len(state) == 1
    assert shape or 0 <= single < ACTIONS
    batch, state = policy.predict(some_observations(shape=(6,)), deterministic=True)
    assert batch.shape == (6, *shape) and len(state) == 6
    again, _ = policy.predict(some_observations(shape=(6,)), state, np.ones(6, bool), deterministic=True)
    np.testing.assert_array_equal(again, batch)
    stochastic, _ = policy.predict(some_observations(shape=(6,)))
    assert stochastic.shape == (6, *shape)
    assert policy.predict(some_observations(shape=()))[0].shape == shape


def test_predict_deterministic_is_the_most_probable_action(policy):
    """At every step of a sequence: the state that it returns is the memory."""
    observations = some_observations()
    with torch.no_grad():
        modes = policy.distribution(torch.from_numpy(observations), all_taken(K, T)).mode.numpy()
    state = None
    for t in range(T):
        chosen, state = policy.predict(observations[:, t], state, np.full(K, t == 0), deterministic=True)
        assert_close(chosen, modes[:, t])


def test_predict_forgets_only_where_an_episode_starts(policy):
    observations = some_observations()
    fresh = np.array([True, False, True, False, False, False, True])
    state = None
    for t in range(4):
        _, state = policy.predict(observations[:, t], state, deterministic=True)
    given = state.copy()
    _, after = policy.predict(observations[:, 4], state, fresh, deterministic=True)
    np.testing.assert_array_equal(state, given)
    _, started = policy.predict(observations[:, 4], deterministic=True)
    _, continued = policy.predict(observations[:, 4], state, np.zeros(K, bool), deterministic=True)
    np.testing.assert_array_equal(after, np.where(fresh[:, None], started, continued))
    if given.size:
        assert (np.abs(started - continued).max(axis=1) > 1e-4).all()


def test_predict_does_not_change_the_policy(policy):
    before = flat(policy)
    policy.predict(some_observations(shape=(6,)))
    np.testing.assert_array_equal(flat(policy), before)


@with_a_finite_set
def test_illegal_actions_have_probability_0_in_both_faces(make):
    policy = drawn(make)
    generator = np.random.default_rng(3)
    observations = some_observations((K, 40))
    actor = policy.actor()
    legal = generator.random((K, 40, ACTIONS)) < 0.5
    legal[..., 1] |= ~legal.any(axis=-1)
    assert not legal.all(axis=-1).all()
    expected = whole(policy, observations, legal=torch.from_numpy(legal)).exp().numpy()
    assert not expected[~legal].any()
    noise = actor.noise([generator] * K, 40)
    memory = actor.memory(K)
    for t in range(40):
        parameters, memory = actor.parameters(observations[:, t], memory)
        weights = np.exp(parameters) * legal[:, t]
        assert_close(weights / weights.sum(axis=1, keepdims=True), expected[:, t])
        for chosen in (actor.choose(parameters, noise[:, t], legal[:, t]), actor.choose(parameters, 0.0, legal[:, t])):
            assert legal[np.arange(K), t, chosen].all()
        np.testing.assert_array_equal(chosen, expected[:, t].argmax(axis=1))


@with_a_finite_set
def test_predict_keeps_to_action_masks(make):
    policy = drawn(make)
    observations = some_observations((K,))
    for action in range(ACTIONS):
        only = np.arange(ACTIONS) == action
        assert (policy.predict(observations, action_masks=np.tile(only, (K, 1)))[0] == action).all()
        assert policy.predict(observations[0], action_masks=only.astype(np.int8), deterministic=True)[0] == action
    assert (policy.predict(observations, action_masks=np.ones((K, ACTIONS)))[0] < ACTIONS).all()


@every_kind
def test_the_same_generator_makes_the_same_policy(make):
    first, second, third = (flat(make(torch.Generator().manual_seed(seed))) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != third).any()


@every_kind
def test_a_new_policy_rules_no_action_out(make):
    observations = some_observations((20, 50))
    policy = make(torch.Generator().manual_seed(0))
    found = whole(policy, observations)
    assert (found.abs().max() < 3.0) if action_shape(policy) else (found.exp().min() > 0.03)


def test_its_weights_are_all_that_it_is(policy):
    """Loaded into another of its kind, they give the same bits."""
    other = randomise(deepcopy(policy), seed=6)
    observations = some_observations()
    assert not torch.equal(whole(other, observations), whole(policy, observations))
    other.load_state_dict({name: tensor.clone() for name, tensor in policy.state_dict().items()})
    assert torch.equal(whole(other, observations), whole(policy, observations))
    actors = [p.actor() for p in (policy, other)]
    memories = [actor.memory(K) for actor in actors]
    for t in range(T):
        (one, memories[0]), (two, memories[1]) = (
            actor.parameters(observations[:, t], memory) for actor, memory in zip(actors, memories, strict=True)
        )
        np.testing.assert_array_equal(one, two)
