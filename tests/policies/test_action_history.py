"""Policies that see their previous actions: acting and learning agree, gradients are correct, and it helps."""

from copy import deepcopy
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from torch.distributions import Categorical
from torch.nn.utils import vector_to_parameters

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.core.errors import UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.export.onnx_files import build_onnx_model
from aggrevated.losses import compute_policy_distribution
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.fisher import compute_trajectory_scores
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.lols import LolsOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.policies import compute_scores_per_trajectory
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.mixture import MixturePolicy
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.serialization import load_policy
from aggrevated.policies.window import WindowPolicy
from aggrevated.rollout.roll_in import RollInPolicy, replay_hidden_states, roll_in
from aggrevated.simulators.cartpole import CartPole
from aggrevated.updates.exponentiated import ExponentiatedUpdate
from aggrevated.updates.natural import NaturalUpdate
from aggrevated.updates.regular import RegularUpdate
from aggrevated.validation import evaluate_returns
from helpers.tiny_mdp import (
    Home,
    Walk,
    flat,
    gradient,
    random_costs,
    random_trajectories,
    randomise,
    with_expert_steps,
    with_vectors,
)


def make_scaled_head():
    """Return a head for vectors of two numbers with scales."""
    head = GaussianHead(2)
    head.init_action_scale(np.array([0.3, -1.0], np.float32), np.array([0.5, 4.0], np.float32))
    return head


def make_lstm_mixture(size, head):
    """Return a mixture of two LSTMs."""
    policy = MixturePolicy(RecurrentPolicy(size, head, 4, observe_actions=True), deepcopy(head))
    for shares in ([1.0], [0.6, 0.4]):
        randomise(policy, len(shares), 0.6)
        policy.renew(np.array(shares))
    return policy


KINDS = {
    "lstm": lambda size, head: RecurrentPolicy(size, head, 5, "lstm", observe_actions=True),
    "gru": lambda size, head: RecurrentPolicy(size, head, 5, "gru", observe_actions=True),
    "window": lambda size, head: WindowPolicy(size, head, (5,), width=3, observe_actions=True),
    "window of 1": lambda size, head: WindowPolicy(size, head, (5,), width=1, observe_actions=True),
    "mixture": make_lstm_mixture,
}
every_kind = pytest.mark.parametrize("kind", KINDS)
every_single_kind = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "mixture"])


@dataclass
class Swinger:
    """Expert that alternates its actions, so that they differ from the learner's."""

    name: str = "swinger"

    def act(self, states, t):
        return np.full(len(states), t % 2)


PROBLEMS = {
    "finite": (CartPole(60), Swinger(), lambda: CategoricalHead(2)),
    "continuous": (Walk(), Home(), make_scaled_head),
}
PAIRS = [(kind, problem) for kind, problem in product(KINDS, PROBLEMS) if (kind, problem) != ("mixture", "continuous")]


@dataclass
class RecordingActor:
    """Actor that records its memory before and after each step, and the parameters."""

    inner: object
    steps: list

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def parameters(self, observation, memory):
        parameters, after = self.inner.parameters(observation, memory)
        self.steps.append((memory.copy(), parameters.copy()))
        return parameters, after


def record_roll_in(kind, problem, alpha=0.4, episode_seeds=None):
    """Return (policy, trajectories, steps that the actor recorded)."""
    simulator, expert, head = PROBLEMS[problem]
    policy = randomise(KINDS[kind](simulator.observation_space.shape[0], head()), 1, 0.6)
    actor = RecordingActor(policy.actor(), [])
    episode_seeds = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 20) if episode_seeds is None else episode_seeds
    return policy, roll_in(simulator, RollInPolicy(expert, actor, alpha), episode_seeds), actor.steps


