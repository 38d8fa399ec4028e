"""The policy that parses sentences: two faces that are one, lanes that know of no other, and what it learns along."""

import numpy as np
import pytest
import torch

from aggrevated.parsing.parser import Parser
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.roll_in import Mixture, roll_in
from aggrevated.text.generated import generated
from aggrevated.text.heading import sums_of, tables_of
from aggrevated.text.library import Library, Split
from aggrevated.text.policy import SentencePolicy
from problems import randomise

SEEDS = np.arange(9, dtype=np.uint64)
SENTENCES = tuple(generated(12, seed=3))
LIBRARY = Library.of(Split(SENTENCES[:8], SENTENCES[8:10], SENTENCES[10:]))


@pytest.fixture(params=SYSTEMS)
def system(request):
    return SYSTEMS[request.param]


def a_policy(system, sees_tags=False, dropout=0.0):
    policy = SentencePolicy(system, hidden=6, word=5, rows=64, width=10, sees_tags=sees_tags, dropout=dropout)
    policy.with_names(*LIBRARY.names)
    LIBRARY.show(policy)
    policy.encoder.meet(LIBRARY.shown, LIBRARY.shown.places(LIBRARY.train))
    return randomise(policy, seed=2, scale=0.4)


def rolled_in(policy, seeds=SEEDS):
    parser = Parser(LIBRARY.corpus, LIBRARY.train, system=policy.system, name="text")
    return roll_in(parser, Mixture(None, policy.actor()), seeds)


@pytest.mark.parametrize("sees_tags", [False, True])
def test_the_whole_sequence_agrees_with_one_step_after_the_other(system, sees_tags):
    policy = a_policy(system, sees_tags)
    found, actor = rolled_in(policy), policy.actor()
    with torch.no_grad():
        expected = policy.distribution(*map(torch.from_numpy, (found.observations, found.mask))).logits.numpy()
    for t in range(found.mask.shape[1]):
        live = np.flatnonzero(found.mask[:, t])
        given, _ = actor.parameters(found.observations[live, t], actor.memory(len(live)))
        given = given - np.logaddexp.reduce(given, axis=1, keepdims=True)
        np.testing.assert_allclose(given, expected[live, t], rtol=3e-5, atol=3e-5)


def test_a_lane_knows_of_no_other(system):
    policy = a_policy(system)
    together = rolled_in(policy)
    for lane, seed in enumerate(SEEDS):
        alone = rolled_in(policy, SEEDS[lane : lane + 1])
        length = alone.mask.shape[1]
        assert np.array_equal(alone.actions[0], together.actions[lane, :length]), seed
        actor, other = policy.actor(), policy.actor()
        other.parameters(together.observations[:, 0], other.memory(len(SEEDS)))  # it has read all of them
        one = actor.parameters(alone.observations[:, 0], actor.memory(1))[0]
        assert np.array_equal(one, other.parameters(alone.observations[:, 0], other.memory(1))[0])


def test_what_it_reads_does_not_hang_on_the_tags_unless_it_sees_them(system):
    blind, seeing = a_policy(system), a_policy(system, sees_tags=True)
    changed = Library.of(Split(SENTENCES[:8], SENTENCES[8:10], SENTENCES[10:]))
    changed.shown.tags[:] = 0
    for policy, same in ((blind, True), (seeing, False)):
        before = policy.look(LIBRARY.train).words
        policy.with_sentences(changed.shown)
        assert torch.equal(before, policy.look(LIBRARY.train).words) is same


def test_sums_of_heads_are_expected_costs_of_transitions():
    """With P = gold, in 0 and 1, the sums are the counts that the dynamic oracle makes its costs of."""
    heads = torch.tensor([[0.0, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]])[None]  # 2 heads 1 and 3
    tables = tables_of(heads, torch.tensor([3]))
    numbers = torch.tensor([[1, 0, -1, 2, 3, -1]])  # 1 and ROOT on the stack, 2 and 3 in the buffer
    told = sums_of(tables, torch.tensor([0]), numbers)[0].tolist()
    b_heads_s, s_heads_b, head_of_s_behind, waiting_for_s = told[:4]
    assert (b_heads_s, s_heads_b, head_of_s_behind, waiting_for_s) == (1, 0, 0, 0)
    assert told[4] == 0 and told[5] == 1  # the head of b is not behind it: it is ROOT, the second on the stack


def test_what_it_learns_along_is_learned_and_leaves_nothing_behind(system):
    policy = a_policy(system)
    found = rolled_in(policy)
    given = tuple(map(torch.from_numpy, (found.observations, found.mask, found.legal)))
    costs = torch.zeros(*found.mask.shape, len(system.actions))
    optimiser = torch.optim.Adam(policy.parameters(), lr=0.02)
    losses = []
    for _ in range(25):
        policy.distribution(*given)
        loss = policy.along(*given, costs)
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert losses[-1] < 0.5 * losses[0]
    assert policy._latest is None
    assert policy.with_sentences(LIBRARY.shown).along(*given, costs) is None  # without answers there is nothing


def test_words_that_were_never_met_share_a_vector_and_rare_ones_at_times(system):
    policy = a_policy(system, dropout=0.5)
    unmet = policy.encoder.met(torch.flatten((policy.encoder.counts == 0).nonzero())[:2])
    assert torch.equal(unmet[0], unmet[1])
    rare = (policy.encoder.counts > 0).nonzero()[:1].flatten().repeat(400)
    policy.train()
    shared = (policy.encoder.met(rare) == policy.encoder.word.weight[0]).all(dim=1).float().mean()
    count = policy.encoder.counts[rare[0]]
    assert shared == pytest.approx(0.25 / (0.25 + count.item()), abs=0.08)


def test_scores_are_gradients_of_each_trajectory(system):
    policy = a_policy(system)
    found = rolled_in(policy, SEEDS[:3])
    arrays = (found.observations, found.actions, found.mask, found.mask, found.legal)
    scores = policy.scores(*map(torch.from_numpy, arrays))
    chosen = policy.distribution(*map(torch.from_numpy, (found.observations, found.mask, found.legal)))
    total = (chosen.log_prob(torch.from_numpy(found.actions)) * torch.from_numpy(found.mask)).sum()
    whole = torch.cat(
        [g.flatten() for g in torch.autograd.grad(total, list(policy.parameters()), materialize_grads=True)]
    )
    torch.testing.assert_close(scores.sum(dim=0), whole, rtol=1e-3, atol=1e-4)


def test_an_actor_is_a_copy_of_the_narrowest_policy():
    policy = SentencePolicy(SYSTEMS["arc-eager"], hidden=1, word=1, rows=4, width=2)
    LIBRARY.show(policy.with_names(*LIBRARY.names))
    found = rolled_in(randomise(policy, seed=2, scale=0.4), SEEDS[:2])
    actor = policy.actor()
    before, _ = actor.parameters(found.observations[:, 0], actor.memory(2))
    copied = policy.actor()
    with torch.no_grad():
        for weight in (*policy.parameters(), policy.encoder.counts):
            weight += 1.0
    assert np.array_equal(copied.parameters(found.observations[:, 0], copied.memory(2))[0], before)
