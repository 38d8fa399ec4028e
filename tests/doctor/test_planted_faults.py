"""The doctor finds planted faults and reports none in builtin experts."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from planted import make_faults

from aggrevated.config import Config
from aggrevated.config.resolver import resolve_config
from aggrevated.doctor import diagnose

SEEDS = range(5 if os.environ.get("AGGREVATED_FAULTS") == "all" else 1)
TASKS = ("cartpole", "acrobot", "acrobot-partial", "hopper", "walker")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", list(make_faults(Path())))
def test_diagnose_finds_every_planted_fault(name: str, seed: int, tmp_path: Path) -> None:
    make: Callable[[], Config]
    make, checks = make_faults(tmp_path)[name]
    diagnosis = diagnose(make(), episodes=40, seed=seed, seconds=4)
    assert checks & {one.check for one in diagnosis.faults}, diagnosis.to_dict()
    assert diagnosis.verdict == "fault"
    assert all(one.remedy for one in diagnosis.faults)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TASKS)
def test_diagnose_finds_no_fault_in_builtin_experts(name: str, seed: int) -> None:
    diagnosis = diagnose(resolve_config(name), episodes=40, seed=seed, seconds=4)
    findings = [one for one in diagnosis.findings if one.verdict in ("fault", "warning")]
    assert not findings, findings
    assert diagnosis.recommendation is not None and diagnosis.recommendation.method == "aggrevated"
