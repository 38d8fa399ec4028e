"""The anchored update: known results with an inner update that adds one to all weights."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from aggrevated_reader.learners.anchored_update import AnchoredSettings, AnchoredUpdate, get_weights


class PlusOne:
    """Update that adds one to all weights of the policy and counts its calls."""

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


def make_zero_layer() -> nn.Linear:
    policy = nn.Linear(3, 2)
    for own in policy.parameters():
        nn.init.zeros_(own)
    return policy


def apply_updates(update: Any, policy: Any, times: int) -> Tensor:
    for _ in range(times):
        update(policy, None, None, None)
    return get_weights(policy)


@pytest.mark.parametrize("anchor_weight", [0.0, 0.25, 0.5])
def test_anchored_update_takes_gradients_at_the_inner_weights(anchor_weight: float) -> None:
    inner: Any = PlusOne()
    policy = make_zero_layer()
    assert apply_updates(AnchoredUpdate(inner, anchor_weight), policy, 3).tolist() == [3 * (1 - anchor_weight)] * 8
    assert inner.seen == [0.0, 1.0, 2.0]


def test_anchored_update_resumes_bit_identically() -> None:
    inner: Any = PlusOne()
    update = AnchoredUpdate(inner, 0.25)
    policy = make_zero_layer()
    apply_updates(update, policy, 2)
    saved = update.state()
    weights = get_weights(policy)
    expected = apply_updates(update, policy, 1)
    other: Any = PlusOne()
    again = AnchoredUpdate(other, 0.25)
    fresh = make_zero_layer()
    again.restore(saved)
    with torch.no_grad():
        for own, part in zip(fresh.parameters(), (weights[:6].view(2, 3), weights[6:]), strict=True):
            own.copy_(part)
    assert torch.equal(apply_updates(again, fresh, 1), expected) and other.times == 3


def test_anchored_settings_extend_the_regular_update_settings() -> None:
    built = AnchoredSettings(learning_rate=0.5, anchor_weight=0.1).build(0)
    assert built.anchor == 0.1 and built.inner.learning_rate == 0.5
