"""Action masks in every part of the algorithm, on a corridor with walls and a door whose values are known."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.core.errors import UserCodeError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.fisher import compute_trajectory_scores
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.oracles.zero_one import ZeroOneOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.updates.follow_the_leader import FollowTheLeaderUpdate
from aggrevated.updates.natural import NaturalUpdate
from aggrevated.updates.regular import RegularUpdate
from aggrevated.validation import evaluate_returns
from helpers.tiny_mdp import flat, gradient, randomise

LEGAL = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 0, 1]], bool)  # [s, a]: left, middle, right
NEXT = np.array([[-9, 0, 1], [0, -9, 2], [1, 3, -9], [2, -9, 4]])  # in state 2 the middle action goes through the door
TRAP = -100.0  # Q of the expert for illegal actions
Q_STAR = np.array([[TRAP, 5, 4], [5, TRAP, 3], [4, 2, TRAP], [3, TRAP, 1]], np.float32)
A_STAR = np.array([[TRAP - 4, 1, 0], [2, TRAP - 3, 0], [2, 0, TRAP - 2], [2, TRAP - 1, 0]], np.float32)
EXPERT = np.array([2, 2, 1, 2])


@dataclass(frozen=True)
class Corridor:
    """Simulator with state [n, 1] int64, the position; 4 is the goal. A step costs 1; a step into a wall raises."""

    horizon: int = 12
    name: str = "corridor"
    action_space = Discrete(3)
    observation_space = Box(0.0, 1.0, (4,), np.float32)

    def reset(self, seeds):
        return np.array([[int(seed) % 4] for seed in seeds])

    def observe(self, state):
        return np.eye(4, dtype=np.float32)[state[:, 0]]

    def action_mask(self, state):
        return LEGAL[state[:, 0]]

    def step(self, state, action):
        assert LEGAL[state[:, 0], action].all(), "an illegal action was taken"
        following = NEXT[state[:, 0], action]
        done = following == 4
        return np.where(done, 0, following)[:, None], np.ones(len(state)), done


@dataclass(frozen=True)
class CorridorExpert:
    name: str = "corridor-expert"

    def q(self, states):
        return Q_STAR[states[:, 0]]

    def act(self, states, t):
        return EXPERT[states[:, 0]]


POLICIES = {
    "feed-forward": lambda: FeedForwardPolicy(4, CategoricalHead(3), (8,), torch.Generator().manual_seed(0)),
    "window": lambda: WindowPolicy(4, CategoricalHead(3), (8,), torch.Generator().manual_seed(0), width=2),
    "lstm": lambda: RecurrentPolicy(4, CategoricalHead(3), 6, "lstm", torch.Generator().manual_seed(0)),
    "gru": lambda: RecurrentPolicy(4, CategoricalHead(3), 6, "gru", torch.Generator().manual_seed(0)),
}
every_policy = pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)
UPDATES = {
    "natural": lambda: NaturalUpdate(delta_kl=3e-3, damping=1.0),
    "regular": lambda: RegularUpdate(0.05),
    "follow the leader": lambda: FollowTheLeaderUpdate(0.03, steps=30),
}
every_update = pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)


def corridor_roll_in(policy, alpha=0.0, k=40, n=1, deterministic=False):
    mixture = RollInPolicy(CorridorExpert(), policy.actor(), alpha)
    return roll_in(Corridor(), mixture, derive_seeds(0, SeedPurpose.ROLL_IN, n, k), deterministic)


@every_policy
@pytest.mark.parametrize(("alpha", "deterministic"), [(0.0, False), (0.4, False), (0.0, True), (1.0, False)])
def test_roll_in_records_action_masks_and_takes_legal_actions(make, alpha, deterministic):
    """The simulator raises on an illegal action, and the policy has large random weights."""
    found = corridor_roll_in(randomise(make(), 1, scale=2.0), alpha, deterministic=deterministic)
    assert found.action_mask.shape == (*found.mask.shape, 3) and found.action_mask.dtype == bool
    np.testing.assert_array_equal(found.action_mask[found.mask], LEGAL[found.states[found.mask][:, 0]])
    assert not found.action_mask[~found.mask].any()
    assert alpha == 0.0 or not found.mask.all()  # there is padding; without an expert some episodes never end
    assert np.take_along_axis(found.action_mask, found.actions[..., None], axis=2)[found.mask].all()


def test_simulator_without_action_mask_raises_on_illegal_action():
    class MasklessCorridor(Corridor):
        action_mask = None

    policy = randomise(POLICIES["feed-forward"](), 1, scale=2.0)
    with pytest.raises(UserCodeError, match=r"(?s)corridor raised AssertionError: an illegal action.*fix its step"):
        roll_in(MasklessCorridor(), RollInPolicy(None, policy.actor()), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 40))


def test_roll_in_samples_legal_actions_with_masked_probabilities():
    """2,000 first steps: at each position the share of each action is within 4 standard deviations."""
    policy = randomise(POLICIES["feed-forward"](), 1, scale=0.5)
    found = corridor_roll_in(policy, k=2000)
    with torch.no_grad():
        observations = torch.eye(4)[None]
        legal = torch.from_numpy(LEGAL)[None]
        pi = policy.distribution(observations, torch.ones(1, 4), legal).probs[0].numpy()
    assert not pi[~LEGAL].any()
    for s in range(4):
        actions = found.actions[found.states[:, 0, 0] == s, 0]
        shares = np.bincount(actions, minlength=3) / len(actions)
        assert (np.abs(shares - pi[s]) <= 4 * np.sqrt(pi[s] * (1 - pi[s]) / len(actions))).all()


def test_advantage_oracle_minimizes_over_legal_actions():
    """By hand: V* = (4, 3, 2, 1), so the advantage of π* is 0 and that of other legal actions is 1 or 2."""
    found = corridor_roll_in(POLICIES["feed-forward"](), alpha=0.3)
    costs = AdvantageOracle(QStarOracle(CorridorExpert()))(found)
    np.testing.assert_array_equal(costs.values[found.mask], A_STAR[found.states[found.mask][:, 0]])
    assert not costs.values[~found.mask].any()
    assert (costs.values[found.action_mask] >= 0).all()
    taken = TakenActionOracle(AdvantageOracle(QStarOracle(CorridorExpert())))(found)
    at = found.states[..., 0], found.actions
    np.testing.assert_array_equal(taken.values[found.mask], A_STAR[at][found.mask])


@every_policy
def test_best_action_nll_loss_uses_cheapest_legal_action(make):
    """The loss is −log π(π*(s)) over legal actions, for Q* with cheap illegal actions and for DAgger's 0/1 costs."""
    policy = randomise(make(), 1, scale=0.5)
    found = corridor_roll_in(policy, alpha=0.3)
    with torch.no_grad():
        observations, mask = map(torch.from_numpy, (found.observations, found.mask))
        logits = policy.distribution(observations, mask).logits.numpy()
    logits = np.where(found.action_mask, logits, -np.inf)[found.mask]
    log_pi = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    chosen = EXPERT[found.states[found.mask][:, 0]]
    expected = -log_pi[np.arange(len(chosen)), chosen].sum() / (found.horizon * found.count)
    for oracle in (
        QStarOracle(CorridorExpert()),
        AdvantageOracle(QStarOracle(CorridorExpert())),
        ZeroOneOracle(CorridorExpert(), Discrete(3)),
    ):
        assert best_action_nll_loss(policy, found, oracle(found)).item() == pytest.approx(expected, rel=1e-5)


