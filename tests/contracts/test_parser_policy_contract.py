"""What every policy that reads pages must keep, as all policies: one policy in two faces, whose weights are all it is.

Its observations are numbers of pages and symbols, so that the suite for other policies cannot ask it.
"""

from copy import deepcopy

import numpy as np
import pytest
import torch

from aggrevated.parsing.learners.parser_policies import ParsingPolicy
from aggrevated.parsing.parser import Parser
from helpers.parser_policies import READERS, corpus, reader, trajectories

PAGES = corpus(24)
FOUND = trajectories(PAGES, count=15)  # by the expert, so that all readers see the same
LANES = np.arange(15)

pytestmark = pytest.mark.parametrize("kind", READERS)


def whole(policy, found=FOUND):
    """The probabilities of `distribution`, [K, T, A], among legal actions."""
    with torch.no_grad():
        arrays = map(torch.from_numpy, (found.observations, found.mask, found.legal))
        return policy.distribution(*arrays).probs.numpy()


def stepwise(policy, lanes=LANES, found=FOUND):
    """The same by an actor, one step after the other; a lane is dropped when its parse has ended."""
    actor = policy.actor()
    out = np.zeros((len(lanes), *found.legal.shape[1:]))
    memory = actor.memory(len(lanes))
    rows = np.arange(len(lanes))
    for t in range(found.mask.shape[1]):
        live = found.mask[lanes[rows], t]
        rows = rows[live]
        memory = memory[live]
        if not len(rows):
            break
        parameters, memory = actor.parameters(found.observations[lanes[rows], t], memory)
        logits = np.where(found.legal[lanes[rows], t], parameters.astype(float), -np.inf)
        out[rows, t] = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    return out


def test_whole_parses_agree_with_one_step_after_the_other(kind):
    policy = reader(kind, PAGES)
    found = stepwise(policy)
    np.testing.assert_allclose(found[FOUND.mask], whole(policy)[FOUND.mask], atol=2e-5)
    assert np.ptp(found[FOUND.mask], axis=0).min() > 0.05  # a policy that is the same everywhere shows nothing


def test_a_lane_does_not_depend_on_those_beside_it(kind):
    policy = reader(kind, PAGES)
    together = stepwise(policy)
    for lanes in ([4], [9, 2], [14, 13, 12, 0]):
        np.testing.assert_array_equal(stepwise(policy, np.array(lanes)), together[lanes])


def test_illegal_actions_have_probability_0(kind):
    found = whole(reader(kind, PAGES))
    assert not FOUND.action_mask[FOUND.mask].all() and not found[FOUND.mask][~FOUND.action_mask[FOUND.mask]].any()


def test_an_actor_changes_neither_observation_nor_memory(kind):
    actor = reader(kind, PAGES).actor()
    observation = FOUND.observations[:, 0]
    memory = actor.memory(len(observation))
    for _ in range(3):
        before = observation.copy(), memory.copy()
        _, following = actor.parameters(observation, memory)
        np.testing.assert_array_equal(observation, before[0])
        np.testing.assert_array_equal(memory, before[1])
        assert following.shape == memory.shape
        memory = following


def test_its_weights_are_all_that_it_is(kind):
    """Loaded into another of its kind, they give the same bits."""
    policy = reader(kind, PAGES)
    other = reader(kind, PAGES, seed=4)
    assert (whole(policy) != whole(other)).any()
    other.load_state_dict({name: w.clone() for name, w in policy.state_dict().items()})
    np.testing.assert_array_equal(whole(other), whole(policy))
    np.testing.assert_array_equal(stepwise(other), stepwise(policy))


def test_other_pages_are_other_features_and_no_other_weights(kind):
    policy = reader(kind, PAGES)
    before = whole(policy)
    weights = deepcopy(policy.state_dict())
    shown = policy.features.numpy() if isinstance(policy, ParsingPolicy) else policy.items[:, 2:]
    policy.with_pages(shown + np.float32(0.5), PAGES.lengths)
    assert (whole(policy) != before).any()
    assert all(torch.equal(w, weights[name]) for name, w in policy.state_dict().items())
    policy.with_pages(shown, PAGES.lengths)
    np.testing.assert_array_equal(whole(policy), before)


def test_what_stands_on_other_pages_does_not_matter(kind):
    policy = reader(kind, PAGES)
    before = whole(policy)
    own = FOUND.observations[:, 0, 0].astype(int)
    shown = (policy.features.numpy() if isinstance(policy, ParsingPolicy) else policy.items[:, 2:]).copy()
    changed = own[3]
    shown[changed] += 1.0
    policy.with_pages(shown, PAGES.lengths)
    after = whole(policy)
    same = own != changed
    np.testing.assert_allclose(after[same], before[same], atol=1e-6)
    assert (np.abs(after[3] - before[3])[FOUND.mask[3]].max() > 1e-4) or PAGES.lengths[changed] == 1


def test_predict_takes_the_most_probable_legal_action(kind):
    policy = reader(kind, PAGES)
    parser = Parser(PAGES, np.arange(24))
    state = parser.reset(FOUND.seeds)
    observation = parser.observe(state)
    legal = parser.action_mask(state)
    chosen, memory = policy.predict(observation, deterministic=True, action_masks=legal)
    assert legal[LANES, chosen].all() and len(memory) == 15
    logits, _ = policy.actor().parameters(observation, policy.actor().memory(15))
    np.testing.assert_array_equal(chosen, np.where(legal, logits, -np.inf).argmax(axis=1))
