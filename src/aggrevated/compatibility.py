"""Checks, before the first roll-in, that policy, simulator and expert fit together."""

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
    """Raise a `UsageError` if simulator or expert lacks a method, or the policy cannot act there."""
    for name in (name for name in REQUIRED_METHODS if not callable(getattr(simulator, name, None))):
        remedy = "pass an aggrevated.Simulator, or wrap an environment in GymnasiumSimulator"
        raise UsageError(f"{simulator!r} is not a simulator: it has no method {name}; {remedy}")
    if expert is not None and not callable(getattr(expert, "act", None)):
        raise UsageError(f"{expert!r} is not an expert: it has no method act; define act(states, t)")
    if not isinstance(simulator.action_space, Discrete | Box):
        kind = type(simulator.action_space).__name__
        raise UsageError(f"the action space of {simulator.name} is a {kind}; make it a Discrete or a Box")
    check_policy_matches_simulator(policy, simulator)


def check_policy_matches_simulator(policy: Policy, simulator: Simulator) -> None:
    """Raise a `UsageError` unless the policy reads the simulator's observations and returns its actions."""
    states = reset_and_check(simulator, np.zeros(1, np.uint64))
    observations = observe_and_check(simulator, states)
    rules = find_action_mask(simulator)
    actor = policy.actor()
    try:
        parameters, _ = actor.parameters(observations, actor.memory(1))
    except Exception as error:
        subject = f"the observations of {simulator.name}, of shape {observations.shape[1:]} ({error})"
        raise UsageError(f"the policy cannot read {subject}; build it for this shape") from error
    space = simulator.action_space
    outputs = getattr(getattr(policy, "head", None), "outputs", None)
    action = choose_greedy_action(actor, parameters, rules.action_mask(states) if rules else None, simulator)
    is_vector = action.ndim > 1
    if is_vector != isinstance(space, Box):
        actual, expected = ("vectors", "a finite set") if is_vector else ("a finite set", "vectors")
        head = f"CategoricalHead({int(space.n)})" if isinstance(space, Discrete) else f"GaussianHead({space.shape[0]})"
        difference = f"the actions of the policy are {actual}, those of {simulator.name} {expected}"
        raise UsageError(f"{difference}; build the policy with a {head}")
    size = int(space.n) if isinstance(space, Discrete) else int(np.prod(space.shape))
    if outputs is not None and outputs != size:
        raise UsageError(f"the policy has {outputs} actions, {simulator.name} has {size}; give it {size}")


def choose_greedy_action(
    actor: Actor, parameters: np.ndarray, legal: np.ndarray | None, simulator: Simulator
) -> np.ndarray:
    """Return the most likely action, [1] or [1, A]."""
    try:
        return np.asarray(actor.choose(parameters, 0.0, legal))
    except Exception as error:
        raise UsageError(
            f"the policy cannot choose an action of {simulator.name} ({error}); build the policy with a head for it"
        ) from error
