"""Tasks of the studies."""
