"""Lines 4 and 5: which policy acts, when episodes end, and independence of trajectories from each other."""

from dataclasses import dataclass, fields

import numpy as np
import pytest
import torch

from aggrevated.core.errors import DataError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.rollout.roll_in import RollInPolicy, replay_hidden_states, roll_in
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole
from helpers.tiny_mdp import (
    Home,
    TinyExpert,
    TinyMdp,
    Walk,
    gradient,
    linear_policy,
    mixture,
    probabilities,
    random_costs,
    randomise,
    state_distributions,
)


@dataclass(frozen=True)
class SignExpert:
    """Bad expert for any numeric state: its actions depend on the signs of the state and on the time."""

    actions: int

    def act(self, states, t):
        return ((states > 0).sum(axis=1) + t) % self.actions


@dataclass
class RecordingSimulator:
    """Simulator that records the batch size of each step."""

    inner: object
    batches: list

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def step(self, state, action):
        self.batches.append(len(state))
        return self.inner.step(state, action)


CASES = {
    "cartpole": (CartPole(horizon=60), FeedForwardPolicy(4, CategoricalHead(2)), SignExpert(2)),
    "acrobot": (Acrobot(horizon=60), FeedForwardPolicy(6, CategoricalHead(3)), SignExpert(3)),
    "tiny": (TinyMdp(), FeedForwardPolicy(3, CategoricalHead(3)), TinyExpert()),
    "cartpole, LSTM": (CartPole(horizon=60), RecurrentPolicy(4, CategoricalHead(2), 8, "lstm"), SignExpert(2)),
    "cartpole, GRU": (CartPole(horizon=60), RecurrentPolicy(4, CategoricalHead(2), 8, "gru"), SignExpert(2)),
    "cartpole, window": (CartPole(horizon=60), WindowPolicy(4, CategoricalHead(2)), SignExpert(2)),
    "tiny, LSTM": (TinyMdp(), RecurrentPolicy(3, CategoricalHead(3), 8), TinyExpert()),
}
every_case = pytest.mark.parametrize(
    ("simulator", "policy", "expert"),
    [(simulator, randomise(policy, 1, 0.3), expert) for simulator, policy, expert in CASES.values()],
    ids=CASES,
)


def assert_same(one: Trajectories, other: Trajectories):
    """Assert that the steps of the shorter batch are equal bit for bit, and that all later steps are zeros."""
    steps = min(one.mask.shape[1], other.mask.shape[1])
    for field in fields(Trajectories):
        first = getattr(one, field.name)
        second = getattr(other, field.name)
        if field.name == "seeds":
            np.testing.assert_array_equal(first, second)
        elif isinstance(first, np.ndarray):
            np.testing.assert_array_equal(first[:, :steps], second[:, :steps], err_msg=field.name)
            assert not first[:, steps:].any() and not second[:, steps:].any()
        else:
            assert first == second


@every_case
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_roll_in_trajectory_is_independent_of_others_in_batch(simulator, policy, expert, alpha):
    own = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 40)
    mixed = RollInPolicy(expert, policy.actor(), alpha)
    together = roll_in(simulator, mixed, own)
    shuffled = np.random.default_rng(0).permutation(40)
    for subset in (shuffled, shuffled[:13], shuffled[:2], np.array([7]), np.arange(39, -1, -1)):
        assert_same(together.take(subset), roll_in(simulator, mixed, own[subset]))
    parts = [roll_in(simulator, mixed, part) for part in np.array_split(own, 7)]
    assert sum(part.steps for part in parts) == together.steps


@every_case
def test_roll_in_is_determined_by_seeds(simulator, policy, expert):
    mixed = RollInPolicy(expert, policy.actor(), 0.2)
    first, again, other = (roll_in(simulator, mixed, derive_seeds(0, SeedPurpose.ROLL_IN, n, 20)) for n in (1, 1, 2))
    assert_same(first, again)
    assert not np.array_equal(first.actions[:, :3], other.actions[:, :3])


@every_case
def test_roll_in_records_transitions_of_the_simulator(simulator, policy, expert):
    """Each recorded state, stepped with the recorded action, gives the next recorded state; ends of episodes agree."""
    found = roll_in(simulator, RollInPolicy(expert, policy.actor(), 0.3), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 30))
    own = found.mask.sum(axis=1)
    assert own.min() < own.max() or simulator.name == "acrobot"  # no policy here swings up acrobot
    np.testing.assert_array_equal(found.states[:, 0], simulator.reset(derive_seeds(0, SeedPurpose.ROLL_IN, 1, 30)))
    for t in range(found.mask.shape[1]):
        live = found.mask[:, t]
        following, cost, done = simulator.step(found.states[live, t], found.actions[live, t])
        np.testing.assert_array_equal(found.costs[live, t], cost)
        np.testing.assert_array_equal(found.observations[live, t], simulator.observe(found.states[live, t]))
        if t + 1 < found.mask.shape[1]:
            np.testing.assert_array_equal(found.mask[live, t + 1], ~done)
            np.testing.assert_array_equal(found.states[live, t + 1][~done], following[~done])
    for name in ("states", "observations", "actions", "costs", "by_expert"):
        assert not getattr(found, name)[~found.mask].any(), name


