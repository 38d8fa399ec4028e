"""DAgger with a support vector machine: an RBF kernel, fit by scikit-learn.

The machine reads the features of nine symbols, as the reactive network does. It is saved as support vectors
and their coefficients, so that only fitting needs scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Space
from numpy.random import Generator
from torch import Tensor
from torch.distributions import Categorical, Distribution

from aggrevated.actors.samplers import CategoricalSampler
from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.settings import SelectedComponents, check_setting, setting
from aggrevated.kernels.linear_algebra import affine
from aggrevated.losses import Loss, compute_policy_distribution
from aggrevated.losses.likelihood import choose_best_actions
from aggrevated.oracles import CostToGo, Feedback
from aggrevated.oracles.zero_one import ZeroOneSettings
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.parser import CONTEXT_SIZE
from aggrevated.policies import Policy, PolicySettings
from aggrevated.policies.heads import CategoricalHead, Head
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.starts.random import RandomStartSettings
from aggrevated.updates import UpdateResult, UpdateSettings
from aggrevated.updates.follow_the_leader import FollowTheLeaderUpdate

SHARP = 20.0  # logits per unit of the decision value, nats: large, since the machine is deterministic
ITEMS = 3 * CONTEXT_SIZE


@dataclass(frozen=True)
class Machine:
    """Kernel machine with decision values Σ_i c_{ia} exp(−γ‖x − x_i‖²) + b_a for a state x and actions a.

    Attributes:
        items: features of "none", ROOT and the symbols of each page, [P, 2 + N, D].
        support: support vectors x_i, [S, X].
        coefficients: c, [S, A].
        intercepts: b, [A].
        gamma: γ of the RBF kernel.
    """

    items: Array
    support: Array
    coefficients: Array
    intercepts: Array
    gamma: float

    def gather_features(self, observations: Array) -> Array:
        """Return the features of the nine symbols in each observation [n, 10], [n, X]."""
        pages = observations[:, :1].astype(np.int64)
        numbers = observations[:, 1:].astype(np.int64) + 1
        return self.items[pages, numbers].reshape(len(observations), -1)

    def predict(self, observations: Array) -> Array:
        """Return the decision values of observations [n, 10], [n, A]."""
        kernel = compute_rbf_kernel(self.gather_features(observations), self.support, self.gamma)
        return affine(kernel, self.coefficients, self.intercepts)


def compute_rbf_kernel(x: Array, y: Array, gamma: float) -> Array:
    """Return exp(−γ‖x_i − y_j‖²), [n, m]."""
    kernel: Array = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)
    kernel -= 2 * affine(x, np.ascontiguousarray(y.T), np.zeros(len(y), kernel.dtype))
    np.maximum(kernel, 0.0, out=kernel)
    kernel *= -gamma
    np.exp(kernel, out=kernel)
    return kernel


class KernelPolicy(Policy):
    """Softmax policy of a kernel machine, which nearly always takes the action with the highest value.

    Args:
        projection: projection of raw features, saved with the policy.
        actions: number of actions.
    """

    support: Tensor
    coefficients: Tensor
    intercepts: Tensor
    gamma: Tensor

    def __init__(self, projection: Projection, actions: int) -> None:
        """Create a policy without pages, in which all actions have the same probability."""
        super().__init__()
        self.projection = projection
        self.head = CategoricalHead(actions)
        self.items = np.zeros((0, 2, projection.width), np.float32)
        self.register_buffer("support", torch.zeros(0, ITEMS * projection.width))
        self.register_buffer("coefficients", torch.zeros(0, actions))
        self.register_buffer("intercepts", torch.zeros(actions))
        self.register_buffer("gamma", torch.ones(1))
        self.eval()

    def with_pages(self, features: Array, lengths: Array) -> KernelPolicy:
        """Set the pages that the policy reads, which are not part of its weights.

        Args:
            features: projected features, zeros beyond a page, float32 [P, N, D].
            lengths: number of symbols of each page, int [P].

        Returns:
            This policy.
        """
        none = np.zeros((len(features), 1, features.shape[2]))
        root = np.ones((len(features), 1, features.shape[2]))
        self.items = np.concatenate([none, root, features], axis=1).astype(np.float32)  # none, ROOT, symbols
        return self

    @property
    def machine(self) -> Machine:
        """Return the current kernel machine, whose arrays a later fit replaces but does not change."""
        support, coefficients, intercepts = (w.numpy() for w in (self.support, self.coefficients, self.intercepts))
        return Machine(self.items, support, coefficients, intercepts, float(self.gamma))

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        """Return the distributions of the actions at observations [K, T, 10]."""
        values = SHARP * torch.from_numpy(self.machine.predict(observations.flatten(0, 1).numpy()))
        return self.head.distribution(values.reshape(*observations.shape[:2], -1), legal)

    def actor(self) -> KernelActor:
        """Return a NumPy copy that acts."""
        return KernelActor(self.machine, CategoricalSampler(self.head.outputs))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        for name in ("support", "coefficients", "intercepts"):  # new tensors: actors share the old ones
            setattr(self, name, torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *rest)


@dataclass(frozen=True)
class KernelActor:
    """NumPy copy of a `KernelPolicy` that acts."""

    machine: Machine
    sampler: CategoricalSampler

    def memory(self, count: int) -> Array:
        """Return the memory, which is empty, [count, 0]."""
        return np.zeros((count, 0), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Return the random numbers with which `choose` samples actions."""
        return self.sampler.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """Return the logits of the actions and the memory."""
        return SHARP * self.machine.predict(observation), memory

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        """Return actions sampled with this noise."""
        return self.sampler.choose(parameters, noise, legal)


