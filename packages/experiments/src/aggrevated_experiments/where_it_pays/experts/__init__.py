"""Experts of the studies."""
