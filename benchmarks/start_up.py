"""Start-up time: fresh processes, one after the other, each command once per round."""

import interleave

# isort: split
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import torch": [sys.executable, "-c", "import torch"],
    "import aggrevated": [sys.executable, "-c", "import aggrevated"],
    "import aggrevated.algorithm": [sys.executable, "-c", "import aggrevated.algorithm"],
    "aggrevated --help": [sys.executable, str(Path(sys.executable).with_name("aggrevated")), "--help"],
}


def seconds_of(command: Sequence[str]) -> float:
    """How long the process ran."""
    began = perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return perf_counter() - began


def works(command: Sequence[str]) -> bool:
    """Whether the command ends well; this first run also fills the file cache."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def imports_torch(command: Sequence[str]) -> bool:
    """Whether a Python command imports torch on its way."""
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
    torch, algorithm = (spent.get(f"import {name}") for name in ("torch", "aggrevated.algorithm"))
    targets = []
    if torch and algorithm:
        to_torch = interleave.ratios(algorithm, torch)
        targets.append(interleave.at_most("start-up", "import aggrevated.algorithm / import torch", 1.15, to_torch))
    if "aggrevated --help" in available:
        loads = imports_torch(COMMANDS["aggrevated --help"])
        targets.append(interleave.at_most("start-up", "imports of torch by --help", 0, [float(loads)]))
    interleave.report("Start-up time", rows, targets, options)
    for name in COMMANDS.keys() - available.keys():
        print(f"{name}: not available")


if __name__ == "__main__":
    main()
