"""Oracle of the learner's own costs with a learned critic: generalized advantages (Schulman et al., 2016)."""

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
    """Oracle of generalized advantages Σ_i (γλ)^i δ_{t+i}, [K, T], from a learned critic V_φ.

    Here δ_t = c_t + γ V_φ(s_{t+1}) − V_φ(s_t). The expert is not queried. Advantages use the φ of earlier
    iterations; then V_φ is trained on the λ-returns of the new trajectories. Before the first training V_φ =
    0. The critic reads the observation and t/H: if these do not determine the state, λ < 1 has a bias.

    Args:
        gae_lambda: λ in [0, 1].
        discount: γ in [0, 1].
        hidden: widths of the critic's hidden layers.
        steps: number of Adam steps per iteration, each on all states.
        learning_rate: step size of Adam.
    """

    gae_lambda: float = 0.97
    discount: float = 1.0
    hidden: Sequence[int] = (64,)
    steps: int = 200
    learning_rate: float = 0.01
    _network: "ValueNetwork | None" = field(default=None, init=False, repr=False)

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        v = self.v(trajectories)
        advantage = generalized_advantages(trajectories, v, self.discount, self.gae_lambda)
        self._fit(trajectories, v + advantage)
        return CostToGo(advantage.astype(np.float32), trajectories.mask.astype(np.float32))

    def v(self, trajectories: Trajectories) -> Array:
        """Return the critic's values of the visited states.

        Args:
            trajectories: K trajectories of at most T steps.

        Returns:
            V_φ(s_t), [K, T], 0 where no step was taken.
        """
        v = np.zeros(trajectories.mask.shape)
        if self._network is not None:
            with torch.no_grad():
                v[trajectories.mask] = self._network(make_critic_inputs(trajectories)).numpy()
        return v

    def _fit(self, trajectories: Trajectories, targets: Array) -> None:
        """Minimize the mean squared error from the current φ, with a new Adam."""
        inputs = make_critic_inputs(trajectories)
        outputs = torch.from_numpy(targets[trajectories.mask].astype(np.float32))
        if self._network is None:
            generator = torch.Generator().manual_seed(
                int(trajectories.seeds[0] >> np.uint64(1))
            )  # torch's seeds are signed
            self._network = ValueNetwork(inputs.shape[1], self.hidden, generator)
        self._network.measure(inputs, outputs)
        optimizer = Adam(self._network.parameters(), lr=self.learning_rate)
        for _ in range(self.steps):
            optimizer.zero_grad()
            error = (self._network(inputs) - outputs) / self._network.scale
            error.square().mean().backward()
            optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """Return the critic's tensors by name; empty before the first training."""
        return {} if self._network is None else {n: w.clone() for n, w in self._network.state_dict().items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Set the critic to a state that `state` returned.

        Args:
            state: tensors by name; empty for an untrained critic.
        """
        self._network = None
        if state:
            self._network = ValueNetwork(len(state["mean"]), self.hidden, torch.Generator())
            self._network.load_state_dict(state)


class ValueNetwork(nn.Module):
    """Critic V_φ: a ReLU network with normalized inputs and output, which starts at 0."""

    mean: Tensor  # [O + 1], of the inputs
    deviation: Tensor  # [O + 1], of the inputs
    scale: Tensor  # []: root mean square of the targets

    def __init__(self, size: int, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.network = make_relu_network([size, *hidden, 1], generator, last_gain=0.0)
        for name, value in {"mean": torch.zeros(size), "deviation": torch.ones(size), "scale": torch.ones(())}.items():
            self.register_buffer(name, value)

    def measure(self, inputs: Tensor, targets: Tensor) -> None:
        """Set the normalization from data; a deviation or scale of 0 becomes 1."""
        deviation = inputs.std(dim=0, correction=0)
        scale = targets.square().mean().sqrt()
        self.mean.copy_(inputs.mean(dim=0))
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, 1.0))
        self.scale.copy_(torch.where(scale > 1e-6, scale, 1.0))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return V_φ [n] of inputs [n, O + 1]."""
        output: Tensor = self.network((inputs - self.mean) / self.deviation)[:, 0]
        return self.scale * output


def make_critic_inputs(trajectories: Trajectories) -> Tensor:
    """Return float32 [steps, O + 1]: the flat observation of each step taken, and its time t/H."""
    observations = trajectories.observations[trajectories.mask].reshape(trajectories.steps, -1)
    time = np.nonzero(trajectories.mask)[1] / trajectories.horizon
    return torch.from_numpy(np.column_stack([observations, time]).astype(np.float32))


def generalized_advantages(trajectories: Trajectories, v: Array, discount: float, gae_lambda: float) -> Array:
    """Return Σ_i (γλ)^i δ_{t+i}, [K, T], for V(s_t) [K, T]; V is 0 after an end and at the horizon."""
    following = np.pad(v[:, 1:], ((0, 0), (0, 1)))
    delta = (trajectories.costs + discount * following - v) * trajectories.mask
    for t in reversed(range(delta.shape[1] - 1)):
        delta[:, t] += discount * gae_lambda * delta[:, t + 1]
    return delta


@dataclass(frozen=True)
class GaeSettings(Settings):
    """Settings of a learned critic with generalized advantages."""

    gae_lambda: float = setting(
        0.97,
        "lambda of the critic: 1 uses the observed costs only, 0 the critic's value of the next state.",
        UNIT_INTERVAL,
    )
    discount: float = setting(1.0, "Discount gamma of the critic; below 1, it trades variance for bias.", UNIT_INTERVAL)
    critic_hidden: tuple[int, ...] = setting((64,), "Widths of the critic's hidden layers.", LAYER_WIDTHS)
    critic_steps: int = setting(200, "Number of Adam steps of the critic per iteration.", at_least(1))
    critic_learning_rate: float = setting(0.01, "Learning rate of the critic's Adam steps.", POSITIVE)

    def build_critic(self) -> CriticOracle:
        """Build an untrained critic."""
        return CriticOracle(
            self.gae_lambda, self.discount, self.critic_hidden, self.critic_steps, self.critic_learning_rate
        )


@dataclass(frozen=True)
class CriticSettings(GaeSettings, OracleSettings):
    """The learner's own costs relative to a learned critic; the expert is not queried."""

    name = "critic"

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.TAKEN_ACTION

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        return self.build_critic()
