"""Torch modules as experts: a copy of the module runs on the CPU, on one thread.

The last bits of the outputs may depend on the batch size.
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
    """The outputs of a module for observations [n, ...], as an array."""

    part: str
    module: nn.Module

    @classmethod
    def from_module(cls, part: str, module: nn.Module) -> ModuleOutputs:
        """Return the outputs of a copy of the module, in evaluation mode."""
        return cls(part, call_user_code(part, "deepcopy", lambda: deepcopy(module).cpu().eval().requires_grad_(False)))

    def __call__(self, observations: Array) -> Array:
        floating = (weight.dtype for weight in self.module.parameters() if weight.is_floating_point())
        inputs = torch.from_numpy(np.ascontiguousarray(observations)).to(next(floating, torch.float32))
        with torch.no_grad(), single_torch_thread():
            outputs = self.module(inputs)
        if not isinstance(outputs, torch.Tensor):
            remedy = "make it return one tensor: preferences of the actions, or action vectors"
            raise UserCodeError(self.part, f"gave {type(outputs).__name__} for observations", remedy)
        array: Array = outputs.numpy()
        return array


@dataclass(frozen=True)
class ModuleExpert:
    """An expert that takes the action of the module's largest output, or the output if actions are vectors."""

    name: str
    outputs: ModuleOutputs
    simulator: Simulator

    def act(self, states: Array, t: int) -> Array:
        outputs = self.outputs(observe_and_check(self.simulator, states))
        space = self.simulator.action_space
        if not isinstance(space, Discrete):
            return outputs
        part = f"the expert {self.name}"
        shape = (len(states), int(space.n))
        preferences = check_numeric_array(part, "preferences", outputs, shape, "return one for each action")
        actions: Array = check_finite(part, "preferences", preferences, "check its weights").argmax(axis=1)
        return actions


@contextmanager
def single_torch_thread() -> Iterator[None]:
    """Run torch on one thread inside the block, since bits depend on the number of threads."""
    threads = torch.get_num_threads()
    if threads != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)
