"""Tasks of this package: reader."""
