"""Are the actions in the order, and of the sign, that the expert was made for?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.doctor.estimates import estimate_mean
from aggrevated.doctor.examination import CHANGED, Examination
from aggrevated.doctor.findings import Finding
from aggrevated.doctor.perturbed_experts import PerturbedExpert
from aggrevated.doctor.time_budget import run_largest_affordable
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import find_action_mask

ALL = 4  # actions of which every order is tried; of more, those in which two are exchanged, and all reversed
EPISODES, FRESH = 8, 40
MUCH = 0.5  # of what the changed expert earns above chance: by so much it must be better, for sure


def check_action_order(patient: Examination) -> Iterator[Finding]:
    """The expert is rolled out with its actions changed; the best of them again on fresh episodes."""
    space = patient.simulator.action_space
    if find_action_mask(patient.simulator) is not None:
        yield Finding("actions", "unknown", "where not every action is legal, no other order of them can be tried")
        return
    changes = candidate_permutations(int(space.n)) if isinstance(space, Discrete) else candidate_sign_flips(space)

    def tried(part: int, episodes: int, change: Callable[[Array], Array] | None) -> Array:
        expert = PerturbedExpert(patient.expert, change) if change else patient.expert
        return roll_in(patient.simulator, RollInPolicy(expert, None, 1.0), patient.seeds(part, episodes)).returns

    names = [*changes]
    seconds = CHANGED * patient.seconds
    found = run_largest_affordable(
        lambda n: [tried(2, EPISODES, changes[name]).mean() for name in names[:n]], len(names), seconds / 2
    )
    best = names[int(np.argmax(found))]
    fresh = partial(tried, 3)
    own = run_largest_affordable(lambda n: fresh(n, None), FRESH, seconds / 4)
    other = run_largest_affordable(lambda n: fresh(n, changes[best]), FRESH, seconds / 4)
    shared = min(len(own), len(other))
    gain = estimate_mean(other[:shared] - own[:shared])
    random = float(patient.of_random.returns.mean())
    numbers = {"own": float(own.mean()), "changed": float(other.mean()), "change": best, "gain": gain.as_list()}
    numbers |= {"tried": len(found)}
    if gain.low > MUCH * max(float(other.mean()) - random, 0.0) and gain.low > 0:
        what = f"with its actions {best} the expert earns {other.mean():.1f}, and {own.mean():.1f} as it is"
        remedy = "check which action is which: the environment's order is not that of the expert"
        yield Finding("actions", "fault", what, remedy, numbers)
    else:
        kind = "order" if isinstance(space, Discrete) else "sign"
        said = f"no other {kind} of its actions serves the expert better ({len(found)} tried)"
        yield Finding("actions", "fine", said, "", numbers)


def candidate_permutations(count: int) -> dict[str, Callable[[Array], Array]]:
    """Other orders of the actions, by what they are called."""
    if count <= ALL:
        found = [order for order in permutations(range(count)) if order != tuple(range(count))]
    else:
        found = [tuple(range(count))[::-1]]
        for one, other in combinations(range(count), 2):
            swapped = [*range(count)]
            swapped[one], swapped[other] = other, one
            found.append(tuple(swapped))
    return {f"as {', '.join(map(str, order))}": partial(np.take, np.array(order)) for order in found}


def candidate_sign_flips(space: Box) -> dict[str, Callable[[Array], Array]]:
    """Vectors with one number turned, or all of them; and two exchanged."""
    size = int(np.prod(space.shape))
    signs = {"all turned": -np.ones(size)}
    for place in range(size if size > 1 else 0):
        signs[f"turned at place {place}"] = np.where(np.arange(size) == place, -1.0, 1.0)
    found: dict[str, Callable[[Array], Array]] = {name: partial(np.multiply, sign) for name, sign in signs.items()}
    for one, other in combinations(range(min(size, 6)), 2):
        order = np.arange(size)
        order[[one, other]] = other, one
        found[f"{one} and {other} exchanged"] = partial(permute_actions, order=order)
    return found


def permute_actions(actions: Array, order: Array) -> Array:
    """[n, A] with the numbers of each vector in another order."""
    found: Array = actions[:, order]
    return found
