"""A policy that reads: what it learns along, what it says, and that nothing else changes by it."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.parsing.parser import Parser
from aggrevated.updates import auxiliary_loss, loss_and_gradient
from aggrevated.updates.exponentiated import ExponentiatedUpdate
from aggrevated.updates.follow_the_leader import FollowTheLeaderUpdate
from aggrevated.updates.regular import RegularUpdate
from aggrevated_reader.learners.expected_cost import NO_ARC_TARGET
from aggrevated_reader.learners.symbol_names import (
    UNKNOWN,
    choose_class_names,
    names_from_bytes,
    names_to_bytes,
    symbol_class_indices,
)
from helpers.parser_policies import corpus, demonstrated, features_of, reader, trajectories

PAGES = corpus(24)
PARSER = Parser(PAGES, np.arange(24))
HEADS = np.concatenate([gold[1 : n + 1] for gold, n in zip(PAGES.gold, PAGES.lengths, strict=True)])
NAMES = np.random.default_rng(3).integers(0, 3, len(HEADS))


def learner(answers=True, **settings):
    policy = reader("reading", PAGES, **settings)
    return policy.with_answers(NAMES, HEADS) if answers else policy


def found(policy, n=1):
    """(parses by the policy, A* of every action)."""
    parses = trajectories(PAGES, policy, n=n)
    return parses, AdvantageOracle(QStarOracle(PARSER.expert))(parses)


def test_the_gradient_of_what_is_learned_along_agrees_with_finite_differences():
    """Along the gradient of each weight, where the slope is its length."""
    policy = learner()
    parses, costs = found(policy)
    arrays = [torch.from_numpy(x) for x in (parses.observations, parses.mask, parses.legal, costs.values)]
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


def test_updates_add_it_to_their_own_gradient_and_report_their_own_loss():
    policy = learner()
    parses, costs = found(policy)
    value, plain = loss_and_gradient(policy, all_actions_loss, parses, costs)
    same, both = loss_and_gradient(policy, all_actions_loss, parses, costs, along=costs)
    total = auxiliary_loss(policy, parses, costs)
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
def test_every_update_that_fits_teaches_names(update):
    policy = learner()
    parses, costs = found(policy)
    if isinstance(update, FollowTheLeaderUpdate):
        parses, costs = demonstrated(PAGES)
    before = policy.misnamed(torch.from_numpy(parses.observations), policy.look(pages_of(parses))[0]).item()
    for _ in range(30 if isinstance(update, RegularUpdate) else 1):
        update(policy, all_actions_loss, parses, costs)
    after = policy.misnamed(torch.from_numpy(parses.observations), policy.look(pages_of(parses))[0]).item()
    assert after < 0.9 * before


def pages_of(parses):
    return torch.from_numpy(parses.observations[:, 0, 0]).long()


def test_without_answers_nothing_is_learned_along():
    policy = learner(answers=False)
    parses, costs = found(policy)
    assert auxiliary_loss(policy, parses, costs) == 0.0
    for kind in ("contextual", "lstm", "reactive"):
        assert auxiliary_loss(reader(kind, PAGES), parses, costs) == 0.0


def test_what_it_remembers_of_the_last_look_is_not_taken_for_another():
    """`along` uses what `distribution` saw only of the same observations; a copy of the policy has none of it."""
    policy = learner()
    one, costs = found(policy)
    other, other_costs = found(policy, n=2)
    fresh = auxiliary_loss(policy, other, other_costs).item()
    all_actions_loss(policy, one, costs)
    assert auxiliary_loss(policy, other, other_costs).item() == fresh
    all_actions_loss(policy, one, costs)
    assert deepcopy(policy)._latest is None and policy._latest is not None


def test_wrong_arcs_are_those_that_are_not_in_the_tree():
    policy = learner()
    parses, _ = found(policy)
    wrong = policy.wrong(torch.from_numpy(parses.observations)).numpy()
    for lane, t in zip(*np.nonzero(parses.mask), strict=True):
        page, s, _, _, b = parses.observations[lane, t, :5].astype(int)
        gold = PAGES.gold[page]
        assert wrong[lane, t, 0] == wrong[lane, t, 3] == NO_ARC_TARGET
        assert wrong[lane, t, 2] == float(gold[b] != s)
        assert wrong[lane, t, 1] == (float(gold[s] != b) if s else NO_ARC_TARGET)


def test_names_are_kept_as_bytes_and_found_again():
    names = choose_class_names(["×", "x", "\\alpha", "x", "", "a" * 99])
    assert names == ("\\alpha", "x", "×") and names_from_bytes(names_to_bytes(names)) == names
    assert symbol_class_indices(["x", "?", "×"], names).tolist() == [1, UNKNOWN, 2]
    policy = learner().with_names(names)
    blank = reader("reading", PAGES, seed=5)
    blank.load_state_dict(policy.state_dict())
    assert blank.classes == names


def test_only_classes_with_a_name_are_given():
    policy = learner()
    number, likely = policy.named(np.arange(24))
    assert len(number) == PAGES.lengths.sum() and set(number) <= {0, 1, 2} and (likely >= 1 / 3 - 1e-6).all()


def test_pages_in_a_row_are_read_as_those_in_a_table():
    policy = learner()
    table = features_of(PAGES)
    in_a_row = table[np.arange(PAGES.most) < PAGES.lengths[:, None]]
    parses, _ = found(policy)
    arrays = [torch.from_numpy(x) for x in (parses.observations, parses.mask, parses.legal)]
    expected = policy.distribution(*arrays).probs.detach()
    policy.with_pages(in_a_row, PAGES.lengths)
    torch.testing.assert_close(policy.distribution(*arrays).probs.detach(), expected)
    np.testing.assert_array_equal(trajectories(PAGES, policy).actions, parses.actions)


def test_names_are_as_sure_as_they_are_right():
    """Where the logits are far too large, and right in two of three cases, they are made smaller."""
    policy = learner()
    with torch.no_grad():
        policy.naming_head[2].weight *= 0.0
        policy.naming_head[2].bias[:3] = torch.tensor([8.0, 0.0, 0.0])
    names = np.where(np.arange(len(HEADS)) % 3 < 2, 0, 1)
    policy.with_answers(names, HEADS).correct_names(np.arange(24))
    assert policy.sureness < 1
    assert abs(policy.named(np.arange(24))[1].mean() - 2 / 3) < 0.25


def test_names_that_would_move_a_terminal_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be printed"):
        names_from_bytes(names_to_bytes(["x", "\x1b[2J"]))
