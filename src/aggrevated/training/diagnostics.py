"""Detection of stalled learning, from the metrics of each iteration.

A `TrainingMonitor` observes every iteration. Its state follows from the metrics of the iterations before, so a resumed
run gives the same warnings as an uninterrupted one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import NamedTuple, Protocol, Self

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical

from aggrevated.core.arrays import Array
from aggrevated.losses import Loss, compute_policy_distribution
from aggrevated.oracles import CostToGo
from aggrevated.oracles.advantage import min_cost
from aggrevated.policies import Policy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import Update, UpdateResult
from aggrevated.updates.dataset_aggregation import MAX_MEASURED_TRAJECTORIES
from aggrevated.updates.safe_step import MAX_HALVINGS

CONFIDENT_PROBABILITY = 0.9  # a policy is confident of an action that has at least this probability
MAX_CONFIDENT_ERROR_RATE = 0.1  # fraction of the visited states at which a policy is confident and wrong
NEGLIGIBLE_ADVANTAGE = 0.01  # mean A* that is left to learn, in units of the root mean square of A*
# Mean A* that is left to learn, in units of its maximum so far. A good policy visits states where mistakes cost little.
SUBSTANTIAL_ADVANTAGE = 0.1
VANISHED_GRADIENT_FRACTION = 1e-6  # of the largest gradient norm so far
MIN_STREAK = 3  # iterations in a row that must show a sign

STALL_REASONS = {  # the reason in the metrics: its explanation
    "steps shortened to nothing": f"steps break the policy even after {MAX_HALVINGS} halvings, so it does not change",
    "gradient vanished": f"the gradient norm is not finite or below {VANISHED_GRADIENT_FRACTION:g} of its maximum",
    "sure and wrong": (
        f"at more than {MAX_CONFIDENT_ERROR_RATE:.0%} of the visited states the policy is confident of a costly action"
    ),
}
STEPS_SHORTENED, GRADIENT_VANISHED, CONFIDENTLY_WRONG = STALL_REASONS
REMEDY = (
    "see docs/which-method.md; --update exponentiated has no step size to tune, other updates may need a smaller one"
)


@dataclass(frozen=True)
class UpdateWithDiagnostics:
    """An update that also measures the new policy's mistakes at the visited states.

    Its `UpdateResult` has `confident_error_rate`, `mean_advantage` and `advantage_rms`.

    Args:
        update: The update that changes the policy.
    """

    update: Update

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        step = self.update(policy, loss, trajectories, cost_to_go)
        return replace(step, **compute_mistake_stats(policy, trajectories, cost_to_go)._asdict())

    def state(self) -> dict[str, Tensor]:
        """Return the state of the update, for a checkpoint."""
        return self.update.state()

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore the update from a state that `state` returned."""
        self.update.restore(state)


class MistakeStats(NamedTuple):
    """Statistics of a policy's mistakes at the visited states; None if they cannot be computed, as for vectors.

    Attributes:
        confident_error_rate: Fraction of states at which the policy is confident of an action whose A* is above
            `advantage_rms`.
        mean_advantage: Mean A* of the policy's actions: their cost above the best action, per step.
        advantage_rms: Root mean square of A*.
    """

    confident_error_rate: float | None = None
    mean_advantage: float | None = None
    advantage_rms: float | None = None


def compute_mistake_stats(policy: Policy, trajectories: Trajectories, cost_to_go: CostToGo) -> MistakeStats:
    """Return statistics of the policy's mistakes at the states of the trajectories, by at most one forward pass.

    A cost-to-go of the taken action that is not an advantage over π* gives statistics only if it is 0 everywhere:
    nothing is left to learn. With expert actions such zeros say nothing. An A* of 0 at all queried states counts as
    known, so its zero gradient is not reported as vanished.
    """
    rows = np.arange(min(trajectories.count, MAX_MEASURED_TRAJECTORIES))
    trajectories = trajectories.take(rows)
    values = cost_to_go.values[rows]
    queried = trajectories.mask & (cost_to_go.weight[rows] > 0)
    costless = not cost_to_go.has_all_actions and not cost_to_go.advantage and not values.any()
    if (costless and cost_to_go.expert_actions is not None) or not queried.any():
        return MistakeStats()
    if not cost_to_go.has_all_actions and not cost_to_go.advantage:
        return MistakeStats() if values[queried].any() else MistakeStats(None, 0.0, 0.0)
    pi = compute_action_probabilities(policy, trajectories)
    if cost_to_go.has_all_actions:
        return measure_mistakes_from_all_actions(pi, values, trajectories.action_mask, queried)
    p_taken = None if pi is None else np.take_along_axis(pi, trajectories.actions[..., None], axis=2)[queried, 0]
    return measure_mistakes_from_taken_actions(p_taken, values[queried])


@torch.no_grad()
def compute_action_probabilities(policy: Policy, trajectories: Trajectories) -> Array | None:
    """Return π(a|s_t) [K, T, A]; None for vector actions and for policies without parameters."""
    if trajectories.actions.ndim > 2 or next(policy.parameters(), None) is None:
        return None
    distribution = compute_policy_distribution(policy, trajectories)
    return distribution.probs.numpy() if isinstance(distribution, Categorical) else None


