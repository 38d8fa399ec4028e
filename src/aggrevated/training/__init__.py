"""A run is a folder: config.json, metrics.jsonl, checkpoints/, policy.safetensors, result.json, curve.png and .svg."""
