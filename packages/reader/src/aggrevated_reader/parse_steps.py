"""A parse step by step: configurations, probabilities of transitions, and the expert's costs Q* and A*.

The costs need the gold tree; they show which mistakes matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from aggrevated.core.arrays import Array
from aggrevated.core.hardware import single_thread
from aggrevated.parsing.pages.page import NAMELESS, Page
from aggrevated.parsing.parser import CONFIGURATION, Parser
from aggrevated.parsing.scoring import parse_greedily
from aggrevated.parsing.transitions.configurations import ConfigurationView
from aggrevated.storage import JsonDict

if TYPE_CHECKING:
    from aggrevated.policies import Policy
    from aggrevated.rollout.trajectories import Trajectories


def list_parse_steps(policy: Policy, parser: Parser, known: bool) -> list[JsonDict]:
    """Return the configurations of the greedy parse of the parser's first page, for JSON.

    Args:
        policy: The policy that parses; it must have the page.
        parser: The parser of the page.
        known: Whether the gold tree is known, so that costs can be given.

    Returns:
        For each step the configuration, the transition taken, and every transition's legality and probability; the
        last configuration has all heads and no transitions. If `known`, every legal transition also has Q*(s, a),
        the final number of wrong heads, and A*(s, a), the number of these that are due to the transition.
    """
    with single_thread():
        trajectories = parse_greedily(policy, parser)
        length = int(trajectories.mask[0].sum())
        probabilities = compute_action_probabilities(policy, trajectories)[:length]
        states = trajectories.states[0, :length]
        legal = parser.action_mask(trajectories.states[0, :length])
        last, _, _ = parser.step(states[-1:], trajectories.actions[:1, length - 1])
        costs = parser.expert.q(states) if known else None
    names = parser.system.actions
    steps = []
    for t in range(length):
        transitions = [
            {"name": name, "legal": bool(legal[t, a]), "probability": round(float(probabilities[t, a]), 4)}
            for a, name in enumerate(names)
        ]
        if costs is not None:
            least = costs[t][legal[t]].min()
            for a, transition in enumerate(transitions):
                if legal[t, a]:
                    transition |= {"cost_to_go": int(costs[t, a]), "costs": int(costs[t, a] - least)}
        taken_name = names[int(trajectories.actions[0, t])]
        steps.append(extract_configuration(states[t], parser) | {"taken": taken_name, "transitions": transitions})
    return [*steps, extract_configuration(last[0], parser) | {"taken": "", "transitions": []}]


def has_gold_heads(page: Page) -> bool:
    """Return whether a page has gold heads; pages without them have only ROOT as head, and no names."""
    return bool((page.heads != 0).any()) or (len(page) == 1 and page.symbols != (NAMELESS,))


def format_steps(steps: Sequence[JsonDict], labels: Sequence[str]) -> list[str]:
    """Return one line for each step: transition, probability, cost, stack and buffer."""
    names = ["ROOT", *labels]
    lines = []
    for number, step in enumerate(steps):
        odds = next((format_odds(one) for one in step["transitions"] if one["name"] == step["taken"]), "")
        stack = " ".join(names[symbol] for symbol in step["stack"])
        buffer = " ".join(names[step["buffer"] :]) if step["buffer"] else ""
        lines.append(f"{number:3d} {step['taken'] or 'end':<8}{odds:<22} {stack} | {buffer}".rstrip())
    return lines


def format_odds(transition: JsonDict) -> str:
    """Return the probability of a transition and, if known, the number of arcs that it costs."""
    costs = transition.get("costs")
    return f"{transition['probability']:.1%}" + ("" if costs is None else f", costs {costs}")


def extract_configuration(state: Array, parser: Parser) -> JsonDict:
    """Return the stack, the first of the buffer (0: empty) and the heads so far (−1: none), as numbers."""
    view = ConfigurationView(state[None, CONFIGURATION])
    first = 0 if view.is_buffer_empty[0] else int(view.b[0])
    heads = parser.heads(state[None])[0][: int(view.n[0])]
    return {"stack": np.flatnonzero(view.on_stack[0]).tolist(), "buffer": first, "heads": heads.tolist()}


@torch.no_grad()
def compute_action_probabilities(policy: Policy, trajectories: Trajectories) -> Array:
    """Return π(a | o₁ … o_t) along the first of the trajectories, [T, A]."""
    inputs = (
        torch.from_numpy(array[:1])
        for array in (trajectories.observations, trajectories.mask, trajectories.action_mask)
    )
    distribution = policy.distribution(*inputs)
    probabilities: Array = distribution.probs[0].numpy()  # type: ignore[attr-defined]
    return probabilities
