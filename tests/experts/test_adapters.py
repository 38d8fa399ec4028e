"""`as_expert` adapts objects, functions and modules of every capability."""

import re
from functools import partial

import cloudpickle
import numpy as np
import pytest
import torch
from torch import nn

from aggrevated.core.errors import UsageError, UserCodeError
from aggrevated.experts import DiscreteQExpert, StateActionQExpert, StateValueExpert
from aggrevated.experts.adapters import as_expert, get_expert_capability
from aggrevated.experts.checked import query_actions, query_q_values, query_state_action_q, query_state_values
from aggrevated.experts.fingerprint import compute_behavior_fingerprint, round_to_significant_digits
from aggrevated.experts.q_function import QFunction
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from helpers.line_simulator import HOMEWARDS, STATES, Grid

HOME = [1, 0, 2]  # by the sign of the position: stay, go left, go right


class OneAtATime:
    def act(self, observation):
        assert observation.shape == (2,) and observation.dtype == np.float32
        return HOME[int(np.sign(observation[0]))]


class Batches:
    name = "batches"

    def __init__(self, simulator):
        self.simulator = simulator

    def act(self, states, t):
        return 1 - np.sign(self.simulator.observe(states)[:, 0]).astype(int)


class Planner:
    """Expert that looks one step ahead and takes the action with the smallest |x| after it."""

    def __init__(self, simulator):
        self.simulator = simulator

    def act(self, states, t):
        after = [self.simulator.step(states, np.full(len(states), action))[0] for action in range(3)]
        return np.argmin([np.abs(self.simulator.observe(following)[:, 0]) for following in after], axis=0)


class AllActionsQ(Batches):
    """Expert with Q of all actions, the distance from home after each, and no act."""

    act = None

    def q(self, states):
        return np.abs(self.simulator.observe(states)[:, :1] + np.array([-1, 0, 1]))


class StateActionQ(Batches):
    act = None

    def q(self, states, actions):
        return np.abs(self.simulator.observe(states)[:, 0] + actions - 1)


class StateValue(Batches):
    def v(self, observation):
        return abs(float(observation[0]))


def act_on_one(observation):
    return np.int64(HOME[int(np.sign(observation[0]))])


def act_on_batch(observations):
    return [HOME[int(np.sign(x))] for x in observations[:, 0]]


def act_on_one_at_time(observation, t, eagerness=1):
    assert t == 3 and eagerness == 1
    return HOME[int(np.sign(observation[0]))]


def make_expert(simulator):
    return Batches(simulator)


class Network(nn.Module):
    """Module that prefers actions towards home; its dropout shows whether it is in eval mode."""

    def __init__(self):
        super().__init__()
        # A submodule called v does not make the module a critic.
        self.dropout = nn.Dropout(0.9)
        self.v = nn.Identity()

    def forward(self, x):
        assert x.dtype == torch.float32
        return self.dropout(-(x[:, :1] + torch.tensor([-1.0, 0.0, 1.0])).abs() - 1)


