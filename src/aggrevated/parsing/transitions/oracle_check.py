"""Comparison of the dynamic oracles with brute force, on every reachable configuration."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.parsing.transitions.configurations import add_root, count_wrong_heads, make_initial_configurations
from aggrevated.parsing.transitions.systems import SYSTEMS


def sample_projective_tree(n: int, generator: np.random.Generator) -> Array:
    """Return the heads of a random projective tree, int [n], by recursive splits of spans at random heads."""
    heads = np.zeros(n, int)

    def attach(first: int, last: int, head: int) -> None:
        if first > last:
            return
        root = int(generator.integers(first, last + 1))
        heads[root - 1] = head
        for low, high in ((first, root - 1), (root + 1, last)):
            while low <= high:  # a side is a sequence of subtrees
                cut = int(generator.integers(low, high + 1))
                attach(low, cut, root)
                low = cut + 1

    attach(1, n, 0)
    return heads


def list_configurations(system: TransitionSystem, n: int) -> list[Array]:
    """Return all reachable configurations without duplicates, one array of rows per number of transitions."""
    layers = [make_initial_configurations(np.array([n]), n)]
    while True:
        rows = layers[-1][~system.is_done(layers[-1])]
        row, action = np.nonzero(system.action_mask(rows))
        if not len(row):
            return layers
        layers.append(np.unique(system.step(rows[row], action), axis=0))


def count_mismatches(system: TransitionSystem, heads: Array) -> tuple[int, int]:
    """Compare the dynamic oracle with brute force for one gold tree.

    Brute force computes the cost-to-go, the smallest possible number of wrong heads at the end, backward
    from the last layer of configurations. The oracle's extra cost of a transition is the number of arcs
    that it loses.

    Args:
        system: transition system whose oracle is checked.
        heads: gold heads of a projective tree, int [n].

    Returns:
        The number of legal transitions compared, and the number for which the two costs differ.
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
        index, action = np.nonzero(system.action_mask(rows))
        costs = np.full((len(rows), len(system.actions)), np.iinfo(np.int64).max)
        costs[index, action] = [following[row.tobytes()] for row in system.step(rows[index], action)]
        best = costs.min(axis=1) if len(rows) else np.zeros(0, int)
        extra = (costs - best[:, None])[index, action]
        differ += int((extra != system.count_lost_arcs(rows, np.repeat(gold, len(rows), 0))[index, action]).sum())
        compared += len(index)
        following = values | {row.tobytes(): int(value) for row, value in zip(rows, best, strict=True)}
    return compared, differ


def compare_with_brute_force(name: str, trees: int, most: int, seed: int) -> dict[str, int | str]:
    """Compare the oracle of a system with brute force on random projective trees.

    Args:
        name: name of the transition system.
        trees: number of trees.
        most: largest number of symbols of a tree.
        seed: seed of the trees.

    Returns:
        The system's name and the numbers of trees, compared transitions and mismatches.
    """
    generator = np.random.default_rng(seed)
    compared = differ = 0
    for _ in range(trees):
        n = int(generator.integers(1, most + 1))
        n_compared, n_differing = count_mismatches(SYSTEMS[name], sample_projective_tree(n, generator))
        compared = compared + n_compared
        differ = differ + n_differing
    return {"system": name, "trees": trees, "compared": compared, "mismatches": differ}
