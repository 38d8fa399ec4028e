"""The child of `iteration.py`: it works with whatever `aggrevated` is on its path, as much as it is asked for.

After each line "go n" it does n units of work and answers with the seconds of CPU that they took. What it imports has
to be there in every version that is compared.
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
    """Counts units of work, and waits for the next line when those that were asked for are done."""

    def __init__(self) -> None:
        self.left = 0
        self.began = process_time()

    def __call__(self, *_: object) -> None:
        """One more unit is done."""
        self.left -= 1
        if self.left > 0:
            return
        print(process_time() - self.began, flush=True)
        asked = sys.stdin.readline().split()
        if not asked:  # nobody wants more
            os._exit(0)
        self.left = int(asked[1])
        self.began = process_time()


def iterations(task: str, choices: dict[str, str], settings: dict[str, Any], folder: str) -> None:
    """Of `train`, with as many of the settings as this version knows: validation, metrics and checkpoints included."""
    known = resolve_config(task, **choices).settings
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in settings.items() if name in known}
    train(task, out=folder, iterations=10**6, progress=Turns(), warn=lambda told: None, **choices, **given)


def answers(task: str, choices: dict[str, str], settings: dict[str, Any], path: str) -> None:
    """Of the task's oracle to the same trajectories, in the file `path`."""
    config = resolve_config(task, **choices, **settings)
    done = Turns()
    world = config.problem.build(0)
    oracle = config.oracle.build(world.simulator, world.expert)
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
