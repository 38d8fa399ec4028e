"""Settings that have no effect on a run are refused; those that are accepted change it."""

from itertools import islice

import pytest

from aggrevated.algorithm import aggrevated
from aggrevated.config import Config
from aggrevated.config.builder import build_algorithm_inputs
from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import UnusedSettingError
from aggrevated.storage import digest_tensors

SMALL = {"trajectories": 4, "horizon": 25, "validation_episodes": 2, "test_episodes": 2, "iterations": 3}
VECTORS = "has no effect on actions that are vectors"
NO_ALPHA = "has no effect on a run whose --alpha-start is 0"


@pytest.mark.parametrize(
    ("task", "settings", "text"),
    [
        ("hopper", {"temperature": 0.1}, f"--temperature {VECTORS}"),
        ("hopper", {"max_target_cost": 0.1}, f"--max-target-cost {VECTORS}"),
        ("hopper", {"uniform_weight": 0.5}, f"--uniform-weight {VECTORS}"),
        ("hopper", {"eta": 0.5}, f"--eta {VECTORS}"),
        ("hopper", {"all_actions": False}, f"--all-actions {VECTORS}"),
        ("cartpole", {"eta": 0.5, "temperature": 0.1}, "--temperature has no effect on a step with --eta"),
        ("cartpole", {"eta": 0.5, "max_target_cost": 0.1}, "--max-target-cost has no effect on a step with --eta"),
        ("cartpole", {"alpha_decay": 0.9}, f"--alpha-decay {NO_ALPHA}"),
        ("cartpole", {"alpha_schedule": "linear"}, f"--alpha-schedule {NO_ALPHA}"),
    ],
)
def test_resolve_config_refuses_settings_without_effect(task: str, settings: dict[str, object], text: str) -> None:
    with pytest.raises(UnusedSettingError, match=text):
        resolve_config(task, **settings)


def compute_digest(config: Config) -> str:
    """Return the digest of the policy after three iterations."""
    inputs = build_algorithm_inputs(config)
    problem = inputs.problem
    iterations = aggrevated(
        inputs.learner,
        problem.simulator,
        problem.expert,
        inputs.oracle,
        inputs.loss,
        k=config.loop.trajectories,
        alpha=inputs.alpha,
        validate=lambda policy: 0.0,
    )
    assert len(list(islice(iterations, 3))) == 3
    return digest_tensors(inputs.learner.policy.state_dict())


FIT = {"decay_after": 1, "fit_learning_rate": 0.02, "fit_steps": 7, "minibatch_size": 9, "buffer_size": 5}
TARGET = {"temperature": 0.2, "max_target_cost": 1e-6, "uniform_weight": 0.5, "eta": 0.5}


@pytest.mark.parametrize(("task", "settings"), [("hopper", FIT), ("cartpole", FIT | TARGET)])
def test_accepted_settings_of_the_default_update_change_the_policy(task: str, settings: dict[str, object]) -> None:
    digests = {"default": compute_digest(resolve_config(task, **SMALL))}
    for name, value in settings.items():
        digests[name] = compute_digest(resolve_config(task, **SMALL, **{name: value}))
    assert len(set(digests.values())) == len(digests), digests
