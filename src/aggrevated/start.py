"""Line 2 of Algorithm 1: initialise π_θ₁, at random or by supervised learning."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from gymnasium.spaces import Discrete

from aggrevated.cost_to_go.disagreement import disagreement
from aggrevated.experts import Expert
from aggrevated.losses.likelihood import likelihood
from aggrevated.policies import Policy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead, Head
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.randomness import Purpose, seeds
from aggrevated.roll_in import Mixture, roll_in
from aggrevated.simulators import Simulator
from aggrevated.updates.follow_the_leader import FollowTheLeader

POLICIES: dict[str, Callable[[int, Head, tuple[int, ...], torch.Generator], Policy]] = {
    "mlp": FeedForwardPolicy,
    "window": WindowPolicy,
    "lstm": lambda size, head, hidden, generator: RecurrentPolicy(size, head, hidden[0], "lstm", generator),
    "gru": lambda size, head, hidden, generator: RecurrentPolicy(size, head, hidden[0], "gru", generator),
}


def head_for(simulator: Simulator, log_deviation: float) -> Head:
    """Categorical for a finite set of actions, Gaussian with that deviation for vectors."""
    if isinstance(simulator.action_space, Discrete):
        return CategoricalHead(int(simulator.action_space.n))
    space = simulator.action_space
    return GaussianHead(int(space.shape[0]), log_deviation, space.low, space.high)


def random_policy(
    simulator: Simulator, kind: str, hidden: tuple[int, ...], seed: int, log_deviation: float = -0.5
) -> Policy:
    """A randomly initialised policy for the simulator; the same for the same seed."""
    own = int(seeds(seed, Purpose.INITIAL_POLICY, 0, 1)[0] >> 1)  # torch takes signed seeds
    size, head = int(simulator.observation_space.shape[0]), head_for(simulator, log_deviation)
    return POLICIES[kind](size, head, hidden, torch.Generator().manual_seed(own))


LARGEST_MINIBATCH = 16  # demonstrations


@dataclass(frozen=True)
class Supervision:
    """How a policy is taught before the first iteration."""

    demonstrations: int  # episodes of the expert's
    steps: int  # minibatches
    learning_rate: float = 0.01  # at first; it falls to 0
    seed: int = 0


def as_it_is(policy: Policy, simulator: Simulator, expert: Expert, how: Supervision) -> tuple[int, int]:
    """The random policy is the first, for no simulator step and no query."""
    return 0, 0


def supervised(policy: Policy, simulator: Simulator, expert: Expert, how: Supervision) -> tuple[int, int]:
    """Maximise the likelihood of the expert's actions in its own episodes; (simulator steps, queries) it took.

    A Gaussian's deviation stays what it was: the likelihood of an expert without chance would make it vanish, and with
    it all exploration.
    """
    chosen = seeds(how.seed, Purpose.DEMONSTRATION, 0, how.demonstrations)
    demonstrations = roll_in(simulator, Mixture(expert, None, alpha=1.0), chosen)
    costs = disagreement(expert, simulator.action_space)(demonstrations)
    deviations = {name: w.clone() for name, w in policy.state_dict().items() if name.endswith("log_deviation")}
    minibatch = min(LARGEST_MINIBATCH, max(1, how.demonstrations // 10))
    fit = FollowTheLeader(how.learning_rate, how.steps, minibatch, how.demonstrations, anneal=True, seed=how.seed)
    fit(policy, likelihood, demonstrations, costs)
    policy.load_state_dict(deviations, strict=False)
    return demonstrations.steps, costs.queries


Start: TypeAlias = Callable[[Policy, Simulator, Expert, Supervision], tuple[int, int]]
STARTS: dict[str, Start] = {"random": as_it_is, "supervised": supervised}
