"""Figures: each function takes numbers and a path without an ending, and writes a PNG and an SVG there."""
