"""What every oracle must keep: a function of the trajectories that says what it asked, and 0 where no step was."""

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
from aggrevated.oracles.critic import CriticOracle as LearnedCritic
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


class Critic(TinyExpert):
    """π* of the tiny MDP, and V* of all its states."""

    discount = 0.9

    def v(self, states):
        return self.q(states).min(axis=1)


class AskedForEach(TinyExpert):
    """π* of the tiny MDP, which tells Q* of the action that it is asked about."""

    def q_of(self, states, actions):
        return self.q(states)[np.arange(len(states)), actions]


class HomeWithCosts(Home):
    """The walk's expert: an action costs what is left to go after it, squared."""

    def q_of(self, states, actions):
        return (states[:, 0] + actions @ np.array([1.0, 2.0])) ** 2


def every_step(trajectories):
    return trajectories.mask


def learners_steps(trajectories):
    return trajectories.by_learner


def steps_with_a_successor(trajectories):
    """The learner's, but for the one that the horizon cut."""
    return trajectories.by_learner & (np.arange(trajectories.mask.shape[1]) < trajectories.horizon - 1)


@dataclass(frozen=True)
class Case:
    """An oracle, and what is peculiar to it."""

    oracle: Oracle
    asked: Callable[[Trajectories], np.ndarray] = every_step  # [K, T] bool: which steps have a weight
    actions: int | None = 3  # how many are known of each state; None: the one taken
    at_most: int | None = None  # how many of a trajectory's steps in `asked` have a weight
    needs_an_expert: bool = True
    simulates: bool = False
    alone: bool = True  # whether a trajectory's values do not depend on those beside it
    vectors: bool = False  # whether it is for actions that are vectors

    def ask(self, trajectories: Trajectories) -> CostToGo:
        """What it tells as it is: one that learns does so in a copy."""
        return deepcopy(self.oracle)(trajectories, LEARNER)


def rolled_out(**settings):
    oracle = MonteCarloOracle(Lucky(), TinyExpert(), **settings)
    return Case(oracle, learners_steps, None, at_most=settings.get("steps"), simulates=True)


def every_action(**settings):
    oracle = MonteCarloOracle(Lucky(), TinyExpert(), all_actions=True, **settings)
    return Case(oracle, actions=3, at_most=settings.get("steps"), simulates=True)


def mixed(beta, actions=3, **settings):
    oracle = LolsOracle(Lucky(), TinyExpert(), beta, all_actions=actions is not None, **settings)
    asked = learners_steps if actions is None else every_step
    return Case(oracle, asked, actions, at_most=settings.get("steps"), simulates=True)


