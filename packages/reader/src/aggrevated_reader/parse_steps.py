"""How a page is parsed, step by step: what the policy sees, how likely it finds each transition, what each would cost.

The costs are the expert's, Q* and A*, and known where the right tree is: then one can see which mistake matters.
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
    """The configurations on the greedy way through the parser's first page, the last of them with all heads.

    Of every transition whether it is legal and how likely the policy finds it; and, if the tree is `known`, the
    cost-to-go Q*(s, a) and A*(s, a): how many heads will be wrong in the end, and how many of them by this transition.
    """
    with single_thread():
        found = parse_greedily(policy, parser)
        length = int(found.mask[0].sum())
        likely = compute_action_probabilities(policy, found)[:length]
        states = found.states[0, :length]
        legal = parser.action_mask(found.states[0, :length])
        last, _, _ = parser.step(states[-1:], found.actions[:1, length - 1])
        costs = parser.expert.q(states) if known else None
    names = parser.system.actions
    steps = []
    for t in range(length):
        transitions = [
            {"name": name, "legal": bool(legal[t, a]), "probability": round(float(likely[t, a]), 4)}
            for a, name in enumerate(names)
        ]
        if costs is not None:
            least = costs[t][legal[t]].min()
            for a, transition in enumerate(transitions):
                if legal[t, a]:
                    transition |= {"cost_to_go": int(costs[t, a]), "costs": int(costs[t, a] - least)}
        taken = names[int(found.actions[0, t])]
        steps.append(extract_configuration(states[t], parser) | {"taken": taken, "transitions": transitions})
    return [*steps, extract_configuration(last[0], parser) | {"taken": "", "transitions": []}]


def has_gold_heads(page: Page) -> bool:
    """Whether it says which heads are right: elsewhere all are ROOT, and symbols have no names."""
    return bool((page.heads != 0).any()) or (len(page) == 1 and page.symbols != (NAMELESS,))


def format_steps(steps: Sequence[JsonDict], labels: Sequence[str]) -> list[str]:
    """A line for each step, for people: the transition taken, how likely it was, what it costs, stack and buffer."""
    names = ["ROOT", *labels]
    lines = []
    for number, step in enumerate(steps):
        said = next((format_odds(one) for one in step["transitions"] if one["name"] == step["taken"]), "")
        stack = " ".join(names[place] for place in step["stack"])
        buffer = " ".join(names[step["buffer"] :]) if step["buffer"] else ""
        lines.append(f"{number:3d} {step['taken'] or 'end':<8}{said:<22} {stack} | {buffer}".rstrip())
    return lines


def format_odds(transition: JsonDict) -> str:
    """How likely it was and, if that is known, how many arcs it costs."""
    costs = transition.get("costs")
    return f"{transition['probability']:.1%}" + ("" if costs is None else f", costs {costs}")


def extract_configuration(state: Array, parser: Parser) -> JsonDict:
    """Stack, first of the buffer (0 where it is empty) and heads so far (-1 where there is none), by number."""
    view = ConfigurationView(state[None, CONFIGURATION])
    first = 0 if view.is_buffer_empty[0] else int(view.b[0])
    heads = parser.heads(state[None])[0][: int(view.n[0])]
    return {"stack": np.flatnonzero(view.on_stack[0]).tolist(), "buffer": first, "heads": heads.tolist()}


@torch.no_grad()
def compute_action_probabilities(policy: Policy, found: Trajectories) -> Array:
    """[T, A]: π(a | o₁ … o_t) along the first of the trajectories."""
    given = (torch.from_numpy(array[:1]) for array in (found.observations, found.mask, found.action_mask))
    distribution = policy.distribution(*given)
    probabilities: Array = distribution.probs[0].numpy()  # type: ignore[attr-defined]
    return probabilities
