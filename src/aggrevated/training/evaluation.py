"""The chosen policy of a run, tried again."""

from aggrevated import storage
from aggrevated.core.hardware import single_thread
from aggrevated.problems import EvaluationSettings
from aggrevated.training.records import Evaluation
from aggrevated.training.run_folder import Run


def evaluate_run(run: Run, how: EvaluationSettings) -> Evaluation:
    """The score of the run's chosen policy, measured anew, and nothing of what was measured before."""
    config = run.config
    policy = run.policy
    weights = storage.digest_tensors(policy.state_dict())
    with single_thread():
        score = how.measure(config.problem, policy)
    whose = {"task": config.task.name, "method": config.method, "update": config.update.name}
    return Evaluation(**whose, seed=config.loop.seed, run=str(run.folder), weights_sha256=weights, more=score)
