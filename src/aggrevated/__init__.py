"""AggreVaTeD: differentiable imitation learning from an expert that knows what a mistake costs."""

__version__ = "0.1.0"
