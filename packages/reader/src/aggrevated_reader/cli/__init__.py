"""Commands of this package: parse, draw."""
