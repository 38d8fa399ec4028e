"""Comparison of methods seed by seed on many tasks: numbers, text and page."""
