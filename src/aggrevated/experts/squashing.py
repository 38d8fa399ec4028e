"""Between (−1, 1), where networks that end in a tanh act, and the bounds of an action space."""

from aggrevated.core.arrays import Array


def unscale_action(actions: Array, low: Array, high: Array) -> Array:
    """From [−1, 1] to [low, high]."""
    within: Array = low + 0.5 * (actions + 1.0) * (high - low)
    return within


def scale_action(actions: Array, low: Array, high: Array) -> Array:
    """From [low, high] to [−1, 1]."""
    within: Array = 2.0 * ((actions - low) / (high - low)) - 1.0
    return within
