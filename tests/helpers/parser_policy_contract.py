"""Contract of policies that read pages: distribution and actor agree, and weights determine both.

Their observations are indices of pages and symbols, so the contract of other policies cannot be used for them.
"""

from copy import deepcopy

import numpy as np
import torch

from aggrevated.parsing.learners.parser_policies import ParsingPolicy
from aggrevated.parsing.parser import Parser
from helpers.parser_policies import corpus, reader, trajectories

PAGES = corpus(24)
EXPERT_PARSES = trajectories(PAGES, count=15)  # parses by the expert, identical for all policies
ALL = np.arange(15)


def sequence_probabilities(policy, parses=EXPERT_PARSES):
    """Return the probabilities of `distribution`, [K, T, A], at legal actions."""
    with torch.no_grad():
        arrays = map(torch.from_numpy, (parses.observations, parses.mask, parses.action_mask))
        return policy.distribution(*arrays).probs.numpy()


def actor_probabilities(policy, chosen=ALL, parses=EXPERT_PARSES):
    """Return the probabilities of the actor step by step; a trajectory is dropped when its parse has ended."""
    actor = policy.actor()
    out = np.zeros((len(chosen), *parses.action_mask.shape[1:]))
    memory = actor.memory(len(chosen))
    rows = np.arange(len(chosen))
    for t in range(parses.mask.shape[1]):
        live = parses.mask[chosen[rows], t]
        rows = rows[live]
        memory = memory[live]
        if not len(rows):
            break
        parameters, memory = actor.parameters(parses.observations[chosen[rows], t], memory)
        logits = np.where(parses.action_mask[chosen[rows], t], parameters.astype(float), -np.inf)
        out[rows, t] = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    return out


class ParserPolicyContract:
    """Tests of one kind of policy that reads pages; a subclass `Test...` parametrizes `kind`."""

    def test_parser_policy_distribution_agrees_with_its_actor(self, kind):
        policy = reader(kind, PAGES)
        actual = actor_probabilities(policy)
        np.testing.assert_allclose(
            actual[EXPERT_PARSES.mask], sequence_probabilities(policy)[EXPERT_PARSES.mask], atol=2e-5
        )
        assert np.ptp(actual[EXPERT_PARSES.mask], axis=0).min() > 0.05  # a constant policy would pass trivially

    def test_parser_policy_actor_is_independent_of_other_trajectories_in_batch(self, kind):
        policy = reader(kind, PAGES)
        together = actor_probabilities(policy)
        for chosen in ([4], [9, 2], [14, 13, 12, 0]):
            np.testing.assert_array_equal(actor_probabilities(policy, np.array(chosen)), together[chosen])

    def test_parser_policy_gives_illegal_actions_probability_zero(self, kind):
        actual = sequence_probabilities(reader(kind, PAGES))
        assert (
            not EXPERT_PARSES.action_mask[EXPERT_PARSES.mask].all()
            and not actual[EXPERT_PARSES.mask][~EXPERT_PARSES.action_mask[EXPERT_PARSES.mask]].any()
        )

    def test_parser_policy_actor_does_not_modify_observation_or_memory(self, kind):
        actor = reader(kind, PAGES).actor()
        observation = EXPERT_PARSES.observations[:, 0]
        memory = actor.memory(len(observation))
        for _ in range(3):
            before = observation.copy(), memory.copy()
            _, following = actor.parameters(observation, memory)
            np.testing.assert_array_equal(observation, before[0])
            np.testing.assert_array_equal(memory, before[1])
            assert following.shape == memory.shape
            memory = following

    def test_parser_policy_is_determined_by_its_state_dict(self, kind):
        """Its weights, loaded into another policy of its kind, give the same bits."""
        policy = reader(kind, PAGES)
        other = reader(kind, PAGES, seed=4)
        assert (sequence_probabilities(policy) != sequence_probabilities(other)).any()
        other.load_state_dict({name: w.clone() for name, w in policy.state_dict().items()})
        np.testing.assert_array_equal(sequence_probabilities(other), sequence_probabilities(policy))
        np.testing.assert_array_equal(actor_probabilities(other), actor_probabilities(policy))

    def test_parser_policy_with_pages_replaces_features_and_keeps_weights(self, kind):
        policy = reader(kind, PAGES)
        before = sequence_probabilities(policy)
        weights = deepcopy(policy.state_dict())
        features = policy.features.numpy() if isinstance(policy, ParsingPolicy) else policy.items[:, 2:]
        policy.with_pages(features + np.float32(0.5), PAGES.lengths)
        assert (sequence_probabilities(policy) != before).any()
        assert all(torch.equal(w, weights[name]) for name, w in policy.state_dict().items())
        policy.with_pages(features, PAGES.lengths)
        np.testing.assert_array_equal(sequence_probabilities(policy), before)

    def test_parser_policy_output_depends_only_on_the_parsed_page(self, kind):
        policy = reader(kind, PAGES)
        before = sequence_probabilities(policy)
        page_of_trajectory = EXPERT_PARSES.observations[:, 0, 0].astype(int)
        features = (policy.features.numpy() if isinstance(policy, ParsingPolicy) else policy.items[:, 2:]).copy()
        changed = page_of_trajectory[3]
        features[changed] += 1.0
        policy.with_pages(features, PAGES.lengths)
        after = sequence_probabilities(policy)
        on_unchanged_page = page_of_trajectory != changed
        np.testing.assert_allclose(after[on_unchanged_page], before[on_unchanged_page], atol=1e-6)
        assert (np.abs(after[3] - before[3])[EXPERT_PARSES.mask[3]].max() > 1e-4) or PAGES.lengths[changed] == 1

    def test_parser_policy_predict_returns_most_probable_legal_action(self, kind):
        policy = reader(kind, PAGES)
        parser = Parser(PAGES, np.arange(24))
        state = parser.reset(EXPERT_PARSES.seeds)
        observation = parser.observe(state)
        legal = parser.action_mask(state)
        chosen, memory = policy.predict(observation, deterministic=True, action_masks=legal)
        assert legal[ALL, chosen].all() and len(memory) == 15
        logits, _ = policy.actor().parameters(observation, policy.actor().memory(15))
        np.testing.assert_array_equal(chosen, np.where(legal, logits, -np.inf).argmax(axis=1))
