"""Trees whose arcs do not cross, and those that do, made so by lifting (Nivre & Nilsson 2005, pseudo-projective).

Heads are int64 [n]: that of word d at d − 1, where words count from 1 and 0 is ROOT, which stands left of all words.
"""

import numpy as np

from aggrevated.arrays import Array

CYCLE, NO_ROOT, MORE_ROOTS = "a cycle", "no root", "more than one root"


def tree_fault(heads: Array) -> str | None:
    """Why heads in 0 … n are no tree with one root, or None if they are."""
    roots = int((heads == 0).sum())
    if roots != 1:
        return MORE_ROOTS if roots else NO_ROOT
    above = _with_root(heads)
    for _ in range(len(heads).bit_length()):  # each time twice as far up
        above = above[above]
    return CYCLE if above.any() else None


def is_projective(heads: Array) -> bool:
    """Whether no two arcs of the tree cross, that of ROOT among them."""
    words = np.arange(1, len(heads) + 1)
    first, last = np.minimum(heads, words), np.maximum(heads, words)
    begins_inside = (first[:, None] < first) & (first < last[:, None])  # [arc, other arc]
    return not (begins_inside & (last[:, None] < last)).any()


def crossed(heads: Array) -> Array:
    """[n] whether the arc to each word is not projective: its head is not above all words between the two."""
    above = _with_root(heads)
    over = _over(above)
    found = np.zeros(len(above), bool)
    for head in np.unique(heads):
        found |= _crossed_of(int(head), above, over)
    return found[1:]


def projectivised(heads: Array) -> Array:
    """The heads of a projective tree: the shortest arc that is not projective (of equals the leftmost) is lifted to
    its head's head, until there is none."""
    if is_projective(heads):
        return heads.copy()
    above = _with_root(heads)
    over, words = _over(above), np.arange(len(above))
    bad = np.concatenate([[False], crossed(heads)])
    while bad.any():
        arcs = np.flatnonzero(bad)
        length, start = np.abs(above - words)[arcs], np.minimum(above, words)[arcs]
        word = int(arcs[np.lexsort((start, length))[0]])
        old, new = int(above[word]), int(above[above[word]])
        above[word] = new
        over[old] &= ~over[word]
        for head in (old, new):  # what is below any other word is as before, and so are the arcs from there
            bad = np.where(above == head, _crossed_of(head, above, over), bad)
    return above[1:]


def _with_root(heads: Array) -> Array:
    """[n + 1] the same with ROOT in front, which is its own head."""
    return np.concatenate([[0], heads]).astype(np.int64)


def _over(above: Array) -> Array:
    """[n + 1, n + 1] whether the first is the second or above it, in a tree."""
    words = np.arange(len(above))
    over, reached = np.eye(len(above), dtype=bool), words
    while reached.any():
        reached = above[reached]
        over[reached, words] = True
    return over


def _crossed_of(head: int, above: Array, over: Array) -> Array:
    """[n + 1] whether each is a dependent of `head` with a word between them that is not below `head`."""
    words = np.arange(len(above))
    strangers = np.concatenate([[0], np.cumsum(~over[head])])  # how many of the words before each place
    first, last = np.minimum(words, head), np.maximum(words, head)
    between = strangers[last] - strangers[first]  # neither end is a stranger, so the ends do not count
    found: Array = (above == head) & (words > 0) & (between > 0)
    return found
