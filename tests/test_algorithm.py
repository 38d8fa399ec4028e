"""Algorithm 1 as a whole, on the tiny MDP."""

from dataclasses import dataclass
from itertools import islice

import numpy as np
import pytest
import torch

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.core.schedules import geometric_schedule
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.updates import UpdateResult
from aggrevated.updates.natural import NaturalUpdate
from aggrevated.updates.regular import RegularUpdate
from helpers.tiny_mdp import EXPERT, TinyExpert, TinyMdp, flat, linear_policy, probabilities

ADVANTAGE = AdvantageOracle(QStarOracle(TinyExpert()))


@dataclass
class WorseningUpdate:
    """An update that makes the costliest action of every state more probable."""

    def __call__(self, policy, loss, trajectories, cost_to_go):
        with torch.no_grad():
            policy.network[0].weight += 3 * torch.eye(3)[[1, 2, 1]].T
        return UpdateResult(0.0, 0.0, 0.0, 0)

    def state(self):
        return {}

    def restore(self, state):
        pass


def loop(learner, oracle=ADVANTAGE, loss=all_actions_loss, **settings):
    settings = {"k": 20, "validation_episodes": 64, **settings}
    return aggrevated(learner, TinyMdp(), TinyExpert(), oracle, loss, **settings)


def test_algorithm_1_considers_initial_policy_as_best():
    policy = linear_policy(None).float()
    first = flat(policy)
    learner = Learner(policy, WorseningUpdate())
    iterations = list(islice(loop(learner), 5))
    assert learner.best.n == 0
    assert all(iteration.best_return == learner.best.best_return > iteration.current_return for iteration in iterations)
    policy.load_state_dict(learner.best.weights)
    np.testing.assert_array_equal(flat(policy), first)


@pytest.mark.parametrize(
    ("update", "oracle", "loss"),
    [
        (lambda: RegularUpdate(0.1), ADVANTAGE, all_actions_loss),
        (lambda: NaturalUpdate(1e-2, damping=0.1), ADVANTAGE, all_actions_loss),
        (lambda: RegularUpdate(0.1), TakenActionOracle(ADVANTAGE), taken_action_loss),
        (lambda: NaturalUpdate(1e-2, damping=0.1), TakenActionOracle(ADVANTAGE), taken_action_loss),
    ],
    ids=["regular", "natural", "regular, taken action", "natural, taken action"],
)
def test_algorithm_1_learns_expert_policy_on_tiny_mdp(update, oracle, loss):
    """The expert is optimal here, its return −1.375; the uniform policy's is −3.73."""
    learner = Learner(linear_policy(None).float(), update())
    iterations = list(islice(loop(learner, oracle, loss), 60))
    assert iterations[-1].best_return > -1.6
    assert (probabilities(learner.policy).argmax(axis=1) == EXPERT).all()


@pytest.mark.parametrize(
    "update", [lambda: RegularUpdate(0.05), lambda: NaturalUpdate(1e-2, 0.1)], ids=["REINFORCE", "TNPG"]
)
def test_algorithm_1_with_reward_to_go_learns_without_expert_queries(update):
    """The return improves from −3.73, but may be worse than with an expert after as many iterations."""
    learner = Learner(linear_policy(None).float(), update())
    iterations = list(islice(loop(learner, AdvantageOracle(RewardToGoOracle()), taken_action_loss, k=50), 60))
    assert iterations[-1].best_return > -2.6
    assert learner.oracle_queries == 0


@pytest.mark.parametrize("update", [lambda: RegularUpdate(0.05), NaturalUpdate], ids=["regular", "natural"])
def test_algorithm_1_resumes_with_identical_bits_for_the_same_seed(update):
    uninterrupted = Learner(linear_policy(None).float(), update())
    expected = list(islice(loop(uninterrupted, alpha=geometric_schedule(0.5, 0.8)), 6))
    interrupted = Learner(linear_policy(None).float(), update())
    found = list(islice(loop(interrupted, alpha=geometric_schedule(0.5, 0.8)), 2))
    found += islice(loop(interrupted, alpha=geometric_schedule(0.5, 0.8)), 4)  # a new generator, the same learner
    assert found == expected
    assert [iteration.n for iteration in found] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(flat(interrupted.policy), flat(uninterrupted.policy))
    assert (interrupted.simulator_steps, interrupted.oracle_queries) == (
        uninterrupted.simulator_steps,
        uninterrupted.oracle_queries,
    )
    other = list(islice(loop(Learner(linear_policy(None).float(), update()), seed=1), 6))
    assert other != expected


