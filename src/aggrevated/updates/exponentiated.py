"""Exponentiated gradient for every policy: Eq. 7 (`eg_closed_form`), projected onto the policies that there are.

In log-probabilities a step of Eq. 7 adds −η A*, however sure π_n is, so nothing saturates. And since Q* of a state does
not change, n rounds of it are one step n times as long: all states seen so far can be learned from together, towards
π(a|s) ∝ exp(−A*(s, a)/τ), which is to follow the leader with entropy as its regulariser. See docs/theory.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from aggrevated.core.errors import UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.core.settings import (
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    UNIT_INTERVAL,
    SelectedComponents,
    at_least,
    check_setting,
    setting,
)
from aggrevated.kernels.adam import Adam
from aggrevated.losses import Loss, LossSettings, compute_policy_distribution, make_policy_inputs
from aggrevated.oracles import CostToGo
from aggrevated.policies import Policy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import GaussianHead
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import (
    AnnealedSettings,
    UpdateResult,
    compute_gradient_norm,
    compute_loss_and_gradient,
    make_dropout_context,
)
from aggrevated.updates.compiled_mlp_fit import fit_mlp, supports_compiled_fit
from aggrevated.updates.dataset_aggregation import MAX_MEASURED_TRAJECTORIES, AggregatedDataset, TrainingData
from aggrevated.updates.natural import NaturalSettings, NaturalUpdate
from aggrevated.updates.projection_targets import (
    CategoricalTarget,
    ProjectionTarget,
    compute_action_costs,
    make_expert_action_only_mask,
    make_gaussian_target,
    truncate_steps,
)
from aggrevated.updates.safe_step import MAX_HALVINGS, take_safe_step
from aggrevated.updates.temperature import PlateauDetector, TemperatureSchedule

MIN_MINIBATCH_TRAJECTORIES = 4  # trajectories in a minibatch of a policy with memory
MAX_GRADIENT_NORM = 1.0
MIN_TEMPERATURE_WITH_LABELS = (
    0.125  # τ at least, beside cross-entropy, for which a logit of 8 is sure: larger ones would outweigh it
)


@dataclass
class ExponentiatedUpdate:
    """π_{n+1}: the projection of exp(−A*/τ), on all data; with `eta`, of π_n^(1−ρ) exp(−η A*), on the newest data.

    What is known of the action taken, and of no other, says nothing of later policies: there a natural step is made. So
    it is, for good, once the projection stands still far from where it is to be (`Standstill`).

    A* is in units of its mean size, so that no setting has any. The projection is made by `steps` of Adam; for a table,
    a policy without hidden layers on one-hot observations, it is known in closed form, and is Eq. 7 itself.
    """

    eta: float = 0.0  # 0: all data
    temperature: float = 0.07  # τ, at first
    decay_after: int = 8  # the iteration from which on τ and the learning rate fall as 1/√n; 0: never
    max_target_cost: float = (
        0.02  # what a goal may cost over an episode, of what the dearest policy did: else τ falls; 0: any
    )
    log_prob_decay: float = 0.0  # ρ
    uniform_weight: float = 0.2  # λ
    normalize_costs: bool = True  # whether A* is divided by its mean size
    learning_rate: float = 0.01
    steps: int = 100
    minibatch_size: int = 512  # steps of trajectories
    buffer_size: int = 1000  # trajectories
    seed: int = 0
    anneal_iterations: int = 0  # iterations over which the learning rate falls to 0, in a line; 0: never
    max_kl: float = 1e6  # any finite step
    natural: NaturalUpdate = field(default_factory=lambda: NaturalSettings().build(0))
    aggregation: AggregatedDataset = field(init=False, repr=False)
    _plateau: PlateauDetector = field(default_factory=PlateauDetector, init=False, repr=False)
    _temperature_schedule: TemperatureSchedule = field(init=False, repr=False)
    _adam: Adam | None = field(default=None, init=False, repr=False)
    _initial_log_deviation: Tensor | None = field(default=None, init=False, repr=False)
    _rounds: int = field(default=0, init=False, repr=False)
    _moments: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.aggregation = AggregatedDataset(self.buffer_size)
        self._temperature_schedule = TemperatureSchedule(self.max_target_cost)

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        if cost_to_go.entropy_bonus:
            raise UsageError("the exponentiated update knows no entropy bonus; use the oracle without it")
        check_costs_are_advantages(cost_to_go)
        newest = TrainingData(trajectories, cost_to_go)
        measured = newest.take(np.arange(min(trajectories.count, MAX_MEASURED_TRAJECTORIES)))
        value, gradient = compute_loss_and_gradient(policy, loss, *measured)
        if self._use_natural_gradient(cost_to_go):  # whose own loss is in other units
            return replace(
                self.natural(policy, loss, *newest), loss=value, gradient_norm=compute_gradient_norm(gradient)
            )
        tau = self._compute_temperature(policy, measured)
        if cost_to_go.has_all_actions and not self.eta:
            self._plateau.add(compute_normalized_excess_cost(policy, measured, tau))
        generator = np.random.default_rng(int(derive_seeds(self.seed, SeedPurpose.UPDATE, self.aggregation.seen, 1)[0]))
        self.aggregation.add(trajectories, cost_to_go, generator)
        data = newest if self.eta else self.aggregation.data
        before = parameters_to_vector(policy.parameters()).detach()
        self._project(policy, data, tau, generator)
        displacement = parameters_to_vector(policy.parameters()).detach() - before
        vector_to_parameters(before, policy.parameters())
        kl, halvings = take_safe_step(policy, measured.trajectories, displacement, self.max_kl)
        if halvings == MAX_HALVINGS:  # what Adam remembers may be no number
            self._adam = None
            self._moments = {}
        return UpdateResult(value, compute_gradient_norm(gradient), kl, halvings)

    def _use_natural_gradient(self, cost_to_go: CostToGo) -> bool:
        """Whether the natural update goes on: nobody advises, or the fit stands still, and data is of no more use."""
        if self._plateau.is_triggered():
            self.aggregation = AggregatedDataset(self.buffer_size)
            self._adam = None
            self._moments = {}
            return True
        return not cost_to_go.has_all_actions and cost_to_go.expert_actions is None

    def _project(self, policy: Policy, data: TrainingData, tau: float, generator: np.random.Generator) -> None:
        goal = self._make_target(policy, data, tau)
        if isinstance(policy.head, GaussianHead):
            self._shrink_deviation(policy.head)
        if isinstance(goal, CategoricalTarget) and is_table(policy, data.trajectories) and goal.is_complete():
            fill_table(policy, data.trajectories, goal)
        else:
            self._fit(policy, data, goal, generator)

    def _compute_temperature_decay(self, n: int) -> float:
        """n rounds of Eq. 7 with the step η/√n of its regret bound are one of η√n."""
        return min(1.0, (self.decay_after / n) ** 0.5) if self.decay_after else 1.0

    def _compute_learning_rate_decay(self, n: int) -> float:
        """What is left of the learning rate."""
        return max(0.0, 1.0 - (n - 1) / self.anneal_iterations) if self.anneal_iterations else 1.0

    def _compute_temperature(self, policy: Policy, newest: TrainingData) -> float:
        tau = self.temperature * self._compute_temperature_decay(newest.trajectories.n)
        finite = not isinstance(policy.head, GaussianHead)
        return self._temperature_schedule.compute_temperature(tau, policy, newest) if finite and not self.eta else tau

    def _shrink_deviation(self, head: GaussianHead) -> None:
        """After n rounds of Eq. 7 a Gaussian has 1/√n of its first deviation: exp(−n η Q*) around the best action."""
        if self._initial_log_deviation is None:
            self._initial_log_deviation = head.log_deviation.detach().clone()
        self._rounds += 1
        with torch.no_grad():
            head.log_deviation.copy_(self._initial_log_deviation - 0.5 * np.log(self._rounds))

    def _make_target(self, policy: Policy, data: TrainingData, tau: float) -> ProjectionTarget:
        """Where Eq. 7 leads from the policy as it is."""
        if isinstance(policy.head, GaussianHead):
            return make_gaussian_target(*data, policy.head.unit.numpy())
        cost, known, weight = map(
            torch.from_numpy, compute_action_costs(data, policy.head.outputs, self.normalize_costs)
        )
        if not self.eta:
            advised = make_expert_action_only_mask(data)
            tau = max(tau, MIN_TEMPERATURE_WITH_LABELS) if advised.any() else tau
            logits = torch.where(advised[..., None] & (cost > 0), -torch.inf, -cost / tau)
            return CategoricalTarget(logits, known, weight, self.uniform_weight, tau)
        with torch.no_grad():
            now = compute_policy_distribution(policy, data.trajectories)
        assert isinstance(now, Categorical)
        return CategoricalTarget(
            (1 - self.log_prob_decay) * now.logits - self.eta * cost, known, weight, self.uniform_weight, 1.0
        )

    def _fit(self, policy: Policy, data: TrainingData, goal: ProjectionTarget, generator: np.random.Generator) -> None:
        """Adam on the mean distance from the goal; single steps in a minibatch, or whole trajectories."""
        trajectories = data.trajectories
        costs = torch.from_numpy(data.cost_to_go.values) if data.cost_to_go.has_all_actions else None
        seen = make_policy_inputs(policy, trajectories)
        mask = torch.from_numpy(trajectories.mask)
        legal = torch.from_numpy(trajectories.action_mask)
        if policy.memoryless:
            mask = mask & (goal.weight > 0)
            seen = seen[mask][:, None]
            legal = legal[mask][:, None]
            goal = goal.select_steps(mask)
            mask = mask[mask][:, None]
        if not mask.any():  # nothing is known of any step
            return
        lengths = mask.sum(dim=1)
        size = min(
            max(MIN_MINIBATCH_TRAJECTORIES, round(self.minibatch_size / float(lengths.float().mean()))), len(mask)
        )
        adam = self._get_optimizer(policy)
        learning = make_dropout_context(policy)
        adam.param_groups[0]["lr"] = (
            self.learning_rate
            * self._compute_temperature_decay(trajectories.n)
            * self._compute_learning_rate_decay(trajectories.n)
        )
        minibatches = torch.from_numpy(generator.integers(len(mask), size=(self.steps, size)))
        if supports_compiled_fit(policy, goal, legal):
            fit_mlp(policy, adam, seen, goal, minibatches, MAX_GRADIENT_NORM)
            return
        longest = lengths[minibatches].max(dim=1).values.tolist()
        for step, (rows, length) in enumerate(zip(minibatches, longest, strict=True)):
            wanted = goal.take(rows, length)
            allowed = truncate_steps(legal, rows, length) if legal.shape[2] else None
            now = truncate_steps(seen, rows, length), truncate_steps(mask, rows, length), allowed
            with learning(self.aggregation.seen * self.steps + step):
                distance = wanted.compute_distance(policy.distribution(*now))
                along = None
                if not policy.memoryless:  # whose steps stand for themselves, and are no trajectories here
                    along = policy.auxiliary_loss(*now, None if costs is None else truncate_steps(costs, rows, length))
            adam.zero_grad()
            total = (distance * wanted.weight).sum()
            value = (total if along is None else total + along) / wanted.weight.sum().clamp(min=1e-9)
            value.backward()  # type: ignore[no-untyped-call]
            clip_gradient_norm(adam.weights)
            adam.step()

    def _get_optimizer(self, policy: Policy) -> Adam:
        """Adam over the policy's weights, with what it remembers; a Gaussian's deviation is not learned by fitting."""
        if self._adam is None:
            weights = [w for name, w in policy.named_parameters() if not name.endswith("log_deviation")]
            self._adam = Adam(weights, lr=self.learning_rate)
            if self._moments:
                loaded = self._adam.state_dict() | {"state": unflatten_moments(self._moments)}
                self._adam.load_state_dict(loaded)
        return self._adam

    def state(self) -> dict[str, Tensor]:
        """The data, and what Adam remembers."""
        moments = self._moments if self._adam is None else flatten_moments(self._adam.state_dict()["state"])
        own = (
            {}
            if self._initial_log_deviation is None
            else {INITIAL_DEVIATION_KEY: self._initial_log_deviation, ROUNDS_KEY: torch.tensor(self._rounds)}
        )
        excess = {EXCESS_KEY: torch.tensor(of, dtype=torch.float64)} if (of := self._plateau.excess) else {}
        known = self._temperature_schedule.worst_policy_cost, self._temperature_schedule.factor
        warmth = {TEMPERATURE_KEY: torch.tensor(known, dtype=torch.float64)} if known != (0.0, 1.0) else {}
        natural = {f"{NATURAL_PREFIX}{name}": w for name, w in self.natural.state().items()}
        return self.aggregation.state() | moments | own | excess | warmth | natural

    def restore(self, state: dict[str, Tensor]) -> None:
        self.natural.restore(
            {n.removeprefix(NATURAL_PREFIX): w for n, w in state.items() if n.startswith(NATURAL_PREFIX)}
        )
        state = {name: w for name, w in state.items() if not name.startswith(NATURAL_PREFIX)}
        self._adam = None
        self._initial_log_deviation = state.pop(INITIAL_DEVIATION_KEY, None)
        self._rounds = int(state.pop(ROUNDS_KEY, torch.tensor(0)))
        self._plateau = PlateauDetector(state.pop(EXCESS_KEY, torch.zeros(0)).tolist())
        self._temperature_schedule = TemperatureSchedule(
            self.max_target_cost, *state.pop(TEMPERATURE_KEY, torch.tensor([0.0, 1.0])).tolist()
        )
        self._moments = {name: w.clone() for name, w in state.items() if name.startswith(MOMENT_PREFIX)}
        self.aggregation.restore({name: w for name, w in state.items() if name not in self._moments})


def clip_gradient_norm(weights: Sequence[Tensor]) -> None:
    """Shorten the gradient, all of it together, to the longest that there may be; as torch does it, but quicker."""
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    length = math.hypot(*(float(gradient.norm()) for gradient in gradients))
    if length > MAX_GRADIENT_NORM:
        for gradient in gradients:
            gradient *= MAX_GRADIENT_NORM / length


INITIAL_DEVIATION_KEY = "widest"
ROUNDS_KEY = "rounds"
EXCESS_KEY = "excess"
TEMPERATURE_KEY = "warmth"
NATURAL_PREFIX = "natural."
MOMENT_PREFIX = "adam."  # what the names of Adam's moments begin with, in a state


def flatten_moments(moments: dict[int, dict[str, Tensor]]) -> dict[str, Tensor]:
    """Adam's moments of each weight, by names as a checkpoint has them."""
    return {f"{MOMENT_PREFIX}{i}.{name}": w.clone() for i, own in moments.items() for name, w in own.items()}