def measure_mistakes_from_all_actions(pi: Array | None, q: Array, legal: Array, queried: Array) -> MistakeStats:
    """Return the statistics from π(a|s) and Q*(s, a), both [K, T, A]."""
    if pi is None:
        return MistakeStats()
    possible = legal if legal.shape[2] else np.ones_like(q, bool)
    advantage = np.where(possible, q - min_cost(q, legal), 0.0)[queried]
    probability = pi[queried]
    rms = compute_root_mean_square(advantage[possible[queried]])
    # At most one action of a state is confident.
    wrong = ((probability > CONFIDENT_PROBABILITY) & (advantage > rms)).any(axis=1)
    return MistakeStats(float(wrong.mean()), mean((probability * advantage).sum(axis=1)), rms)


def measure_mistakes_from_taken_actions(pi: Array | None, advantage: Array) -> MistakeStats:
    """Return the statistics from π(a_t|s_t) and A*(s_t, a_t), both [n]; a negative A* offsets no mistake."""
    rms = compute_root_mean_square(advantage)
    wrong = None if pi is None else float(((pi > CONFIDENT_PROBABILITY) & (advantage > rms)).mean())
    return MistakeStats(wrong, mean(advantage.clip(0.0)), rms)


def mean(values: Array) -> float:
    """Return the mean, computed in float64."""
    return float(values.mean(dtype=np.float64))


def compute_root_mean_square(values: Array) -> float:
    """Return the root mean square, computed in float64."""
    return float(np.sqrt(mean(np.square(values, dtype=np.float64))))


class IterationDiagnostics(Protocol):
    """The metrics of an iteration that `TrainingMonitor` reads; see `aggrevated.Metrics`."""

    @property
    def roll_in_return(self) -> float: ...
    @property
    def best_return(self) -> float: ...
    @property
    def gradient_norm(self) -> float: ...
    @property
    def step_halvings(self) -> int: ...
    @property
    def confident_error_rate(self) -> float | None: ...
    @property
    def mean_advantage(self) -> float | None: ...
    @property
    def advantage_rms(self) -> float | None: ...


@dataclass
class TrainingMonitor:
    """Detects that learning has stalled.

    The first three iterations in a row that show a sign give a warning. The defaults are those of a new run.

    Args:
        largest: Largest gradient norm so far.
        max_mean_advantage: Largest mean A* so far.
        best: Best validation return so far.
        best_roll_in: Best roll-in return so far, which is known also where a policy is not validated.
        streaks: For each reason, the number of last iterations in a row that showed its sign.
        reported: Reasons that have been returned as warnings.
    """

    largest: float = 0.0
    max_mean_advantage: float = 0.0
    best: float = -inf
    best_roll_in: float = -inf
    streaks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STALL_REASONS, 0))
    reported: set[str] = field(default_factory=set)

    @classmethod
    def replay(cls, lines: Iterable[IterationDiagnostics]) -> Self:
        """Return the monitor of a run after these iterations, whose warnings count as reported."""
        monitor = cls()
        for line in lines:
            monitor.observe(line)
            monitor.pop_new_warnings()
        return monitor

    def observe(self, line: IterationDiagnostics) -> str:
        """Record one more iteration, and return why learning has stalled.

        Args:
            line: The metrics of the iteration.

        Returns:
            The reasons, separated by commas; "" if learning has not stalled.
        """
        signs = set(self._iter_stall_signs(line))
        self.streaks = {reason: streak + 1 if reason in signs else 0 for reason, streak in self.streaks.items()}
        self.best = line.best_return
        self.best_roll_in = max(self.best_roll_in, line.roll_in_return)
        self.max_mean_advantage = max(self.max_mean_advantage, line.mean_advantage or 0.0)
        if isfinite(line.gradient_norm):
            self.largest = max(self.largest, line.gradient_norm)
        return ", ".join(self._list_stall_reasons())

    def pop_new_warnings(self) -> list[str]:
        """Return a sentence for each reason that has not been reported yet, and mark it as reported."""
        new = [reason for reason in self._list_stall_reasons() if reason not in self.reported]
        self.reported.update(new)
        return [f"learning has stalled, {reason}: {STALL_REASONS[reason]}; {REMEDY}" for reason in new]

    def _list_stall_reasons(self) -> list[str]:
        return [reason for reason, streak in self.streaks.items() if streak >= MIN_STREAK]

    def _iter_stall_signs(self, line: IterationDiagnostics) -> Iterator[str]:
        advantage = line.mean_advantage
        if advantage is not None and advantage <= NEGLIGIBLE_ADVANTAGE * (line.advantage_rms or 0.0):
            return
        if line.step_halvings >= MAX_HALVINGS:
            yield STEPS_SHORTENED
        if not isfinite(line.gradient_norm) or line.gradient_norm < VANISHED_GRADIENT_FRACTION * self.largest:
            yield GRADIENT_VANISHED
        if (
            (line.confident_error_rate or 0.0) > MAX_CONFIDENT_ERROR_RATE
            and (advantage or 0.0) > SUBSTANTIAL_ADVANTAGE * self.max_mean_advantage
            and not self._has_improved(line)
        ):
            yield CONFIDENTLY_WRONG

    def _has_improved(self, line: IterationDiagnostics) -> bool:
        return line.best_return > self.best or line.roll_in_return > self.best_roll_in