def test_roll_in_does_not_step_finished_trajectories():
    recording = RecordingSimulator(CartPole(horizon=200), [])
    found = roll_in(
        recording, RollInPolicy(None, FeedForwardPolicy(4, CategoricalHead(2)).actor()), np.arange(50, dtype=np.uint64)
    )
    assert recording.batches[0] == 50
    assert recording.batches == found.mask.sum(axis=0).tolist()
    assert sum(recording.batches) == found.steps
    assert recording.batches[-1] < 50 and found.mask.shape[1] == len(recording.batches)


@pytest.mark.parametrize("horizon", [1, 7])
def test_roll_in_stops_at_horizon(horizon):
    recording = RecordingSimulator(CartPole(horizon=horizon), [])
    found = roll_in(recording, RollInPolicy(SignExpert(2), None, 1.0), np.arange(5, dtype=np.uint64))
    assert len(recording.batches) == horizon
    assert found.mask.shape == (5, horizon) and found.mask.all() and found.horizon == horizon


def test_trajectory_returns_are_sums_of_rewards():
    """CartPole pays 1 a step, so the return is the number of steps; Acrobot costs 1 a step, so it is −20 at H = 20."""
    policy = FeedForwardPolicy(4, CategoricalHead(2))
    found = roll_in(CartPole(), RollInPolicy(None, policy.actor()), np.arange(10, dtype=np.uint64))
    np.testing.assert_array_equal(found.returns, found.mask.sum(axis=1))
    hanging = RollInPolicy(None, FeedForwardPolicy(6, CategoricalHead(3)).actor())
    found = roll_in(Acrobot(horizon=20), hanging, np.arange(10, dtype=np.uint64))
    np.testing.assert_array_equal(found.returns, np.full(10, -20.0))


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.7])
def test_roll_in_policy_lets_expert_act_in_fraction_alpha_of_steps(alpha):
    """The fraction is within 4 standard deviations of alpha at every time step."""
    simulator = Acrobot(horizon=100)
    policy = FeedForwardPolicy(6, CategoricalHead(3))
    found = roll_in(
        simulator, RollInPolicy(SignExpert(3), policy.actor(), alpha), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 200)
    )
    n = found.steps
    assert n > 10_000
    assert found.by_expert[found.mask].mean() == pytest.approx(alpha, abs=4 * np.sqrt(alpha * (1 - alpha) / n))
    for t in (0, 50, 99):
        assert found.by_expert[:, t].mean() == pytest.approx(alpha, abs=4 * np.sqrt(alpha * (1 - alpha) / 200))
    assert found.alpha == alpha


def test_roll_in_by_expert_marks_steps_with_expert_actions():
    simulator = Acrobot(horizon=50)
    policy = FeedForwardPolicy(6, CategoricalHead(3))
    expert = SignExpert(3)
    own = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 50)
    found = roll_in(simulator, RollInPolicy(expert, policy.actor(), 0.5), own, deterministic=True)
    assert found.by_expert.any() and found.by_learner.any()
    for t in range(50):
        expected = expert.act(found.states[:, t], t)
        learner, _ = policy.predict(found.observations[:, t], deterministic=True)
        by = found.by_expert[:, t]
        np.testing.assert_array_equal(found.actions[by, t], expected[by])
        np.testing.assert_array_equal(found.actions[~by, t], learner[~by])


def test_roll_in_policy_with_alpha_1_is_expert_and_alpha_0_is_learner():
    simulator = Acrobot(horizon=50)
    policy = FeedForwardPolicy(6, CategoricalHead(3))
    expert = SignExpert(3)
    own = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 10)
    alone = roll_in(simulator, RollInPolicy(expert, None, 1.0), own)
    assert alone.by_expert.all()
    assert_same(roll_in(simulator, RollInPolicy(expert, policy.actor(), 1.0), own), alone)
    learner = roll_in(simulator, RollInPolicy(None, policy.actor(), 0.0), own)
    assert not learner.by_expert.any()
    assert_same(roll_in(simulator, RollInPolicy(expert, policy.actor(), 0.0), own), learner)


def test_roll_in_passes_time_to_expert():
    class ClockExpert:
        def act(self, states, t):
            return np.full(len(states), t % 3)

    found = roll_in(Acrobot(horizon=5), RollInPolicy(ClockExpert(), None, 1.0), np.arange(2, dtype=np.uint64))
    np.testing.assert_array_equal(found.actions, [[0, 1, 2, 0, 1]] * 2)


