"""A game on the tree in plain words, after each of its episodes."""

import numpy as np

from aggrevated.arrays import Array

FEW = ("not yet", "once", "twice")


def sentences(chance: Array, leader: Array, arms: Array, best: int, leaves: int) -> list[str]:
    """N + 1 of them: before the first episode, and in each.

    From the chance [N] that EG takes the best leaf, and the leaves [N] that FTL and UCB took.
    """
    told = zip(of_leader(leader == best), of_gradient(chance), of_bandit(arms, best, leaves), strict=True)
    return [
        f"Nothing is learned yet: EG takes all {leaves} leaves alike, FTL follows a random policy, UCB has tried none.",
        *(f"In episode {n} of {len(chance)}: {' '.join(words)}" for n, words in enumerate(told, 1)),
    ]


def of_leader(at_best: Array) -> list[str]:
    """What FTL has found: after n − 1 episodes, if the n-th takes the best leaf."""
    first = int(at_best.argmax()) if at_best.any() else len(at_best)
    after = f"after {first} episode{'' if first == 1 else 's'}" if first else "with its first policy"
    visits = np.cumsum(at_best).tolist()

    def one(n: int) -> str:
        if n < first:
            return "FTL has not found the best leaf."
        there, since = visits[n], n - first + 1
        stays = "and stays there" if there == since else f"and was there in {there} of the {since} from then on"
        return f"FTL found the best leaf {after}, {stays}."

    return [one(n) for n in range(len(at_best))]


def of_gradient(chance: Array) -> list[str]:
    """What EG's policy of each episode does."""
    return [f"EG goes there with a probability of {percent(share)}." for share in chance.tolist()]


def of_bandit(arms: Array, best: int, leaves: int) -> list[str]:
    """What UCB has tried."""
    visits, tried = np.cumsum(arms == best).tolist(), np.cumsum(is_new(arms)).tolist()
    return [
        f"UCB has tried {'all' if many == leaves else f'{many} of'} {leaves} leaves, the best one {often(count)}."
        for many, count in zip(tried, visits, strict=True)
    ]


def is_new(taken: Array) -> Array:
    """[N]: whether an episode takes a leaf that none before it took."""
    _, firsts = np.unique(taken, return_index=True)
    new: Array = np.isin(np.arange(len(taken)), firsts)
    return new


def often(count: int) -> str:
    """How many times."""
    return FEW[count] if count < len(FEW) else f"{count} times"


def percent(share: float) -> str:
    """A share, never said to be nothing or all unless it is."""
    if 0 < share < 0.01:
        return "less than 1 %"
    if 0.99 < share < 1:
        return "more than 99 %"
    return f"{100 * share:.0f} %"
