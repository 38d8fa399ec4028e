"""Builder of ONNX graphs: each operation that is added returns the names of its results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError

# supported by every onnxruntime since 2023
OPSET = 17
IR = 8
NUMBERS = {"float32": 1, "int64": 7, "float64": 11}  # ONNX codes of element types


def import_onnx() -> Any:
    """Return the package `onnx`.

    Raises:
        UsageError: `onnx` is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise UsageError("ONNX files need the package onnx: pip install 'aggrevated[onnx]'") from error
    return onnx


@dataclass
class Graph:
    """Operations in the order of their execution, with their constants, inputs and outputs."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def add_constant(self, array: Any, dtype: Any = np.float32) -> str:
        """Add an array that is stored in the file, and return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(import_onnx().numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation with one result, and return the name of the result."""
        return self.add_outputs(operation, 1, *inputs, **attributes)[0]

    def add_outputs(self, operation: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add an operation with `count` results, and return their names."""
        names = [f"{operation.lower()}_{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(import_onnx().helper.make_node(operation, inputs, names, **attributes))
        return names

    def add_affine(self, x: str, weight: Array, bias: Array) -> str:
        """Add x Wᵀ + b, with torch's W [outputs, inputs], and return the name of the result."""
        return self.add("Gemm", x, self.add_constant(weight), self.add_constant(bias), transB=1)

    def add_slice(self, x: str, start: int, end: int) -> str:
        """Add a slice of the columns from `start` up to `end`, and return its name."""
        return self.add("Slice", x, *(self.add_constant([number], np.int64) for number in (start, end, 1)))

    def take_in(self, name: str, shape: tuple[int, ...]) -> str:
        """Declare an input [batch, *shape] of the model, and return its name."""
        self.inputs.append(self._make_value_info(name, "float32", shape))
        return name

    def add_output(self, name: str, value: str, shape: tuple[int, ...], dtype: str = "float32") -> None:
        """Declare an output [batch, *shape] of the model."""
        self.nodes.append(import_onnx().helper.make_node("Identity", [value], [name]))
        self.outputs.append(self._make_value_info(name, dtype, shape))

    def _make_value_info(self, name: str, dtype: str, shape: tuple[int, ...]) -> Any:
        return import_onnx().helper.make_tensor_value_info(name, NUMBERS[dtype], ["batch", *shape])

    def build_model(self, metadata: dict[str, str]) -> Any:
        """Return the checked model with `metadata` as its properties."""
        onnx = import_onnx()
        graph = onnx.helper.make_graph(self.nodes, "policy", self.inputs, self.outputs, self.constants)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR)
        model.producer_name = "aggrevated"
        onnx.helper.set_model_props(model, metadata)
        onnx.checker.check_model(model, full_check=True)
        return model
