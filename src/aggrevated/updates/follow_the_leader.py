"""Follow the leader on aggregated data: AggreVaTe, DAgger and supervised learning."""

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from aggrevated.core.errors import UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.core.settings import POSITIVE, SelectedComponents, check_setting, setting
from aggrevated.kernels.adam import Adam
from aggrevated.losses import Loss, LossSettings
from aggrevated.oracles import CostToGo, Feedback
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import (
    UpdateResult,
    UpdateSettings,
    compute_auxiliary_loss,
    compute_gradient_norm,
    compute_loss_and_gradient,
    make_dropout_context,
)
from aggrevated.updates.dataset_aggregation import MAX_MEASURED_TRAJECTORIES, AggregatedDataset, TrainingData
from aggrevated.updates.safe_step import take_safe_step


@dataclass
class FollowTheLeaderUpdate:
    """π_{n+1} = argmin_π Σ_{i ≤ n} ℓ_i(π), approximated by minibatch steps of Adam from π_n.

    Args:
        learning_rate: Step size of Adam.
        steps: Minibatches per iteration.
        minibatch_size: Trajectories per minibatch.
        buffer_size: The most trajectories in the data set, a uniform sample of all so far.
        anneal: Whether the learning rate falls linearly to 0 in each iteration.
        max_kl: The largest mean KL per state of an iteration, in nats; the default allows all finite steps.
        seed: Determines minibatches and samples.
    """

    learning_rate: float = 0.01
    steps: int = 100
    minibatch_size: int = 50
    buffer_size: int = 1000
    anneal: bool = False
    max_kl: float = 1e6
    seed: int = 0
    aggregation: AggregatedDataset = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.aggregation = AggregatedDataset(self.buffer_size)

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        if not cost_to_go.has_all_actions and cost_to_go.expert_actions is None:
            raise UsageError(
                "follow the leader needs the cost-to-go of every action, or expert actions: costs of taken "
                "actions are useless for later policies; use another oracle or update"
            )
        if cost_to_go.entropy_bonus:
            raise UsageError("follow the leader does not support an entropy bonus; use an oracle without it")
        indices = np.arange(min(trajectories.count, MAX_MEASURED_TRAJECTORIES))
        measured, costs = TrainingData(trajectories, cost_to_go).take(indices)
        value, gradient = compute_loss_and_gradient(policy, loss, measured, costs)
        generator = np.random.default_rng(int(derive_seeds(self.seed, SeedPurpose.UPDATE, self.aggregation.seen, 1)[0]))
        self.aggregation.add(trajectories, cost_to_go, generator)
        theta = parameters_to_vector(policy.parameters()).detach()
        self._fit(policy, loss, generator)
        displacement = parameters_to_vector(policy.parameters()).detach() - theta
        vector_to_parameters(theta, policy.parameters())
        kl, halvings = take_safe_step(policy, measured, displacement, self.max_kl)
        return UpdateResult(value, compute_gradient_norm(gradient), kl, halvings)

    def _fit(self, policy: Policy, loss: Loss, generator: np.random.Generator) -> None:
        """Minimize the mean loss over the data set by Adam."""
        data = self.aggregation.data
        dropout = make_dropout_context(policy)
        optimizer = Adam(policy.parameters(), lr=self.learning_rate)
        for step in range(self.steps):
            if self.anneal:
                optimizer.param_groups[0]["lr"] = self.learning_rate * (1 - step / self.steps)
            count = data.trajectories.count
            batch = generator.choice(count, min(self.minibatch_size, count), replace=False)
            optimizer.zero_grad()
            with dropout(self.aggregation.seen * self.steps + step):  # two minibatches share a mask
                minibatch = data.take(batch)
                value = loss(policy, *minibatch) + compute_auxiliary_loss(policy, *minibatch)
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """Return the data set, for a checkpoint."""
        return self.aggregation.state()

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore the data set from a state that `state` returned."""
        self.aggregation.restore(state)


@dataclass(frozen=True)
class FollowTheLeaderSettings(UpdateSettings):
    """Follow the leader on all data so far."""

    name = "follow-the-leader"
    accepts = frozenset({Feedback.ALL_ACTIONS, Feedback.BEST_ACTION})
    learning_rate: float = setting(0.01, "Step size of Adam in follow the leader.", POSITIVE)

    def check(self, chosen: SelectedComponents) -> None:
        assert isinstance(chosen.loss, LossSettings)
        check_setting(not chosen.loss.entropy, "entropy", chosen.loss.entropy, f"0 for the update {self.name}")

    def build(self, seed: int) -> FollowTheLeaderUpdate:
        return FollowTheLeaderUpdate(self.learning_rate, seed=seed)
