"""Figures: each function takes numbers and a path without ending, and leaves a PNG and an SVG there."""
