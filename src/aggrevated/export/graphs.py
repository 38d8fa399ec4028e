"""An ONNX graph while it grows: operations by name, each of which gives the name of what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError

# old enough for every onnxruntime of the last years
OPSET = 17
IR = 8
NUMBERS = {"float32": 1, "int64": 7, "float64": 11}  # as ONNX counts its types


def import_onnx() -> Any:
    """The package onnx; a `UsageError` where it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise UsageError("ONNX files need the package onnx: pip install 'aggrevated[onnx]'") from error
    return onnx


@dataclass
class Graph:
    """Operations in the order in which they are done, and the numbers that they know."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def add_constant(self, array: Any, dtype: Any = np.float32) -> str:
        """Numbers that are part of the file."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(import_onnx().numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """The name of its one result."""
        return self.add_outputs(operation, 1, *inputs, **attributes)[0]

    def add_outputs(self, operation: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """The names of its results."""
        names = [f"{operation.lower()}_{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(import_onnx().helper.make_node(operation, inputs, names, **attributes))
        return names

    def add_affine(self, x: str, weight: Array, bias: Array) -> str:
        """x Wᵀ + b, with torch's W [outputs, inputs]."""
        return self.add("Gemm", x, self.add_constant(weight), self.add_constant(bias), transB=1)

    def add_slice(self, x: str, start: int, end: int) -> str:
        """The columns from `start` up to `end`."""
        return self.add("Slice", x, *(self.add_constant([one], np.int64) for one in (start, end, 1)))

    def take_in(self, name: str, shape: tuple[int, ...]) -> str:
        """What the program gives, [batch, ...]."""
        self.inputs.append(self._make_value_info(name, "float32", shape))
        return name

    def add_output(self, name: str, value: str, shape: tuple[int, ...], dtype: str = "float32") -> None:
        """What the program gets, [batch, ...]."""
        self.nodes.append(import_onnx().helper.make_node("Identity", [value], [name]))
        self.outputs.append(self._make_value_info(name, dtype, shape))

    def _make_value_info(self, name: str, dtype: str, shape: tuple[int, ...]) -> Any:
        return import_onnx().helper.make_tensor_value_info(name, NUMBERS[dtype], ["batch", *shape])

    def build_model(self, facts: dict[str, str]) -> Any:
        """The whole file, found to be sound, with what it says of itself."""
        onnx = import_onnx()
        graph = onnx.helper.make_graph(self.nodes, "policy", self.inputs, self.outputs, self.constants)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR)
        model.producer_name = "aggrevated"
        onnx.helper.set_model_props(model, facts)
        onnx.checker.check_model(model, full_check=True)
        return model
