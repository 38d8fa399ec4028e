"""Whether a run still learns: signs that it does not, and how long they must last before that is said.

The loop does not need this. A run looks at each iteration, and what it remembers of those before can be found again in
their metrics, so that a resumed run says what an uninterrupted one says.
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

CONFIDENT_PROBABILITY = 0.9  # from this probability of an action on, a policy is sure of it
MAX_CONFIDENT_ERROR_RATE = 0.1  # of the visited states at which a policy is sure and wrong
NEGLIGIBLE_ADVANTAGE = 0.01  # left to learn, in units of the usual mistake
SUBSTANTIAL_ADVANTAGE = (
    0.1  # left to learn, in units of the most so far: a good policy visits states where no mistake costs much
)
VANISHED_GRADIENT_FRACTION = 1e-6  # of the largest gradient so far
MIN_STREAK = 3  # iterations in a row, before a sign is believed

STALL_REASONS = {  # why learning has died, and in more words
    "steps shortened to nothing": f"steps break the policy even after {MAX_HALVINGS} halvings, so it stays as it is",
    "gradient vanished": f"the gradient is less than {VANISHED_GRADIENT_FRACTION:g} of what it was, or is not finite",
    "sure and wrong": (
        f"at more than {MAX_CONFIDENT_ERROR_RATE:.0%} of the states visited the policy is sure of a costly action"
    ),
}
STEPS_SHORTENED, GRADIENT_VANISHED, CONFIDENTLY_WRONG = STALL_REASONS
REMEDY = "see docs/which-method.md; --update exponentiated has no step size to tune, others may need a smaller one"


@dataclass(frozen=True)
class UpdateWithDiagnostics:
    """An update whose steps tell what mistakes the new policy makes where the old one was rolled in."""

    update: Update

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        step = self.update(policy, loss, trajectories, cost_to_go)
        return replace(step, **compute_mistake_stats(policy, trajectories, cost_to_go)._asdict())

    def state(self) -> dict[str, Tensor]:
        return self.update.state()

    def restore(self, state: dict[str, Tensor]) -> None:
        self.update.restore(state)


class MistakeStats(NamedTuple):
    """Of a policy at the visited states, by the A* of the actions there; None where nobody knows."""

    confident_error_rate: float | None = None  # the share of states where it is sure of an action with an unusual A*
    mean_advantage: float | None = None  # the mean A* of its actions: what they cost above the best, per step
    advantage_rms: float | None = None  # the root mean square of A*


def compute_mistake_stats(policy: Policy, trajectories: Trajectories, cost_to_go: CostToGo) -> MistakeStats:
    """What the policy does wrong at the states of the trajectories, at the price of one forward pass at most.

    Where the cost-to-go is of the action taken and no advantage over π*, it tells only that nothing is left: by zeros.
    An A* of zeros at the few states that were asked about is known, and no gradient that vanished, also beside advice.
    """
    some = np.arange(min(trajectories.count, MAX_MEASURED_TRAJECTORIES))
    trajectories = trajectories.take(some)
    values = cost_to_go.values[some]
    asked = trajectories.mask & (cost_to_go.weight[some] > 0)
    costless = not cost_to_go.has_all_actions and not cost_to_go.advantage and not values.any()
    if (costless and cost_to_go.expert_actions is not None) or not asked.any():
        return MistakeStats()
    if not cost_to_go.has_all_actions and not cost_to_go.advantage:
        return MistakeStats() if values[asked].any() else MistakeStats(None, 0.0, 0.0)
    pi = compute_action_probabilities(policy, trajectories)
    if cost_to_go.has_all_actions:
        return measure_mistakes_from_all_actions(pi, values, trajectories.action_mask, asked)
    taken = None if pi is None else np.take_along_axis(pi, trajectories.actions[..., None], axis=2)[asked, 0]
    return measure_mistakes_from_taken_actions(taken, values[asked])


@torch.no_grad()
def compute_action_probabilities(policy: Policy, trajectories: Trajectories) -> Array | None:
    """π(a|s_t), [K, T, A]; None for vectors, and for a policy without weights, which follows no gradient."""
    if trajectories.actions.ndim > 2 or next(policy.parameters(), None) is None:
        return None
    distribution = compute_policy_distribution(policy, trajectories)
    return distribution.probs.numpy() if isinstance(distribution, Categorical) else None


def measure_mistakes_from_all_actions(pi: Array | None, q: Array, legal: Array, asked: Array) -> MistakeStats:
    """From π(a|s) and Q*(s, a), both [K, T, A]."""
    if pi is None:
        return MistakeStats()
    possible = legal if legal.shape[2] else np.ones_like(q, bool)
    above = np.where(possible, q - min_cost(q, legal), 0.0)[asked]
    chosen = pi[asked]
    usual = compute_root_mean_square(above[possible[asked]])
    wrong = ((chosen > CONFIDENT_PROBABILITY) & (above > usual)).any(axis=1)  # it can be sure of one action only
    return MistakeStats(float(wrong.mean()), mean((chosen * above).sum(axis=1)), usual)


def measure_mistakes_from_taken_actions(pi: Array | None, advantage: Array) -> MistakeStats:
    """From π(a_t|s_t) and A*(s_t, a_t), both [n]; what was better than π* makes up for no mistake."""
    usual = compute_root_mean_square(advantage)
    wrong = None if pi is None else float(((pi > CONFIDENT_PROBABILITY) & (advantage > usual)).mean())
    return MistakeStats(wrong, mean(advantage.clip(0.0)), usual)


def mean(values: Array) -> float:
    """In float64."""
    return float(values.mean(dtype=np.float64))


def compute_root_mean_square(values: Array) -> float:
    """In float64."""
    return float(np.sqrt(mean(np.square(values, dtype=np.float64))))


class IterationDiagnostics(Protocol):
    """What an iteration shows of its health."""

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
    """What is remembered of the iterations so far."""

    largest: float = 0.0  # gradient
    max_mean_advantage: float = 0.0  # to learn
    best: float = -inf  # return, on validation
    best_roll_in: float = -inf  # which is known also where not every policy is validated
    streaks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STALL_REASONS, 0))  # in a row
    reported: set[str] = field(default_factory=set)

    @classmethod
    def replay(cls, lines: Iterable[IterationDiagnostics]) -> Self:
        """After these iterations, of which all was said already."""
        health = cls()
        for line in lines:
            health.observe(line)
            health.pop_new_warnings()
        return health

    def observe(self, line: IterationDiagnostics) -> str:
        """Why learning has died, as it looks after one more iteration; nothing while it lives."""
        seen = set(self._iter_stall_signs(line))
        self.streaks = {reason: lasted + 1 if reason in seen else 0 for reason, lasted in self.streaks.items()}
        self.best = line.best_return
        self.best_roll_in = max(self.best_roll_in, line.roll_in_return)
        self.max_mean_advantage = max(self.max_mean_advantage, line.mean_advantage or 0.0)
        if isfinite(line.gradient_norm):
            self.largest = max(self.largest, line.gradient_norm)
        return ", ".join(self._list_stall_reasons())

    def pop_new_warnings(self) -> list[str]:
        """A sentence on each reason that was not told before."""
        new = [reason for reason in self._list_stall_reasons() if reason not in self.reported]
        self.reported.update(new)
        return [f"learning has died, {reason}: {STALL_REASONS[reason]}; {REMEDY}" for reason in new]

    def _list_stall_reasons(self) -> list[str]:
        return [reason for reason, lasted in self.streaks.items() if lasted >= MIN_STREAK]

    def _iter_stall_signs(self, line: IterationDiagnostics) -> Iterator[str]:
        left = line.mean_advantage
        if left is not None and left <= NEGLIGIBLE_ADVANTAGE * (line.advantage_rms or 0.0):
            return
        if line.step_halvings >= MAX_HALVINGS:
            yield STEPS_SHORTENED
        if not isfinite(line.gradient_norm) or line.gradient_norm < VANISHED_GRADIENT_FRACTION * self.largest:
            yield GRADIENT_VANISHED
        if (
            (line.confident_error_rate or 0.0) > MAX_CONFIDENT_ERROR_RATE
            and (left or 0.0) > SUBSTANTIAL_ADVANTAGE * self.max_mean_advantage
            and not self._has_improved(line)
        ):
            yield CONFIDENTLY_WRONG

    def _has_improved(self, line: IterationDiagnostics) -> bool:
        return line.best_return > self.best or line.roll_in_return > self.best_roll_in
