"""The reading policy: its auxiliary losses, its output, and that parsing does not change with them."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.parsing.parser import Parser
from aggrevated.updates import compute_auxiliary_loss, compute_loss_and_gradient
from aggrevated.updates.exponentiated import ExponentiatedUpdate
from aggrevated.updates.follow_the_leader import FollowTheLeaderUpdate
from aggrevated.updates.regular import RegularUpdate
from aggrevated_reader.learners.expected_cost import NO_ARC_TARGET
from aggrevated_reader.learners.symbol_names import (
    UNKNOWN,
    choose_class_names,
    encode_labels,
    names_from_bytes,
    names_to_bytes,
)
from helpers.parser_policies import (
    assert_parse_batch_is_greedy,
    corpus,
    demonstrated,
    features_of,
    reader,
    trajectories,
)

PAGES = corpus(24)
PARSER = Parser(PAGES, np.arange(24))
HEADS = np.concatenate([gold[1 : n + 1] for gold, n in zip(PAGES.gold, PAGES.lengths, strict=True)])
NAMES = np.random.default_rng(3).integers(0, 3, len(HEADS))


def make_reading_policy(answers=True, **settings):
    policy = reader("reading", PAGES, **settings)
    return policy.with_answers(NAMES, HEADS) if answers else policy


def roll_in_with_costs(policy, n=1):
    """Return parses by the policy, and A* of every action."""
    parses = trajectories(PAGES, policy, n=n)
    return parses, AdvantageOracle(QStarOracle(PARSER.expert))(parses)


def test_auxiliary_loss_gradient_agrees_with_finite_differences():
    """The slope along the gradient of each weight is the length of the gradient."""
    policy = make_reading_policy()
    parses, costs = roll_in_with_costs(policy)
    arrays = [torch.from_numpy(x) for x in (parses.observations, parses.mask, parses.action_mask, costs.values)]
    weights = dict(policy.named_parameters())
    gradients = torch.autograd.grad(policy.auxiliary_loss(*arrays), list(weights.values()), materialize_grads=True)
    lengths = {name: float(gradient.norm()) for name, gradient in zip(weights, gradients, strict=True)}
    for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
        if not lengths[name]:
            continue
        ends = []
        with torch.no_grad():
            for step in (1e-2, -1e-2):
                weight += step * gradient / lengths[name]
                ends.append(policy.auxiliary_loss(*arrays).item())
                weight -= step * gradient / lengths[name]
        assert (ends[0] - ends[1]) / 2e-2 == pytest.approx(lengths[name], rel=0.02, abs=0.002), name
    assert {name for name, length in lengths.items() if not length} == {"readout.weight", "readout.bias"}
    assert min(length for length in lengths.values() if length) > 0.01


def test_loss_and_gradient_adds_the_auxiliary_gradient_only():
    policy = make_reading_policy()
    parses, costs = roll_in_with_costs(policy)
    value, plain = compute_loss_and_gradient(policy, all_actions_loss, parses, costs)
    same, both = compute_loss_and_gradient(policy, all_actions_loss, parses, costs, along=costs)
    total = compute_auxiliary_loss(policy, parses, costs)
    extra = torch.cat(
        [g.reshape(-1) for g in torch.autograd.grad(total, list(policy.parameters()), materialize_grads=True)]
    )
    assert value == same
    torch.testing.assert_close(both, plain + extra)


@pytest.mark.parametrize(
    "update",
    [RegularUpdate(0.02), ExponentiatedUpdate(steps=40), FollowTheLeaderUpdate(steps=40)],
    ids=lambda u: type(u).__name__,
)
def test_updates_teach_symbol_names_to_reading_policy(update):
    policy = make_reading_policy()
    parses, costs = roll_in_with_costs(policy)
    if isinstance(update, FollowTheLeaderUpdate):
        parses, costs = demonstrated(PAGES)
    before = policy.compute_naming_loss(
        torch.from_numpy(parses.observations), policy.encode_pages(pages_of(parses))[0]
    ).item()
    for _ in range(30 if isinstance(update, RegularUpdate) else 1):
        update(policy, all_actions_loss, parses, costs)
    after = policy.compute_naming_loss(
        torch.from_numpy(parses.observations), policy.encode_pages(pages_of(parses))[0]
    ).item()
    assert after < 0.9 * before


def pages_of(parses):
    return torch.from_numpy(parses.observations[:, 0, 0]).long()


def test_auxiliary_loss_without_answers_is_zero():
    policy = make_reading_policy(answers=False)
    parses, costs = roll_in_with_costs(policy)
    assert compute_auxiliary_loss(policy, parses, costs) == 0.0
    for kind in ("contextual", "lstm", "reactive"):
        assert compute_auxiliary_loss(reader(kind, PAGES), parses, costs) == 0.0


def test_auxiliary_loss_does_not_reuse_cache_of_other_observations():
    """`along` reuses results of `distribution` for the same observations only; a copy of the policy has none."""
    policy = make_reading_policy()
    one, costs = roll_in_with_costs(policy)
    other, other_costs = roll_in_with_costs(policy, n=2)
    fresh = compute_auxiliary_loss(policy, other, other_costs).item()
    all_actions_loss(policy, one, costs)
    assert compute_auxiliary_loss(policy, other, other_costs).item() == fresh
    all_actions_loss(policy, one, costs)
    assert deepcopy(policy)._latest is None and policy._latest is not None


def test_wrong_arcs_are_those_missing_from_the_gold_tree():
    policy = make_reading_policy()
    parses, _ = roll_in_with_costs(policy)
    wrong = policy.compute_wrong_arcs(torch.from_numpy(parses.observations)).numpy()
    for k, t in zip(*np.nonzero(parses.mask), strict=True):
        page, s, _, _, b = parses.observations[k, t, :5].astype(int)
        gold = PAGES.gold[page]
        assert wrong[k, t, 0] == wrong[k, t, 3] == NO_ARC_TARGET
        assert wrong[k, t, 2] == float(gold[b] != s)
        assert wrong[k, t, 1] == (float(gold[s] != b) if s else NO_ARC_TARGET)


def test_symbol_names_survive_conversion_to_bytes():
    names = choose_class_names(["×", "x", "\\alpha", "x", "", "a" * 99])
    assert names == ("\\alpha", "x", "×") and names_from_bytes(names_to_bytes(names)) == names
    assert encode_labels(["x", "?", "×"], names).tolist() == [1, UNKNOWN, 2]
    policy = make_reading_policy().with_names(names)
    blank = reader("reading", PAGES, seed=5)
    blank.load_state_dict(policy.state_dict())
    assert blank.classes == names


def test_named_gives_only_classes_with_a_name():
    policy = make_reading_policy()
    number, likely = policy.predict_names(np.arange(24))
    assert len(number) == PAGES.lengths.sum() and set(number) <= {0, 1, 2} and (likely >= 1 / 3 - 1e-6).all()


def test_with_pages_reads_packed_features_like_padded_ones():
    policy = make_reading_policy()
    table = features_of(PAGES)
    in_a_row = table[np.arange(PAGES.most) < PAGES.lengths[:, None]]
    parses, _ = roll_in_with_costs(policy)
    arrays = [torch.from_numpy(x) for x in (parses.observations, parses.mask, parses.action_mask)]
    expected = policy.distribution(*arrays).probs.detach()
    policy.with_pages(in_a_row, PAGES.lengths)
    torch.testing.assert_close(policy.distribution(*arrays).probs.detach(), expected)
    np.testing.assert_array_equal(trajectories(PAGES, policy).actions, parses.actions)


def test_correct_names_calibrates_name_confidence():
    """Logits that are far too large, and right in two of three cases, are scaled down."""
    policy = make_reading_policy()
    with torch.no_grad():
        policy.naming_head[2].weight *= 0.0
        policy.naming_head[2].bias[:3] = torch.tensor([8.0, 0.0, 0.0])
    names = np.where(np.arange(len(HEADS)) % 3 < 2, 0, 1)
    policy.with_answers(names, HEADS).calibrate_names(np.arange(24))
    assert policy.sureness < 1
    assert abs(policy.predict_names(np.arange(24))[1].mean() - 2 / 3) < 0.25


def test_names_from_bytes_rejects_terminal_escape_codes() -> None:
    with pytest.raises(ValueError, match="cannot be printed"):
        names_from_bytes(names_to_bytes(["x", "\x1b[2J"]))


def test_parse_batch_of_reading_policy_follows_most_likely_legal_transitions():
    pages = corpus(12)
    assert_parse_batch_is_greedy(reader("reading", pages), pages)
