"""Memory, files and time per iteration do not grow with the length of a run.

The short form has a few hundred iterations and detects little; `AGGREVATED_FAULTS=all` has 10,000.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ITERATIONS = 10_000 if os.environ.get("AGGREVATED_FAULTS") == "all" else 240
MEASURE = """
import gc, json, os, sys, time
from pathlib import Path
from aggrevated import train
iterations, update = int(sys.argv[1]), sys.argv[2]
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
seen = []
def look(line):
    if line.iteration % (iterations // 8) == 0:
        seen.append([line.iteration, resident(), len(os.listdir("/proc/self/fd")), time.process_time()])
train("cartpole", out=sys.argv[3], progress=look, update=update, iterations=iterations, trajectories=1, horizon=5,
      validation_episodes=1, test_episodes=1, hidden=(4,))
print(json.dumps(seen))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured as Linux tells it")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("update", ["exponentiated", "regular", "natural"])
def test_long_run_uses_constant_memory_files_and_time_per_iteration(tmp_path: Path, update: str) -> None:
    command = [sys.executable, "-c", MEASURE, str(ITERATIONS), update, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    print(update, [[n, round(size / 2**20, 1), files, round(clock, 1)] for n, size, files, clock in seen])
    sizes = [size for _, size, _, _ in seen[1:]]
    files = {files for _, _, files, _ in seen}
    first = seen[3][3] - seen[1][3]
    last = seen[7][3] - seen[5][3]
    assert max(sizes) < 1.01 * sizes[0], [size / 2**20 for size in sizes]
    assert len(files) == 1
    assert last < 1.5 * first, (first, last)
