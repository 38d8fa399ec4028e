"""Networks of torch as experts: run on the CPU, on one thread, as they were when they were given.

The last bits of what they say may depend on how many states they are asked about at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium.spaces import Discrete
from torch import nn

from aggrevated.core.arrays import Array
from aggrevated.core.user_code import answer, finite, numbers
from aggrevated.errors import PartError
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import seen


@dataclass(frozen=True)
class Outputs:
    """What a module gives for observations [n, ...], as an array."""

    part: str
    module: nn.Module

    @classmethod
    def of(cls, part: str, module: nn.Module) -> Outputs:
        """Of a copy, in which nothing is left to chance."""
        return cls(part, answer(part, "deepcopy", lambda: deepcopy(module).cpu().eval().requires_grad_(False)))

    def __call__(self, observations: Array) -> Array:
        floating = (weight.dtype for weight in self.module.parameters() if weight.is_floating_point())
        given = torch.from_numpy(np.ascontiguousarray(observations)).to(next(floating, torch.float32))
        with torch.no_grad(), one_torch_thread():
            out = self.module(given)
        if not isinstance(out, torch.Tensor):
            remedy = "make it give one tensor: the actions' preferences, or a vector"
            raise PartError(self.part, f"gave {type(out).__name__} for observations", remedy)
        array: Array = out.numpy()
        return array


@dataclass(frozen=True)
class ModuleExpert:
    """The action that a module prefers, of a finite set; else the vector that it gives."""

    name: str
    outputs: Outputs
    simulator: Simulator

    def act(self, states: Array, t: int) -> Array:
        given, space = self.outputs(seen(self.simulator, states)), self.simulator.action_space
        if not isinstance(space, Discrete):
            return given
        part, shape = f"the expert {self.name}", (len(states), int(space.n))
        preferences = numbers(part, "preferences", given, shape, "give one for each action")
        chosen: Array = finite(part, "preferences", preferences, "check its weights").argmax(axis=1)
        return chosen


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """For a moment: bits hang on the number of threads."""
    threads = torch.get_num_threads()
    if threads != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)
