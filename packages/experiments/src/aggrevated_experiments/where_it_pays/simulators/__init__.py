"""Simulators of the studies."""
