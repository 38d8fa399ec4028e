"""The contract of policies: distribution and actor agree, actors are copies, trajectories are independent."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch.distributions import Categorical

from aggrevated.policies import compute_scores_per_trajectory
from aggrevated.policies.convolutional import ConvolutionalPolicy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.mixture import MixturePolicy
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from helpers.policy_classes import policy_classes_in
from helpers.tiny_mdp import flat, randomise

INPUTS = 4
IMAGE = (8, 9, 2)  # height, width, channels of the observations of convolutional policies
ACTIONS = 3
K = 7
T = 9
LENGTHS = np.array([200, 1, 37, 120, 199, 2, 64])  # of K episodes


def discrete_head():
    return CategoricalHead(ACTIONS)


def gaussian_head():
    return GaussianHead(ACTIONS)


def mixture(newest):
    """Return a mixture of the policy and two others of its kind."""
    policy = MixturePolicy(newest, discrete_head())
    for shares in ([1.0], [0.7, 0.3], [0.5, 0.2, 0.3]):
        randomise(policy, len(shares), 0.3)
        policy.renew(np.array(shares))
    return policy


POLICIES = {  # functions of a torch.Generator or None
    "linear": lambda g: FeedForwardPolicy(INPUTS, discrete_head(), (), g),
    "one layer": lambda g: FeedForwardPolicy(INPUTS, discrete_head(), generator=g),
    "two layers": lambda g: FeedForwardPolicy(INPUTS, discrete_head(), (32, 32), g),
    "a bottleneck": lambda g: FeedForwardPolicy(INPUTS, discrete_head(), (1,), g),
    "wide": lambda g: FeedForwardPolicy(INPUTS, discrete_head(), (64, 64), g),
    "one layer, Gaussian": lambda g: FeedForwardPolicy(INPUTS, gaussian_head(), generator=g),
    "window": lambda g: WindowPolicy(INPUTS, discrete_head(), generator=g),
    "window of 1": lambda g: WindowPolicy(INPUTS, discrete_head(), generator=g, width=1),
    "window, Gaussian": lambda g: WindowPolicy(INPUTS, gaussian_head(), generator=g, width=3),
    "LSTM": lambda g: RecurrentPolicy(INPUTS, discrete_head(), generator=g),
    "LSTM of 1": lambda g: RecurrentPolicy(INPUTS, discrete_head(), 1, generator=g),
    "LSTM, Gaussian": lambda g: RecurrentPolicy(INPUTS, gaussian_head(), 8, generator=g),
    "GRU": lambda g: RecurrentPolicy(INPUTS, discrete_head(), cell="gru", generator=g),
    "GRU of 1": lambda g: RecurrentPolicy(INPUTS, discrete_head(), 1, "gru", g),
    "mixture": lambda g: mixture(FeedForwardPolicy(INPUTS, discrete_head(), generator=g)),
    "mixture of one": lambda g: MixturePolicy(FeedForwardPolicy(INPUTS, discrete_head(), generator=g), discrete_head()),
    "mixture of windows": lambda g: mixture(WindowPolicy(INPUTS, discrete_head(), generator=g, width=3)),
    "LSTMs, a mixture": lambda g: mixture(RecurrentPolicy(INPUTS, discrete_head(), 8, generator=g)),
    "convolutional": lambda g: ConvolutionalPolicy(IMAGE, discrete_head(), (16,), g),
    "convolutional, Gaussian": lambda g: ConvolutionalPolicy(IMAGE, gaussian_head(), (16,), g),
    "GRU, Gaussian": lambda g: RecurrentPolicy(INPUTS, gaussian_head(), 8, "gru", g),
}
all_policies = pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)
discrete_policies = pytest.mark.parametrize(
    "make", [m for n, m in POLICIES.items() if "Gaussian" not in n], ids=[n for n in POLICIES if "Gaussian" not in n]
)
RECURRENT_POLICIES = {  # a window has a memory, too, but of a few steps only
    name: make for name, make in POLICIES.items() if make(None).actor().memory(1).size and "window" not in name
}
recurrent_policies = pytest.mark.parametrize("make", RECURRENT_POLICIES.values(), ids=RECURRENT_POLICIES)


@pytest.fixture(params=POLICIES.values(), ids=POLICIES)
def policy(request):
    return make_random(request.param)


def make_random(make):
    """Return a policy whose actions depend on its observations."""
    policy = make(None)
    return randomise(policy, seed=5, scale=0.15 if isinstance(policy, ConvolutionalPolicy) else 0.4)


def random_observations(policy, shape=(K, T), seed=0):
    """Return vectors, or images with values from 0 to 255, as the policy observes them."""
    generator = np.random.default_rng(seed)
    if isinstance(policy, ConvolutionalPolicy):
        return generator.integers(0, 256, (*shape, *IMAGE)).astype(np.float32)
    return generator.normal(size=(*shape, INPUTS)).astype(np.float32)


def full_mask(*shape):
    return torch.ones(*shape, dtype=torch.bool)


def distribution_parameters(policy, observations, mask=None, legal=None):
    """Return the parameters of `distribution`, [K, T, A]."""
    mask = full_mask(*observations.shape[:2]) if mask is None else mask
    with torch.no_grad():
        return distribution_tensor(policy.distribution(torch.as_tensor(observations), mask, legal))


def distribution_tensor(distribution):
    """Return the tensor that the parameters of the actor must equal, once normalized."""
    return distribution.logits if isinstance(distribution, Categorical) else distribution.mean


def normalize_parameters(policy, parameters):
    """Return parameters of an actor as `distribution_tensor` does: normalized logits, or means."""
    if isinstance(policy_head(policy), GaussianHead):
        return parameters
    return parameters - np.logaddexp.reduce(parameters, axis=-1, keepdims=True)


def policy_head(policy):
    return policy.inner.head if isinstance(policy, WindowPolicy) else policy.head


def action_shape(policy):
    return (ACTIONS,) if isinstance(policy_head(policy), GaussianHead) else ()


def assert_close(found, expected):
    """Assert equality to 3e-6: torch and our loops sum in a different order."""
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=3e-6)


def test_policy_contract_covers_every_policy_class():
    """A new policy needs a case in `POLICIES`; parser policies have another contract."""
    assert policy_classes_in("aggrevated.policies") == {type(make(None)) for make in POLICIES.values()}


def test_policy_distribution_agrees_with_actor_step_by_step(policy):
    observations = random_observations(policy)
    actor = policy.actor()
    expected = distribution_parameters(policy, observations).numpy()
    memory = actor.memory(K)
    for t in range(T):
        parameters, memory = actor.parameters(observations[:, t], memory)
        assert_close(normalize_parameters(policy, parameters), expected[:, t])


@pytest.mark.parametrize("padding", [0.0, 50.0])
def test_policy_and_actor_agree_over_episodes_of_different_lengths(policy, padding):
    """The actor drops finished episodes and their memory; whole sequences are padded."""
    observations = random_observations(policy, (K, 200))
    actor = policy.actor()
    mask = np.arange(200) < LENGTHS[:, None]
    observations[~mask] = padding
    expected = distribution_parameters(policy, observations, torch.from_numpy(mask)).numpy()
    rows = np.arange(K)
    memory = actor.memory(K)
    for t in range(200):
        live = mask[rows, t]
        rows = rows[live]
        memory = memory[live]
        parameters, memory = actor.parameters(observations[rows, t], memory)
        assert_close(normalize_parameters(policy, parameters), expected[rows, t])
    assert rows.tolist() == [0]


def test_policy_and_actor_choose_the_same_actions(policy):
    """Without noise the actor takes the mode; noise of 1 adds one standard deviation."""
    observations = random_observations(policy, (50,))
    actor = policy.actor()
    parameters, _ = actor.parameters(observations, actor.memory(50))
    with torch.no_grad():
        distribution = policy.distribution(torch.from_numpy(observations)[:, None], full_mask(50, 1))
    assert_close(actor.choose(parameters, 0.0), distribution.mode[:, 0])
    if action_shape(policy):
        one = np.ones((50, ACTIONS), np.float32)
        assert_close(actor.choose(parameters, one), (distribution.mean + distribution.stddev)[:, 0])


def test_policy_forward_equals_distribution(policy):
    observations = torch.from_numpy(random_observations(policy))
    mask = full_mask(K, T)
    assert torch.equal(
        distribution_tensor(policy(observations, mask)), distribution_tensor(policy.distribution(observations, mask))
    )


def test_policy_output_is_independent_of_later_steps_and_other_trajectories(policy):
    observations = torch.from_numpy(random_observations(policy))
    before = distribution_parameters(policy, observations)
    observations[:, 5:] = 100.0
    observations[3] = -100.0
    after = distribution_parameters(policy, observations)
    others = [i for i in range(K) if i != 3]
    torch.testing.assert_close(after[others, :5], before[others, :5], rtol=0, atol=1e-6)


def test_policy_scores_equal_gradients_per_trajectory(policy):
    """The natural update uses `compute_scores`; a network without vmap computes them one by one."""
    observations = torch.from_numpy(random_observations(policy))
    actions = torch.zeros(K, T, *action_shape(policy), dtype=torch.float32 if action_shape(policy) else torch.int64)
    by_learner = full_mask(K, T)
    if isinstance(policy, MixturePolicy):
        pytest.skip("a mixture is not updated by gradients")
    scores = policy.compute_scores(observations, actions, full_mask(K, T), by_learner)
    expected = compute_scores_per_trajectory(policy, observations, actions, full_mask(K, T), by_learner, None)
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-4)


@recurrent_policies
def test_recurrent_policy_output_depends_on_earlier_steps(make):
    """The first observation changes the output of all 9 steps, by much more than rounding."""
    policy = make_random(make)
    observations = random_observations(policy)
    before = distribution_parameters(policy, observations)
    observations[:, 0] += 1.0
    changed = (distribution_parameters(policy, observations) - before).abs().amax(dim=(0, 2))
    assert (changed > 1e-5).all(), changed


def test_actor_output_is_independent_of_batch_bit_for_bit(policy):
    """Any difference would grow in a chaotic simulator."""
    observations = random_observations(policy, (50, 4))
    actor = policy.actor()
    for n in (1, 2, 3, 7, 49):
        batch_memory = actor.memory(50)
        part_memory = actor.memory(n)
        for t in range(4):
            together, batch_memory = actor.parameters(observations[:, t], batch_memory)
            part, part_memory = actor.parameters(observations[:n, t], part_memory)
            np.testing.assert_array_equal(part, together[:n])
            np.testing.assert_array_equal(part_memory, batch_memory[:n])


def test_actor_is_a_copy_of_the_policy(policy):
    actor = policy.actor()
    observation = random_observations(policy, shape=(5,))
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


def test_actor_does_not_modify_observation_or_memory(policy):
    actor = policy.actor()
    observation = random_observations(policy, shape=(5,))
    memory = actor.memory(5)
    for _ in range(3):  # the first memory is all zeros
        before = observation.copy(), memory.copy()
        _, following = actor.parameters(observation, memory)
        np.testing.assert_array_equal(observation, before[0])
        np.testing.assert_array_equal(memory, before[1])
        assert following.shape == memory.shape
        memory = following


def test_actor_noise_depends_on_its_generator_only(policy):
    """The noise of a trajectory is the same in any batch, and has the shape [K, H, A]."""
    actor = policy.actor()

    def generators(seeds):
        return [np.random.default_rng(seed) for seed in seeds]

    together = actor.noise(generators([1, 2, 3]), 20)
    assert together.shape == (3, 20, ACTIONS) and together.dtype == np.float32
    np.testing.assert_array_equal(actor.noise(generators([3]), 20)[0], together[2])


def test_policy_predict_accepts_single_observation_and_batch(policy):
    shape = action_shape(policy)
    single, state = policy.predict(random_observations(policy, shape=()), deterministic=True)
    assert np.shape(single) == shape and len(state) == 1
    assert shape or 0 <= single < ACTIONS
    batch, state = policy.predict(random_observations(policy, shape=(6,)), deterministic=True)
    assert batch.shape == (6, *shape) and len(state) == 6
    again, _ = policy.predict(random_observations(policy, shape=(6,)), state, np.ones(6, bool), deterministic=True)
    np.testing.assert_array_equal(again, batch)
    stochastic, _ = policy.predict(random_observations(policy, shape=(6,)))
    assert stochastic.shape == (6, *shape)
    assert policy.predict(random_observations(policy, shape=()))[0].shape == shape


def test_policy_predict_deterministic_returns_most_probable_action(policy):
    """At every step of a sequence: the state that it returns is the memory."""
    observations = random_observations(policy)
    with torch.no_grad():
        modes = policy.distribution(torch.from_numpy(observations), full_mask(K, T)).mode.numpy()
    state = None
    for t in range(T):
        chosen, state = policy.predict(observations[:, t], state, np.full(K, t == 0), deterministic=True)
        assert_close(chosen, modes[:, t])


def test_policy_predict_resets_memory_at_episode_start_only(policy):
    observations = random_observations(policy)
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


def test_policy_predict_does_not_modify_weights(policy):
    before = flat(policy)
    policy.predict(random_observations(policy, shape=(6,)))
    np.testing.assert_array_equal(flat(policy), before)


@discrete_policies
def test_policy_and_actor_give_illegal_actions_probability_zero(make):
    policy = make_random(make)
    generator = np.random.default_rng(3)
    observations = random_observations(policy, (K, 40))
    actor = policy.actor()
    legal = generator.random((K, 40, ACTIONS)) < 0.5
    legal[..., 1] |= ~legal.any(axis=-1)
    assert not legal.all(axis=-1).all()
    expected = distribution_parameters(policy, observations, legal=torch.from_numpy(legal)).exp().numpy()
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


@discrete_policies
def test_policy_predict_respects_action_masks(make):
    policy = make_random(make)
    observations = random_observations(policy, (K,))
    for action in range(ACTIONS):
        only = np.arange(ACTIONS) == action
        assert (policy.predict(observations, action_masks=np.tile(only, (K, 1)))[0] == action).all()
        assert policy.predict(observations[0], action_masks=only.astype(np.int8), deterministic=True)[0] == action
    assert (policy.predict(observations, action_masks=np.ones((K, ACTIONS)))[0] < ACTIONS).all()


@all_policies
def test_policy_initial_weights_are_determined_by_generator(make):
    first, second, third = (flat(make(torch.Generator().manual_seed(seed))) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != third).any()


@all_policies
def test_new_policy_gives_every_action_some_probability(make):
    policy = make(torch.Generator().manual_seed(0))
    observations = random_observations(policy, (20, 50))
    found = distribution_parameters(policy, observations)
    assert (found.abs().max() < 3.0) if action_shape(policy) else (found.exp().min() > 0.03)


def test_policy_is_determined_by_its_state_dict(policy):
    """Its weights, loaded into another policy of its kind, give the same bits."""
    other = randomise(deepcopy(policy), seed=6)
    observations = random_observations(policy)
    assert not torch.equal(distribution_parameters(other, observations), distribution_parameters(policy, observations))
    other.load_state_dict({name: tensor.clone() for name, tensor in policy.state_dict().items()})
    assert torch.equal(distribution_parameters(other, observations), distribution_parameters(policy, observations))
    actors = [p.actor() for p in (policy, other)]
    memories = [actor.memory(K) for actor in actors]
    for t in range(T):
        (one, memories[0]), (two, memories[1]) = (
            actor.parameters(observations[:, t], memory) for actor, memory in zip(actors, memories, strict=True)
        )
        np.testing.assert_array_equal(one, two)
