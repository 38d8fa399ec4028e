"""The learner's own costs against a learned critic: generalised advantage estimation (Schulman et al., 2016)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from aggrevated.core.arrays import Array
from aggrevated.core.settings import LAYER_WIDTHS, POSITIVE, UNIT_INTERVAL, Settings, at_least, setting
from aggrevated.experts import Expert
from aggrevated.kernels.adam import Adam
from aggrevated.oracles import CostToGo, Feedback, Oracle, OracleSettings
from aggrevated.policies import Policy
from aggrevated.policies.feed_forward import make_relu_network
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator


@dataclass
class CriticOracle:
    """Σ_i (γλ)^i δ_{t+i}, [K, T], where δ_t = c_t + γ V_φ(s_{t+1}) − V_φ(s_t). No expert is asked.

    φ is what the iterations before made of it, so that the estimate does not see its own noise; then V_φ is fitted to
    the λ-returns of these trajectories. Before the first fit V_φ = 0. It reads the observation and t/H: where these do
    not tell the whole state, λ < 1 has a bias.
    """

    gae_lambda: float = 0.97
    discount: float = 1.0
    hidden: Sequence[int] = (64,)
    steps: int = 200  # of Adam, on all the data at once
    learning_rate: float = 0.01
    _network: "ValueNetwork | None" = field(default=None, init=False, repr=False)

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        v = self.v(trajectories)
        advantage = generalized_advantages(trajectories, v, self.discount, self.gae_lambda)
        self._fit(trajectories, v + advantage)
        return CostToGo(advantage.astype(np.float32), trajectories.mask.astype(np.float32))

    def v(self, trajectories: Trajectories) -> Array:
        """V_φ(s_t), [K, T], 0 where no step was taken."""
        v = np.zeros(trajectories.mask.shape)
        if self._network is not None:
            with torch.no_grad():
                v[trajectories.mask] = self._network(make_critic_inputs(trajectories)).numpy()
        return v

    def _fit(self, trajectories: Trajectories, targets: Array) -> None:
        """Minimise the mean squared error, from where φ is; Adam begins anew."""
        x = make_critic_inputs(trajectories)
        y = torch.from_numpy(targets[trajectories.mask].astype(np.float32))
        if self._network is None:
            generator = torch.Generator().manual_seed(int(trajectories.seeds[0] >> np.uint64(1)))  # torch's are signed
            self._network = ValueNetwork(x.shape[1], self.hidden, generator)
        self._network.measure(x, y)
        optimizer = Adam(self._network.parameters(), lr=self.learning_rate)
        for _ in range(self.steps):
            optimizer.zero_grad()
            error = (self._network(x) - y) / self._network.scale
            error.square().mean().backward()
            optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """φ; empty before the first fit."""
        return {} if self._network is None else {n: w.clone() for n, w in self._network.state_dict().items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._network = None
        if state:
            self._network = ValueNetwork(len(state["mean"]), self.hidden, torch.Generator())
            self._network.load_state_dict(state)


class ValueNetwork(nn.Module):
    """V_φ: a ReLU network, its inputs and output in the units of the data that it was fitted to. It starts at 0."""

    mean: Tensor  # [O + 1], of the inputs
    deviation: Tensor  # [O + 1]
    scale: Tensor  # []: root mean square of the targets

    def __init__(self, size: int, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.network = make_relu_network([size, *hidden, 1], generator, last_gain=0.0)
        for name, units in {"mean": torch.zeros(size), "deviation": torch.ones(size), "scale": torch.ones(())}.items():
            self.register_buffer(name, units)

    def measure(self, x: Tensor, y: Tensor) -> None:
        """Take the units from this data; 1 where it does not vary."""
        deviation = x.std(dim=0, correction=0)
        scale = y.square().mean().sqrt()
        self.mean.copy_(x.mean(dim=0))
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, 1.0))
        self.scale.copy_(torch.where(scale > 1e-6, scale, 1.0))

    def forward(self, x: Tensor) -> Tensor:
        """[n], from the inputs [n, O + 1]."""
        output: Tensor = self.network((x - self.mean) / self.deviation)[:, 0]
        return self.scale * output


def make_critic_inputs(trajectories: Trajectories) -> Tensor:
    """[steps, O + 1] float32: the observations of the steps that were taken, flat, each with its time t/H."""
    observations = trajectories.observations[trajectories.mask].reshape(trajectories.steps, -1)
    time = np.nonzero(trajectories.mask)[1] / trajectories.horizon
    return torch.from_numpy(np.column_stack([observations, time]).astype(np.float32))


def generalized_advantages(trajectories: Trajectories, v: Array, discount: float, gae_lambda: float) -> Array:
    """Σ_i (γλ)^i δ_{t+i}, [K, T], for V(s_t) [K, T]; V is 0 after an end, and at the horizon, where costs end too."""
    following = np.pad(v[:, 1:], ((0, 0), (0, 1)))
    delta = (trajectories.costs + discount * following - v) * trajectories.mask
    for t in reversed(range(delta.shape[1] - 1)):
        delta[:, t] += discount * gae_lambda * delta[:, t + 1]
    return delta


@dataclass(frozen=True)
class GaeSettings(Settings):
    """What can be set about the critic, wherever it is used."""

    gae_lambda: float = setting(
        0.97,
        "lambda of the critic: 1 trusts the realised costs, 0 the critic's value of the next state.",
        UNIT_INTERVAL,
    )
    discount: float = setting(1.0, "gamma of the critic; below 1 it has a bias, and less variance.", UNIT_INTERVAL)
    critic_hidden: tuple[int, ...] = setting((64,), "Widths of the critic's hidden layers.", LAYER_WIDTHS)
    critic_steps: int = setting(200, "How many steps of Adam the critic is fitted by in each iteration.", at_least(1))
    critic_learning_rate: float = setting(0.01, "Their learning rate.", POSITIVE)

    def build_critic(self) -> CriticOracle:
        """A new one."""
        return CriticOracle(
            self.gae_lambda, self.discount, self.critic_hidden, self.critic_steps, self.critic_learning_rate
        )


@dataclass(frozen=True)
class CriticSettings(GaeSettings, OracleSettings):
    """What the learner itself paid, against a learned critic; the expert is not asked."""

    name = "critic"

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.TAKEN_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        return self.build_critic()
