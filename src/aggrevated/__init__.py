"""AggreVaTeD: differentiable imitation learning from an expert that knows what a mistake costs."""

from aggrevated.version import __version__

__all__ = ["__version__"]