Q = QStarOracle(TinyExpert())
CASES = {
    "Q*": Case(Q),
    "A*": Case(AdvantageOracle(Q)),
    "Q* of the action taken": Case(TakenActionOracle(Q), actions=None),
    "A* of the action taken": Case(TakenActionOracle(AdvantageOracle(Q)), actions=None),
    "A* of the action taken, advised": Case(
        ExpertLabeledOracle(TakenActionOracle(AdvantageOracle(Q)), TinyExpert(), Discrete(3)), actions=None
    ),
    "roll-outs of every action": every_action(),
    "roll-outs of every action at two steps, Q* itself": every_action(steps=2, advantage=False),
    "softened": Case(EntropyBonusOracle(AdvantageOracle(Q), 0.5)),
    "zero-one": Case(ZeroOneOracle(TinyExpert(), Discrete(3))),
    "advice": Case(ExpertActionOracle(Home(), Walk.action_space), actions=None, vectors=True),
    "reward-to-go": Case(RewardToGoOracle(), actions=None, needs_an_expert=False),
    "realised, less the others' mean": Case(
        AdvantageOracle(RewardToGoOracle()), actions=None, needs_an_expert=False, alone=False
    ),
    "roll-outs": rolled_out(),
    "roll-outs, Q* itself": rolled_out(advantage=False),
    "roll-outs at two steps": rolled_out(steps=2),
    "roll-outs at one step, Q* itself": rolled_out(steps=1, advantage=False),
    "three roll-outs": rolled_out(rollouts=3),
    "LOLS": mixed(0.5),
    "LOLS, Q itself": mixed(0.5, advantage=False),
    "LOLS at two steps": mixed(0.3, steps=2),
    "LOLS of the action taken": mixed(0.5, None),
    "LOLS of the action taken at one step, Q itself": mixed(0.5, None, steps=1, advantage=False),
    "SEARN": mixed(None),
    "SEARN at one step": mixed(None, steps=1),
    "a critic": Case(ValueFunctionOracle(Critic()), steps_with_a_successor, None),
    "a critic, Q* itself": Case(ValueFunctionOracle(Critic(), advantage=False), steps_with_a_successor, None),
    "one step, then a critic": Case(LookaheadOracle(Lucky(), Critic()), simulates=True),
    "one step, then a critic, less the least": Case(
        AdvantageOracle(LookaheadOracle(Lucky(), Critic())), simulates=True
    ),
    "asked about the action taken": Case(StateActionQOracle(AskedForEach(), Discrete(3)), learners_steps, None),
    "asked about vectors": Case(
        StateActionQOracle(HomeWithCosts(), Walk.action_space), learners_steps, None, vectors=True
    ),
    "asked about vectors, Q* itself": Case(
        StateActionQOracle(HomeWithCosts(), Walk.action_space, advantage=False), learners_steps, None, vectors=True
    ),
    "asked about every action": Case(PerActionQOracle(AskedForEach(), Discrete(3))),
    "truncated after two steps": Case(TruncatedHorizonOracle(Critic(), 2), steps_with_a_successor, None),
    "truncated, without a critic": Case(TruncatedHorizonOracle(TinyExpert(), 2), steps_with_a_successor, None),
    "truncated after the horizon": Case(
        TruncatedHorizonOracle(Critic(), 9, advantage=False), steps_with_a_successor, None
    ),
    "a learned critic": Case(LearnedCritic(), actions=None, needs_an_expert=False),
    "imitation, before reinforcement": Case(
        LokiOracle(TakenActionOracle(Q), RewardToGoOracle(), switch=1), actions=None
    ),
    "reinforcement, after imitation": Case(
        LokiOracle(TakenActionOracle(Q), RewardToGoOracle(), 0), actions=None, needs_an_expert=False
    ),
}


def batch(vectors: bool, alpha: float) -> Trajectories:
    """Episodes of different lengths, a share of their steps taken by the expert."""
    if vectors:
        policy = randomise(FeedForwardPolicy(1, GaussianHead(2)), 1, 0.3)
        return roll_in(Walk(horizon=12), RollInPolicy(Home(), policy.actor(), alpha), SEEDS)
    return roll_in(Lucky(), RollInPolicy(TinyExpert(), LEARNER.actor(), alpha), SEEDS)


BATCHES = {
    "the learner's": lambda vectors: batch(vectors, 0.0),
    "mixed": lambda vectors: batch(vectors, 0.4),
    "the expert's": lambda vectors: batch(vectors, 1.0),
    "with illegal actions": lambda vectors: batch(vectors, 0.4) if vectors else with_legal(batch(vectors, 0.4)),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request) -> Case:
    return request.param


@pytest.fixture(params=BATCHES.values(), ids=BATCHES)
def trajectories(request, case) -> Trajectories:
    return request.param(case.vectors)


def assert_same(one: CostToGo, other: CostToGo, rows=slice(None)):
    """The same bits, in `rows` of the other."""
    assert one.arrays.keys() == other.arrays.keys()
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name][rows], err_msg=name)


