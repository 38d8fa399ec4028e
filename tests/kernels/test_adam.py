"""Adam without its class: bit-identical to torch, also when continued, and without importing torch's compiler."""

import subprocess
import sys

import pytest
import torch

from aggrevated.kernels import adam
from aggrevated.kernels.adam import Adam


def make_problem(seed):
    generator = torch.Generator().manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2), torch.nn.Linear(3, 3))
    for parameter in network.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5, generator=generator)
    return network, torch.randn(40, 5, generator=generator)


def run_steps(network, x, optimizer, steps):
    for i in range(steps):
        optimizer.param_groups[0]["lr"] = 0.02 / (1 + i)
        optimizer.zero_grad()
        network[:3](x).square().sum().backward()  # the last layer has no gradient
        optimizer.step()


@pytest.mark.parametrize("seed", range(3))
def test_adam_matches_torch_bit_for_bit(seed):
    (our_network, x) = make_problem(seed)
    (torch_network, _) = make_problem(seed)
    run_steps(our_network, x, Adam(our_network.parameters(), lr=0.5), 20)
    run_steps(torch_network, x, torch.optim.Adam(torch_network.parameters(), lr=0.5), 20)
    assert all(torch.equal(a, b) for a, b in zip(our_network.parameters(), torch_network.parameters(), strict=True))


def test_adam_initializes_moments_once(monkeypatch):
    made = []
    make = adam.init_moments
    monkeypatch.setattr(adam, "init_moments", lambda weight: made.append(weight.shape) or make(weight))
    network, x = make_problem(0)
    run_steps(network, x, Adam(network.parameters()), 5)
    assert made == [weight.shape for weight in network[:3].parameters()]


@pytest.mark.parametrize("first", [Adam, torch.optim.Adam])
def test_adam_continues_from_a_loaded_state_dict(first):
    (network, x) = make_problem(0)
    (stopped, _) = make_problem(0)
    uninterrupted = Adam(network.parameters())
    interrupted = first(stopped.parameters())
    run_steps(network, x, uninterrupted, 5)
    run_steps(stopped, x, interrupted, 5)
    restored = Adam(stopped.parameters())
    restored.load_state_dict(interrupted.state_dict())
    run_steps(network, x, uninterrupted, 5)
    run_steps(stopped, x, restored, 5)
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), stopped.parameters(), strict=True))


def test_adam_does_not_import_torch_dynamo():
    code = (
        "import sys, torch; from aggrevated.kernels.adam import Adam\n"
        "w = torch.ones(2, requires_grad=True); w.sum().backward()\n"
        "Adam([w]).step(); print('torch._dynamo' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "False"
