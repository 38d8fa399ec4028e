"""The process in which films and commands are made: a request is a line of JSON on standard input, so is an answer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from aggrevated.errors import AggrevatedError
from aggrevated.files import Facts


def main() -> None:
    """Answer until nobody asks any more. What an environment prints goes nowhere."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


def answer(request: Facts) -> Facts:
    """What was asked for, or the sentence that says why not."""
    from aggrevated.machine import one_thread

    try:
        with one_thread():
            return film(request) if request["what"] == "film" else command(request)
    except AggrevatedError as error:
        return {"error": str(error)}
    except Exception as error:  # of an environment that somebody else wrote
        return {"error": f"that failed: {type(error).__name__}: {error}"}


def film(request: Facts) -> Facts:
    """Write the GIF, and give both returns."""
    from aggrevated.reports.watching import watch
    from aggrevated.runs.run import Run

    run = Run.open(request["folder"], trust=request["trust"])
    found = watch(run, request["seed"], Path(request["path"]))
    return {name: found[name] for name in ("learned_return", "expert_return")}


def command(request: Facts) -> Facts:
    """What to type to make such a run again."""
    from aggrevated.runs.cards import command_of
    from aggrevated.runs.run import Run

    return {"command": command_of(Run.open(request["folder"], trust=request["trust"]).config)}


if __name__ == "__main__":
    main()
