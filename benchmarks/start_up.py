"""Start-up time: fresh processes, one after the other, each command once per round."""

import interleave

# isort: split
import subprocess
import sys
from collections.abc import Sequence
from time import perf_counter

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import torch": [sys.executable, "-c", "import torch"],
    "import aggrevated": [sys.executable, "-c", "import aggrevated"],
    "import aggrevated.algorithm": [sys.executable, "-c", "import aggrevated.algorithm"],
    "aggrevated --help": [sys.executable, "-c", "from aggrevated.cli import main; main()", "--help"],
}
WITHOUT_TORCH = """
import sys
from aggrevated.cli import main
sys.argv[1:] = ["--help"]
try:
    main()
except SystemExit as end:
    if end.code:
        raise
sys.exit(3 if "torch" in sys.modules else 0)
"""


def seconds_of(command: Sequence[str]) -> float:
    """How long the process ran."""
    began = perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return perf_counter() - began


def works(command: Sequence[str]) -> bool:
    """Whether the command ends well; this first run also fills the file cache."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def main() -> None:
    options = interleave.arguments(__doc__, rounds=9, seconds=0.0)
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
        free = works([sys.executable, "-c", WITHOUT_TORCH])
        targets.append(interleave.at_least("start-up", "--help does not import torch", 1, [float(free)]))
    interleave.report("Start-up time", rows, targets, options)
    for name in COMMANDS.keys() - available.keys():
        print(f"{name}: not available")


if __name__ == "__main__":
    main()
