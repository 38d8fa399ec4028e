"""Foundations: settings, registry, random streams, spaces, statistics and errors."""
