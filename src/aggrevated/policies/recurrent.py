"""Policies with a memory, π_θ(·|o₁ … o_t): LSTM and GRU, for finite and for continuous actions.

The paper's histories are o₁, a₁, …, o_t: with `observe_actions` the previous action stands beside each observation.
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
    """A recurrent layer, a linear read-out and a head. The paper's, for link positions only, is an LSTM of 32."""

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
        """A random policy: uniform weights as is usual, and a read-out at a tenth, so that π₁ rules no action out."""
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
        """The distributions of whole trajectories [K, T] in one pass; what follows an episode's end has no effect."""
        hidden, _ = self.recurrent(observations)
        return self.head.distribution(self.head.complete(self.readout(hidden)), legal)

    def compute_scores(
        self, observations: Tensor, actions: Tensor, mask: Tensor, own: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """[K, d], by one backward pass for all trajectories, to the pre-activations instead of the weights.

        Every weight enters through a product y_t = W x_t + b, so that a trajectory's gradient is Σ_t (∂/∂y_t) x_tᵀ, and
        the sums are batched products. No second derivatives, and no pass for each trajectory.
        """
        hidden, back = self._run_recurrence(observations, mask)  # h_0 … h_T
        completed = self.head.complete(self.readout(hidden[:, 1:])).detach().requires_grad_()
        log_probability = self.head.distribution(completed, legal).log_prob(actions)
        (out,) = torch.autograd.grad((log_probability * own).sum(), completed)
        of_the_head = out[..., self.head.outputs :]
        out = out[..., : self.head.outputs]
        y, m = back(out @ self.readout.weight.detach())
        before = hidden[:, :-1]
        after = hidden[:, 1:]
        linear = y.mT @ observations, m.mT @ before, y.sum(1), m.sum(1), out.mT @ after, out.sum(1)
        return torch.cat([gradient.flatten(1) for gradient in (*linear, of_the_head.sum(1))], dim=1)

    def _run_recurrence(self, observations: Tensor, mask: Tensor) -> tuple[Tensor, BackwardFunction]:
        """(h_0 … h_T [K, T + 1, hidden], what turns ∂/∂h_1 … ∂/∂h_T into ∂/∂y_t and ∂/∂m_t [K, T, gates])."""
        w, u, b, c = (parameter.detach() for parameter in self.recurrent.parameters())
        inputs = observations @ w.T + b
        if isinstance(self.cell, LSTM) and inputs.dtype == torch.float32:
            unrolled = CompiledLSTM((inputs + c).numpy(), u.T.contiguous().numpy(), mask.sum(dim=1).numpy())

            def run_compiled(by_hidden: Tensor) -> tuple[Tensor, Tensor]:
                gates = torch.from_numpy(unrolled.run_backward(by_hidden.numpy()))
                return gates, gates

            return torch.from_numpy(unrolled.hidden), run_compiled
        count, length = mask.shape  # zeros added to y_t and m_t, whose derivatives are asked for
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
        cell = next(name for name, cell in CELLS.items() if cell is self.cell)
        seen = {"observe_actions": True} if self.observe_actions else {}
        return {"observations": self.size, "hidden": self.recurrent.hidden_size, "cell": cell, **seen}

    @classmethod
    def from_architecture(cls, shape: JsonDict, head: Head) -> Self:
        sees = bool(shape.get("observe_actions", False))
        return cls(shape["observations"], head, shape["hidden"], shape["cell"], observe_actions=sees)


@dataclass(frozen=True)
class LstmSettings(SequenceSettings):
    """It remembers what it learned to."""

    name = "lstm"

    def check(self, chosen: SelectedComponents) -> None:
        check_recurrent_width(self.hidden, self.name)

    def build(self, observations: Space[Any], head: Head, seed: int) -> RecurrentPolicy:
        size = get_input_size(observations)
        generator = make_initial_generator(seed)
        return RecurrentPolicy(size, head, self.hidden[0], self.name, generator, self.observe_actions)


@dataclass(frozen=True)
class GruSettings(LstmSettings):
    """The same with a simpler cell."""

    name = "gru"