def test_every_oracle_in_the_folder_is_here():
    """A new one must be added to the cases: whatever class can be called is an oracle, but for the protocol itself."""
    folder = aggrevated.oracles
    modules = [import_module(f"{folder.__name__}.{one.name}") for one in iter_modules(folder.__path__)]
    classes = {kind for module in modules for kind in vars(module).values() if isclass(kind)}
    found = {kind for kind in classes if kind.__module__.startswith(folder.__name__) and "__call__" in vars(kind)}
    assert found - {Oracle} == {type(case.oracle) for case in CASES.values()}


def test_the_batches_are_of_different_lengths():
    for vectors in (False, True):
        lengths = batch(vectors, 0.0).mask.sum(axis=1)
        assert lengths.min() < lengths.max()


def test_shapes_and_types(case, trajectories):
    found = case.ask(trajectories)
    shape = trajectories.mask.shape
    assert found.values.shape == (shape if case.actions is None else (*shape, case.actions))
    assert found.all_actions == (case.actions is not None) and found.weight.shape == shape
    finite_advice = {"advice"} if found.advice is not None and found.advice.ndim == 2 else set()
    for name, array in found.arrays.items():
        assert array.dtype == (np.int64 if name in finite_advice else np.float32) and np.isfinite(array).all(), name
    assert (found.advice is not None) == isinstance(case.oracle, ExpertActionOracle | ExpertLabeledOracle)
    assert found.bonus == (0.5 if isinstance(case.oracle, EntropyBonusOracle) else 0.0)


def test_where_no_step_was_taken_there_is_nothing(case, trajectories):
    found = case.ask(trajectories)
    for name, array in found.arrays.items():
        assert not array[~trajectories.mask].any(), name


def test_weights_are_where_it_was_asked_and_nowhere_negative(case, trajectories):
    found = case.ask(trajectories)
    asked = case.asked(trajectories)
    assert (found.weight >= 0).all() and not found.weight[~asked].any()
    known = found.weight > 0
    expected = asked.sum(axis=1) if case.at_most is None else np.minimum(asked.sum(axis=1), case.at_most)
    np.testing.assert_array_equal(known.sum(axis=1), expected)
    if isinstance(case.oracle, MonteCarloOracle | LolsOracle):
        assert not found.values[~known].any()
    # Asking about some of the steps must not make a trajectory count for less.
    np.testing.assert_allclose(found.weight.sum(axis=1), asked.sum(axis=1), rtol=1e-6)


def test_queries_are_counted(case, trajectories):
    found = case.ask(trajectories)
    known = trajectories.steps
    if not case.needs_an_expert:
        known = 0
    elif case.simulates:  # what is not asked costs nothing
        known = int((found.weight > 0).sum())
    assert found.queries == known and found.diverged == 0
    assert (found.simulator_steps > 0) == (case.simulates and known > 0)


def test_the_trajectories_are_not_changed_and_not_shared(case, trajectories):
    before = deepcopy(trajectories)
    found = case.ask(trajectories)
    for array in found.arrays.values():
        array += 1  # what becomes of the cost-to-go does not concern them
    for field in fields(Trajectories):
        then = getattr(before, field.name)
        now = getattr(trajectories, field.name)
        np.testing.assert_array_equal(now, then, err_msg=field.name)


def test_asked_twice_it_gives_the_same_bits(case, trajectories):
    first = case.ask(trajectories)
    second = case.ask(trajectories)
    assert_same(first, second)
    assert (first.queries, first.simulator_steps) == (second.queries, second.simulator_steps)


@pytest.mark.parametrize("rows", [[5], [7, 3], list(range(K))[::-1], list(range(0, K, 3))], ids=len)
def test_a_trajectory_does_not_depend_on_those_beside_it(case, trajectories, rows):
    whole = case.ask(trajectories)
    part = case.ask(trajectories.take(np.array(rows)))
    if case.alone:
        assert_same(part, whole, rows)
    elif len(rows) == 1:
        assert not np.array_equal(part.values, whole.values[rows])
