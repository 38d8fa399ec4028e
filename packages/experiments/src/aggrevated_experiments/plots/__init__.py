"""Charts of the result pages."""