def test_roll_in_deterministic_takes_the_mode():
    policy = linear_policy().float()
    best = probabilities(policy).argmax(axis=1)
    found = roll_in(TinyMdp(), RollInPolicy(None, policy.actor()), np.arange(16, dtype=np.uint64), deterministic=True)
    assert (found.actions == best[found.states[..., 0]])[found.mask].all()


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_roll_in_visits_states_with_exact_distribution(alpha):
    """8,000 roll-ins of the tiny MDP: the share of s at t is d_t(s) within 4 standard deviations."""
    policy = linear_policy().float()
    n = 8000
    found = roll_in(
        TinyMdp(), RollInPolicy(TinyExpert(), policy.actor(), alpha), derive_seeds(3, SeedPurpose.ROLL_IN, 1, n)
    )
    shares = (found.observations * found.mask[..., None]).mean(axis=0)
    d = state_distributions(mixture(probabilities(policy), alpha))
    assert (np.abs(shares - d) < 4 * np.sqrt(d * (1 - d) / n)).all()


def test_roll_in_raises_when_every_cost_is_not_finite():
    class BrokenMdp(TinyMdp):
        def step(self, state, action):
            following, cost, done = super().step(state, action)
            return following, np.where(following[:, 1] == 2, np.nan, cost), done

    sentence = r"^the simulator returned a cost that is not finite in all of 4 episodes; check its step function$"
    with pytest.raises(DataError, match=sentence):
        roll_in(BrokenMdp(), RollInPolicy(TinyExpert(), None, 1.0), np.arange(4, dtype=np.uint64))


class DivergingMdp(TinyMdp):
    """The tiny MDP; episodes that start in state 1 with an odd seed diverge in the second step and end there."""

    def reset(self, seeds):
        state = super().reset(seeds)
        return np.concatenate([state, (state[:, :1] == 1) & (state[:, 2:] % 2 == 1)], axis=1)

    def step(self, state, action):
        following, cost, done = super().step(state[:, :3], action)
        broken = (state[:, 1] == 1) & (state[:, 3] == 1)
        return np.column_stack([following, state[:, 3]]), np.where(broken, np.nan, cost), done | broken


def test_roll_in_excludes_and_counts_diverged_episodes():
    policy = linear_policy()
    own = np.arange(16, dtype=np.uint64)
    acting = RollInPolicy(None, policy.float().actor())
    found = roll_in(DivergingMdp(), acting, own)
    whole = roll_in(TinyMdp(), acting, own)
    started = (whole.states[:, 0, 0] == 1) & (whole.states[:, 0, 2] % 2 == 1)
    lost = started & whole.mask[:, 1]  # an episode that ended in its first step did not diverge
    assert started.sum() == 2 and 1 <= lost.sum() == found.diverged
    assert whole.diverged == 0
    np.testing.assert_array_equal(found.seeds, own[~lost])
    np.testing.assert_array_equal(found.returns, whole.returns[~lost])
    np.testing.assert_array_equal(found.actions, whole.actions[~lost])
    sound = whole.take(np.flatnonzero(~lost))
    costs = random_costs(sound, actions=None)  # the mean is over the episodes that did not diverge
    np.testing.assert_array_equal(
        gradient(policy, taken_action_loss, found, costs), gradient(policy, taken_action_loss, sound, costs)
    )


@pytest.mark.parametrize(
    ("expert", "learner", "alpha", "sentence"),
    [
        (None, FeedForwardPolicy(3, CategoricalHead(3)).actor(), 0.1, "needs an expert"),
        (TinyExpert(), None, 0.9, "needs a learner"),
        (TinyExpert(), FeedForwardPolicy(3, CategoricalHead(3)).actor(), 1.1, "1.1"),
    ],
)
def test_roll_in_policy_rejects_missing_actor_or_invalid_alpha(expert, learner, alpha, sentence):
    with pytest.raises(AssertionError, match=sentence):
        RollInPolicy(expert, learner, alpha)


@every_case
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_roll_in_deterministic_actions_are_modes_of_policy_distribution(simulator, policy, expert, alpha):
    """Also after a step of the expert, which enters the learner's memory."""
    found = roll_in(
        simulator, RollInPolicy(expert, policy.actor(), alpha), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 40), True
    )
    assert simulator.name != "cartpole" or not found.mask.all()
    with torch.no_grad():
        modes = policy.distribution(torch.from_numpy(found.observations), torch.from_numpy(found.mask)).mode.numpy()
    np.testing.assert_array_equal(found.actions[found.by_learner], modes[found.by_learner])


