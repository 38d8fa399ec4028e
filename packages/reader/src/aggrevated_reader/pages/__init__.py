"""Pages of handwriting: generated ones, and pages that users corrected."""