@pytest.mark.parametrize(("kind", "problem"), PAIRS)
def test_action_history_policy_acts_and_learns_with_the_same_probabilities(kind, problem):
    """Includes expert steps: the policy sees the actions that were taken."""
    policy, trajectories, steps = record_roll_in(kind, problem)
    assert trajectories.by_expert[trajectories.mask].any() and trajectories.by_learner.any()
    with torch.no_grad():
        learned = compute_policy_distribution(policy, trajectories)
    of_learning = learned.logits if isinstance(learned, Categorical) else learned.mean
    for t, (_, parameters) in enumerate(steps):
        if isinstance(learned, Categorical):
            parameters = parameters - np.logaddexp.reduce(parameters, axis=1, keepdims=True)
        else:
            parameters = policy.head.centre.numpy() + policy.head.unit.numpy() * parameters
        np.testing.assert_allclose(parameters, of_learning[trajectories.mask[:, t], t], rtol=5e-6, atol=5e-6)
    without_actions = policy.distribution(
        torch.from_numpy(inputs_without_actions(policy, trajectories)), torch.from_numpy(trajectories.mask)
    )
    difference = (
        without_actions.logits if isinstance(without_actions, Categorical) else without_actions.mean
    ) - of_learning
    assert (
        difference[:, 1:][torch.from_numpy(trajectories.mask[:, 1:])].abs().max() > 0.05
    )  # the actions have an effect


def inputs_without_actions(policy, trajectories):
    """Return the inputs with zeros at the actions."""
    none = np.zeros((*trajectories.mask.shape, policy.head.outputs), np.float32)
    return np.concatenate([trajectories.observations, none], axis=2)


@pytest.mark.parametrize(("kind", "problem"), PAIRS)
def test_replay_hidden_states_matches_the_roll_in_bit_for_bit(kind, problem):
    policy, trajectories, steps = record_roll_in(kind, problem)
    before = replay_hidden_states(policy.actor(), trajectories)
    for t, (memory, _) in enumerate(steps):
        np.testing.assert_array_equal(before[trajectories.mask[:, t], t], memory)
    assert not before[:, 0].any() and before[trajectories.mask].any()


@pytest.mark.parametrize(("kind", "problem"), PAIRS)
def test_action_history_policy_trajectories_are_independent_of_each_other(kind, problem):
    _, batch, _ = record_roll_in(kind, problem)
    _, part, _ = record_roll_in(kind, problem, episode_seeds=derive_seeds(0, SeedPurpose.ROLL_IN, 1, 20)[3:7])
    length = part.mask.shape[1]
    np.testing.assert_array_equal(part.actions, batch.actions[3:7, :length])
    np.testing.assert_array_equal(part.states, batch.states[3:7, :length])


@every_kind
def test_action_history_policy_predict_remembers_its_own_actions(kind):
    simulator, _, head = PROBLEMS["finite"]
    policy = randomise(KINDS[kind](4, head()), 2, 0.8)
    episode_seeds = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 5)
    trajectories = roll_in(simulator, RollInPolicy(None, policy.actor()), episode_seeds, deterministic=True)
    running = np.arange(5)
    state = simulator.reset(episode_seeds)
    memory = None
    for t in range(trajectories.mask.shape[1]):
        action, memory = policy.predict(simulator.observe(state), memory, deterministic=True)
        np.testing.assert_array_equal(action, trajectories.actions[running, t])
        state, _, done = simulator.step(state, action)
        running = running[~done]
        state = state[~done]
        memory = memory[~done]


def test_action_history_policy_remembers_drawn_and_not_clipped_actions():
    head = GaussianHead(1, low=-0.1, high=0.1)
    policy = randomise(RecurrentPolicy(1, head, 3, observe_actions=True), 0, 2.0)
    action, state = policy.predict(np.full((50, 1), 1.0, np.float32))
    assert abs(action).max() <= 0.1 < abs(state[:, -1]).max()


# Gradients.


@every_single_kind
def test_action_history_policy_gradient_matches_finite_differences(kind):
    policy = randomise(KINDS[kind](3, CategoricalHead(3)), 0, 0.7).double()
    trajectories = with_expert_steps(random_trajectories(t=5))
    costs = random_costs(trajectories)
    theta = flat(policy)
    epsilon = 1e-5
    actual = gradient(policy, all_actions_loss, trajectories, costs)
    generator = np.random.default_rng(0)
    for _ in range(5):
        direction = generator.normal(size=len(theta))
        ends = []
        for sign in (1, -1):
            vector_to_parameters(torch.from_numpy(theta + sign * epsilon * direction), policy.parameters())
            ends.append(all_actions_loss(policy, trajectories, costs).item())
        vector_to_parameters(torch.from_numpy(theta), policy.parameters())
        assert (ends[0] - ends[1]) / (2 * epsilon) == pytest.approx(actual @ direction, rel=1e-6, abs=1e-9)


