"""Recurrent policies, π_θ(·|o₁ … o_t): LSTM and GRU, for finite sets of actions and for vectors.

The paper's histories are o₁, a₁, …, o_t: with `observe_actions`, the previous action is a part of the inputs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import torch
from gymnasium.spaces import Space
from torch import Tensor, nn
from torch.distributions import Distribution

from aggrevated.actors.recurrent import RecurrentActor
from aggrevated.actors.window import ActionHistoryActor
from aggrevated.core.settings import SelectedComponents, check_recurrent_width
from aggrevated.policies import Policy, SequenceSettings, get_input_size, make_initial_generator
from aggrevated.policies.heads import Head
from aggrevated.policies.recurrent_cells import CELLS, LSTM, CompiledLSTM
from aggrevated.storage import JsonDict

BackwardFunction: TypeAlias = Callable[[Tensor], tuple[Tensor, ...]]


class RecurrentPolicy(Policy):
    """π_θ(a|o₁ … o_t): a recurrent layer, a linear layer and a head.

    The paper uses an LSTM of 32 units where the observations are link positions only. Initial weights are
    uniform. The weights of the linear layer are scaled by 0.1, so that π₁ is nearly uniform and excludes no
    action.

    Args:
        observation_size: Size of an observation vector.
        head: Output layer, for the action space.
        hidden: Units of the recurrent layer.
        cell: "lstm" or "gru".
        generator: Generator of the initial weights; by default they are always the same.
        observe_actions: Whether the previous action is a part of the inputs.
    """

    registry_name = "recurrent"

    def __init__(
        self,
        observation_size: int,
        head: Head,
        hidden: int = 32,
        cell: str = "lstm",
        generator: torch.Generator | None = None,
        observe_actions: bool = False,
    ) -> None:
        super().__init__()
        self.cell = CELLS[cell]
        self.size = observation_size
        self.observe_actions = observe_actions
        inputs = observation_size + observe_actions * head.outputs
        self.recurrent = self.cell.layer(inputs, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, head.outputs)
        self.head = head
        generator = generator or make_initial_generator(0)
        for parameter in [*self.recurrent.parameters(), *self.readout.parameters()]:
            nn.init.uniform_(parameter, -(hidden**-0.5), hidden**-0.5, generator=generator)
        with torch.no_grad():
            self.readout.weight *= 0.1
            self.readout.bias.zero_()

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        """Return the distributions of whole trajectories [K, T] in one pass; padding does not affect them."""
        hidden, _ = self.recurrent(observations)
        return self.head.distribution(self.head.complete(self.readout(hidden)), legal)

    def compute_scores(
        self, observations: Tensor, actions: Tensor, mask: Tensor, own: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """Return the scores [K, d] by one backward pass for all trajectories, to pre-activations.

        Every weight enters through a product y_t = W x_t + b. So the gradient of a trajectory is Σ_t (∂/∂y_t)
        x_tᵀ, and the sums are batched products.
        """
        hidden, back = self._run_recurrence(observations, mask)  # h_0 … h_T
        completed = self.head.complete(self.readout(hidden[:, 1:])).detach().requires_grad_()
        log_probability = self.head.distribution(completed, legal).log_prob(actions)
        (out,) = torch.autograd.grad((log_probability * own).sum(), completed)
        head_gradient = out[..., self.head.outputs :]
        out = out[..., : self.head.outputs]
        y, m = back(out @ self.readout.weight.detach())
        before = hidden[:, :-1]
        after = hidden[:, 1:]
        linear = y.mT @ observations, m.mT @ before, y.sum(1), m.sum(1), out.mT @ after, out.sum(1)
        return torch.cat([gradient.flatten(1) for gradient in (*linear, head_gradient.sum(1))], dim=1)

    def _run_recurrence(self, observations: Tensor, mask: Tensor) -> tuple[Tensor, BackwardFunction]:
        """Return h_0 … h_T [K, T + 1, hidden], and a function from ∂/∂h to ∂/∂y and ∂/∂m [K, T, gates]."""
        w, u, b, c = (parameter.detach() for parameter in self.recurrent.parameters())
        inputs = observations @ w.T + b
        if isinstance(self.cell, LSTM) and inputs.dtype == torch.float32:
            unrolled = CompiledLSTM((inputs + c).numpy(), u.T.contiguous().numpy(), mask.sum(dim=1).numpy())

            def run_compiled(by_hidden: Tensor) -> tuple[Tensor, Tensor]:
                gates = torch.from_numpy(unrolled.run_backward(by_hidden.numpy()))
                return gates, gates

            return torch.from_numpy(unrolled.hidden), run_compiled
        count, length = mask.shape  # zeros are added to y_t and m_t, to differentiate by them
        at_y, at_m = (torch.zeros(count, length, len(b), dtype=b.dtype, requires_grad=True) for _ in range(2))
        states = [self.cell.make_initial_state(count, u.shape[1], u.dtype)]
        for y, zero in zip((inputs + at_y).unbind(1), at_m.unbind(1), strict=True):
            states.append(self.cell.step(y, states[-1][0] @ u.T + c + zero, states[-1]))
        hidden = torch.stack([state[0] for state in states], 1)
        return hidden.detach(), lambda by_hidden: torch.autograd.grad(hidden[:, 1:], (at_y, at_m), by_hidden)

    def actor(self) -> RecurrentActor | ActionHistoryActor:
        readout = self.readout.weight.detach().numpy().T.copy(), self.readout.bias.detach().numpy().copy()
        inner = RecurrentActor(self.cell.copy_of(self.recurrent), *readout, self.head.sampler())
        return ActionHistoryActor(inner, inner.sampler, self.head.outputs) if self.observe_actions else inner

    def architecture(self) -> JsonDict:
        """Return the JSON from which `from_architecture` builds an equal policy."""
        cell = next(name for name, cell in CELLS.items() if cell is self.cell)
        flags = {"observe_actions": True} if self.observe_actions else {}
        return {"observations": self.size, "hidden": self.recurrent.hidden_size, "cell": cell, **flags}

    @classmethod
    def from_architecture(cls, shape: JsonDict, head: Head) -> Self:
        observe_actions = bool(shape.get("observe_actions", False))
        return cls(shape["observations"], head, shape["hidden"], shape["cell"], observe_actions=observe_actions)


@dataclass(frozen=True)
class LstmSettings(SequenceSettings):
    """Recurrent network (LSTM)."""

    name = "lstm"

    def check(self, chosen: SelectedComponents) -> None:
        check_recurrent_width(self.hidden, self.name)

    def build(self, observations: Space[Any], head: Head, seed: int) -> RecurrentPolicy:
        size = get_input_size(observations)
        generator = make_initial_generator(seed)
        return RecurrentPolicy(size, head, self.hidden[0], self.name, generator, self.observe_actions)


@dataclass(frozen=True)
class GruSettings(LstmSettings):
    """Recurrent network (GRU)."""

    name = "gru"
