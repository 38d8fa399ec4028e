"""The tree as a game: EG, FTL and UCB on one tree, from one seed, recorded episode by episode for people to watch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import UsageError
from aggrevated.settings import WORDS_OF_TYPES, Rule, between, is_a, one_of, require
from aggrevated.theory import bounds
from aggrevated.theory.bandits import pulling, ucb1
from aggrevated.theory.experiments import UCB1_BONUS, hard_gap
from aggrevated.theory.telling import is_new, sentences
from aggrevated.theory.tree import Episode, Trees, descending, leading, one_good_leaf, uniform_leaves

ONE_GOOD_LEAF, UNIFORM = COSTS = "one-good-leaf", "uniform"
RULES: dict[str, Rule] = {  # what can be drawn, and takes less than a second
    "depth": between(3, 8),
    "costs": one_of(COSTS),
    "rollouts": between(0, 1000),
    "step": between(0.01, 100),
    "episodes": between(10, 2000),
    "seed": between(0, 2**53 - 1),  # as far as numbers in a browser are whole
}
KINDS = {"depth": int, "costs": str, "rollouts": int, "step": float, "episodes": int, "seed": int}
SHOWN = 40  # letters of what was refused
DIGITS = 4  # of probabilities, costs and bounds; regrets have all of theirs


@dataclass(frozen=True)
class Settings:
    """What can be chosen; a `UsageError` says which of it cannot be."""

    depth: int = 6  # K
    costs: str = ONE_GOOD_LEAF
    rollouts: int = 0  # of π* for each Q̃; 0 is exact
    step: float = 1.0  # of EG, in units of the theorem's
    episodes: int = 200  # N
    seed: int = 0

    def __post_init__(self) -> None:
        for name, rule in RULES.items():
            value = getattr(self, name)
            require(is_a(value, KINDS[name]), name, repr(value)[:SHOWN], WORDS_OF_TYPES[KINDS[name]])
            require(rule.holds(value), name, str(value)[:SHOWN], rule.words)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        """From what somebody sent; what is left out is as by default."""
        known = {one.name for one in fields(cls)}
        if unknown := sorted(set(facts) - known):
            raise UsageError(f"there is no setting {unknown[0][:SHOWN]!r}; choose from {', '.join(sorted(known))}")
        return cls(**facts)

    @property
    def leaves(self) -> int:
        """L = 2^(K−1)."""
        return int(2 ** (self.depth - 1))

    @property
    def queries(self) -> int | None:
        """The roll-outs as the learners have them: None is exact."""
        return self.rollouts or None

    def tree(self) -> Trees:
        """The one tree that all three learn on."""
        if self.costs == UNIFORM:
            return uniform_leaves(1, self.depth, self.seed)
        return one_good_leaf(1, self.depth, hard_gap(self.depth, self.episodes), self.seed)


@dataclass(frozen=True)
class Played:
    """What one learner did."""

    name: str
    title: str
    taken: Array  # [N]: the leaf of each episode
    regret: Array  # [N]: cumulative, R_n
    start: Array | None = None  # [L − 1]: probabilities of going right of π_1, for those that have an expert
    moved: Array | None = None  # [N, D]: after each episode, those at the nodes of its path
    chance: Array | None = None  # [N]: that π_n takes the best leaf
    asked: Array | None = None  # [N, 2, D]: what the expert said of left and right on the path
    costs: Array | None = None  # [N]: the 0/1 costs that reinforcement learning saw

    @property
    def tried(self) -> Array:
        """[N]: how many leaves have been taken so far."""
        return np.cumsum(is_new(self.taken))

    def facts(self) -> dict[str, Any]:
        """For the page."""
        rounded = {
            name: np.round(value, DIGITS).tolist()
            for name in ("start", "moved", "chance", "asked", "costs")
            if (value := getattr(self, name)) is not None
        }
        whole = {"taken": self.taken.tolist(), "regret": self.regret.tolist(), "tried": self.tried.tolist()}
        return {"name": self.name, "title": self.title, **whole, **rounded}


class Game:
    """Three learners on one tree."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.trees = settings, settings.tree()
        self.means = self.trees.means[0]
        self.best = int(self.means.argmin())

    @cached_property
    def played(self) -> tuple[Played, ...]:
        """EG, FTL, UCB."""
        noise = "exact Q*" if self.settings.queries is None else "noisy Q*"
        given = self.trees, self.settings.episodes, self.settings.seed
        eg = descending(*given, self.settings.queries, step=self.settings.step)
        ftl = leading(*given, self.settings.queries)
        return (
            self._imitated("EG", f"AggreVaTeD, exponentiated gradient, {noise}", eg),
            self._imitated("FTL", f"AggreVaTe, follow-the-leader, {noise}", ftl),
            self._pulled(),
        )

    def _imitated(self, name: str, title: str, episodes: Iterable[Episode]) -> Played:
        """A learner with an expert. What an episode changed is seen when the next one begins."""
        policies, nodes, leaves, lost, asked = [], [], [], [], []
        for episode in episodes:
            policies.append(right_of(episode.policy[0]))
            nodes.append(episode.nodes[0])
            leaves.append(2 * episode.nodes[0, -1] + 1 + episode.actions[0, -1] - len(policies[0]))
            lost.append(episode.regret[0])
            asked.append(episode.q[:, 0])
        policy, path = np.array(policies), np.array(nodes)
        after = np.concatenate([policy[1:], right_of(episode.policy[:1])])  # the generator has ended: it is π_{N+1}
        return Played(
            name, title, np.array(leaves), np.cumsum(lost), policy[0], np.take_along_axis(after, path, axis=1),
            self._chance(policy), np.array(asked),
        )  # fmt: skip

    def _chance(self, policy: Array) -> Array:
        """[N]: that each policy [N, L − 1] takes the best leaf."""
        chance, node = np.ones(len(policy)), 0
        for level in range(self.trees.decisions - 1, -1, -1):
            right = self.best >> level & 1
            chance = chance * (policy[:, node] if right else 1 - policy[:, node])
            node = 2 * node + 1 + right
        return chance

    def _pulled(self) -> Played:
        """The learner without an expert: each leaf is an arm."""
        rounds = list(pulling(self.trees.means, self.settings.episodes, ucb1, self.settings.seed, UCB1_BONUS))
        arms, costs = (np.array([getattr(one, what)[0] for one in rounds]) for what in ("arm", "cost"))
        lost = np.cumsum([one.regret[0] for one in rounds])
        return Played("UCB", "reinforcement learning, UCB1 over leaves, ¼ bonus", arms, lost, costs=costs.astype(int))

    def lines(self) -> list[dict[str, Any]]:
        """The paper's bounds, each where it applies, and what playing at random loses."""
        settings, n = self.settings, np.arange(1, self.settings.episodes + 1)
        worst, lost = float(np.ptp(self.means)), float(self.means.mean() - self.means.min())
        found = []
        if settings.queries is None:
            upper = bounds.special_upper(settings.depth, n, worst)
            found.append(line("FTL", "at most", "FTL at most: Theorem special_upper", upper))
        if settings.step == 1:
            noisy = bounds.special_lower_noisy(settings.depth, n)
            found.append(line("EG", "at most", "EG at most: Theorem special_lower_noisy, δ = 0.05", noisy))
        if settings.costs == ONE_GOOD_LEAF:
            least = bounds.special_lower(settings.leaves, worst, n)
            found.append(line("UCB", "at least", "RL at least, in the mean: Theorem special_lower", least))
        return [*found, line("", "random", "playing at random", lost * n)]

    def facts(self) -> dict[str, Any]:
        """All that the page shows."""
        return {
            "settings": asdict(self.settings),
            "decisions": self.trees.decisions,
            "means": np.round(self.means, DIGITS).tolist(),
            "best": self.best,
            "learners": [one.facts() for one in self.played],
            "lines": self.lines(),
            "sentences": self.sentences(),
        }

    def sentences(self) -> list[str]:
        """In plain words what has happened, before the first episode and after each."""
        eg, ftl, ucb = self.played
        assert eg.chance is not None
        return sentences(eg.chance, ftl.taken, ucb.taken, self.best, self.settings.leaves)

    def rows(self) -> list[dict[str, Any]]:
        """How it ended, a row for each learner."""
        bound = {one["of"]: f"{one['kind']} {one['values'][-1]:,.4g}" for one in self.lines()}
        return [
            {
                "learner": one.name,
                "algorithm": one.title,
                "regret": float(one.regret[-1]),
                "bound": bound.get(one.name),
                "leaves_tried": int(one.tried[-1]),
                "best_leaf_first_taken": first(one.taken == self.best),
                "episodes_at_best_leaf": int((one.taken == self.best).sum()),
            }
            for one in self.played
        ]


def right_of(policy: Array) -> Array:
    """Probabilities of going right: of log-odds, or of a leader's choices."""
    if policy.dtype == np.int8:
        return policy.astype(float)
    right: Array = np.exp(-np.logaddexp(0.0, -policy))
    return right


def first(holds: Array) -> int | None:
    """The number of the first episode in which it does, counted from 1; None if it never does."""
    return int(holds.argmax()) + 1 if holds.any() else None


def line(of: str, kind: str, title: str, values: Array) -> dict[str, Any]:
    """A line beside the curves: whose, what it is, and its values [N]."""
    return {"of": of, "kind": kind, "title": title, "values": np.round(values, DIGITS).tolist()}
