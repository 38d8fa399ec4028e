"""Small corpora of random trees with random features, and policies that read them."""

import numpy as np

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.learners.kernel import KernelPolicy, SupportVectorUpdate
from aggrevated.parsing.learners.parser_policies import KINDS, ParsingPolicy
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import evaluate_micro_uas, parse_batch
from aggrevated.parsing.transitions.configurations import NO_SYMBOL
from aggrevated.parsing.transitions.oracle_check import sample_projective_tree
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories

LIBRARY_KINDS = (*KINDS, "kernel-svm")
WIDTH = 6  # width of the features of a symbol


def page(heads, symbols=None):
    """Return a page with this tree, whose symbols are dots."""
    dot = (np.zeros((1, 2)),)
    return Page("page", "writer", tuple(symbols or "x" * len(heads)), np.array(heads), (dot,) * len(heads))


def corpus(pages=30, most=9, seed=0) -> Corpus:
    """Return a corpus of pages with random projective trees."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, most + 1, pages)
    return Corpus.from_pages([page(sample_projective_tree(int(n), generator)) for n in lengths])


def features_of(pages: Corpus, seed=1):
    """Return random features [P, N, WIDTH], zeros beyond a page."""
    drawn = np.random.default_rng(seed).normal(size=(len(pages.lengths), pages.most, WIDTH)).astype(np.float32)
    drawn[np.arange(pages.most) >= pages.lengths[:, None]] = 0.0
    return drawn


def reader(kind: str, pages: Corpus, seed=0, dropout=0.0) -> ParsingPolicy | KernelPolicy:
    """Return a small policy of that kind for these pages; kernel policies are trained on expert parses."""
    projection = Projection(np.zeros(WIDTH), np.eye(WIDTH))
    if kind == "kernel-svm":
        policy = KernelPolicy(projection, 4).with_pages(features_of(pages), pages.lengths)
        SupportVectorUpdate()(policy, None, *demonstrated(pages, seed))
        return policy
    if kind == "reading":
        from aggrevated_reader.learners.reading_policy import ReadingPolicy

        policy = ReadingPolicy(
            projection, SYSTEMS["arc-eager"], hidden=8, embedding=10, layers=2, dropout=dropout, seed=seed
        )
        policy.readout.weight.data *= 30
        return policy.with_names(("a", "b", "c")).with_pages(features_of(pages), pages.lengths)
    policy = ParsingPolicy(projection, 4, kind, hidden=8, embedding=10, dropout=dropout, seed=seed)
    policy.readout.weight.data *= 30  # to make it prefer some actions
    return policy.with_pages(features_of(pages), pages.lengths)


def trajectories(pages: Corpus, policy=None, count=12, n=1) -> Trajectories:
    """Return parses by the policy, or by the expert."""
    parser = Parser(pages, np.arange(len(pages.lengths)))
    mixture = RollInPolicy(parser.expert, None, 1.0) if policy is None else RollInPolicy(None, policy.actor())
    return roll_in(parser, mixture, derive_seeds(0, SeedPurpose.ROLL_IN, n, count))


def demonstrated(pages: Corpus, n=1, count=8):
    """Return (parses by the expert, zero-one costs of all actions)."""
    from aggrevated.oracles.zero_one import make_zero_one_oracle

    parser = Parser(pages, np.arange(len(pages.lengths)))
    parses = trajectories(pages, count=count, n=n)
    return parses, make_zero_one_oracle(parser.expert, parser.action_space)(parses)


def assert_parse_batch_is_greedy(policy, pages: Corpus) -> None:
    """Assert that `parse_batch` takes the legal transition with the highest logit on every page, in any order."""
    chosen = np.array([7, 3, 11])
    parser = Parser(pages, chosen, in_order=True)
    heads = parse_batch(policy, parser)
    np.testing.assert_array_equal(heads, parse_batch(policy, parser))
    for place, number in enumerate(chosen):
        actor = policy.actor()
        state = parser.start(np.array([number]))
        memory = actor.memory(1)
        done = False
        while not done:
            logits, memory = actor.parameters(parser.observe(state), memory)
            action = np.where(parser.action_mask(state), logits, -np.inf).argmax(axis=1)
            state, _, (done,) = parser.step(state, action)
        assert heads[place].tolist() == parser.heads(state)[0].tolist()
    gold = parser.gold[:, 1:]
    np.testing.assert_allclose(
        evaluate_micro_uas(policy, parser), (heads == gold)[gold != NO_SYMBOL].mean(), rtol=1e-6, atol=1e-12
    )