GIVEN = {
    "an object of one observation": OneAtATime(),
    "a class of the simulator": Batches,
    "a function that makes it": make_expert,
    "a planner": Planner,
    "what every action costs": AllActionsQ,
    "what an action costs": StateActionQ,
    "what a state costs": StateValue,
    "a function of one observation": act_on_one,
    "a part of a function": partial(act_on_one),
    "a function of many": act_on_batch,
    "a function of one and the time": act_on_one_at_time,
    "a lambda": lambda o: HOME[int(np.sign(o[0]))],
    "a module": Network(),
    "a module that knows rewards": QFunction(Network()),
    "a function that knows costs": QFunction(lambda x: np.abs(x[:, :1] + np.array([-1, 0, 1])), rewards=False),
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_as_expert_adapts_every_kind_of_object(given, simulator, states, places):
    expert = as_expert(given, simulator)
    np.testing.assert_array_equal(query_actions(expert, states, 3, simulator.action_space), 1 - np.sign(places))
    assert expert.name and "<" not in expert.name


@pytest.mark.parametrize(
    "given", [act_on_one, AllActionsQ, StateActionQ, Network(), QFunction(Network())], ids=lambda g: str(g)[:20]
)
def test_as_expert_result_survives_cloudpickle(given, simulator, states, places):
    unpickled = cloudpickle.loads(cloudpickle.dumps(as_expert(given, simulator)))
    np.testing.assert_array_equal(unpickled.act(states, 0), 1 - np.sign(places))
    assert get_expert_capability(unpickled) == get_expert_capability(as_expert(given, simulator))


def test_as_expert_planner_walks_home_the_shortest_way(simulator):
    trajectories = roll_in(
        simulator, RollInPolicy(as_expert(Planner, simulator), None, 1.0), np.arange(6, dtype=np.uint64)
    )
    start = np.abs(trajectories.observations[:, 0, 0])
    np.testing.assert_array_equal(trajectories.returns, -start * (start + 1) / 2)


def test_expert_capability_follows_the_methods_of_the_object(simulator, states, places):
    q_expert, q_of_expert, v_expert = (as_expert(kind, simulator) for kind in (AllActionsQ, StateActionQ, StateValue))
    assert [get_expert_capability(e) for e in (q_expert, q_of_expert, v_expert, as_expert(act_on_one, simulator))] == [
        "q",
        "q_of",
        "v",
        "act",
    ]
    assert isinstance(q_expert, DiscreteQExpert) and not isinstance(q_expert, StateValueExpert | StateActionQExpert)
    assert isinstance(q_of_expert, StateActionQExpert) and not isinstance(
        q_of_expert, DiscreteQExpert | StateValueExpert
    )
    assert isinstance(v_expert, StateValueExpert) and v_expert.discount == 1.0
    np.testing.assert_array_equal(query_q_values(q_expert, states), np.abs(places[:, None] + [-1, 0, 1]))
    np.testing.assert_array_equal(query_state_action_q(q_of_expert, states, np.full(12, 2)), np.abs(places + 1))
    np.testing.assert_array_equal(query_state_values(v_expert, states), np.abs(places))


def test_as_expert_returns_an_expert_unchanged(simulator):
    given = Batches(simulator)
    assert as_expert(given, simulator) is given
    renamed = as_expert(given, simulator, "other")
    assert renamed.name == "other" and get_expert_capability(renamed) == "act"


def test_q_function_turns_rewards_into_costs(simulator, states, places):
    expert = as_expert(QFunction(Network(), discount=0.9), simulator, "net")
    np.testing.assert_allclose(expert.q(states), np.abs(places[:, None] + [-1, 0, 1]) + 1)
    assert (expert.name, expert.discount, get_expert_capability(expert)) == ("net", 0.9, "q")


def test_as_expert_copies_a_module_and_leaves_it_trainable(simulator, states):
    module = nn.Linear(2, 3)
    expert = as_expert(module, simulator)
    before = expert.act(states, 0)
    with torch.no_grad():
        module.weight.mul_(-1)
    np.testing.assert_array_equal(expert.act(states, 0), before)
    assert module.training and module.weight.requires_grad


def test_as_expert_adapts_experts_with_continuous_actions(push_simulator):
    states = push_simulator.reset(np.arange(5, dtype=np.uint64))
    expected = np.clip(-push_simulator.observe(states)[:, :1], -1, 1)

    class Critic:
        def act(self, observation):
            return np.clip(-observation[:1], -1, 1)

        def q(self, observations, actions):
            return np.abs(observations[:, 0] + actions[:, 0])

    expert = as_expert(Critic(), push_simulator)
    np.testing.assert_array_equal(query_actions(expert, states, 0, push_simulator.action_space), expected)
    np.testing.assert_array_equal(
        query_state_action_q(expert, states, expected), np.abs(push_simulator.observe(states)[:, 0] + expected[:, 0])
    )
    module = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Tanh())
    given = query_actions(as_expert(module, push_simulator), states, 0, push_simulator.action_space)
    assert given.shape == (5, 1) and given.dtype == np.float32


