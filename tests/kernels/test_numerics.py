"""Numerics fingerprint: equal in another process, different with another CPU's kernels."""

import os
import subprocess
import sys

import pytest
import torch

from aggrevated.kernels.numerics import (
    KERNEL_OUTPUTS_KEY,
    PACKAGES,
    compute_numerics_fingerprint,
    describe_numerics_difference,
)

PRINT_DIGEST = """
from aggrevated.kernels.numerics import KERNEL_OUTPUTS_KEY, compute_numerics_fingerprint
print(compute_numerics_fingerprint()[KERNEL_OUTPUTS_KEY])
"""


def digest_in_new_process(**environment: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", PRINT_DIGEST], env=os.environ | environment, check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def test_numerics_fingerprint_does_not_depend_on_process_or_threads() -> None:
    assert digest_in_new_process() == digest_in_new_process(
        OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2", PYTHONHASHSEED="7"
    )


def test_numerics_fingerprint_differs_with_other_cpu_kernels() -> None:
    if torch.backends.cpu.get_cpu_capability() == "DEFAULT":
        pytest.skip("this processor has no other kernels than the simplest")
    assert digest_in_new_process(ATEN_CPU_CAPABILITY="default") != digest_in_new_process()


def test_describe_numerics_difference_names_what_changed() -> None:
    now = compute_numerics_fingerprint()
    assert set(now) == {*PACKAGES, KERNEL_OUTPUTS_KEY} and describe_numerics_difference(now, now) == ""
    assert describe_numerics_difference(now | {"torch": "1.0"}, now) == f"torch 1.0 (here {now['torch']})"
    assert describe_numerics_difference(now | {KERNEL_OUTPUTS_KEY: "0"}, now) == "a processor that rounds differently"
