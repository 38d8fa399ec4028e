"""Commands of this package: reproduce, theory."""
