"""Commands of this package: reproduce and theory."""
