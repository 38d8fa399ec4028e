"""Numerics fingerprint: the package versions and the processor's rounding, on which the bits of a run depend.

The last bits of torch's products and of NumPy's functions depend on the processor. A digest of a few fixed
computations shows whether two machines round alike; if not, the same run has other results.
"""

from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from aggrevated.core.hardware import single_thread
from aggrevated.storage import JsonDict

PACKAGES = ("torch", "numpy", "numba", "gymnasium", "mujoco")
KERNEL_OUTPUTS_KEY = "answers"


@cache
def compute_numerics_fingerprint() -> JsonDict:
    """Return the versions of the numerical packages, and a digest of fixed computations."""
    with single_thread():
        return {name: get_installed_version(name) for name in PACKAGES} | {KERNEL_OUTPUTS_KEY: digest_kernel_outputs()}


def get_installed_version(package: str) -> str:
    """Return the version of a package, or "absent"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def digest_kernel_outputs() -> str:
    """Return a digest of the results of torch, NumPy and the compiled loops for fixed inputs."""
    import torch

    from aggrevated.kernels.linear_algebra import affine

    x = np.random.default_rng(0).normal(size=(60, 64)).astype(np.float32)
    t = torch.from_numpy(x)
    layer = torch.nn.LSTM(64, 8, batch_first=True)
    for i, parameter in enumerate(layer.parameters()):
        torch.nn.init.uniform_(parameter, -0.3, 0.3, generator=torch.Generator().manual_seed(i))
    hidden, _ = layer(t[None])
    hidden.square().sum().backward()
    gram = t.double().T @ t.double() + torch.eye(64)
    outputs = [
        t @ t.T, t.T @ t, t.tanh(), t.exp(), t.log_softmax(-1), t.sigmoid(), torch.linalg.solve(gram, t.double().T),
        *(parameter.grad for parameter in layer.parameters()),
        np.tanh(x), np.exp(x), np.log(np.abs(x)), np.cos(x.astype(float)), np.sin(x.astype(float)),
        np.linalg.eigh(gram.numpy())[0], affine(x, x.T.copy(), x[0, :60].copy()), x.sum(axis=0), x.mean(),
    ]  # fmt: skip
    sha = sha256()
    for output in outputs:
        sha.update(np.asarray(output.detach() if isinstance(output, torch.Tensor) else output).tobytes())
    return sha.hexdigest()[:16]


def describe_numerics_difference(saved: JsonDict, now: JsonDict) -> str:
    """Describe the difference of two numerics fingerprints; "" if they are equal."""
    changed = [f"{name} {saved.get(name)} (here {now[name]})" for name in PACKAGES if saved.get(name) != now[name]]
    if not changed and saved.get(KERNEL_OUTPUTS_KEY) != now[KERNEL_OUTPUTS_KEY]:
        return "a processor that rounds differently"
    return ", ".join(changed)
