"""Runs: folders with config.json, metrics.jsonl, checkpoints/, policy.safetensors, result.json and curve.png/.svg."""
