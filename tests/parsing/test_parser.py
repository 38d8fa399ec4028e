"""The parser as a simulator, its expert, and the policies that read pages."""

import numpy as np
import pytest
import torch

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.oracles.monte_carlo import rollout_expert_cost
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.learners.parser_policies import KINDS, ParsingPolicy
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import compute_uas
from aggrevated.parsing.transitions import arc_eager
from aggrevated.parsing.transitions.configurations import NO_SYMBOL
from aggrevated.parsing.transitions.oracle_check import sample_projective_tree
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.rollout.roll_in import RollInPolicy, roll_in

every_system = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
every_kind = pytest.mark.parametrize("kind", KINDS)


def page(heads):
    dot = (np.zeros((1, 2)),)
    return Page("page", "writer", ("x",) * len(heads), np.array(heads), (dot,) * len(heads))


@pytest.fixture(scope="module")
def corpus():
    generator = np.random.default_rng(0)
    return Corpus.from_pages([page(sample_projective_tree(n, generator)) for n in generator.integers(1, 10, 40)])


def make_policy(corpus, kind, seed=0):
    """Return a policy with random features and a readout that prefers some actions."""
    features = np.random.default_rng(1).normal(size=(len(corpus.lengths), corpus.most, 12)).astype(np.float32)
    policy = ParsingPolicy(Projection(np.zeros(12), np.eye(12)), 4, kind, embedding=16, seed=seed)
    policy.with_pages(features, corpus.lengths)
    with torch.no_grad():
        policy.readout.weight *= 30
    return policy


@every_system
def test_parser_expert_parses_every_page(corpus, system):
    parser = Parser(corpus, np.arange(40), in_order=True, system=system)
    trajectories = roll_in(parser, RollInPolicy(parser.expert, None, 1.0), np.arange(40, dtype=np.uint64))
    assert not trajectories.returns.any()
    if system.name == "arc-hybrid":
        np.testing.assert_array_equal(trajectories.mask.sum(axis=1), 2 * corpus.lengths - 1)


@every_system
def test_parser_expert_q_equals_rollout_cost_of_the_expert(corpus, system):
    """Compares every legal action at every state of random parses with a rollout."""
    parser = Parser(corpus, np.arange(40), in_order=True, system=system)
    generator = np.random.default_rng(2)
    state = parser.reset(np.arange(40, dtype=np.uint64))
    compared = 0
    while len(state):
        legal = parser.action_mask(state)
        q = parser.expert.q(state)
        row_of_action, action = np.nonzero(legal)
        cost, _ = rollout_expert_cost(
            parser, parser.expert, state[row_of_action], np.zeros(len(row_of_action), int), action
        )
        np.testing.assert_array_equal(cost, q[row_of_action, action])
        compared += len(row_of_action)
        state, _, done = parser.step(state, np.array([generator.choice(np.flatnonzero(row)) for row in legal]))
        state = state[~done]
    assert compared > 300


def test_parser_observations_match_hand_computed_values():
    """Shifts two symbols of three, then the third becomes the head of the first."""
    parser = Parser(Corpus.from_pages([page([3, 3, 0]), page([0])]), np.array([0]), in_order=True)
    state = parser.reset(np.zeros(1, np.uint64))
    seen = [parser.observe(state)[0].tolist()]
    for action in (arc_eager.SHIFT, arc_eager.SHIFT, arc_eager.LEFT, arc_eager.LEFT):
        state, cost, done = parser.step(state, np.array([action]))
        assert cost[0] == 0 and not done[0]
        seen.append(parser.observe(state)[0].tolist())
    assert seen == [
        [0, 0, -1, -1, 1, 2, 3, -1, -1, -1],
        [0, 1, 0, -1, 2, 3, -1, -1, -1, -1],
        [0, 2, 1, 0, 3, -1, -1, -1, -1, -1],
        [0, 1, 0, -1, 3, -1, -1, 2, -1, -1],
        [0, 0, -1, -1, 3, -1, -1, 1, 2, -1],
    ]
    state, cost, done = parser.step(
        state, np.array([arc_eager.SHIFT])
    )  # the root stays without a head, which is an error
    assert (cost[0], done[0]) == (1.0, True)
    assert parser.heads(state).tolist() == [[3, 3, NO_SYMBOL]]


