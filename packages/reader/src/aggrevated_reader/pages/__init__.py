"""Pages of handwriting: generated ones, and those that a user corrected."""