def unflatten_moments(named: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """What `flatten` was given."""
    moments: dict[int, dict[str, Tensor]] = {}
    for key, w in named.items():
        i, name = key.removeprefix(MOMENT_PREFIX).split(".")
        moments.setdefault(int(i), {})[name] = w.clone()
    return moments


def check_costs_are_advantages(cost_to_go: CostToGo) -> None:
    """What is advised costs 0: with this nothing but an advantage can be compared."""
    compared = cost_to_go.expert_actions is not None and not cost_to_go.has_all_actions and np.any(cost_to_go.values)
    if compared and not cost_to_go.advantage:
        raise UsageError("the exponentiated update compares an action with what is advised; use the oracle's advantage")


@torch.no_grad()
def compute_normalized_excess_cost(policy: Policy, data: TrainingData, tau: float) -> float:
    """What Σ_a π(a) A*(a) is above that of exp(−A*/τ), in mean sizes of A*: about 1 where π acts at random."""
    now = compute_policy_distribution(policy, data.trajectories)
    assert isinstance(now, Categorical)
    cost, known, weight = map(torch.from_numpy, compute_action_costs(data, policy.head.outputs))
    goal = torch.where(known, -cost / tau, -torch.inf).softmax(-1)
    above = (torch.where(known, (now.probs - goal) * cost, 0.0).sum(-1) * weight).sum() / weight.sum().clamp(min=1e-9)
    return float(above)


def is_table(policy: Policy, trajectories: Trajectories) -> bool:
    """Whether the policy has logits of its own for each observation that there is."""
    if not isinstance(policy, FeedForwardPolicy) or len(policy.network) != 1:
        return False
    seen = trajectories.observations[trajectories.mask]
    return bool((seen.max(axis=1) == 1.0).all() and (np.abs(seen).sum(axis=1) == 1.0).all())


@torch.no_grad()
def fill_table(policy: Policy, trajectories: Trajectories, goal: CategoricalTarget) -> None:
    """The projection onto a table: the mean of the goals at each observation. Those that were not seen stay."""
    assert isinstance(policy, FeedForwardPolicy)
    mask = torch.from_numpy(trajectories.mask)
    now = compute_policy_distribution(policy, trajectories)
    assert isinstance(now, Categorical)
    layer = policy.network[0]
    assert isinstance(layer, nn.Linear)
    weight = layer.weight  # [A, S]
    counted = torch.from_numpy(trajectories.observations)[mask].to(weight.dtype) * goal.weight[mask][:, None]  # [n, S]
    moved = counted.T @ (goal.logits - now.logits)[mask].to(weight.dtype)
    weight += (moved / counted.sum(dim=0).clamp(min=1e-12)[:, None]).T


@dataclass(frozen=True)
class ExponentiatedSettings(AnnealedSettings):
    """Exponentiated gradient, projected onto the policies."""

    name = "exponentiated"
    uses_loss = False
    wants_expert_actions = True
    temperature: float = setting(
        0.07, "tau: the policy is fitted to exp(-A*/tau), A* in units of its mean size.", POSITIVE
    )
    decay_after: int = setting(
        8, "The iteration from which on tau and the fit's rate fall as 1/sqrt(n); 0: never.", COUNT
    )
    max_target_cost: float = setting(
        0.02,
        "What exp(-A*/tau) may cost over an episode, in parts of what the dearest policy so far did: tau falls until "
        "it does not cost more; 0: tau stays as it is.",
        UNIT_INTERVAL,
    )
    eta: float = setting(
        0.0, "The step of Eq. 7 in such units, learning from the newest data only; 0: from all data.", NON_NEGATIVE
    )
    log_prob_decay: float = setting(
        0.0, "rho: with --eta, how much of the old log-probabilities each step forgets.", UNIT_INTERVAL
    )
    uniform_weight: float = setting(
        0.2, "lambda: how much of the fit is over all actions alike, not weighted by the policy.", UNIT_INTERVAL
    )
    fit_learning_rate: float = setting(0.01, "The step size of Adam, inside the exponentiated update.", POSITIVE)
    fit_steps: int = setting(100, "Its minibatches in each iteration.", at_least(1))
    minibatch_size: int = setting(512, "How many steps of trajectories a minibatch has, about.", at_least(1))
    buffer_size: int = setting(
        1000, "How many trajectories are kept at most, a random sample of all, to learn from again.", at_least(1)
    )

    def check(self, chosen: SelectedComponents) -> None:
        assert isinstance(chosen.loss, LossSettings)
        check_setting(
            self.eta > 0 or not self.log_prob_decay,
            "log_prob_decay",
            self.log_prob_decay,
            "0 without --eta, where nothing old is forgotten",
        )
        check_setting(
            getattr(chosen.oracle, "advantage", True), "advantage", False, f"left as it is for the update {self.name}"
        )
        check_setting(not chosen.loss.entropy, "entropy", chosen.loss.entropy, f"0 for the update {self.name}")

    def build(self, seed: int) -> ExponentiatedUpdate:
        goal = (
            self.eta,
            self.temperature,
            self.decay_after,
            self.max_target_cost,
            self.log_prob_decay,
            self.uniform_weight,
        )
        fit = (
            self.fit_learning_rate,
            self.fit_steps,
            self.minibatch_size,
            self.buffer_size,
            seed,
            self.anneal_iterations,
        )
        return ExponentiatedUpdate(*goal, True, *fit)
