"""Hand-made good policies, feed-forward (the paper's layer of 16 ReLU) and recurrent (its LSTM of 32)."""

from collections.abc import Sequence

import torch

from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.policies.recurrent import RecurrentPolicy

HIDDEN = (16,)


def steered(actions: int, direction: Sequence[float], gain: float) -> FeedForwardPolicy:
    """Return a policy with logits from −gain·(w·o) for the first action to +gain·(w·o) for the last, linearly.

    Eight of the 16 units are relu(w·o), eight relu(−w·o): their difference is w·o.
    """
    policy = FeedForwardPolicy(len(direction), CategoricalHead(actions), HIDDEN)
    first = policy.network[0]
    last = policy.network[2]
    signs = torch.tensor([1.0, -1.0]).repeat(8)
    with torch.no_grad():
        first.weight.copy_(torch.outer(signs, torch.tensor(direction)))
        last.weight.copy_(torch.outer(torch.linspace(-gain, gain, actions), signs / 8))
    return policy


def balancing() -> FeedForwardPolicy:
    """Return a policy that balances CartPole for all of 500 steps."""
    return steered(2, (0.1, 0.3, 2.0, 0.6), gain=5.0)


def swinging() -> FeedForwardPolicy:
    """Return a policy that pushes Acrobot's second link the way it moves; the tip is up after about 100 steps."""
    return steered(3, (0.0, 0.0, 0.0, 0.0, 0.0, 1.0), gain=2.0)


SMALL = 0.05  # tanh is linear here


def recurrent(inputs: int, actions: int) -> tuple[RecurrentPolicy, list[torch.Tensor]]:
    """Return an LSTM of 32 whose first 8 units are memoryless σ(i) · g(·), and the parameters of those units.

    The parameters are W_i, W_g, U_g and the read-out; all zeros. The other 24 units are random, and not read.
    """
    policy = RecurrentPolicy(inputs, CategoricalHead(actions), generator=torch.Generator().manual_seed(0))
    layer = policy.recurrent
    w, u, b = (p.detach().unflatten(0, (4, 32)) for p in (layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0))
    for parameter in (w, u, b):  # [i f g o, unit, ...]
        parameter[:, :8] = 0.0
    # forget gate 0, output gate 1
    b[1, :8] = -20.0
    b[3, :8] = 20.0
    layer.bias_hh_l0.detach().unflatten(0, (4, 32))[:, :8] = 0.0
    policy.readout.weight.detach().zero_()
    return policy, [w[0, :8], w[2, :8], u[2, :8], policy.readout.weight.detach()[:, :8]]


def recurrent_balancing() -> RecurrentPolicy:
    """Return a recurrent `balancing`: unit 0 is half of a small multiple of w·o."""
    policy, (_, w_g, _, readout) = recurrent(4, 2)
    w_g[0] = SMALL * torch.tensor([0.1, 0.3, 2.0, 0.6])
    readout[:, 0] = torch.tensor([-5.0, 5.0]) * 2 / SMALL
    return policy


def recurrent_swinging() -> RecurrentPolicy:
    """Return a recurrent `swinging` from link positions, with the second link's velocity as the last change.

    Units 0 and 1 store cos θ₂ and sin θ₂. Units 2 and 3 are the change of the sine where the cosine is positive or
    negative, 4 and 5 that of the cosine where the sine is. Their signed sum is (|cos θ₂| + |sin θ₂|) Δθ₂.
    """
    policy, (w_i, w_g, u_g, readout) = recurrent(4, 3)
    for unit, (seen, gate, sign) in enumerate([(2, 0, 0), (3, 0, 0), (3, 2, 1), (3, 2, -1), (2, 3, 1), (2, 3, -1)]):
        w_g[unit, seen] = SMALL
        if sign:  # σ(i) is 1 where the gate's input has this sign, and g is the observation minus its stored value
            w_i[unit, gate] = 10.0 * sign
            u_g[unit, seen - 2] = -2.0
            readout[:, unit] = torch.tensor([-1.0, 0.0, 1.0]) * (sign if seen == 3 else -sign) * 10 / SMALL
    return policy