@pytest.mark.parametrize("kind", ["feed-forward", "window", "lstm", "gru"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_roll_in_supports_continuous_actions(kind, deterministic):
    head = GaussianHead(2)
    policy = {
        "feed-forward": lambda: FeedForwardPolicy(1, head),
        "window": lambda: WindowPolicy(1, head),
        "lstm": lambda: RecurrentPolicy(1, head, 5, "lstm"),
        "gru": lambda: RecurrentPolicy(1, head, 5, "gru"),
    }[kind]()
    policy = randomise(policy, 1, 0.3)
    own = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 20)
    mixed = RollInPolicy(Home(), policy.actor(), 0.4)
    found = roll_in(Walk(), mixed, own, deterministic)
    assert found.actions.shape == (*found.mask.shape, 2) and found.actions.dtype == np.float32
    assert not found.actions[~found.mask].any()
    by = found.by_expert
    np.testing.assert_array_equal(found.actions[by], Home().act(found.states[by], 0))
    with torch.no_grad():
        means = policy.distribution(torch.from_numpy(found.observations), torch.from_numpy(found.mask)).mean.numpy()
    difference = np.abs(found.actions - means)[found.by_learner]
    assert difference.max() < 1e-5 if deterministic else difference.mean() > 0.1
    for subset in (np.arange(19, -1, -1), np.array([3, 11])):
        part = roll_in(Walk(), mixed, own[subset], deterministic)
        steps = part.mask.shape[1]
        np.testing.assert_array_equal(part.mask, found.mask[subset, :steps])
        np.testing.assert_allclose(part.actions, found.actions[subset, :steps], atol=1e-5)


# ---- memory at each step

KINDS = {
    "feed-forward": lambda n, head: FeedForwardPolicy(n, head),
    "window": lambda n, head: WindowPolicy(n, head, width=3),
    "lstm": lambda n, head: RecurrentPolicy(n, head, 6, "lstm"),
    "gru": lambda n, head: RecurrentPolicy(n, head, 6, "gru"),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@dataclass
class RecordingActor:
    """Actor that records its memory at each step."""

    inner: object
    before: list

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def parameters(self, observation, memory):
        self.before.append(memory.copy())
        return self.inner.parameters(observation, memory)


def continue_with_modes(simulator, actor, state, memory):
    """Yield the actions of each time step when the actor takes modes from the given state on."""
    while len(state):
        parameters, memory = actor.parameters(simulator.observe(state), memory)
        action = actor.choose(parameters, 0.0)
        yield action
        state, _, done = simulator.step(state, action)
        state = state[~done]
        memory = memory[~done]


@every_kind
@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_replay_hidden_states_equals_memory_of_roll_in_bit_for_bit(kind, alpha):
    policy = randomise(KINDS[kind](4, CategoricalHead(2)), 1, 0.6)
    actor = RecordingActor(policy.actor(), [])
    found = roll_in(
        CartPole(horizon=60), RollInPolicy(SignExpert(2), actor, alpha), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 20)
    )
    before = replay_hidden_states(policy.actor(), found)
    assert before.shape == (*found.mask.shape, actor.memory(1).shape[1]) and before.dtype == np.float32
    assert not found.mask.all() and not before[~found.mask].any() and not before[:, 0].any()
    assert before[found.mask].any() or kind == "feed-forward"
    for t, remembered in enumerate(actor.before):
        np.testing.assert_array_equal(before[found.mask[:, t], t], remembered)


@every_kind
@pytest.mark.parametrize("simulator", [CartPole(horizon=40), Walk()], ids=["finite", "continuous"])
def test_rollout_with_replayed_memory_continues_the_roll_in(kind, simulator):
    finite = simulator.name == "cartpole"
    inputs = simulator.observation_space.shape[0]
    head = CategoricalHead(2) if finite else GaussianHead(2)
    actor = randomise(KINDS[kind](inputs, head), 1, 0.6).actor()
    own = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 20)
    found = roll_in(simulator, RollInPolicy(None, actor), own, deterministic=True)
    before = replay_hidden_states(actor, found)
    needed = False
    for start in range(found.mask.shape[1]):
        live = found.mask[:, start]
        rest = [found.actions[found.mask[:, t], t] for t in range(start, found.mask.shape[1])]
        state = found.states[live, start]
        again = [
            a for a, _ in zip(continue_with_modes(simulator, actor, state, before[live, start]), rest, strict=False)
        ]
        for one, other in zip(again, rest, strict=True):
            np.testing.assert_array_equal(one, other)
        seen = simulator.observe(state)
        forgotten = actor.memory(len(state))
        needed |= bool((actor.parameters(seen, before[live, start])[0] != actor.parameters(seen, forgotten)[0]).any())
    assert needed == (kind != "feed-forward")