def test_algorithm_1_counts_simulator_steps_and_queries():
    """With α = 1 the expert acts: 3 steps an episode, none ends early; every state is queried once."""
    learner = Learner(linear_policy(None).float(), RegularUpdate())
    list(islice(loop(learner, alpha=geometric_schedule(1.0, 1.0)), 4))
    assert (learner.n, learner.simulator_steps, learner.oracle_queries) == (4, 4 * 20 * 3, 4 * 20 * 3)


def test_algorithm_1_evaluates_alpha_schedule_once_per_iteration():
    recorded = []

    def alpha(n):
        recorded.append(n)
        return 0.0

    list(islice(loop(Learner(linear_policy(None).float(), RegularUpdate()), alpha=alpha), 3))
    assert recorded == [1, 2, 3]


def test_algorithm_1_uses_new_roll_in_seeds_and_fixed_validation_seeds():
    recorded = []

    class RecordingMdp(TinyMdp):
        def reset(self, seeds):
            recorded.append(seeds.tolist())
            return super().reset(seeds)

    learner = Learner(linear_policy(None).float(), RegularUpdate())
    run = aggrevated(learner, RecordingMdp(), None, ADVANTAGE, all_actions_loss, seed=7, k=5, validation_episodes=9)
    list(islice(run, 3))
    validation = derive_seeds(7, SeedPurpose.VALIDATION, 0, 9).tolist()
    roll_ins = [derive_seeds(7, SeedPurpose.ROLL_IN, n, 5).tolist() for n in (1, 2, 3)]
    assert recorded.pop(0) == [0]  # the check that policy and simulator are compatible
    assert recorded == [validation, roll_ins[0], validation, roll_ins[1], validation, roll_ins[2], validation]


def test_algorithm_1_validates_every_given_number_of_iterations():
    """The policies after 0, 3 and 6 of 7 iterations are validated, and the best of them is stored."""
    seen = []
    returns = [1.0, 5.0, 2.0]

    def validate(policy):
        seen.append(flat(policy))
        return returns[len(seen) - 1]

    learner = Learner(linear_policy(None).float(), RegularUpdate(0.1))
    weights_after = [flat(linear_policy(None).float())]
    iterations = []
    for iteration in islice(loop(learner, validate=validate, validate_every=3), 7):
        iterations.append(iteration)
        weights_after.append(flat(learner.policy))
    assert len(seen) == 3
    for policy, n in zip(seen, (0, 3, 6), strict=True):
        np.testing.assert_array_equal(policy, weights_after[n])
    assert [iteration.current_return for iteration in iterations] == [1.0, 1.0, 5.0, 5.0, 5.0, 2.0, 2.0]
    assert [iteration.best_return for iteration in iterations] == [1.0, 1.0, 5.0, 5.0, 5.0, 5.0, 5.0]
    assert (learner.best.n, learner.best.initial_return, learner.best.latest_return) == (3, 1.0, 2.0)
    learner.policy.load_state_dict(learner.best.weights)
    np.testing.assert_array_equal(flat(learner.policy), weights_after[3])


def test_algorithm_1_resumed_validates_only_when_due():
    calls = []

    def validate(policy):
        calls.append(learner.n + 1)  # the iteration under way; 1 before the first
        return 0.0

    learner = Learner(linear_policy(None).float(), RegularUpdate(0.1))
    for _ in range(5):  # a new generator each time, the same learner
        list(islice(loop(learner, validate=validate, validate_every=2), 1))
    assert calls == [1, 2, 4] and learner.n == 5


def test_algorithm_1_validation_frequency_does_not_affect_learning():
    learners = [Learner(linear_policy(None).float(), RegularUpdate(0.1)) for _ in range(2)]
    for learner, every in zip(learners, (1, 4), strict=True):
        list(islice(loop(learner, validate_every=every), 6))
    np.testing.assert_array_equal(flat(learners[0].policy), flat(learners[1].policy))
    assert learners[1].best.n in (0, 4)


def test_algorithm_1_passes_iteration_number_to_oracle():
    recorded = []

    def oracle(trajectories, policy):
        assert policy is learner.policy
        recorded.append(trajectories.n)
        return ADVANTAGE(trajectories)

    learner = Learner(linear_policy(None).float(), RegularUpdate())
    list(islice(loop(learner, oracle), 2))
    list(islice(loop(learner, oracle), 2))
    assert recorded == [1, 2, 3, 4]
