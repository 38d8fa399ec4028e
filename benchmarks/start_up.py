"""Start-up time: fresh processes in sequence, each command once per round."""

import interleave

# isort: split
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

TORCH = "import torch"
FIRST_ITERATION = """
import tempfile, aggrevated
def stop(metrics): raise SystemExit
with tempfile.TemporaryDirectory() as folder:
    aggrevated.train("cartpole", iterations=1, out=f"{folder}/run", progress=stop)
"""
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    TORCH: [sys.executable, "-c", TORCH],
    "import aggrevated": [sys.executable, "-c", "import aggrevated"],
    "import aggrevated.algorithm": [sys.executable, "-c", "import aggrevated.algorithm"],
    "train, until the first iteration": [sys.executable, "-c", FIRST_ITERATION],
    "aggrevated --help": [sys.executable, str(Path(sys.executable).with_name("aggrevated")), "--help"],
}

IN_IMPORTS_OF_TORCH = {"import aggrevated.algorithm": 1.15, "train, until the first iteration": 1.6}  # at most


def seconds_of(command: Sequence[str]) -> float:
    """Return how long the process ran."""
    began = perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return perf_counter() - began


def works(command: Sequence[str]) -> bool:
    """Return whether the command succeeds; this first run also fills the file cache."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def imports_torch(command: Sequence[str]) -> bool:
    """Return whether a Python command imports torch."""
    python, *rest = command
    done = subprocess.run([python, "-X", "importtime", *rest], check=True, capture_output=True, text=True)
    return any(line.rpartition("|")[2].strip() == "torch" for line in done.stderr.splitlines())


def main() -> None:
    options = interleave.arguments(__doc__, rounds=9)
    available = {name: command for name, command in COMMANDS.items() if works(command)}
    spent: dict[str, list[float]] = {name: [] for name in available}
    for _ in range(options.rounds):
        for name, command in available.items():
            spent[name].append(seconds_of(command))
    rows = [interleave.summary("start-up", name, "s", seconds) for name, seconds in spent.items()]
    targets = []
    for name, most in IN_IMPORTS_OF_TORCH.items():
        if name in spent and TORCH in spent:
            to_torch = interleave.ratios(spent[name], spent[TORCH])
            targets.append(interleave.at_most("start-up", f"{name} / {TORCH}", most, to_torch))
    if "aggrevated --help" in available:
        loads = imports_torch(COMMANDS["aggrevated --help"])
        targets.append(interleave.at_most("start-up", "imports of torch by --help", 0, [float(loads)]))
    interleave.report("Start-up time", rows, targets, options)
    for name in COMMANDS.keys() - available.keys():
        print(f"{name}: not available")


if __name__ == "__main__":
    main()
