"""Updates, line 7 of Algorithm 1: θ_{n+1} = θ_n − η_n δ_θ. Their `state` persists between iterations."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Protocol, Self

import torch
from torch import Tensor, nn

from aggrevated.core.errors import UsageError
from aggrevated.core.schedules import Schedule, linear_schedule
from aggrevated.core.settings import COUNT, NON_NEGATIVE, Settings, one_of, setting
from aggrevated.losses import Loss, make_action_mask_tensor, make_policy_inputs
from aggrevated.oracles import CostToGo, Feedback
from aggrevated.policies import Policy
from aggrevated.policies.heads import Head
from aggrevated.rollout.trajectories import Trajectories


@dataclass(frozen=True)
class UpdateResult:
    """The result of one update.

    Attributes:
        loss: ℓ_n(π_n), before the step, in the unit in which the update measures costs.
        gradient_norm: Norm of the gradient of the loss at θ_n.
        kl: Mean of KL(π_n ‖ π_{n+1}) over the visited states, in nats.
        step_halvings: How often the step was halved; for a step scaled to a target KL, the whole number of
            halvings.
        confident_error_rate: Fraction of states with a confident mistake, from `UpdateWithDiagnostics`.
        mean_advantage: Mean A* of the new policy's actions, from `UpdateWithDiagnostics`.
        advantage_rms: Root mean square of A*, from `UpdateWithDiagnostics`.
    """

    loss: float
    gradient_norm: float
    kl: float
    step_halvings: int
    confident_error_rate: float | None = None
    mean_advantage: float | None = None
    advantage_rms: float | None = None


class Update(Protocol):
    """A rule for line 7 of Algorithm 1."""

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        """Change the policy's parameters in place.

        Args:
            policy: π_n, which becomes π_{n+1}.
            loss: ℓ_n, a function of policy, trajectories and cost-to-go.
            trajectories: The K trajectories of iteration n.
            cost_to_go: Q* or A* at their states.
        """
        ...

    def state(self) -> dict[str, Tensor]:
        """Return everything that the update needs to continue, for a checkpoint."""
        ...

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a state that `state` returned."""
        ...


def compute_gradient_norm(gradient: Tensor) -> float:
    """Return the norm of a gradient, computed in float64, so that it is finite if the gradient is.

    Args:
        gradient: A tensor of any shape.

    Returns:
        The Euclidean norm.
    """
    return float(gradient.double().norm())


def make_dropout_context(policy: Policy) -> Callable[[int], AbstractContextManager[None]]:
    """Return a function from a seed to a context in which dropout is active, with masks from that seed.

    Dropout is inactive elsewhere. A policy without dropout gets a context without effect.
    """
    if any(isinstance(module, nn.Dropout) and module.p for module in policy.modules()):
        return partial(enable_dropout, policy)
    no_dropout = nullcontext()
    return lambda seed: no_dropout  # forking the generator takes as long as a step of a small network


@contextmanager
def enable_dropout(policy: Policy, seed: int) -> Iterator[None]:
    """Activate the policy's dropout, with masks from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed >> 1)  # torch takes signed seeds
        policy.train()
        try:
            yield
        finally:
            policy.eval()


def compute_loss_and_gradient(
    policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo, along: CostToGo | None = None
) -> tuple[float, Tensor]:
    """Return ℓ_n(π_n) and its gradient ∇_θ ℓ_n at θ_n.

    Args:
        policy: π_n.
        loss: ℓ_n, a function of policy, trajectories and cost-to-go.
        trajectories: The K trajectories of iteration n.
        cost_to_go: Q* or A* at their states.
        along: Cost-to-go in the unit of the task, to add the gradient of the policy's auxiliary loss; None:
            do not.

    Returns:
        The loss, and the gradient as one vector [d].
    """
    with make_dropout_context(policy)(int(trajectories.seeds[0])):
        value = loss(policy, trajectories, cost_to_go)
        total = value if along is None else value + compute_auxiliary_loss(policy, trajectories, along)
    gradients = torch.autograd.grad(total, list(policy.parameters()), materialize_grads=True)
    return value.item(), torch.cat([g.reshape(-1) for g in gradients])


def compute_auxiliary_loss(policy: Policy, trajectories: Trajectories, cost_to_go: CostToGo) -> Tensor | float:
    """Return the policy's auxiliary loss, divided by HK as the losses are; 0 if it has none."""
    observations = make_policy_inputs(policy, trajectories)
    mask = torch.from_numpy(trajectories.mask)
    has_advantages = cost_to_go.has_all_actions and cost_to_go.advantage
    costs = torch.from_numpy(cost_to_go.values) if has_advantages else None
    total = policy.auxiliary_loss(observations, mask, make_action_mask_tensor(trajectories), costs)
    return 0.0 if total is None else total / (trajectories.horizon * trajectories.count)


@dataclass(frozen=True)
class UpdateSettings(Settings, ABC):
    """Settings of an update."""

    accepts: ClassVar[frozenset[Feedback]] = frozenset(Feedback)  # the feedback from which it can learn
    needs_learner_actions: ClassVar[bool] = False  # whether it uses only actions that the learner chose
    uses_loss: ClassVar[bool] = True  # whether it uses the loss
    wants_expert_actions: ClassVar[bool] = False  # whether it uses expert actions, if the oracle can add them

    def wrap_policy(self, policy: Policy, head: Head) -> Policy:
        """Return the policy that the update learns: `policy`, or one made of such policies.

        Args:
            policy: The policy from the policy settings.
            head: Another head for the same action space, for the returned policy.
        """
        return policy

    @abstractmethod
    def build(self, seed: int) -> Update:
        """Return the update; its random numbers come from the seed."""

    def schedule(self, value: float, last: float = 0.0) -> float | Schedule:
        """Return the value of a setting for all iterations, or a schedule that falls to `last`."""
        return value


TO_THE_END = -1  # a value of `anneal_iterations`: anneal over all iterations of the run


@dataclass(frozen=True)
class AnnealedSettings(UpdateSettings):
    """Settings of an update whose step size can be annealed."""

    anneal_iterations: int = setting(
        0,
        "Iterations over which learning rate or KL falls to 0, entropy bonus to a tenth; -1: all; 0: never.",
        COUNT,
    )

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """Return the settings with -1 replaced by the number of iterations, or by 0 if that is unlimited."""
        if self.anneal_iterations != TO_THE_END:
            return self
        if not iterations and "anneal_iterations" in given:
            raise UsageError(
                "--anneal-iterations is -1 (all), but their number is open with --budget or --queries; "
                "set --iterations, too"
            )
        return replace(self, anneal_iterations=iterations)

    def schedule(self, value: float, last: float = 0.0) -> float | Schedule:
        return linear_schedule(value, last, self.anneal_iterations) if self.anneal_iterations else value


UNITS = ("advantage-rms", "raw")


@dataclass(frozen=True)
class GradientSettings(AnnealedSettings):
    """Settings of a gradient update whose step size does not depend on the task's unit of cost."""

    target_kl: float = setting(
        0.02, "Mean KL per visited state of each step, in nats; 0: other settings decide.", NON_NEGATIVE
    )
    cost_scale: str = setting(
        "advantage-rms",
        "Unit of A* and the entropy bonus: RMS of A* so far (advantage-rms), or the task's cost (raw).",
        one_of(UNITS),
    )

    @property
    def normalize_costs(self) -> bool:
        """Return whether A* is divided by the cost scale."""
        return self.cost_scale == "advantage-rms"
