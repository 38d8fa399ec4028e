"""Section 6.2 of the paper: dependency parsing of handwritten algebra, from images of symbols to a tree."""