@every_single_kind
@pytest.mark.parametrize("vectors", [False, True])
def test_action_history_policy_scores_match_autograd_per_trajectory(kind, vectors):
    """Includes the compiled loop of the LSTM, which has its own backward pass."""
    policy = randomise(KINDS[kind](3, make_scaled_head() if vectors else CategoricalHead(3)), 0, 0.7)
    trajectories = with_expert_steps(random_trajectories(t=5, dtype=np.float32))
    trajectories = with_vectors(trajectories, 2) if vectors else trajectories
    seen = policy.inputs(trajectories.observations, trajectories.actions)
    arrays = map(torch.from_numpy, (trajectories.actions, trajectories.mask, trajectories.by_learner))
    expected = compute_scores_per_trajectory(policy, seen, *arrays, None)
    scores = compute_trajectory_scores(policy, trajectories) * trajectories.horizon * trajectories.count**0.5
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-5)


@every_single_kind
def test_action_history_policy_gradient_matches_enumeration_of_histories(kind):
    """Σ_τ ρ(τ) C(τ) ∇ log ρ(τ) over all 27 histories is ∇ Σ_τ ρ(τ) C(τ), with ρ from single steps of the actor."""
    length = 3
    actions = 3
    every = np.array(list(product(range(actions), repeat=length)))
    seen = np.broadcast_to(np.float32([[0.4], [-1.0], [0.7]]), (len(every), length, 1)).copy()
    total = np.random.default_rng(0).normal(size=len(every))  # C(τ)
    policy = randomise(KINDS[kind](1, CategoricalHead(actions)), 0, 0.7)

    def likelihoods():
        actor = policy.actor()
        log_rho = np.zeros(len(every))
        memory = actor.memory(len(every))
        for t in range(length):
            logits, memory = actor.parameters(seen[:, t], memory)
            log_pi = logits - np.logaddexp.reduce(logits.astype(float), axis=1, keepdims=True)
            log_rho += log_pi[np.arange(len(every)), every[:, t]]
            memory = actor.remember(memory, every[:, t])
        return np.exp(log_rho)

    rho = likelihoods()
    theta = flat(policy)
    all_own = torch.ones(len(every), length, dtype=torch.bool)
    assert rho.sum() == pytest.approx(1.0, abs=1e-5)
    rows = policy.compute_scores(policy.inputs(seen, every), torch.from_numpy(every), all_own, all_own)
    actual = (rho * total) @ rows.double().numpy()
    epsilon = 1e-2
    generator = np.random.default_rng(1)
    for _ in range(5):
        direction = generator.normal(size=len(theta)).astype(np.float32)
        ends = []
        direction /= np.linalg.norm(direction)
        for sign in (1, -1):
            vector_to_parameters(torch.from_numpy(theta + sign * epsilon * direction), policy.parameters())
            ends.append(likelihoods() @ total)
        vector_to_parameters(torch.from_numpy(theta), policy.parameters())
        assert (ends[0] - ends[1]) / (2 * epsilon) == pytest.approx(actual @ direction, abs=3e-4)
    assert np.abs(actual).max() > 0.01


# Benefit of the previous actions.


@dataclass(frozen=True)
class Alternate:
    """State [n, 2] int64: the previous action, or -1, and the time. Repeating it costs 1; observations are constant."""

    horizon: int = 6
    name: str = "alternate"
    action_space = Discrete(2)
    observation_space = Box(0.0, 1.0, (1,), np.float32)

    def reset(self, seeds):
        return np.tile([-1, 0], (len(seeds), 1))

    def observe(self, state):
        return np.ones((len(state), 1), np.float32)

    def step(self, state, action):
        following = np.stack([action, state[:, 1] + 1], axis=1)
        return following, (action == state[:, 0]).astype(np.float64), following[:, 1] == self.horizon


