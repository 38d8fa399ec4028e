"""Exponentiated gradient for every policy: Eq. 7 (`eg_closed_form`), projected onto the policy class.

In log-probabilities a step of Eq. 7 adds −η A*, even where π_n is confident, so that it does not saturate.
Since Q* of a state does not change, n such steps equal one step that is n times as long. So all states so far
can be learned together, towards π(a|s) ∝ exp(−A*(s, a)/τ): follow the leader with an entropy regularizer. See
docs/theory.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor
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
from aggrevated.kernels.adam import MOMENT_PREFIX, Adam, flatten_moments, unflatten_moments
from aggrevated.losses import Loss, LossSettings, compute_policy_distribution, make_policy_inputs
from aggrevated.oracles import CostToGo
from aggrevated.policies import Policy
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
from aggrevated.updates.table_projection import fill_table, is_table
from aggrevated.updates.temperature import (
    PlateauDetector,
    TemperatureSchedule,
    compute_normalized_excess_cost,
    inverse_sqrt_decay,
)

MIN_MINIBATCH_TRAJECTORIES = 4  # for policies with memory
MAX_GRADIENT_NORM = 1.0
# The lowest τ with cross-entropy, for which a logit of 8 is confident: larger logits would outweigh it.
MIN_TEMPERATURE_WITH_LABELS = 0.125


@dataclass
class ExponentiatedUpdate:
    """π_{n+1} projects exp(−A*/τ) on all data, or, with `eta`, π_n^(1−ρ) exp(−η A*) on the newest data.

    If only the cost of the action taken is known, which says nothing of later policies, a natural step is
    made instead. So it is, for the rest of the run, once the fit is on a plateau far from its target
    (`PlateauDetector`).

    A* is in units of its mean size, so that no setting depends on the unit of cost. Adam makes the
    projection. For a table, a policy without hidden layers on one-hot observations, it has a closed form and
    is Eq. 7 itself.

    Args:
        eta: η, the step of Eq. 7; 0: fit exp(−A*/τ) to all data.
        temperature: τ at first.
        decay_after: Iteration after which τ and the learning rate fall as 1/√n; 0: never.
        max_target_cost: τ falls until sampling from exp(−A*/τ) costs at most this fraction of the worst
            policy's cost, per episode; 0: never.
        log_prob_decay: ρ, the fraction of the log-probabilities that each step forgets, with `eta`.
        uniform_weight: λ, the fraction of the fit that weights all actions equally, not by π.
        normalize_costs: Whether A* is divided by its mean size.
        learning_rate: Step size of Adam.
        steps: Minibatches per iteration.
        minibatch_size: Approximate number of trajectory steps per minibatch.
        buffer_size: The most trajectories in the data set, a uniform sample of all so far.
        seed: Determines minibatches and samples.
        anneal_iterations: Iterations over which the learning rate falls linearly to 0; 0: never.
        max_kl: The largest mean KL per state of an iteration, in nats; the default allows all finite steps.
        natural: The natural update that is used without a projection target.
    """

    eta: float = 0.0
    temperature: float = 0.07
    decay_after: int = 8
    max_target_cost: float = 0.02
    log_prob_decay: float = 0.0
    uniform_weight: float = 0.2
    normalize_costs: bool = True
    learning_rate: float = 0.01
    steps: int = 100
    minibatch_size: int = 512
    buffer_size: int = 1000
    seed: int = 0
    anneal_iterations: int = 0
    max_kl: float = 1e6
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
            raise UsageError("the update exponentiated does not support an entropy bonus; use an oracle without")
        check_costs_are_advantages(cost_to_go)
        newest = TrainingData(trajectories, cost_to_go)
        measured = newest.take(np.arange(min(trajectories.count, MAX_MEASURED_TRAJECTORIES)))
        value, gradient = compute_loss_and_gradient(policy, loss, *measured)
        if self._use_natural_gradient(cost_to_go):  # its loss is in other units
            return replace(
                self.natural(policy, loss, *newest), loss=value, gradient_norm=compute_gradient_norm(gradient)
            )
        tau = self._compute_temperature(policy, measured)
        if cost_to_go.has_all_actions and not self.eta:
            self._plateau.add(compute_normalized_excess_cost(policy, measured, tau))
        generator = np.random.default_rng(int(derive_seeds(self.seed, SeedPurpose.UPDATE, self.aggregation.seen, 1)[0]))
        self.aggregation.add(trajectories, cost_to_go, generator)
        data = newest if self.eta else self.aggregation.data
        theta = parameters_to_vector(policy.parameters()).detach()
        self._project(policy, data, tau, generator)
        displacement = parameters_to_vector(policy.parameters()).detach() - theta
        vector_to_parameters(theta, policy.parameters())
        kl, halvings = take_safe_step(policy, measured.trajectories, displacement, self.max_kl)
        if halvings == MAX_HALVINGS:  # Adam's moments may be NaN
            self._adam = None
            self._moments = {}
        return UpdateResult(value, compute_gradient_norm(gradient), kl, halvings)

    def _use_natural_gradient(self, cost_to_go: CostToGo) -> bool:
        """Return whether to take a natural step: the costs are insufficient, or the fit is on a plateau."""
        if self._plateau.is_triggered():
            self.aggregation = AggregatedDataset(self.buffer_size)
            self._adam = None
            self._moments = {}
            return True
        return not cost_to_go.has_all_actions and cost_to_go.expert_actions is None

    def _project(self, policy: Policy, data: TrainingData, tau: float, generator: np.random.Generator) -> None:
        target = self._make_target(policy, data, tau)
        if isinstance(policy.head, GaussianHead):
            self._shrink_deviation(policy.head)
        if isinstance(target, CategoricalTarget) and is_table(policy, data.trajectories) and target.is_complete():
            fill_table(policy, data.trajectories, target)
        else:
            self._fit(policy, data, target, generator)

    def _compute_learning_rate_decay(self, n: int) -> float:
        """Return the factor by which the learning rate is annealed."""
        return max(0.0, 1.0 - (n - 1) / self.anneal_iterations) if self.anneal_iterations else 1.0

    def _compute_temperature(self, policy: Policy, newest: TrainingData) -> float:
        tau = self.temperature * inverse_sqrt_decay(newest.trajectories.n, self.decay_after)
        if isinstance(policy.head, GaussianHead) or self.eta:
            return tau
        return self._temperature_schedule.compute_temperature(tau, policy, newest)

    def _shrink_deviation(self, head: GaussianHead) -> None:
        """Divide the initial σ by √n, as exp(−n η Q*) is a Gaussian after n rounds of Eq. 7."""
        if self._initial_log_deviation is None:
            self._initial_log_deviation = head.log_deviation.detach().clone()
        self._rounds += 1
        with torch.no_grad():
            head.log_deviation.copy_(self._initial_log_deviation - 0.5 * np.log(self._rounds))

    def _make_target(self, policy: Policy, data: TrainingData, tau: float) -> ProjectionTarget:
        """Return the projection target of Eq. 7 from the present policy."""
        if isinstance(policy.head, GaussianHead):
            return make_gaussian_target(*data, policy.head.unit.numpy())
        cost, known, weight = map(
            torch.from_numpy, compute_action_costs(data, policy.head.outputs, self.normalize_costs)
        )
        if not self.eta:
            is_label = make_expert_action_only_mask(data)
            tau = max(tau, MIN_TEMPERATURE_WITH_LABELS) if is_label.any() else tau
            logits = torch.where(is_label[..., None] & (cost > 0), -torch.inf, -cost / tau)
            return CategoricalTarget(logits, known, weight, self.uniform_weight, tau)
        with torch.no_grad():
            current = compute_policy_distribution(policy, data.trajectories)
        assert isinstance(current, Categorical)
        return CategoricalTarget(
            (1 - self.log_prob_decay) * current.logits - self.eta * cost, known, weight, self.uniform_weight, 1.0
        )

    def _fit(
        self, policy: Policy, data: TrainingData, target: ProjectionTarget, generator: np.random.Generator
    ) -> None:
        """Minimize the mean distance from the target by Adam, on minibatches of steps or of trajectories."""
        trajectories = data.trajectories
        costs = torch.from_numpy(data.cost_to_go.values) if data.cost_to_go.has_all_actions else None
        inputs = make_policy_inputs(policy, trajectories)
        mask = torch.from_numpy(trajectories.mask)
        legal = torch.from_numpy(trajectories.action_mask)
        if policy.memoryless:
            mask = mask & (target.weight > 0)
            inputs = inputs[mask][:, None]
            legal = legal[mask][:, None]
            target = target.select_steps(mask)
            mask = mask[mask][:, None]
        if not mask.any():  # no cost of any step is known
            return
        lengths = mask.sum(dim=1)
        size = min(
            max(MIN_MINIBATCH_TRAJECTORIES, round(self.minibatch_size / float(lengths.float().mean()))), len(mask)
        )
        adam = self._get_optimizer(policy)
        dropout = make_dropout_context(policy)
        adam.param_groups[0]["lr"] = (
            self.learning_rate
            * inverse_sqrt_decay(trajectories.n, self.decay_after)
            * self._compute_learning_rate_decay(trajectories.n)
        )
        minibatches = torch.from_numpy(generator.integers(len(mask), size=(self.steps, size)))
        if supports_compiled_fit(policy, target, legal):
            fit_mlp(policy, adam, inputs, target, minibatches, MAX_GRADIENT_NORM)
            return
        max_lengths = lengths[minibatches].max(dim=1).values.tolist()
        for step, (rows, length) in enumerate(zip(minibatches, max_lengths, strict=True)):
            part = target.take(rows, length)
            minibatch_legal = truncate_steps(legal, rows, length) if legal.shape[2] else None
            arguments = truncate_steps(inputs, rows, length), truncate_steps(mask, rows, length), minibatch_legal
            with dropout(self.aggregation.seen * self.steps + step):
                distance = part.compute_distance(policy.distribution(*arguments))
                auxiliary = None
                if not policy.memoryless:  # the minibatches of memoryless policies are single steps
                    minibatch_costs = None if costs is None else truncate_steps(costs, rows, length)
                    auxiliary = policy.auxiliary_loss(*arguments, minibatch_costs)
            adam.zero_grad()
            total = (distance * part.weight).sum()
            value = (total if auxiliary is None else total + auxiliary) / part.weight.sum().clamp(min=1e-9)
            value.backward()  # type: ignore[no-untyped-call]
            clip_gradient_norm(adam.weights)
            adam.step()

    def _get_optimizer(self, policy: Policy) -> Adam:
        """Return Adam with its moments, over all weights but a Gaussian's deviation."""
        if self._adam is None:
            weights = [w for name, w in policy.named_parameters() if not name.endswith("log_deviation")]
            self._adam = Adam(weights, lr=self.learning_rate)
            if self._moments:
                loaded = self._adam.state_dict() | {"state": unflatten_moments(self._moments)}
                self._adam.load_state_dict(loaded)
        return self._adam

    def state(self) -> dict[str, Tensor]:
        """Return the data set, Adam's moments, and the states of schedule and detector, for a checkpoint."""
        moments = self._moments if self._adam is None else flatten_moments(self._adam.state_dict()["state"])
        deviation = (
            {}
            if self._initial_log_deviation is None
            else {INITIAL_DEVIATION_KEY: self._initial_log_deviation, ROUNDS_KEY: torch.tensor(self._rounds)}
        )
        values = self._plateau.excess
        excess = {EXCESS_KEY: torch.tensor(values, dtype=torch.float64)} if values else {}
        schedule = self._temperature_schedule.worst_policy_cost, self._temperature_schedule.factor
        temperature = {TEMPERATURE_KEY: torch.tensor(schedule, dtype=torch.float64)} if schedule != (0.0, 1.0) else {}
        natural = {f"{NATURAL_PREFIX}{name}": w for name, w in self.natural.state().items()}
        return self.aggregation.state() | moments | deviation | excess | temperature | natural

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a state that `state` returned."""
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
    """Clip the norm of all gradients together, as torch does, but faster."""
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    norm = math.hypot(*(float(gradient.norm()) for gradient in gradients))
    if norm > MAX_GRADIENT_NORM:
        for gradient in gradients:
            gradient *= MAX_GRADIENT_NORM / norm


INITIAL_DEVIATION_KEY = "initial_log_deviation"
ROUNDS_KEY = "rounds"
EXCESS_KEY = "excess"
TEMPERATURE_KEY = "temperature_schedule"
NATURAL_PREFIX = "natural."


def check_costs_are_advantages(cost_to_go: CostToGo) -> None:
    """Raise a `UsageError` if costs of taken actions are not relative to that of the expert action."""
    compares = cost_to_go.expert_actions is not None and not cost_to_go.has_all_actions and np.any(cost_to_go.values)
    if compares and not cost_to_go.advantage:
        raise UsageError(
            "the update exponentiated assumes that the expert action costs 0, which advantages ensure; "
            "use the oracle's advantage"
        )


@dataclass(frozen=True)
class ExponentiatedSettings(AnnealedSettings):
    """Exponentiated gradient, projected onto the policy class."""

    name = "exponentiated"
    uses_loss = False
    wants_expert_actions = True
    temperature: float = setting(
        0.07, "tau: the policy fits exp(-A*/tau), with A* in units of its mean size.", POSITIVE
    )
    decay_after: int = setting(
        8, "Iteration after which tau and the fit's learning rate fall as 1/sqrt(n); 0: never.", COUNT
    )
    max_target_cost: float = setting(
        0.02,
        "Lower tau until sampling from exp(-A*/tau) costs at most this fraction of the worst policy's cost "
        "per episode; 0: never.",
        UNIT_INTERVAL,
    )
    eta: float = setting(
        0.0, "Step of Eq. 7 (A* in units of its mean size), on new data only; 0: fit all data.", NON_NEGATIVE
    )
    log_prob_decay: float = setting(
        0.0, "rho: with --eta, the fraction of the log-probabilities that each step forgets.", UNIT_INTERVAL
    )
    uniform_weight: float = setting(
        0.2, "lambda: fraction of the fit that weights all actions equally, not by the policy.", UNIT_INTERVAL
    )
    fit_learning_rate: float = setting(0.01, "Step size of Adam in the exponentiated update.", POSITIVE)
    fit_steps: int = setting(100, "Minibatches of the fit per iteration.", at_least(1))
    minibatch_size: int = setting(512, "Approximate number of trajectory steps per minibatch.", at_least(1))
    buffer_size: int = setting(1000, "Most trajectories in the data set, a sample of all.", at_least(1))

    def list_unused_settings(self, chosen: SelectedComponents) -> Mapping[str, str]:
        if not chosen.has_discrete_actions:
            reason = "actions that are vectors, whose target is the expert action or a better one; leave it out"
            return dict.fromkeys(("temperature", "max_target_cost", "uniform_weight", "eta", "log_prob_decay"), reason)
        if self.eta > 0:
            return dict.fromkeys(("temperature", "max_target_cost"), "a step with --eta; leave out one of the two")
        return {}

    def check(self, chosen: SelectedComponents) -> None:
        assert isinstance(chosen.loss, LossSettings)
        check_setting(
            self.eta > 0 or not self.log_prob_decay,
            "log_prob_decay",
            self.log_prob_decay,
            "0 without --eta, which alone uses it",
        )
        check_setting(getattr(chosen.oracle, "advantage", True), "advantage", False, f"True for {self.name}")
        check_setting(not chosen.loss.entropy, "entropy", chosen.loss.entropy, f"0 for the update {self.name}")

    def build(self, seed: int) -> ExponentiatedUpdate:
        target = (
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
        return ExponentiatedUpdate(*target, True, *fit)
