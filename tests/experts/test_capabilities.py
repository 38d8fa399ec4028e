"""Training with experts of every capability, by the oracle of the capability."""

import numpy as np
import pytest

from aggrevated.experts.adapters import as_expert, get_expert_capability
from aggrevated.problems.control import ControlProblem
from aggrevated.tasks import Task
from aggrevated.training.trainer import train
from helpers.line_simulator import line, pushed

ORACLES = {"q": "q-star", "q_of": "state-action-q", "v": "value-function", "act": "monte-carlo"}


class AllActionsQ:
    """Expert with the cost-to-go of each action on the line: |x| now, and 1 + 2 + … + |x| after it."""

    def q(self, observations):
        after = np.abs(observations[:, :1] + np.array([-1, 0, 1]))
        return observations[:, 1:] + after * (after + 1) / 2


class StateActionQ:
    def q(self, observations, actions):
        after = np.abs(observations[:, 0] + actions - 1)
        return observations[:, 1] + after * (after + 1) / 2


class StateValue:
    def act(self, observation):
        return 1 - int(np.sign(observation[0]))

    def v(self, observations):
        return observations[:, 1] * (observations[:, 1] + 1) / 2


def act_by_sign(observation):
    return 1 - int(np.sign(observation[0]))


class PushCritic:
    """Expert with continuous actions and Q of one action."""

    def act(self, observation):
        return np.clip(-observation[:1], -1, 1)

    def q(self, observations, actions):
        return np.abs(observations[:, 0] + actions[:, 0])


def train_two_iterations(given, make, folder):
    """Train for two iterations by the oracle of the capability."""
    capability = get_expert_capability(as_expert(given, make()))
    problem = ControlProblem(make=make, make_expert=lambda simulator: as_expert(given, simulator), horizon=8)
    task = Task(name="line", title="A line", problem=problem, oracle=ORACLES[capability])
    few = {"iterations": 2, "trajectories": 12, "validation_episodes": 8, "test_episodes": 8}
    return capability, train(task, out=folder, **few)


@pytest.mark.parametrize("given", [AllActionsQ(), StateActionQ(), StateValue(), act_by_sign], ids=ORACLES)
def test_train_learns_discrete_actions_from_each_expert_capability(given, tmp_path, request):
    capability, run = train_two_iterations(given, line, tmp_path / "run")
    assert capability == request.node.callspec.id
    result = run.result().more
    assert result["expert_return"] > -15 and result["test_return"] > result["expert_return"] - 2


def test_train_learns_continuous_actions_from_a_state_action_q_expert(tmp_path):
    capability, run = train_two_iterations(PushCritic(), pushed, tmp_path / "run")
    assert capability == "q_of" and run.config.oracle.name == "state-action-q"
    assert run.result().more["expert_return"] > -15
