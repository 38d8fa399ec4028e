"""Compiled loops that give the same bits on every machine."""