def test_as_expert_passes_observations_in_the_form_of_the_environment():
    """The expert gets Dict observations and returns MultiDiscrete actions, not their vectors and numbers."""
    grid = Grid()

    def act_homewards(observation):
        assert observation["place"].dtype == np.int64
        assert observation["lamp"] == (observation["place"].sum() > 0)
        return -np.sign(observation["place"])

    expert = as_expert(act_homewards, grid)
    actions = query_actions(expert, STATES, 0, grid.action_space)
    np.testing.assert_array_equal(grid.space_adapter.to_native_actions(actions), HOMEWARDS)

    class Costs:
        def q(self, observation, action):
            return np.abs(observation["place"] + action).sum()

    np.testing.assert_array_equal(as_expert(Costs(), grid).act(STATES, 0), actions)


def test_as_expert_prefers_exact_native_observations():
    class Exact(Grid):
        def native_observations(self, states):
            return [{"lamp": 0, "place": state} for state in states]

    lamps = []
    as_expert(lambda o: lamps.append(o["lamp"]) or np.zeros(2, int), Exact()).act(STATES, 0)
    assert lamps == [0, 0, 0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda o: None, "gave NoneType as an action in step 2 of an episode; an action is one of Discrete(3)"),
        (lambda o: "left", "gave str as an action"),
        (lambda o: 3, "chose action 3 of Discrete(3) in step 2"),
        (lambda o: 0.5, "chose action 0.5 of Discrete(3)"),
        (lambda o: [0, 1], "gave an action of shape (2,) in step 2 of an episode; it must be of shape ()"),
        (lambda o: 1 / 0, "raised ZeroDivisionError: division by zero (test_adapters.py, line"),
        (lambda o: torch.ones(1, requires_grad=True), "gave an action that is not an array (Can't call numpy() on"),
        (lambda o: np.inf, "gave an action that is not finite (inf)"),
        (lambda o: np.nan, "gave an action that is not finite (nan) in step 2"),
    ],
)
def test_query_actions_reports_an_invalid_action(simulator, states, answer, words):
    expert = as_expert(lambda o: answer(o) if o[0] > 0 else 1, simulator, "mine")
    first = int(np.argmax(simulator.observe(states)[:, 0] > 0))
    with pytest.raises(UserCodeError, match=re.escape(words)) as error:
        query_actions(expert, states, 2, simulator.action_space)
    assert error.value.row == first and str(error.value).startswith("the expert mine ")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda observations: 1, "gave actions of type int for 12 observations"),
        (nn.Linear(2, 4), r"gave preferences of shape \(12, 4\)"),
        (nn.LSTM(2, 3), "gave tuple for observations in step 0 of an episode; make it return one tensor"),
        (nn.Linear(5, 3), "raised RuntimeError: mat1 and mat2"),
        (QFunction(nn.Linear(2, 2)), r"gave outputs of shape \(12, 2\) in step 0 .*; they must be of shape \(12, 3\)"),
    ],
)
def test_query_actions_reports_an_invalid_batch_of_actions(simulator, states, given, words):
    with pytest.raises(UserCodeError, match=words):
        query_actions(as_expert(given, simulator), states, 0, simulator.action_space)


class OnlyV:
    def v(self, states):
        return np.zeros(len(states))


class Three:
    def q(self, states, actions, t):
        return 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (7, "int 7 is not an expert: pass an object with q"),
        (None, "NoneType None is not an expert"),
        ("nobody", "'nobody' is not an expert: pass"),
        (OneAtATime, "the class OneAtATime is not an expert"),
        (OnlyV(), "OnlyV has v, but no act"),
        (Three(), "the q of Three needs 3 arguments; define it as q"),
        (lambda: 0, "lambda needs 0 arguments; pass a function of"),
        (lambda a, b, c: 0, "lambda needs 3 arguments"),
        (lambda o, *, key: 0, "needs the keyword argument key; give it a default"),
        (lambda simulator: make_expert, "returns a function that makes an expert"),
        (QFunction(7), "a QFunction of int cannot be called; pass an nn.Module"),
    ],
)
def test_as_expert_refuses_objects_that_are_not_experts(simulator, given, words):
    with pytest.raises(UsageError, match=words):
        as_expert(given, simulator)


def test_as_expert_refuses_q_of_all_actions_if_actions_are_continuous(push_simulator):
    for given in (AllActionsQ, QFunction(nn.Linear(2, 1))):
        with pytest.raises(UsageError, match="infinitely many"):
            as_expert(given, push_simulator)
    with pytest.raises(UsageError, match="has q_of, but no act"):
        as_expert(StateActionQ, push_simulator)