@dataclass
class SupportVectorUpdate(FollowTheLeaderUpdate):
    """Follow-the-leader update that fits one machine for each action against the rest to all data so far.

    Attributes:
        regularisation: C of the support vector machines.
        most: largest number of states in a fit; a random subset is used if there are more.
    """

    regularisation: float = 10.0
    most: int = 10_000

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        """Fit the policy to all data so far and return the share of errors before the fit."""
        if not isinstance(policy, KernelPolicy):
            raise UsageError("the update support-vectors needs the policy kernel-svm; pass --policy kernel-svm")
        generator = np.random.default_rng([self.seed, self.aggregation.seen])
        distribution = compute_policy_distribution(policy, trajectories)
        assert isinstance(distribution, Categorical)
        expert_actions = choose_best_actions(cost_to_go, trajectories)
        error_rate = (distribution.mode != expert_actions)[torch.from_numpy(trajectories.mask)].float().mean()
        self.aggregation.add(trajectories, cost_to_go, generator)
        data, costs = self.aggregation.data
        observations = data.observations[data.mask]
        best_actions = choose_best_actions(costs, data).numpy()[data.mask]
        subset = generator.permutation(len(best_actions))[: self.most]
        fit(policy, policy.machine.gather_features(observations[subset]), best_actions[subset], self.regularisation)
        return UpdateResult(float(error_rate), 0.0, 0.0, 0)


def fit(policy: KernelPolicy, x: Array, actions: Array, regularisation: float) -> None:
    """Fit a kernel policy to expert actions.

    Args:
        policy: policy whose support vectors, coefficients and intercepts are replaced.
        x: features of the states, [n, X].
        actions: expert actions, int [n].
        regularisation: C of the support vector machines.

    Raises:
        UsageError: scikit-learn is not installed.
    """
    try:
        from sklearn.svm import SVC
    except ImportError as error:
        raise UsageError("the policy kernel-svm needs scikit-learn: pip install 'aggrevated[parsing]'") from error
    gamma = 1.0 / max(float(x.shape[1] * x.var()), 1e-9)  # scikit-learn's "scale"
    kernel = compute_rbf_kernel(x, x, gamma).astype(np.float64)  # shared by all machines
    coefficients = np.zeros((len(x), policy.head.outputs))
    intercepts = np.full(policy.head.outputs, -1.0)
    for action in np.unique(actions):
        if (actions == action).all():
            intercepts[action] = 1.0
            continue
        machine = SVC(C=regularisation, kernel="precomputed").fit(kernel, actions == action)
        coefficients[machine.support_, action] = machine.dual_coef_[0]
        intercepts[action] = machine.intercept_[0]
    is_support = coefficients.any(axis=1)
    policy.support = torch.from_numpy(x[is_support])
    policy.coefficients = torch.from_numpy(coefficients[is_support].astype(np.float32))
    policy.intercepts = torch.from_numpy(intercepts.astype(np.float32))
    policy.gamma = torch.tensor([gamma], dtype=torch.float32)


@dataclass(frozen=True)
class KernelSettings(PolicySettings):
    """Kernel machine that is fit to expert actions."""

    name = "kernel-svm"
    supports_mixture = False
    use_geometry: bool = setting(False, "Add the position of each symbol on the page to the policy's features.")

    def check(self, chosen: SelectedComponents) -> None:
        """Raise a `UsageError` for an oracle, an update or a start that does not fit the policy."""
        if not isinstance(chosen.oracle, ZeroOneSettings):
            raise UsageError("the policy kernel-svm needs expert actions; choose --method dagger or sl")
        if not isinstance(chosen.update, SupportVectorSettings):
            raise UsageError(
                f"the policy {self.name} cannot be learned by the update {chosen.update.name}; "
                f"choose --update {SupportVectorSettings.name}"
            )
        check_setting(
            isinstance(chosen.start, RandomStartSettings),
            "start",
            chosen.start.name,
            f"random for the policy {self.name}",
        )

    def build(self, observations: Space[Any], head: Head, seed: int) -> KernelPolicy:
        """Return a policy without pages, with a projection of zeros that `prepare` replaces."""
        return KernelPolicy(Projection.blank(self.use_geometry), head.outputs)


@dataclass(frozen=True)
class SupportVectorSettings(UpdateSettings):
    """Support vector machines, fit to all data so far."""

    name = "support-vectors"
    accepts = frozenset({Feedback.ALL_ACTIONS, Feedback.BEST_ACTION})
    uses_loss = False

    def check(self, chosen: SelectedComponents) -> None:
        """Raise a `UsageError` for a policy that is not a kernel machine."""
        if not isinstance(chosen.policy, KernelSettings):
            raise UsageError(
                f"the policy {chosen.policy.name} cannot be learned by the update {self.name}; choose another --update"
            )

    def build(self, seed: int) -> SupportVectorUpdate:
        """Return the update, whose random subsets depend on `seed`."""
        return SupportVectorUpdate(seed=seed)
