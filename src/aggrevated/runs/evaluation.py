"""Trying the policy that a run chose again."""

from dataclasses import replace

from aggrevated.machine import one_thread
from aggrevated.runs.records import Result
from aggrevated.runs.run import Run
from aggrevated.worlds import EvaluationSettings


def evaluate(run: Run, how: EvaluationSettings) -> Result:
    """The run's result, or what is known so far, with its score measured anew."""
    with one_thread():
        return replace(run.so_far(), more=how.measure(run.config.world, run.policy), run=str(run.folder))
