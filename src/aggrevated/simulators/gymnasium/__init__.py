"""Adapter of any Gymnasium environment to a simulator."""

from aggrevated.simulators.gymnasium.simulator import GymnasiumSimulator

__all__ = ["GymnasiumSimulator"]
