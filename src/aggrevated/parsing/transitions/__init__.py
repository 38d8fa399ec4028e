"""Transition systems over batches of configurations, their dynamic oracles, and the check of these by brute force."""
