"""Adam, bit-identical to `torch.optim.Adam`, by torch's functional implementation.

The class `torch.optim.Adam` imports torch's compiler at its first step, which takes as long as `import torch`.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim.adam import adam

# torch's names of the moments
FIRST = "exp_avg"
SECOND = "exp_avg_sq"


class Optimizer(Protocol):
    """The methods of torch's optimizers that this package uses."""

    param_groups: list[dict[str, Any]]

    def step(self) -> object: ...
    def zero_grad(self) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...


class Adam:
    """Adam with the learning rate in `param_groups[0]["lr"]`, as in torch.

    Args:
        weights: tensors to optimize, with gradients in `grad`.
        lr: learning rate.
    """

    def __init__(self, weights: Iterable[Tensor], lr: float = 1e-3) -> None:
        self.weights = list(weights)
        self.param_groups: list[dict[str, Any]] = [{"params": self.weights, "lr": lr}]
        self.state: dict[int, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        """Set all gradients to None."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take one step along the gradients; weights without a gradient do not change."""
        moved = [(i, weight) for i, weight in enumerate(self.weights) if weight.grad is not None]
        self.state |= {i: init_moments(weight) for i, weight in moved if i not in self.state}
        states = [self.state[i] for i, _ in moved]
        adam(
            [weight for _, weight in moved],
            [weight.grad for _, weight in moved if weight.grad is not None],
            [state[FIRST] for state in states], [state[SECOND] for state in states], [],
            [state["step"] for state in states],
            foreach=False, amsgrad=False, maximize=False, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0,
            lr=self.param_groups[0]["lr"],
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Return the moments of each weight by its index, as torch does."""
        return {"state": self.state, "param_groups": []}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the moments that `state_dict` returned."""
        self.state = {i: {name: w.clone() for name, w in moments.items()} for i, moments in state_dict["state"].items()}


def init_moments(weight: Tensor) -> dict[str, Tensor]:
    """Return the moments of a weight before the first step."""
    return {"step": torch.tensor(0.0)} | {name: torch.zeros_like(weight) for name in (FIRST, SECOND)}


MOMENT_PREFIX = "adam."  # of the moments in a checkpoint


def flatten_moments(moments: dict[int, dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return Adam's moments of all weights by their names in a checkpoint."""
    return {f"{MOMENT_PREFIX}{i}.{name}": w.clone() for i, tensors in moments.items() for name, w in tensors.items()}


def unflatten_moments(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Return Adam's moments by the number of the weight, the inverse of `flatten_moments`."""
    moments: dict[int, dict[str, Tensor]] = {}
    for key, w in tensors.items():
        i, name = key.removeprefix(MOMENT_PREFIX).split(".")
        moments.setdefault(int(i), {})[name] = w.clone()
    return moments
