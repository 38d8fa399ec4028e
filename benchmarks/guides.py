"""Run the scripts of docs/guides and write their results to docs/results/guides.json, which the guides quote.

python benchmarks/guides.py                   # every guide, seeds 0 to 2: hours of one core
python benchmarks/guides.py tagger pendulum   # some
python docs/make_numbers.py                   # then: their numbers into the pages

Results in the file stay until the same guide and seed are run again; `--missing` runs only missing ones.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from aggrevated.storage import write_atomically

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results/guides.json"
CALLS = {path.stem: [path.stem] for path in sorted((ROOT / "docs/guides").glob("*.py"))}
CALLS["lunar_lander"] += ["--expert", "../ppo.zip"]  # the first guide makes it for all
CALLS["demonstrations, 3 episodes"] = ["demonstrations", "--episodes", "3"]


def run(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Return the last line that a guide prints, with its command."""
    script, *options = [*CALLS[name], "--seed", str(seed)]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    called = [sys.executable, str(ROOT / f"docs/guides/{script}.py"), *options]
    done = subprocess.run(called, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result | {"command": " ".join(["python", f"{script}.py", *options])}


def load_results() -> dict[str, list[dict[str, Any]]]:
    """Return the results in the file."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(CALLS), help=f"guides: {', '.join(CALLS)} (default: all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--missing", action="store_true", help="run only results that are missing in the file")
    parser.add_argument("--work", type=Path, default=Path("runs/guides"), help="folder of experts, recordings and runs")
    given = parser.parse_args()
    for name in given.names:
        for seed in given.seeds:
            if given.missing and any(row["seed"] == seed for row in load_results().get(name, [])):
                continue
            made = run(name, seed, given.work / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}")
            found = load_results()
            others = [row for row in found.get(name, []) if row["seed"] != seed]
            found[name] = sorted([*others, made], key=lambda row: row["seed"])
            write_atomically(RESULTS, (json.dumps(dict(sorted(found.items())), indent=1) + "\n").encode())
            print(json.dumps({name: made}), flush=True)
