"""The number of this version, which every run, file and page says."""

__version__ = "0.3.0"