def test_as_expert_reports_a_failing_factory(simulator):
    def broken(simulator):
        raise KeyError("no table")

    with pytest.raises(UserCodeError, match="the expert broken raised KeyError: 'no table'"):
        as_expert(broken, simulator)


def test_behavior_fingerprint_changes_with_the_expert(simulator):
    one = compute_behavior_fingerprint(as_expert(act_on_one, simulator), simulator)
    assert list(one) == ["act"] and one["act"].dtype == np.float64 and one["act"].shape == (8,)
    other = compute_behavior_fingerprint(as_expert(lambda o: 2 - act_on_one(o), simulator), simulator)
    assert not np.array_equal(one["act"], other["act"])
    assert list(compute_behavior_fingerprint(as_expert(AllActionsQ, simulator), simulator)) == ["act", "q"]
    assert list(compute_behavior_fingerprint(as_expert(StateActionQ, simulator), simulator)) == ["act", "q_of"]
    assert list(compute_behavior_fingerprint(as_expert(StateValue, simulator), simulator)) == ["act", "v"]


def test_behavior_fingerprint_refuses_stochastic_or_stateful_experts(simulator):
    generator = np.random.default_rng(0)
    observations = []

    def act_at_random(observation):
        return int(generator.integers(3))

    def act_by_count(observation):
        observations.append(observation)
        return len(observations) % 3

    for expert in (act_at_random, act_by_count):
        with pytest.raises(UserCodeError, match=r"the same query of its act.*deterministic=True"):
            compute_behavior_fingerprint(as_expert(expert, simulator), simulator)


def test_behavior_fingerprint_reports_q_of_a_wrong_shape(simulator):
    class Wide:
        def q(self, observations):
            return np.zeros((len(observations), 7))

    with pytest.raises(UserCodeError, match=r"costs-to-go of shape \(8, 7\).*must be of shape \(8, 3\): fix its q"):
        compute_behavior_fingerprint(as_expert(Wide(), simulator), simulator)


def test_behavior_fingerprint_explains_that_q_was_given_raw_states(simulator):
    class Reads:
        def q(self, state):
            return -np.abs(state[:, :1] + np.array([-1, 0, 1]))

    with pytest.raises(UserCodeError, match=r"fix its q, which receives states.*name its parameter observation"):
        compute_behavior_fingerprint(as_expert(Reads(), simulator), simulator)


def test_round_to_significant_digits_keeps_six_digits():
    np.testing.assert_array_equal(
        round_to_significant_digits(np.array([[1234567.0, -0.00012345678]])), [[1234570.0, -0.000123457]]
    )


class Model:
    """Model with the `predict` of Stable-Baselines3."""

    policy = None

    def __init__(self, memory=None):
        self.memory = memory

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert deterministic and observation.shape == (12, 2)
        return np.array(act_on_batch(observation)), self.memory


def test_as_expert_uses_predict_of_a_model(simulator, states, places):
    np.testing.assert_array_equal(as_expert(Model(), simulator).act(states, 0), 1 - np.sign(places))
    with pytest.raises(UsageError, match="has a recurrent policy"):
        as_expert(Model(memory=np.ones(3)), simulator).act(states, 0)


def test_as_expert_acts_as_stable_baselines_models_predict(simulator, states, push_simulator):
    stable = pytest.importorskip("stable_baselines3")
    from helpers.line_simulator import Line, Pushed

    dqn = stable.DQN("MlpPolicy", Line(), buffer_size=10, policy_kwargs={"net_arch": [4]}, device="cpu")
    observations = simulator.observe(states)
    expected = [int(dqn.predict(one, deterministic=True)[0]) for one in observations]
    np.testing.assert_array_equal(as_expert(dqn, simulator).act(states, 0), expected)
    ppo = stable.PPO("MlpPolicy", Pushed(), n_steps=8, batch_size=8, policy_kwargs={"net_arch": [4]}, device="cpu")
    actions = query_actions(as_expert(ppo, push_simulator), states, 0, push_simulator.action_space)
    np.testing.assert_allclose(actions, [ppo.predict(one, deterministic=True)[0] for one in observations], rtol=1e-5)
