"""DAgger's classifier as it was before networks: a support vector machine with an RBF kernel, by scikit-learn.

It sees what the reactive network sees: the features of nine symbols. What is kept of it are support vectors and their
coefficients, so that it is saved, loaded and run without scikit-learn.
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

SHARP = 20.0  # a decision value of 1 is so many nats: the machine itself knows no chance
ITEMS = 3 * CONTEXT_SIZE


@dataclass(frozen=True)
class Machine:
    """The decision values of a state x: Σ_i c_{ia} exp(−γ‖x − x_i‖²) + b_a, for every action a."""

    items: Array  # [P, 2 + N, D]: of each page none, ROOT and its symbols
    support: Array  # [S, X]
    coefficients: Array  # [S, A]
    intercepts: Array  # [A]
    gamma: float

    def gather_features(self, observations: Array) -> Array:
        """[n, X]: the features of the nine symbols that each observation [n, 10] points at."""
        pages = observations[:, :1].astype(np.int64)
        numbers = observations[:, 1:].astype(np.int64) + 1
        return self.items[pages, numbers].reshape(len(observations), -1)

    def predict(self, observations: Array) -> Array:
        """[n, A]."""
        kernel = compute_rbf_kernel(self.gather_features(observations), self.support, self.gamma)
        return affine(kernel, self.coefficients, self.intercepts)


def compute_rbf_kernel(x: Array, y: Array, gamma: float) -> Array:
    """[n, m]: exp(−γ‖x_i − y_j‖²)."""
    kernel: Array = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)
    kernel -= 2 * affine(x, np.ascontiguousarray(y.T), np.zeros(len(y), kernel.dtype))
    np.maximum(kernel, 0.0, out=kernel)
    kernel *= -gamma
    np.exp(kernel, out=kernel)
    return kernel


class KernelPolicy(Policy):
    """The softmax of a machine's decision values, so steep that it hardly ever takes another than the highest."""

    support: Tensor
    coefficients: Tensor
    intercepts: Tensor
    gamma: Tensor

    def __init__(self, projection: Projection, actions: int) -> None:
        """Without pages yet, and with all actions alike."""
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
        """The same policy, which now reads pages of these features [P, N, D] and lengths [P]; they are no weights."""
        nothing = np.zeros((len(features), 1, features.shape[2]))
        root = np.ones((len(features), 1, features.shape[2]))
        self.items = np.concatenate([nothing, root, features], axis=1).astype(np.float32)  # none, ROOT, symbols
        return self

    @property
    def machine(self) -> Machine:
        """As it is now; a fit replaces its arrays, and changes none."""
        support, coefficients, intercepts = (w.numpy() for w in (self.support, self.coefficients, self.intercepts))
        return Machine(self.items, support, coefficients, intercepts, float(self.gamma))

    def distribution(self, observations: Tensor, mask: Tensor, legal: Tensor | None = None) -> Distribution:
        values = SHARP * torch.from_numpy(self.machine.predict(observations.flatten(0, 1).numpy()))
        return self.head.distribution(values.reshape(*observations.shape[:2], -1), legal)

    def actor(self) -> KernelActor:
        return KernelActor(self.machine, CategoricalSampler(self.head.outputs))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        for name in ("support", "coefficients", "intercepts"):  # as many as were kept, and new ones: actors share them
            setattr(self, name, torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *rest)


