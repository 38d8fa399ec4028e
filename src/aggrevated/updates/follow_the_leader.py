"""Follow the leader over aggregated data: AggreVaTe, DAgger and supervised learning."""

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
    """π_{n+1} = argmin_π Σ_{i ≤ n} ℓ_i(π), approached by `steps` minibatch steps of Adam from π_n.

    The data are kept as trajectories, at most `capacity` of them.
    """

    learning_rate: float = 0.01
    steps: int = 100
    minibatch_size: int = 50  # trajectories
    buffer_size: int = 1000  # trajectories
    anneal: bool = False  # let the learning rate fall to 0, in a line
    max_kl: float = 1e6  # any finite step
    seed: int = 0
    aggregation: AggregatedDataset = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.aggregation = AggregatedDataset(self.buffer_size)

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        if not cost_to_go.has_all_actions and cost_to_go.expert_actions is None:
            raise UsageError(
                "follow the leader needs the cost-to-go of every action: data of the taken action only, from policies "
                "of the past, is not fit for the present one"
            )
        if cost_to_go.entropy_bonus:
            raise UsageError("follow the leader knows no entropy bonus; use the oracle without it")
        some = np.arange(min(trajectories.count, MAX_MEASURED_TRAJECTORIES))
        measured, costs = TrainingData(trajectories, cost_to_go).take(some)
        value, gradient = compute_loss_and_gradient(policy, loss, measured, costs)
        generator = np.random.default_rng(int(derive_seeds(self.seed, SeedPurpose.UPDATE, self.aggregation.seen, 1)[0]))
        self.aggregation.add(trajectories, cost_to_go, generator)
        before = parameters_to_vector(policy.parameters()).detach()
        self._fit(policy, loss, generator)
        displacement = parameters_to_vector(policy.parameters()).detach() - before
        vector_to_parameters(before, policy.parameters())
        kl, halvings = take_safe_step(policy, measured, displacement, self.max_kl)
        return UpdateResult(value, compute_gradient_norm(gradient), kl, halvings)

    def _fit(self, policy: Policy, loss: Loss, generator: np.random.Generator) -> None:
        """Adam on the mean loss of all the data, `minibatch` trajectories at a time."""
        data = self.aggregation.data
        learning = make_dropout_context(policy)
        optimizer = Adam(policy.parameters(), lr=self.learning_rate)
        for step in range(self.steps):
            if self.anneal:
                optimizer.param_groups[0]["lr"] = self.learning_rate * (1 - step / self.steps)
            count = data.trajectories.count
            batch = generator.choice(count, min(self.minibatch_size, count), replace=False)
            optimizer.zero_grad()
            with learning(self.aggregation.seen * self.steps + step):  # a mask serves two minibatches, and all trials
                some = data.take(batch)
                value = loss(policy, *some) + compute_auxiliary_loss(policy, *some)
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """The aggregated data."""
        return self.aggregation.state()

    def restore(self, state: dict[str, Tensor]) -> None:
        self.aggregation.restore(state)


@dataclass(frozen=True)
class FollowTheLeaderSettings(UpdateSettings):
    """Follow the leader, over all data so far."""

    name = "follow-the-leader"
    accepts = frozenset({Feedback.ALL_ACTIONS, Feedback.BEST_ACTION})
    learning_rate: float = setting(0.01, "The step size of Adam, inside follow the leader.", POSITIVE)

    def check(self, chosen: SelectedComponents) -> None:
        assert isinstance(chosen.loss, LossSettings)
        check_setting(not chosen.loss.entropy, "entropy", chosen.loss.entropy, f"0 for the update {self.name}")

    def build(self, seed: int) -> FollowTheLeaderUpdate:
        return FollowTheLeaderUpdate(self.learning_rate, seed=seed)
