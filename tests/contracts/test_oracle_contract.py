"""The contract of oracles: functions of trajectories that report their queries and return 0 at padded steps."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields
from importlib import import_module
from inspect import isclass
from pkgutil import iter_modules

import numpy as np
import pytest
from gymnasium.spaces import Discrete

import aggrevated.oracles
from aggrevated.oracles import CostToGo, Oracle
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle
from aggrevated.oracles.critic import CriticOracle
from aggrevated.oracles.entropy_bonus import EntropyBonusOracle
from aggrevated.oracles.expert_action import ExpertLabeledOracle
from aggrevated.oracles.loki import LokiOracle
from aggrevated.oracles.lols import LolsOracle
from aggrevated.oracles.monte_carlo import MonteCarloOracle
from aggrevated.oracles.one_step_lookahead import LookaheadOracle
from aggrevated.oracles.q_of_action import PerActionQOracle, StateActionQOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.oracles.truncated_horizon import TruncatedHorizonOracle
from aggrevated.oracles.value_function import ValueFunctionOracle
from aggrevated.oracles.zero_one import ExpertActionOracle, ZeroOneOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import GaussianHead
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories
from helpers.tiny_mdp import Home, Lucky, TinyExpert, Walk, linear_policy, randomise, with_legal

K = 24
LEARNER = linear_policy().float()
SEEDS = np.arange(K, dtype=np.uint64)


class TinyCritic(TinyExpert):
    """Expert of the tiny MDP with V* of its states."""

    discount = 0.9

    def v(self, states):
        return self.q(states).min(axis=1)


class TinyQExpert(TinyExpert):
    """Expert of the tiny MDP with Q* of one action at a time."""

    def q_of(self, states, actions):
        return self.q(states)[np.arange(len(states)), actions]


class WalkQExpert(Home):
    """Expert of the walk with an arbitrary Q."""

    def q_of(self, states, actions):
        return (states[:, 0] + actions @ np.array([1.0, 2.0])) ** 2


def all_steps(trajectories):
    return trajectories.mask


def learner_steps(trajectories):
    return trajectories.by_learner


def learner_steps_before_horizon(trajectories):
    """Return the steps of the learner, except the last one before the horizon."""
    return trajectories.by_learner & (np.arange(trajectories.mask.shape[1]) < trajectories.horizon - 1)


@dataclass(frozen=True)
class Case:
    """An oracle and its expected properties."""

    oracle: Oracle
    expected_steps: Callable[[Trajectories], np.ndarray] = all_steps  # [K, T] bool: steps with a weight
    actions: int | None = 3  # number of known costs per state; None: only the cost of the taken action
    max_queries: int | None = None  # of the expected steps of a trajectory
    needs_an_expert: bool = True
    simulates: bool = False
    is_per_trajectory: bool = True  # whether a trajectory is independent of others in its batch
    vectors: bool = False  # whether actions are continuous

    def query(self, trajectories: Trajectories) -> CostToGo:
        """Return the cost-to-go by a copy of the oracle, which may learn."""
        return deepcopy(self.oracle)(trajectories, LEARNER)


def monte_carlo_case(**settings):
    oracle = MonteCarloOracle(Lucky(), TinyExpert(), **settings)
    return Case(oracle, learner_steps, None, max_queries=settings.get("steps"), simulates=True)


def all_actions_case(**settings):
    oracle = MonteCarloOracle(Lucky(), TinyExpert(), all_actions=True, **settings)
    return Case(oracle, actions=3, max_queries=settings.get("steps"), simulates=True)


def lols_case(beta, actions=3, **settings):
    oracle = LolsOracle(Lucky(), TinyExpert(), beta, all_actions=actions is not None, **settings)
    expected_steps = learner_steps if actions is None else all_steps
    return Case(oracle, expected_steps, actions, max_queries=settings.get("steps"), simulates=True)


Q = QStarOracle(TinyExpert())
CASES = {
    "Q*": Case(Q),
    "A*": Case(AdvantageOracle(Q)),
    "Q* of the action taken": Case(TakenActionOracle(Q), actions=None),
    "A* of the action taken": Case(TakenActionOracle(AdvantageOracle(Q)), actions=None),
    "A* of the action taken, with expert actions": Case(
        ExpertLabeledOracle(TakenActionOracle(AdvantageOracle(Q)), TinyExpert(), Discrete(3)), actions=None
    ),
    "Monte Carlo, all actions": all_actions_case(),
    "Monte Carlo, all actions, two steps, Q*": all_actions_case(steps=2, advantage=False),
    "entropy bonus": Case(EntropyBonusOracle(AdvantageOracle(Q), 0.5)),
    "zero-one": Case(ZeroOneOracle(TinyExpert(), Discrete(3))),
    "expert actions": Case(ExpertActionOracle(Home(), Walk.action_space), actions=None, vectors=True),
    "reward-to-go": Case(RewardToGoOracle(), actions=None, needs_an_expert=False),
    "reward-to-go, advantage": Case(
        AdvantageOracle(RewardToGoOracle()), actions=None, needs_an_expert=False, is_per_trajectory=False
    ),
    "Monte Carlo": monte_carlo_case(),
    "Monte Carlo, Q*": monte_carlo_case(advantage=False),
    "Monte Carlo, two steps": monte_carlo_case(steps=2),
    "Monte Carlo, one step, Q*": monte_carlo_case(steps=1, advantage=False),
    "Monte Carlo, three rollouts": monte_carlo_case(rollouts=3),
    "LOLS": lols_case(0.5),
    "LOLS, Q": lols_case(0.5, advantage=False),
    "LOLS at two steps": lols_case(0.3, steps=2),
    "LOLS of the action taken": lols_case(0.5, None),
    "LOLS of the action taken, one step, Q": lols_case(0.5, None, steps=1, advantage=False),
    "SEARN": lols_case(None),
    "SEARN at one step": lols_case(None, steps=1),
    "value function": Case(ValueFunctionOracle(TinyCritic()), learner_steps_before_horizon, None),
    "value function, Q*": Case(ValueFunctionOracle(TinyCritic(), advantage=False), learner_steps_before_horizon, None),
    "lookahead": Case(LookaheadOracle(Lucky(), TinyCritic()), simulates=True),
    "lookahead, advantage": Case(AdvantageOracle(LookaheadOracle(Lucky(), TinyCritic())), simulates=True),
    "state-action Q": Case(StateActionQOracle(TinyQExpert(), Discrete(3)), learner_steps, None),
    "state-action Q, vectors": Case(
        StateActionQOracle(WalkQExpert(), Walk.action_space), learner_steps, None, vectors=True
    ),
    "state-action Q, vectors, Q*": Case(
        StateActionQOracle(WalkQExpert(), Walk.action_space, advantage=False), learner_steps, None, vectors=True
    ),
    "Q per action": Case(PerActionQOracle(TinyQExpert(), Discrete(3))),
    "truncated after two steps": Case(TruncatedHorizonOracle(TinyCritic(), 2), learner_steps_before_horizon, None),
    "truncated, without a critic": Case(TruncatedHorizonOracle(TinyExpert(), 2), learner_steps_before_horizon, None),
    "truncated after the horizon": Case(
        TruncatedHorizonOracle(TinyCritic(), 9, advantage=False), learner_steps_before_horizon, None
    ),
    "critic": Case(CriticOracle(), actions=None, needs_an_expert=False),
    "LOKI before the switch": Case(LokiOracle(TakenActionOracle(Q), RewardToGoOracle(), switch=1), actions=None),
    "LOKI after the switch": Case(
        LokiOracle(TakenActionOracle(Q), RewardToGoOracle(), 0), actions=None, needs_an_expert=False
    ),
}


def make_batch(vectors: bool, alpha: float) -> Trajectories:
    """Return episodes of different lengths, a fraction `alpha` of their steps taken by the expert."""
    if vectors:
        policy = randomise(FeedForwardPolicy(1, GaussianHead(2)), 1, 0.3)
        return roll_in(Walk(horizon=12), RollInPolicy(Home(), policy.actor(), alpha), SEEDS)
    return roll_in(Lucky(), RollInPolicy(TinyExpert(), LEARNER.actor(), alpha), SEEDS)


BATCHES = {
    "of the learner": lambda vectors: make_batch(vectors, 0.0),
    "mixed": lambda vectors: make_batch(vectors, 0.4),
    "of the expert": lambda vectors: make_batch(vectors, 1.0),
    "with illegal actions": lambda vectors: (
        make_batch(vectors, 0.4) if vectors else with_legal(make_batch(vectors, 0.4))
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request) -> Case:
    return request.param


@pytest.fixture(params=BATCHES.values(), ids=BATCHES)
def trajectories(request, case) -> Trajectories:
    return request.param(case.vectors)


def assert_same(one: CostToGo, other: CostToGo, rows=slice(None)):
    """Assert that arrays equal those of `other` at `rows`, bit for bit."""
    assert one.arrays.keys() == other.arrays.keys()
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name][rows], err_msg=name)


def test_oracle_contract_covers_every_oracle_class():
    """A new oracle needs a case: every class with `__call__` is an oracle, except the protocol."""
    folder = aggrevated.oracles
    modules = [import_module(f"{folder.__name__}.{one.name}") for one in iter_modules(folder.__path__)]
    classes = {kind for module in modules for kind in vars(module).values() if isclass(kind)}
    found = {kind for kind in classes if kind.__module__.startswith(folder.__name__) and "__call__" in vars(kind)}
    assert found - {Oracle} == {type(case.oracle) for case in CASES.values()}


def test_oracle_contract_batches_have_episodes_of_different_lengths():
    for vectors in (False, True):
        lengths = make_batch(vectors, 0.0).mask.sum(axis=1)
        assert lengths.min() < lengths.max()


def test_oracle_returns_declared_shapes_and_types(case, trajectories):
    found = case.query(trajectories)
    shape = trajectories.mask.shape
    assert found.values.shape == (shape if case.actions is None else (*shape, case.actions))
    assert found.has_all_actions == (case.actions is not None) and found.weight.shape == shape
    discrete_arrays = {"expert_actions"} if np.ndim(found.expert_actions) == 2 else set()
    for name, array in found.arrays.items():
        assert array.dtype == (np.int64 if name in discrete_arrays else np.float32) and np.isfinite(array).all(), name
    assert (found.expert_actions is not None) == isinstance(case.oracle, ExpertActionOracle | ExpertLabeledOracle)
    assert found.entropy_bonus == (0.5 if isinstance(case.oracle, EntropyBonusOracle) else 0.0)


def test_oracle_returns_zeros_at_padded_steps(case, trajectories):
    found = case.query(trajectories)
    for name, array in found.arrays.items():
        assert not array[~trajectories.mask].any(), name


def test_oracle_weights_are_non_negative_and_zero_outside_queries(case, trajectories):
    found = case.query(trajectories)
    steps = case.expected_steps(trajectories)
    assert (found.weight >= 0).all() and not found.weight[~steps].any()
    known = found.weight > 0
    expected = steps.sum(axis=1) if case.max_queries is None else np.minimum(steps.sum(axis=1), case.max_queries)
    np.testing.assert_array_equal(known.sum(axis=1), expected)
    if isinstance(case.oracle, MonteCarloOracle | LolsOracle):
        assert not found.values[~known].any()
    # Querying some of the steps must not lower the total weight of a trajectory.
    np.testing.assert_allclose(found.weight.sum(axis=1), steps.sum(axis=1), rtol=1e-6)


def test_oracle_counts_queries_and_simulator_steps(case, trajectories):
    found = case.query(trajectories)
    known = trajectories.steps
    if not case.needs_an_expert:
        known = 0
    elif case.simulates:  # only queried steps count
        known = int((found.weight > 0).sum())
    assert found.queries == known and found.diverged == 0
    assert (found.simulator_steps > 0) == (case.simulates and known > 0)


def test_oracle_does_not_modify_or_share_trajectories(case, trajectories):
    before = deepcopy(trajectories)
    found = case.query(trajectories)
    for array in found.arrays.values():
        array += 1  # changing the cost-to-go must not change the trajectories
    for field in fields(Trajectories):
        then = getattr(before, field.name)
        now = getattr(trajectories, field.name)
        np.testing.assert_array_equal(now, then, err_msg=field.name)


def test_oracle_is_deterministic(case, trajectories):
    first = case.query(trajectories)
    second = case.query(trajectories)
    assert_same(first, second)
    assert (first.queries, first.simulator_steps) == (second.queries, second.simulator_steps)


@pytest.mark.parametrize("rows", [[5], [7, 3], list(range(K))[::-1], list(range(0, K, 3))], ids=len)
def test_oracle_result_is_independent_of_other_trajectories_in_batch(case, trajectories, rows):
    whole = case.query(trajectories)
    part = case.query(trajectories.take(np.array(rows)))
    if case.is_per_trajectory:
        assert_same(part, whole, rows)
    elif len(rows) == 1:
        assert not np.array_equal(part.values, whole.values[rows])
