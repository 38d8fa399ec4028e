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
from aggrevated.core.errors import UserCodeError
from aggrevated.core.user_code import call_user_code, check_finite, check_numeric_array
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import observe_and_check


@dataclass(frozen=True)
class ModuleOutputs:
    """What a module gives for observations [n, ...], as an array."""

    part: str
    module: nn.Module

    @classmethod
    def from_module(cls, part: str, module: nn.Module) -> ModuleOutputs:
        """Of a copy, in which nothing is left to chance."""
        return cls(part, call_user_code(part, "deepcopy", lambda: deepcopy(module).cpu().eval().requires_grad_(False)))

    def __call__(self, observations: Array) -> Array:
        floating = (weight.dtype for weight in self.module.parameters() if weight.is_floating_point())
        given = torch.from_numpy(np.ascontiguousarray(observations)).to(next(floating, torch.float32))
        with torch.no_grad(), single_torch_thread():
            out = self.module(given)
        if not isinstance(out, torch.Tensor):
            remedy = "make it give one tensor: the actions' preferences, or a vector"
            raise UserCodeError(self.part, f"gave {type(out).__name__} for observations", remedy)
        array: Array = out.numpy()
        return array


@dataclass(frozen=True)
class ModuleExpert:
    """The action that a module prefers, of a finite set; else the vector that it gives."""

    name: str
    outputs: ModuleOutputs
    simulator: Simulator

    def act(self, states: Array, t: int) -> Array:
        given = self.outputs(observe_and_check(self.simulator, states))
        space = self.simulator.action_space
        if not isinstance(space, Discrete):
            return given
        part = f"the expert {self.name}"
        shape = (len(states), int(space.n))
        preferences = check_numeric_array(part, "preferences", given, shape, "give one for each action")
        chosen: Array = check_finite(part, "preferences", preferences, "check its weights").argmax(axis=1)
        return chosen


@contextmanager
def single_torch_thread() -> Iterator[None]:
    """For a moment: bits hang on the number of threads."""
    threads = torch.get_num_threads()
    if threads != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)
