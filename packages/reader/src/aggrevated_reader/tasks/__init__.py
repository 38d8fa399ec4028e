"""Task of this package: reader."""
