"""What the files and folders of a run are called: known without torch, also to those who only look."""

CONFIG, METRICS, RESULT, CHECKPOINTS = "config.json", "metrics.jsonl", "result.json", "checkpoints"
BEST_POLICY_FILE = "policy.safetensors"  # the best policy so far
TRIALS = "trials.json"  # in a folder with the runs of several trials
