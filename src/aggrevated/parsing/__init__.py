"""Dependency parsing of handwritten algebra, from images of symbols to a tree (Section 6.2 of the paper)."""
