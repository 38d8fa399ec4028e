"""Q* by rollouts: against exact Q* and gradients on the tiny MDP, elsewhere against single rollouts."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from aggrevated.collection import check_any_cost_finite
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles.monte_carlo import MonteCarloOracle, query_weights, rollout_expert_cost, sample_query_steps
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators.cartpole import CartPole
from helpers.tiny_mdp import (
    Q_STAR,
    Home,
    Lucky,
    TinyExpert,
    TinyMdp,
    Walk,
    every_trajectory,
    exact_gradient,
    gradient,
    linear_policy,
    probabilities,
    random_costs,
    randomise,
    with_expert_steps,
)

TINY = MonteCarloOracle(TinyMdp(), TinyExpert())
V_STAR = Q_STAR.min(axis=2)
# number of independent estimates of the gradient, and trajectories of each
ESTIMATES = 300
BATCH = 40


@dataclass(frozen=True)
class ClockExpert:
    """Suboptimal expert that depends on the time alone and checks it against the state."""

    name: str = "clock"

    def act(self, states, t):
        assert (states[:, 1] == t).all(), (states[:, 1], t)
        return np.full(len(states), (2 * t + 1) % 3)


@dataclass(frozen=True)
class SignExpert:
    """Suboptimal expert that depends on the signs of the state and on the time."""

    name: str = "swinger"

    def act(self, states, t):
        return ((states > 0).sum(axis=1) + t) % 2


@dataclass(frozen=True)
class BrittleMdp(Lucky):
    """Tiny MDP in which action 2 in state 1 gives a cost that is not finite if the next coin is 0."""

    def step(self, state, action):
        following, cost, done = super().step(state, action)
        broken = (state[:, 0] == 1) & (action == 2) & (state[:, 2] % 2 == 0)
        return following, np.where(broken, np.nan, cost), done


def single_rollout(simulator, expert, state, t, first=None):
    """Return (cost, steps) of a single rollout, step by step."""
    total = 0.0
    steps = 0
    state = state[None]
    done = np.array([False])
    while t < simulator.horizon and not done[0]:
        action = expert.act(state, t) if first is None else first[None]
        state, cost, done = simulator.step(state, action)
        total = total + cost[0]
        steps = steps + 1
        t = t + 1
        first = None
    return total, steps


def test_monte_carlo_oracle_matches_hand_computed_costs(two_trajectories):
    """Q: 0 + 1 + 1 and 4; 0 + 0 + 1, 0 + 1 and 2. V: 0 + 1 + 1 and 1 + 1; 0 + 0 + 1, 0 + 1 and 0."""
    costs = MonteCarloOracle(TinyMdp(), TinyExpert(), advantage=False)(two_trajectories)
    np.testing.assert_array_equal(costs.values, [[2, 4, 0], [1, 1, 2]])
    np.testing.assert_array_equal(costs.weight, [[1, 1, 0], [1, 1, 1]])
    assert (costs.queries, costs.simulator_steps, costs.diverged) == (5, (3 + 1) + (3 + 2 + 1), 0)
    assert costs.values.dtype == costs.weight.dtype == np.float32 and not costs.has_all_actions
    costs = TINY(two_trajectories)
    np.testing.assert_array_equal(costs.values, [[0, 2, 0], [0, 0, 2]])
    assert (costs.queries, costs.simulator_steps) == (5, 10 + (3 + 2) + (3 + 2 + 1))


def test_monte_carlo_oracle_counts_steps_of_every_rollout(two_trajectories):
    costs = MonteCarloOracle(Lucky(), TinyExpert(), rollouts=2)(two_trajectories)
    assert (costs.queries, costs.simulator_steps) == (5, 2 * 21)


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_monte_carlo_oracle_weights_sampled_query_steps(two_trajectories, steps):
    costs = MonteCarloOracle(TinyMdp(), TinyExpert(), steps)(two_trajectories)
    queried = costs.weight > 0
    assert queried.sum(axis=1).tolist() == [min(steps, 2), min(steps, 3)]
    assert (costs.weight.sum(axis=1) == [2, 3]).all() and costs.queries == queried.sum()
    whole = TINY(two_trajectories).values
    np.testing.assert_array_equal(costs.values, whole * queried)


def test_sample_query_steps_is_uniform_over_steps(two_trajectories):
    """10,000 samples of 1 of 3 steps and 1 of 2: each frequency is within 4 standard deviations."""
    many = replace(two_trajectories.take(np.arange(20_000) % 2), seeds=derive_seeds(0, SeedPurpose.ROLL_IN, 1, 20_000))
    chosen = sample_query_steps(many, 1)
    assert (chosen.sum(axis=1) == 1).all()
    shares = np.stack([chosen[::2].mean(axis=0), chosen[1::2].mean(axis=0)])
    np.testing.assert_allclose(shares, [[1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]], atol=4 * 0.5 / 100)


def test_monte_carlo_oracle_does_not_query_expert_steps():
    trajectories = with_expert_steps(every_trajectory(linear_policy()).trajectories, 0.5)
    assert trajectories.by_expert.any()
    by_learner = trajectories.by_learner
    np.testing.assert_array_equal(TINY(trajectories).weight, by_learner)
    costs = MonteCarloOracle(TinyMdp(), TinyExpert(), 1)(trajectories)
    np.testing.assert_array_equal(costs.weight.sum(axis=1), by_learner.sum(axis=1))
    assert not costs.weight[~by_learner].any() and costs.queries == by_learner.any(axis=1).sum()


@pytest.mark.parametrize("advantage", [False, True])
def test_monte_carlo_oracle_mean_is_q_star(advantage):
    """Enumerates every trajectory: E[estimate | s_t, a_t] = Q*_t(s, a), less V*_t(s) for the advantage."""
    every = every_trajectory(linear_policy())
    values = MonteCarloOracle(TinyMdp(), TinyExpert(), advantage=advantage)(every.trajectories).values
    expected = Q_STAR - V_STAR[..., None] if advantage else Q_STAR
    s = every.trajectories.states[..., 0]
    a = every.trajectories.actions
    for t in range(3):
        for i in range(3):
            for j in range(3):
                weight = every.probability * ((s == i) & (a == j) & every.trajectories.mask)[:, t]
                assert weight @ values[:, t] / weight.sum() == pytest.approx(expected[t, i, j], abs=1e-6)


@pytest.mark.parametrize("advantage", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_monte_carlo_gradient_expectation_is_the_exact_gradient(advantage, alpha):
    policy = linear_policy()
    oracle = MonteCarloOracle(TinyMdp(), TinyExpert(), advantage=advantage)
    mean = every_trajectory(policy, alpha).expectation(
        lambda tau: gradient(policy, taken_action_loss, tau, oracle(tau))
    )
    np.testing.assert_allclose(mean, exact_gradient(probabilities(policy), alpha), atol=1e-7)


@pytest.fixture(scope="module", params=[0.0, 0.3], ids=lambda alpha: f"mixing {alpha}")
def many(request) -> Trajectories:
    """Return the trajectories for all estimates."""
    acting = RollInPolicy(TinyExpert(), linear_policy().float().actor(), request.param)
    return roll_in(TinyMdp(), acting, derive_seeds(5, SeedPurpose.ROLL_IN, 1, ESTIMATES * BATCH))


def estimates(trajectories, oracle):
    """Return independent estimates of the gradient, [ESTIMATES, d]."""
    policy = linear_policy().float()
    parts = np.arange(trajectories.count).reshape(ESTIMATES, BATCH)
    batches = [trajectories.take(part) for part in parts]
    return np.stack([gradient(policy, taken_action_loss, batch, oracle(batch)) for batch in batches])


@pytest.mark.parametrize("rollouts", [1, 2])
@pytest.mark.parametrize("advantage", [False, True], ids=["Q", "A"])
@pytest.mark.parametrize("steps", [1, 2])
def test_monte_carlo_gradient_is_unbiased_when_steps_are_sampled(many, steps, advantage, rollouts):
    """Each component is within three standard errors, which are small compared with the gradient."""
    actual = estimates(many, MonteCarloOracle(Lucky(), TinyExpert(), steps, rollouts, advantage))
    exact = exact_gradient(probabilities(linear_policy()), many.alpha)
    error = actual.std(axis=0, ddof=1) / np.sqrt(ESTIMATES)
    assert (np.abs(actual.mean(axis=0) - exact) < 3 * error).all(), (actual.mean(axis=0) - exact) / error
    assert (np.abs(exact) > 6 * error).sum() >= 4, np.abs(exact) / error


def test_monte_carlo_advantage_lowers_gradient_variance(many):
    """Measured: less than half of the variance is left."""
    variance = {
        advantage: estimates(many, MonteCarloOracle(TinyMdp(), TinyExpert(), 1, advantage=advantage)).var(axis=0).sum()
        for advantage in (False, True)
    }
    assert variance[True] < 0.5 * variance[False]


def test_monte_carlo_rollouts_use_different_seeds_and_lower_variance():
    """The first rollout uses the coins of the state and costs 1 + 0 + 1; the mean of the others is Q* = 2.25."""
    state = np.array([[[0, 0, 0]]])
    ones = np.ones((1, 1), bool)
    once = Trajectories(state, np.eye(3)[None, :1], np.array([[0]]), ones * 1.0, ones, ~ones, horizon=3)
    many = replace(once.take(np.zeros(400, int)), seeds=derive_seeds(0, SeedPurpose.ROLL_IN, 1, 400))
    values = {
        rollouts: MonteCarloOracle(Lucky(), TinyExpert(), rollouts=rollouts, advantage=False)(many).values[:, 0]
        for rollouts in (1, 2, 9)
    }
    assert np.unique(values[1]).tolist() == [2]
    assert values[9].mean() == pytest.approx((2 + 8 * Q_STAR[0, 0, 0]) / 9, abs=4 * float(values[9].std()) / 20)
    assert 0 < values[9].std() < values[2].std()
    for rollouts in (2, 9):  # coins depend on the trajectory's seed, not on its position in the batch
        turned = MonteCarloOracle(Lucky(), TinyExpert(), rollouts=rollouts, advantage=False)(
            many.take(np.arange(400)[::-1])
        )
        np.testing.assert_array_equal(turned.values[::-1, 0], values[rollouts])


@pytest.mark.parametrize("rollouts", [1, 5])
def test_monte_carlo_advantage_of_expert_action_is_exactly_zero(rollouts):
    """Both rollouts of a pair get the same coins: their difference is exactly 0, not only on average."""
    every = every_trajectory(linear_policy()).trajectories
    expert_actions = TinyExpert().act(every.states.reshape(-1, 3), 0).reshape(every.mask.shape)
    values = MonteCarloOracle(Lucky(), TinyExpert(), rollouts=rollouts)(every).values
    assert not values[(every.actions == expert_actions) & every.mask].any()
    assert values[(every.actions != expert_actions) & every.mask].any()


def test_monte_carlo_rollouts_use_a_different_seed_at_every_step():
    """One state at every time of an episode, queried twice: second rollouts differ between steps."""
    states = np.zeros((50, 6, 3), np.int64)
    states[..., 1] = np.arange(6)
    ones = np.ones((50, 6), bool)
    same = Trajectories(states, np.eye(3)[states[..., 0]], np.zeros((50, 6), int), ones * 1.0, ones, ~ones, horizon=8)
    drawn = []

    class RecordingMdp(Lucky):
        def reseed(self, state, seeds):
            drawn.append(seeds)
            return super().reseed(state, seeds)

    MonteCarloOracle(RecordingMdp(horizon=8), TinyExpert(), rollouts=3)(same)
    assert len(drawn) == 2
    assert len(np.unique(np.concatenate(drawn))) == 2 * 50 * 6


def test_monte_carlo_oracle_rejects_repeated_rollouts_without_reseeding(two_trajectories):
    sentence = (
        "the simulator tiny is deterministic, so a second roll-out would repeat the first; use one roll-out per query"
    )
    with pytest.raises(UsageError) as error:
        MonteCarloOracle(TinyMdp(), TinyExpert(), rollouts=2)(two_trajectories)
    assert str(error.value) == sentence


def test_monte_carlo_oracle_passes_correct_time_to_expert():
    """Rollouts start at different times, which the expert checks; costs equal those of single rollouts."""
    trajectories = every_trajectory(linear_policy()).trajectories
    simulator = TinyMdp()
    expert = ClockExpert()
    steps = 0
    costs = MonteCarloOracle(simulator, expert)(trajectories)
    for k, t in zip(*np.nonzero(trajectories.mask), strict=True):
        state = trajectories.states[k, t]
        action = trajectories.actions[k, t]
        (q, taken) = single_rollout(simulator, expert, state, t, action)
        (v, followed) = single_rollout(simulator, expert, state, t)
        assert costs.values[k, t] == q - v
        steps += taken + followed
    assert costs.simulator_steps == steps


def test_monte_carlo_oracle_on_cartpole_matches_single_rollouts():
    """Rollouts end at many different times, some before others have started."""
    simulator = CartPole(horizon=40)
    expert = SignExpert()
    policy = randomise(FeedForwardPolicy(4, CategoricalHead(2)), 1, 0.3)
    trajectories = roll_in(simulator, RollInPolicy(None, policy.actor()), np.arange(8, dtype=np.uint64))
    costs = MonteCarloOracle(simulator, expert, advantage=False)(trajectories)
    steps = 0
    for k, t in zip(*np.nonzero(trajectories.mask), strict=True):
        q, taken = single_rollout(simulator, expert, trajectories.states[k, t], t, trajectories.actions[k, t])
        assert costs.values[k, t] == q
        steps += taken
    assert costs.simulator_steps == steps and not trajectories.mask.all()
    assert len(np.unique(costs.values)) > 10


def test_monte_carlo_oracle_supports_continuous_actions():
    """The expert returns from x in one step: the cost of a detour to y is x² + y², without one x²."""
    policy = randomise(FeedForwardPolicy(1, GaussianHead(2)), 1, 0.3)
    trajectories = roll_in(Walk(horizon=5), RollInPolicy(None, policy.actor()), np.arange(7, dtype=np.uint64))
    costs = MonteCarloOracle(Walk(horizon=5), Home())(trajectories)
    x = trajectories.states[..., 0]
    y = x + trajectories.actions @ np.array([1.0, 2.0])
    inside = (np.abs(y) <= 3) & (np.arange(x.shape[1]) < 4)  # it ended neither there nor at the horizon
    np.testing.assert_allclose(costs.values, np.where(inside, y**2, 0.0) * trajectories.mask, atol=1e-5)
    assert (costs.values > 0.1).any()


@pytest.mark.parametrize("steps", [None, 1, 2])
@pytest.mark.parametrize("rollouts", [1, 3])
def test_monte_carlo_oracle_is_independent_of_batch_order_and_size(steps, rollouts):
    acting = RollInPolicy(TinyExpert(), linear_policy().float().actor(), 0.3)
    trajectories = roll_in(TinyMdp(), acting, derive_seeds(0, SeedPurpose.ROLL_IN, 1, 40))
    oracle = MonteCarloOracle(Lucky(), ClockExpert(), steps, rollouts)
    whole = oracle(trajectories)
    for subset in (np.random.default_rng(0).permutation(40), np.arange(13), np.array([7])):
        part = oracle(trajectories.take(subset))
        np.testing.assert_array_equal(part.values, whole.values[subset])
        np.testing.assert_array_equal(part.weight, whole.weight[subset])
    parts = [oracle(trajectories.take(part)) for part in np.split(np.arange(40), [1, 4, 30])]
    for name in ("queries", "simulator_steps"):
        assert sum(getattr(part_costs, name) for part_costs in parts) == getattr(whole, name)


def test_monte_carlo_oracle_does_not_modify_states_or_actions(two_trajectories):
    before = two_trajectories.states.copy(), two_trajectories.actions.copy()
    MonteCarloOracle(Lucky(), TinyExpert(), rollouts=2)(two_trajectories)
    np.testing.assert_array_equal(two_trajectories.states, before[0])
    np.testing.assert_array_equal(two_trajectories.actions, before[1])


def test_monte_carlo_oracle_does_not_modify_arrays_of_the_expert():
    """The expert returns a read-only view of its table."""

    class ReadOnlyExpert:
        name = "stubborn"
        table = np.zeros(999, np.int64)
        table.setflags(write=False)

        def act(self, states, t):
            return self.table[: len(states)]

    trajectories = every_trajectory(linear_policy()).trajectories
    actual = MonteCarloOracle(TinyMdp(), ReadOnlyExpert())(trajectories).values
    assert not actual[trajectories.actions == 0].any() and actual[trajectories.actions != 0].any()


def test_monte_carlo_oracle_moves_weight_of_diverged_rollouts_to_other_steps(two_trajectories):
    """The second step of the first trajectory diverges, so its first step gets twice the weight."""
    costs = MonteCarloOracle(BrittleMdp(), TinyExpert())(two_trajectories)
    np.testing.assert_array_equal(costs.values, [[0, 0, 0], [0, 0, 2]])
    np.testing.assert_array_equal(costs.weight, [[2, 0, 0], [1, 1, 1]])
    assert (costs.queries, costs.diverged) == (5, 1)


def test_monte_carlo_oracle_averages_over_finite_rollouts_only(two_trajectories):
    """In state 1 action 2 costs 4 and ends for any coins; half of the rollouts diverge before."""
    costs = MonteCarloOracle(BrittleMdp(), TinyExpert(), rollouts=9, advantage=False)(two_trajectories)
    assert costs.values[0, 1] == 4.0 and costs.weight[0, 1] == 1.0
    assert 1 <= costs.diverged < 9


def test_query_weights_match_hand_computed_weights():
    """By hand: 3 learner steps, of which 2 and 1 have known costs; the last trajectory has none."""
    mask = np.ones((4, 4), bool)
    by_expert = np.array([[0, 1, 0, 0]] * 4, bool)
    zeros = np.zeros((4, 4))
    trajectories = Trajectories(zeros, zeros, zeros, zeros, mask, by_expert, horizon=4, alpha=0.25)
    known = np.array([[1, 0, 1, 1], [1, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]], bool)
    expected = np.array([[1, 0, 1, 1], [1.5, 0, 0, 1.5], [0, 0, 3, 0], [0, 0, 0, 0]])
    weight, lost = query_weights(trajectories, known)
    np.testing.assert_allclose(weight, expected, rtol=1e-6)
    assert lost == 1


def test_taken_action_loss_averages_over_trajectories_with_known_costs(two_trajectories):
    """The average is over trajectories with known costs, as if the lost trajectory did not exist."""
    policy = linear_policy()
    second = two_trajectories.take(np.array([1]))
    costs = random_costs(two_trajectories, actions=None)
    weight = costs.weight * np.array([[0.0], [1.0]], np.float32)
    lost = replace(costs, weight=weight, lost_trajectories=1)
    without_lost = replace(costs, values=costs.values[1:], weight=costs.weight[1:])
    np.testing.assert_allclose(
        taken_action_loss(policy, two_trajectories, lost).item(),
        taken_action_loss(policy, second, without_lost).item(),
        rtol=1e-6,
    )


def test_check_any_cost_finite_raises_when_every_rollout_diverged(two_trajectories):
    class BrokenMdp(TinyMdp):
        def step(self, state, action):
            following, cost, done = super().step(state, action)
            return following, np.full(len(cost), np.nan), done

    with pytest.raises(DataError, match=r"^every one of 5 rollouts diverged; check the simulator"):
        check_any_cost_finite(MonteCarloOracle(BrokenMdp(), TinyExpert())(two_trajectories))


def test_monte_carlo_oracle_without_queries_takes_no_steps():
    every = every_trajectory(linear_policy(), alpha=1.0).trajectories
    by_expert = every.take(np.flatnonzero(~every.by_learner.any(axis=1)))
    costs = MonteCarloOracle(TinyMdp(), TinyExpert())(by_expert)
    assert (costs.queries, costs.simulator_steps, costs.diverged) == (0, 0, 0)
    assert not costs.weight.any() and not costs.values.any()


def test_rollout_expert_cost_is_zero_from_the_horizon_on():
    total, steps = rollout_expert_cost(TinyMdp(), TinyExpert(), np.zeros((2, 3), int), np.array([3, 3]))
    assert total.tolist() == [0, 0] and steps == 0