def test_parser_reset_draws_pages_evenly_by_seed(corpus):
    parser = Parser(corpus, np.arange(5, 15))
    first, repeated = (parser.reset(derive_seeds(0, SeedPurpose.ROLL_IN, 1, 2000)) for _ in range(2))
    np.testing.assert_array_equal(first, repeated)
    counts = np.bincount(first[:, 0], minlength=40)
    assert counts[:5].sum() == counts[15:].sum() == 0 and (np.abs(counts[5:15] - 200) < 60).all()


def test_uas_matches_hand_computed_values():
    gold = np.array([[NO_SYMBOL, 2, 0, NO_SYMBOL], [NO_SYMBOL, 0, 1, 2]])
    assert compute_uas(np.array([[2, 0, NO_SYMBOL], [0, 1, 1]]), gold) == (4 / 5, (1 + 2 / 3) / 2, 0.5)


@every_kind
def test_parsing_policy_distribution_agrees_with_stepwise_actor(corpus, kind):
    policy = make_policy(corpus, kind)
    parser = Parser(corpus, np.arange(40))
    trajectories = roll_in(parser, RollInPolicy(None, policy.actor()), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 25))
    arrays = map(torch.from_numpy, (trajectories.observations, trajectories.mask, trajectories.action_mask))
    with torch.no_grad():
        sequence_probabilities = policy.distribution(*arrays).probs.numpy()
    actor = policy.actor()
    memory = actor.memory(25)
    step_probabilities = []
    for t in range(trajectories.mask.shape[1]):
        parameters, memory = actor.parameters(trajectories.observations[:, t], memory)
        logits = np.where(trajectories.action_mask[:, t], parameters, -np.inf)
        with np.errstate(invalid="ignore"):
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        step_probabilities.append(weights / weights.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(
        np.stack(step_probabilities, axis=1)[trajectories.mask], sequence_probabilities[trajectories.mask], atol=1e-6
    )
    assert (sequence_probabilities[trajectories.mask].max(axis=1) < 0.999).any(), (
        "a policy that is sure of everything shows nothing"
    )


@every_kind
def test_parsing_policy_scores_equal_autograd_gradients(corpus, kind):
    policy = make_policy(corpus, kind)
    parser = Parser(corpus, np.arange(40))
    trajectories = roll_in(
        parser, RollInPolicy(parser.expert, policy.actor(), 0.3), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 4)
    )
    arrays = [
        torch.from_numpy(a)
        for a in (
            trajectories.observations,
            trajectories.actions,
            trajectories.mask,
            trajectories.by_learner,
            trajectories.action_mask,
        )
    ]
    scores = policy.compute_scores(*arrays)
    for i in range(4):
        observations, actions, mask, by_learner, legal = (a[[i]] for a in arrays)
        total = (policy.distribution(observations, mask, legal).log_prob(actions) * by_learner).sum()
        gradients = torch.autograd.grad(total, list(policy.parameters()), materialize_grads=True)
        expected = torch.cat([g.flatten() for g in gradients])
        torch.testing.assert_close(scores[i], expected, atol=1e-5, rtol=1e-4)


@every_kind
def test_parsing_actor_is_unchanged_by_policy_changes(corpus, kind):
    policy = make_policy(corpus, kind)
    parser = Parser(corpus, np.arange(40))
    actor = policy.actor()
    observation = parser.observe(parser.reset(derive_seeds(0, SeedPurpose.ROLL_IN, 1, 9)))
    expected = policy.actor().parameters(observation, policy.actor().memory(9))[0]
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 1.0
    np.testing.assert_array_equal(actor.parameters(observation, actor.memory(9))[0], expected)


@every_kind
def test_parsing_policy_is_seeded_without_touching_global_torch_rng(corpus, kind):
    torch.manual_seed(5)
    before = torch.rand(1)
    torch.manual_seed(5)
    one, other, third = (make_policy(corpus, kind, seed) for seed in (0, 0, 1))
    assert torch.rand(1) == before
    weights = [torch.cat([p.flatten() for p in policy.parameters()]) for policy in (one, other, third)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
