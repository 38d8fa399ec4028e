"""Line 7 of Algorithm 1: θ_{n+1} = θ_n − η_n δ_θ. What an update remembers between iterations is in its `state`."""

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
    """What one update did."""

    loss: float  # ℓ_n(π_n), before the step, in the unit that the update measures costs in
    gradient_norm: float
    kl: float  # mean over the visited states of KL(π_n ‖ π_{n+1})
    step_halvings: int  # how often the step was halved before it was taken, or what its shortening to a target comes to
    confident_error_rate: float | None = None  # what `health.Examined` saw of the new policy
    mean_advantage: float | None = None
    advantage_rms: float | None = None


class Update(Protocol):
    """A rule for line 7."""

    def __call__(self, policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> UpdateResult:
        """Change the policy's parameters in place, and say what was done."""
        ...

    def state(self) -> dict[str, Tensor]:
        """All that the rule remembers, for a checkpoint."""
        ...

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        ...


def compute_gradient_norm(gradient: Tensor) -> float:
    """Its length; in float64, so that it is finite whenever the gradient is."""
    return float(gradient.double().norm())


def make_dropout_context(policy: Policy) -> Callable[[int], AbstractContextManager[None]]:
    """From a seed to a block in which a policy that has dropout uses it, the same for the same seed.

    Outside of such blocks no policy does. Whether it has any is found out here, once for all minibatches of a fit.
    """
    if any(isinstance(module, nn.Dropout) and module.p for module in policy.modules()):
        return partial(enable_dropout, policy)
    nothing = nullcontext()
    return lambda seed: nothing  # forking the generator takes as long as a step of a small network


@contextmanager
def enable_dropout(policy: Policy, seed: int) -> Iterator[None]:
    """Let the policy use its dropout."""
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
    """ℓ_n(π_n) and its gradient ∇_θ ℓ_n at θ_n, as one flat vector [d].

    With `along`, costs in the task's own unit, what the policy learns along is in the gradient, too.
    """
    with make_dropout_context(policy)(int(trajectories.seeds[0])):
        value = loss(policy, trajectories, cost_to_go)
        total = value if along is None else value + compute_auxiliary_loss(policy, trajectories, along)
    gradients = torch.autograd.grad(total, list(policy.parameters()), materialize_grads=True)
    return value.item(), torch.cat([g.reshape(-1) for g in gradients])


def compute_auxiliary_loss(policy: Policy, trajectories: Trajectories, cost_to_go: CostToGo) -> Tensor | float:
    """1/(HK) of what the policy learns along with these trajectories, as the losses are averaged; 0 for most."""
    observations = make_policy_inputs(policy, trajectories)
    mask = torch.from_numpy(trajectories.mask)
    known = cost_to_go.has_all_actions and cost_to_go.advantage
    costs = torch.from_numpy(cost_to_go.values) if known else None
    total = policy.auxiliary_loss(observations, mask, make_action_mask_tensor(trajectories), costs)
    return 0.0 if total is None else total / (trajectories.horizon * trajectories.count)


@dataclass(frozen=True)
class UpdateSettings(Settings, ABC):
    """A rule for line 7, by name."""

    accepts: ClassVar[frozenset[Feedback]] = frozenset(Feedback)  # what it can learn from
    needs_learner_actions: ClassVar[bool] = False  # whether it needs actions of the learner's own
    uses_loss: ClassVar[bool] = True  # whether it looks at the loss at all
    wants_expert_actions: ClassVar[bool] = False  # whether it also wants to know what π* would do

    def wrap_policy(self, policy: Policy, head: Head) -> Policy:
        """What it learns: the policy of the chosen kind, or one that is made of such; `head` is one for it."""
        return policy

    @abstractmethod
    def build(self, seed: int) -> Update:
        """The rule; what is random in it comes from the seed."""

    def schedule(self, value: float, last: float = 0.0) -> float | Schedule:
        """The value for every iteration; some rules let it fall to `last`."""
        return value


TO_THE_END = -1  # annealed over all iterations, however many they are


@dataclass(frozen=True)
class AnnealedSettings(UpdateSettings):
    """Rules whose step size can fall."""

    anneal_iterations: int = setting(
        0,
        "Over how many iterations learning rate or KL falls to 0, and the entropy bonus to a tenth; 0: never.",
        COUNT,
    )

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """To an end that is open nothing falls; asked for on purpose, that is a `UsageError`."""
        if self.anneal_iterations != TO_THE_END:
            return self
        if not iterations and "anneal_iterations" in given:
            raise UsageError(
                "--anneal-iterations is -1, to an end that --budget or --queries leave open; give --iterations, too"
            )
        return replace(self, anneal_iterations=iterations)

    def schedule(self, value: float, last: float = 0.0) -> float | Schedule:
        return linear_schedule(value, last, self.anneal_iterations) if self.anneal_iterations else value


UNITS = ("advantage-rms", "raw")


@dataclass(frozen=True)
class GradientSettings(AnnealedSettings):
    """Rules that follow the gradient, with steps that need not know the scale of the task."""

    target_kl: float = setting(
        0.02,
        "The mean KL per visited state that each step is to have; 0: as long as the other settings make it.",
        NON_NEGATIVE,
    )
    cost_scale: str = setting(
        "advantage-rms",
        "What A* and the entropy bonus are measured in: the spread of A* so far, or the task's own cost.",
        one_of(UNITS),
    )

    @property
    def normalize_costs(self) -> bool:
        """Whether A* is divided by its spread."""
        return self.cost_scale == "advantage-rms"