@every_policy
def test_losses_ignore_costs_of_illegal_actions(make):
    """Costs of illegal actions change neither the loss nor its gradient."""
    policy = randomise(make(), 1, scale=0.5)
    found = corridor_roll_in(policy)
    costs = QStarOracle(CorridorExpert())(found)
    other = ZeroOneOracle(CorridorExpert(), Discrete(3))(found)
    changed = type(costs)(np.where(found.action_mask, costs.values, np.float32(7.0)), costs.weight)
    for loss in (all_actions_loss, best_action_nll_loss):
        assert loss(policy, found, costs).item() == loss(policy, found, changed).item()
        np.testing.assert_array_equal(gradient(policy, loss, found, costs), gradient(policy, loss, found, changed))
    for loss, numbers in ((all_actions_loss, costs), (best_action_nll_loss, other)):
        assert np.isfinite(gradient(policy, loss, found, numbers)).all()


def test_logits_of_illegal_actions_have_no_gradient_and_no_score():
    """In a linear policy on a one-hot position, W[a, s] has a gradient only where a is legal in s."""
    policy = randomise(FeedForwardPolicy(4, CategoricalHead(3), hidden=()), 1, scale=0.5)
    found = corridor_roll_in(policy)
    rows = compute_trajectory_scores(policy, found)
    of_the_loss = [
        gradient(policy, all_actions_loss, found, QStarOracle(CorridorExpert())(found)),
        gradient(
            policy, taken_action_loss, found, TakenActionOracle(AdvantageOracle(QStarOracle(CorridorExpert())))(found)
        ),
        *rows.numpy(),
    ]
    for vector in of_the_loss:
        weights = vector[:12].reshape(3, 4).T  # [s, a]
        assert not weights[~LEGAL].any()
    assert (rows[:, :12].abs().sum(dim=0).reshape(3, 4).T.numpy()[LEGAL] > 0).all()