@dataclass(frozen=True)
class KernelActor:
    """The policy at single steps."""

    machine: Machine
    sampler: CategoricalSampler

    def memory(self, count: int) -> Array:
        return np.zeros((count, 0), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        return self.sampler.noise(generators, horizon)

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        return SHARP * self.machine.predict(observation), memory

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        return self.sampler.choose(parameters, noise, legal)


@dataclass
class SupportVectorUpdate(FollowTheLeaderUpdate):
    """π_{n+1}: the machines, one for each action against the rest, of all data so far."""

    regularisation: float = 10.0  # C
    most: int = 10_000  # states; of more, a random choice is fitted

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        if not isinstance(policy, KernelPolicy):
            raise UsageError("the update support-vectors is for the policy kernel-svm; choose that --policy")
        generator = np.random.default_rng([self.seed, self.aggregation.seen])
        before = compute_policy_distribution(policy, trajectories)
        assert isinstance(before, Categorical)
        advised = choose_best_actions(cost_to_go, trajectories)
        mistakes = (before.mode != advised)[torch.from_numpy(trajectories.mask)].float().mean()
        self.aggregation.add(trajectories, cost_to_go, generator)
        data, costs = self.aggregation.data
        observations = data.observations[data.mask]
        best = choose_best_actions(costs, data).numpy()[data.mask]
        chosen = generator.permutation(len(best))[: self.most]
        fit(policy, policy.machine.gather_features(observations[chosen]), best[chosen], self.regularisation)
        return UpdateResult(float(mistakes), 0.0, 0.0, 0)


def fit(policy: KernelPolicy, x: Array, actions: Array, regularisation: float) -> None:
    """Fit the policy to these features [n, X] and the actions [n] that were advised there."""
    try:
        from sklearn.svm import SVC
    except ImportError as error:
        raise UsageError("the policy kernel-svm needs scikit-learn: pip install 'aggrevated[parsing]'") from error
    gamma = 1.0 / max(float(x.shape[1] * x.var()), 1e-9)  # scikit-learn's "scale"
    kernel = compute_rbf_kernel(x, x, gamma).astype(np.float64)  # once, not for each machine
    coefficients = np.zeros((len(x), policy.head.outputs))
    intercepts = np.full(policy.head.outputs, -1.0)
    for action in np.unique(actions):
        if (actions == action).all():
            intercepts[action] = 1.0
            continue
        machine = SVC(C=regularisation, kernel="precomputed").fit(kernel, actions == action)
        coefficients[machine.support_, action] = machine.dual_coef_[0]
        intercepts[action] = machine.intercept_[0]
    kept = coefficients.any(axis=1)
    policy.support = torch.from_numpy(x[kept])
    policy.coefficients = torch.from_numpy(coefficients[kept].astype(np.float32))
    policy.intercepts = torch.from_numpy(intercepts.astype(np.float32))
    policy.gamma = torch.tensor([gamma], dtype=torch.float32)


@dataclass(frozen=True)
class KernelSettings(PolicySettings):
    """A kernel machine, fitted to what the expert advises."""

    name = "kernel-svm"
    supports_mixture = False
    use_geometry: bool = setting(False, "Tell the policy where a symbol stands.")

    def check(self, chosen: SelectedComponents) -> None:
        if not isinstance(chosen.oracle, ZeroOneSettings):
            raise UsageError("the policy kernel-svm is for the methods dagger and sl; choose one of these")
        if not isinstance(chosen.update, SupportVectorSettings):
            raise UsageError(
                f"the policy {self.name} cannot be learned by the update {chosen.update.name}; choose others"
            )
        check_setting(
            isinstance(chosen.start, RandomStartSettings),
            "start",
            chosen.start.name,
            f"random for the policy {self.name}",
        )

    def build(self, observations: Space[Any], head: Head, seed: int) -> KernelPolicy:
        return KernelPolicy(Projection.blank(self.use_geometry), head.outputs)


@dataclass(frozen=True)
class SupportVectorSettings(UpdateSettings):
    """Support vectors of all data so far."""

    name = "support-vectors"
    accepts = frozenset({Feedback.ALL_ACTIONS, Feedback.BEST_ACTION})
    uses_loss = False

    def check(self, chosen: SelectedComponents) -> None:
        if not isinstance(chosen.policy, KernelSettings):
            raise UsageError(
                f"the policy {chosen.policy.name} cannot be learned by the update {self.name}; choose others"
            )

    def build(self, seed: int) -> SupportVectorUpdate:
        return SupportVectorUpdate(seed=seed)
