"""Policies for programs that know nothing of this one: ONNX."""