def test_follow_the_leader_stores_and_restores_action_masks():
    update = FollowTheLeaderUpdate(steps=1)
    policy = POLICIES["feed-forward"]()
    batches = [
        corridor_roll_in(policy, 0.5, k=3, n=1),
        corridor_roll_in(policy, k=20, n=2),
        corridor_roll_in(policy, 1.0, k=5, n=3),
    ]
    lengths = [batch.mask.shape[1] for batch in batches]
    assert len(set(lengths)) == 3
    for batch in batches:
        update(policy, all_actions_loss, batch, QStarOracle(CorridorExpert())(batch))
    state = {name: tensor.clone() for name, tensor in update.state().items()}
    assert state["action_mask"].shape == (28, max(lengths), 3) and state["action_mask"].dtype == torch.bool
    for rows, batch in zip((slice(0, 3), slice(3, 23), slice(23, 28)), batches, strict=True):
        width = batch.mask.shape[1]
        np.testing.assert_array_equal(state["action_mask"][rows, :width], batch.action_mask)
        assert not state["action_mask"][rows, width:].any()
    restored = FollowTheLeaderUpdate(steps=1)
    restored.restore(state)
    assert torch.equal(restored.state()["action_mask"], state["action_mask"])


@every_policy
@every_update
@pytest.mark.parametrize("loss", [all_actions_loss, best_action_nll_loss])
def test_updates_with_action_masks_lower_loss(make, update, loss):
    policy = make()
    update = update()
    found = corridor_roll_in(policy)
    costs = AdvantageOracle(QStarOracle(CorridorExpert()))(found)
    before = loss(policy, found, costs).item()
    for _ in range(3):
        step = update(policy, loss, found, costs)
        assert step.step_halvings == 0 and 0 < step.kl < np.inf
    assert np.isfinite(flat(policy)).all()
    assert loss(policy, found, costs).item() < before


@pytest.mark.parametrize("name", ["feed-forward", "lstm"])
@every_update
def test_algorithm_1_with_action_masks_learns_shortest_path(name, update):
    """From positions 0 to 3 the learned policy takes 4, 3, 2 and 1 steps, and no step into a wall."""
    learner = Learner(POLICIES[name](), update())
    oracle = AdvantageOracle(QStarOracle(CorridorExpert()))
    loop = aggrevated(learner, Corridor(), CorridorExpert(), oracle, all_actions_loss, k=20, validation_episodes=20)
    for _ in range(25):
        iteration = next(loop)
        if iteration.best_return > -2.6:
            break
    learner.policy.load_state_dict(learner.best.weights)
    returns, _ = evaluate_returns(learner.policy, Corridor(), np.arange(4, dtype=np.uint64), deterministic=True)
    np.testing.assert_array_equal(returns, [-4, -3, -2, -1])


def test_roll_in_without_action_mask_records_no_masks():
    class OpenCorridor(Corridor):
        action_mask = None

        def step(self, state, action):
            following = np.maximum(NEXT[state[:, 0], action], 0)
            return np.where(following == 4, 0, following)[:, None], np.ones(len(state)), following == 4

    found = roll_in(
        OpenCorridor(), RollInPolicy(None, POLICIES["lstm"]().actor()), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 5)
    )
    assert found.action_mask.shape == (*found.mask.shape, 0)
