"""Any Gymnasium environment as a simulator."""

from aggrevated.simulators.gymnasium.simulator import GymnasiumSimulator

__all__ = ["GymnasiumSimulator"]
