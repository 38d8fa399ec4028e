"""Whether the pieces of a run fit each other: asked once, before the first roll-in, and answered in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.actors import Actor
from aggrevated.core.errors import UsageError
from aggrevated.experts import Expert
from aggrevated.simulators import Simulator, find_action_mask
from aggrevated.simulators.checked import observe_and_check, reset_and_check

if TYPE_CHECKING:
    from aggrevated.policies import Policy

REQUIRED_METHODS = ("reset", "observe", "step")


def check_compatible(policy: Policy, simulator: Simulator, expert: Expert | None = None) -> None:
    """A `UsageError` if the policy cannot act in the simulator, or if expert or simulator lack what they must have."""
    for name in (name for name in REQUIRED_METHODS if not callable(getattr(simulator, name, None))):
        remedy = "give an aggrevated.Simulator: GymnasiumSimulator makes one of an environment"
        raise UsageError(f"{simulator!r} is no simulator, for it has no method {name}; {remedy}")
    if expert is not None and not callable(getattr(expert, "act", None)):
        raise UsageError(f"{expert!r} is no expert, for it has no method act; give it act(states, t)")
    if not isinstance(simulator.action_space, Discrete | Box):
        kind = type(simulator.action_space).__name__
        raise UsageError(f"{simulator.name} has actions of type {kind}; make them Discrete or a Box")
    check_policy_matches_simulator(policy, simulator)


def check_policy_matches_simulator(policy: Policy, simulator: Simulator) -> None:
    """A `UsageError` unless the policy reads what the simulator shows, and answers with one of its actions."""
    states = reset_and_check(simulator, np.zeros(1, np.uint64))
    observations = observe_and_check(simulator, states)
    rules = find_action_mask(simulator)
    actor = policy.actor()
    try:
        parameters, _ = actor.parameters(observations, actor.memory(1))
    except Exception as error:
        shown = f"what {simulator.name} shows, observations of shape {observations.shape[1:]} ({error})"
        raise UsageError(f"the policy cannot read {shown}; make it for them") from error
    space = simulator.action_space
    outputs = getattr(getattr(policy, "head", None), "outputs", None)
    answer = choose_greedy_action(actor, parameters, rules.action_mask(states) if rules else None, simulator)
    vectors = answer.ndim > 1
    if vectors != isinstance(space, Box):
        has, wants = ("vectors", "a finite set") if vectors else ("a finite set", "vectors")
        head = f"CategoricalHead({int(space.n)})" if isinstance(space, Discrete) else f"GaussianHead({space.shape[0]})"
        raise UsageError(f"the actions of the policy are {has}, those of {simulator.name} {wants}; give it a {head}")
    wanted = int(space.n) if isinstance(space, Discrete) else int(np.prod(space.shape))
    if outputs is not None and outputs != wanted:
        raise UsageError(f"the policy has {outputs} actions, {simulator.name} has {wanted}; make it for as many")


def choose_greedy_action(
    actor: Actor, parameters: np.ndarray, legal: np.ndarray | None, simulator: Simulator
) -> np.ndarray:
    """Its most likely action [1] or [1, A]."""
    try:
        return np.asarray(actor.choose(parameters, 0.0, legal))
    except Exception as error:
        raise UsageError(
            f"the policy cannot choose among the actions of {simulator.name} ({error}); give it a head for them"
        ) from error