@dataclass(frozen=True)
class Alternating:
    """Expert that never repeats its action, so that one repetition costs exactly 1."""

    name: str = "alternating"

    def q(self, states):
        return (np.arange(2) == states[:, :1]).astype(np.float32)

    def act(self, states, t):
        return self.q(states).argmin(axis=1)


UPDATES = {
    "regular": lambda: RegularUpdate(0.05),
    "natural": lambda: NaturalUpdate(delta_kl=0.03, damping=1.0),
    "exponentiated": ExponentiatedUpdate,
}
EPISODES = np.arange(200, dtype=np.uint64)


def train_policy(policy, update, alpha=0.0):
    learner = Learner(policy, UPDATES[update]())
    problem = Alternate(), Alternating(), AdvantageOracle(QStarOracle(Alternating()))
    loop = aggrevated(learner, *problem, all_actions_loss, k=20, alpha=lambda n: alpha, validation_episodes=50)
    for _, step in zip(range(100), loop, strict=False):
        if step.current_return > -0.05:
            break
    return learner.policy


def make_window_policy(observe_actions):
    return WindowPolicy(1, CategoricalHead(2), (8,), torch.Generator().manual_seed(0), 1, observe_actions)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_action_history_window_policy_learns_not_to_repeat_its_actions(update, alpha):
    returns, _ = evaluate_returns(train_policy(make_window_policy(True), update, alpha), Alternate(), EPISODES)
    assert returns.mean() > -0.2


def test_action_history_recurrent_policy_learns_not_to_repeat_its_actions():
    policy = RecurrentPolicy(1, CategoricalHead(2), 8, "gru", torch.Generator().manual_seed(0), observe_actions=True)
    assert evaluate_returns(train_policy(policy, "natural"), Alternate(), EPISODES)[0].mean() > -0.2


@pytest.mark.parametrize("update", UPDATES)
def test_window_policy_without_action_history_cannot_avoid_repetition(update):
    """All observations are equal: with probability p for one action, p² + (1 − p)² ≥ 1/2 of five steps repeat."""
    returns, _ = evaluate_returns(train_policy(make_window_policy(False), update), Alternate(), EPISODES)
    assert returns.mean() < -2.5 + 4 * 1.2 / len(EPISODES) ** 0.5


def test_lols_oracle_rollout_remembers_the_action_it_began_with():
    """LOLS tries actions that the learner would not have taken, and then continues with the learner."""
    policy = WindowPolicy(1, CategoricalHead(2), (), width=1, observe_actions=True)
    with torch.no_grad():
        policy.inner.network[0].weight.copy_(torch.tensor([[0.0, -50.0, 0.0], [0.0, 0.0, -50.0]]))
    trajectories = roll_in(Alternate(), RollInPolicy(None, policy.actor()), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 10))
    costs = LolsOracle(Alternate(), Alternating(), 0.0, advantage=False)(trajectories, policy)
    np.testing.assert_array_equal(costs.values, np.arange(2) == trajectories.states[..., :1])


# Files.


@every_kind
def test_action_history_policy_round_trips_through_a_file(kind, tmp_path):
    policy, trajectories, _ = record_roll_in(kind, "finite", 0.0)
    policy.save(tmp_path / "p.safetensors")
    loaded = load_policy(tmp_path / "p.safetensors")
    assert (
        loaded.observe_actions
        and loaded.architecture() == policy.architecture()
        and loaded.architecture()["observations"] == 4
    )
    simulator = PROBLEMS["finite"][0]
    episode_seeds = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 20)
    np.testing.assert_array_equal(
        roll_in(simulator, RollInPolicy(None, loaded.actor()), episode_seeds).actions, trajectories.actions
    )


def test_policy_architecture_omits_observe_actions_when_unused():
    for policy in (RecurrentPolicy(2, CategoricalHead(2)), WindowPolicy(2, CategoricalHead(2))):
        assert "observe_actions" not in policy.architecture()


@every_kind
def test_build_onnx_model_refuses_action_history_policies(kind):
    with pytest.raises(UsageError, match="sees its previous actions cannot be written as ONNX"):
        build_onnx_model(KINDS[kind](4, CategoricalHead(2)), {})
