"""The update that goes only a part of the way: known answers, with an inner update that adds one to all weights."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from aggrevated_reader.learners.anchored_update import AnchoredSettings, AnchoredUpdate, get_weights


class PlusOne:
    """It goes from where the policy is to all weights plus one, and remembers how often."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        self.times = torch.zeros(())

    def __call__(self, policy: nn.Module, *_: Any) -> float:
        self.seen.append(float(next(policy.parameters()).detach().flatten()[0]))
        self.times = self.times + 1
        with torch.no_grad():
            for own in policy.parameters():
                own += 1
        return self.seen[-1]

    def state(self) -> dict[str, Tensor]:
        return {"times": self.times}

    def restore(self, state: dict[str, Tensor]) -> None:
        assert set(state) == {"times"}
        self.times = state["times"]


def zeros() -> nn.Linear:
    policy = nn.Linear(3, 2)
    for own in policy.parameters():
        nn.init.zeros_(own)
    return policy


def walked(update: Any, policy: Any, times: int) -> Tensor:
    for _ in range(times):
        update(policy, None, None, None)
    return get_weights(policy)


@pytest.mark.parametrize("anchor_weight", [0.0, 0.25, 0.5])
def test_gradients_are_taken_where_the_steps_lead_and_the_policy_stays_behind(anchor: float) -> None:
    inner: Any = PlusOne()
    policy = zeros()
    assert walked(AnchoredUpdate(inner, anchor), policy, 3).tolist() == [3 * (1 - anchor)] * 8
    assert inner.seen == [0.0, 1.0, 2.0]


def test_it_goes_on_from_its_state_with_the_same_bits() -> None:
    inner: Any = PlusOne()
    update = AnchoredUpdate(inner, 0.25)
    policy = zeros()
    walked(update, policy, 2)
    kept = update.state()
    weights = get_weights(policy)
    expected = walked(update, policy, 1)
    other: Any = PlusOne()
    again = AnchoredUpdate(other, 0.25)
    fresh = zeros()
    again.restore(kept)
    with torch.no_grad():
        for own, part in zip(fresh.parameters(), (weights[:6].view(2, 3), weights[6:]), strict=True):
            own.copy_(part)
    assert torch.equal(walked(again, fresh, 1), expected) and other.times == 3


def test_its_settings_are_those_of_the_regular_update_and_one_more() -> None:
    built = AnchoredSettings(learning_rate=0.5, anchor_weight=0.1).build(0)
    assert built.anchor == 0.1 and built.inner.learning_rate == 0.5
