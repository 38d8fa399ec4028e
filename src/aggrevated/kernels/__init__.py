"""Compiled loops with bit-identical results on every machine."""
