"""Line 2 of Algorithm 1: initialise π_θ₁, at random or by supervised learning."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from gymnasium.spaces import Discrete

from aggrevated.cost_to_go.disagreement import Disagreement
from aggrevated.errors import UsageError
from aggrevated.experts import Expert
from aggrevated.gradients.likelihood import likelihood
from aggrevated.policies import Policy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, Head
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.randomness import Purpose, seeds
from aggrevated.roll_in import Mixture, roll_in
from aggrevated.simulators import Simulator
from aggrevated.updates.follow_the_leader import FollowTheLeader


def actions_of(simulator: Simulator) -> int:
    """How many actions there are, where there are finitely many."""
    if not isinstance(simulator.action_space, Discrete):
        raise UsageError(f"{simulator.name} has continuous actions; a categorical policy needs a finite set")
    return int(simulator.action_space.n)


POLICIES: dict[str, Callable[[int, Head, tuple[int, ...], torch.Generator], Policy]] = {
    "mlp": FeedForwardPolicy,
    "window": WindowPolicy,
    "lstm": lambda size, head, hidden, generator: RecurrentPolicy(size, head, hidden[0], "lstm", generator),
    "gru": lambda size, head, hidden, generator: RecurrentPolicy(size, head, hidden[0], "gru", generator),
}


def random_policy(simulator: Simulator, kind: str, hidden: tuple[int, ...], seed: int) -> Policy:
    """A randomly initialised policy for the simulator; the same for the same seed."""
    own = int(seeds(seed, Purpose.INITIAL_POLICY, 0, 1)[0] >> 1)  # torch takes signed seeds
    size, head = int(simulator.observation_space.shape[0]), CategoricalHead(actions_of(simulator))
    return POLICIES[kind](size, head, hidden, torch.Generator().manual_seed(own))


def as_it_is(policy: Policy, simulator: Simulator, expert: Expert, k: int, seed: int) -> tuple[int, int]:
    """The random policy is the first, for no simulator step and no query."""
    return 0, 0


def supervised(policy: Policy, simulator: Simulator, expert: Expert, k: int, seed: int) -> tuple[int, int]:
    """Maximise the likelihood of the expert's actions in k of its own episodes; (simulator steps, queries) it took."""
    demonstrations = roll_in(simulator, Mixture(expert, None, alpha=1.0), seeds(seed, Purpose.DEMONSTRATION, 0, k))
    costs = Disagreement(expert, actions_of(simulator))(demonstrations)
    FollowTheLeader(learning_rate=0.01, steps=500, seed=seed)(policy, likelihood, demonstrations, costs)
    return demonstrations.steps, costs.queries


Start: TypeAlias = Callable[[Policy, Simulator, Expert, int, int], tuple[int, int]]
STARTS: dict[str, Start] = {"random": as_it_is, "supervised": supervised}
