"""Export of policies as ONNX files, for programs that do not use this package."""
