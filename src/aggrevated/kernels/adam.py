"""Adam, bit for bit torch's own: by the function inside of `torch.optim.Adam`.

The class around it imports torch's compiler at its first step, which takes as long as `import torch` itself.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim.adam import adam

# moments, as torch names them
FIRST = "exp_avg"
SECOND = "exp_avg_sq"


class Optimizer(Protocol):
    """What is used here of torch's optimizers."""

    param_groups: list[dict[str, Any]]

    def step(self) -> object: ...
    def zero_grad(self) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...


class Adam:
    """Over some weights, at a rate that stands in `param_groups[0]["lr"]`, as in torch."""

    def __init__(self, weights: Iterable[Tensor], lr: float = 1e-3) -> None:
        self.weights = list(weights)
        self.param_groups: list[dict[str, Any]] = [{"params": self.weights, "lr": lr}]
        self.state: dict[int, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step along the weights' gradients; a weight without one stays."""
        moved = [(i, weight) for i, weight in enumerate(self.weights) if weight.grad is not None]
        self.state |= {i: init_moments(weight) for i, weight in moved if i not in self.state}
        own = [self.state[i] for i, _ in moved]
        adam(
            [weight for _, weight in moved],
            [weight.grad for _, weight in moved if weight.grad is not None],
            [one[FIRST] for one in own], [one[SECOND] for one in own], [],
            [one["step"] for one in own],
            foreach=False, amsgrad=False, maximize=False, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0,
            lr=self.param_groups[0]["lr"],
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """As torch's: the moments of each weight, by its number."""
        return {"state": self.state, "param_groups": []}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the moments that `state_dict` gave."""
        self.state = {i: {name: w.clone() for name, w in own.items()} for i, own in state_dict["state"].items()}


def init_moments(weight: Tensor) -> dict[str, Tensor]:
    """Before the first step."""
    return {"step": torch.tensor(0.0)} | {name: torch.zeros_like(weight) for name in (FIRST, SECOND)}
