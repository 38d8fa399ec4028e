"""The dynamic oracles against brute force, on every configuration that can be reached at all."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.parsing.transitions.configurations import add_root, count_wrong_heads, make_initial_configurations
from aggrevated.parsing.transitions.systems import SYSTEMS


def sample_projective_tree(n: int, generator: np.random.Generator) -> Array:
    """[n] the heads of a random projective tree: a span is split at a random head, and its sides likewise."""
    heads = np.zeros(n, int)

    def attach(first: int, last: int, head: int) -> None:
        if first > last:
            return
        root = int(generator.integers(first, last + 1))
        heads[root - 1] = head
        for low, high in ((first, root - 1), (root + 1, last)):
            while low <= high:  # a side is a row of subtrees
                cut = int(generator.integers(low, high + 1))
                attach(low, cut, root)
                low = cut + 1

    attach(1, n, 0)
    return heads


def list_configurations(system: TransitionSystem, n: int) -> list[Array]:
    """All configurations that can be reached, [rows] for each number of transitions before them; each one once."""
    layers = [make_initial_configurations(np.array([n]), n)]
    while True:
        rows = layers[-1][~system.is_done(layers[-1])]
        lane, action = np.nonzero(system.action_mask(rows))
        if not len(lane):
            return layers
        layers.append(np.unique(system.step(rows[lane], action), axis=0))


def count_mismatches(system: TransitionSystem, heads: Array) -> tuple[int, int]:
    """(legal transitions compared, those whose cost-to-go is not what the oracle says) for one gold tree.

    The cost-to-go is the number of wrong heads at the end, the least over all ways to go on; found from the last layer
    of configurations backwards. The oracle says: the arcs lost so far, and those that the transition loses.
    """
    n = len(heads)
    gold = add_root(heads, n)[None]
    layers = list_configurations(system, n)
    compared = differ = 0
    following: dict[bytes, int] = {}
    for rows in layers[::-1]:
        ended = system.is_done(rows)
        values = {
            row.tobytes(): int(count)
            for row, count in zip(rows[ended], count_wrong_heads(rows[ended], gold), strict=True)
        }
        rows = rows[~ended]
        lane, action = np.nonzero(system.action_mask(rows))
        costs = np.full((len(rows), len(system.actions)), np.iinfo(np.int64).max)
        costs[lane, action] = [following[row.tobytes()] for row in system.step(rows[lane], action)]
        best = costs.min(axis=1) if len(rows) else np.zeros(0, int)
        extra = (costs - best[:, None])[lane, action]
        differ += int((extra != system.count_lost_arcs(rows, np.repeat(gold, len(rows), 0))[lane, action]).sum())
        compared += len(lane)
        following = values | {row.tobytes(): int(value) for row, value in zip(rows, best, strict=True)}
    return compared, differ


def compare_with_brute_force(name: str, trees: int, most: int, seed: int) -> dict[str, int | str]:
    """The comparison for random projective trees of up to `most` symbols."""
    generator = np.random.default_rng(seed)
    compared = differ = 0
    for _ in range(trees):
        n = int(generator.integers(1, most + 1))
        one, other = count_mismatches(SYSTEMS[name], sample_projective_tree(n, generator))
        compared = compared + one
        differ = differ + other
    return {"system": name, "trees": trees, "compared": compared, "mismatches": differ}
