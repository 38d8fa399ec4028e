"""The child process of `iteration.py`: it runs the `aggrevated` on its path, a requested number of units at a time.

After each line "go n" it does n units of work and prints the seconds of CPU that they took. Its imports must exist in
every version that is compared.
"""

import json
import os
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import aggrevated
from aggrevated import train
from aggrevated.config.resolver import resolve_config
from aggrevated.rollout.trajectories import Trajectories


class Turns:
    """Counter of units of work that waits for the next line when the requested units are done."""

    def __init__(self) -> None:
        self.left = 0
        self.began = process_time()

    def __call__(self, *_: object) -> None:
        """Count one more unit."""
        self.left -= 1
        if self.left > 0:
            return
        print(process_time() - self.began, flush=True)
        request = sys.stdin.readline().split()
        if not request:  # end of input
            os._exit(0)
        self.left = int(request[1])
        self.began = process_time()


def iterations(task: str, choices: dict[str, str], settings: dict[str, Any], folder: str) -> None:
    """Run `train` with all settings that this version knows, including validation, metrics and checkpoints."""
    known = resolve_config(task, **choices).settings
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in settings.items() if name in known}
    train(task, out=folder, iterations=10**6, progress=Turns(), warn=lambda message: None, **choices, **given)


def answers(task: str, choices: dict[str, str], settings: dict[str, Any], path: str) -> None:
    """Query the task's oracle at the same trajectories, from the file `path`."""
    config = resolve_config(task, **choices, **settings)
    done = Turns()
    problem = config.problem.build(0)
    oracle = config.oracle.build(problem.simulator, problem.expert)
    arrays = np.load(path)
    trajectories = Trajectories(**arrays, horizon=config.settings["horizon"])
    while True:
        oracle(trajectories)
        done()


if __name__ == "__main__":
    if "--help" in sys.argv:
        print(__doc__)
        sys.exit()
    assert Path(aggrevated.__file__).is_relative_to(os.environ["PYTHONPATH"]), f"another one: {aggrevated.__file__}"
    {"iterations": iterations, "answers": answers}[sys.argv[1]](*json.loads(sys.argv[2]))
