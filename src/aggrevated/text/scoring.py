"""How good parses are, and how far their sureness can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from aggrevated.arrays import Array
from aggrevated.files import Facts, digest
from aggrevated.parsing.confidence import Choices, reliability, worst_tenth
from aggrevated.parsing.learners.expected import Expected
from aggrevated.policies import Policy
from aggrevated.statistics import standard_error_of_share
from aggrevated.text.library import Library
from aggrevated.text.parses import Parsed, in_blocks, parsed
from aggrevated.text.policy import SURENESS, SentencePolicy, crossed
from aggrevated.validation import Validated
from aggrevated.worlds import Score

PUNCTUATION = "punct"  # which some leave out when they count


@dataclass(frozen=True)
class Judged:
    """Parses of sentences beside their gold trees, the words one after the other."""

    parsed: Parsed
    head_right: Array  # bool [Σn]
    label_right: Array  # bool [Σn]: head and relation
    tag_right: Array  # bool [Σn]; all false where no tags are known
    punctuation: Array  # bool [Σn]: by the gold relation
    choices: Choices
    steps: int  # transitions

    @property
    def sentence(self) -> Array:
        """[Σn]: the place of each word's sentence among those parsed."""
        return np.repeat(np.arange(len(self.parsed.lengths)), self.parsed.lengths)

    @property
    def uas(self) -> float:
        return float(self.head_right.mean())

    @property
    def las(self) -> float:
        return float(self.label_right.mean())


def judged(policy: SentencePolicy, library: Library, sentences: Array) -> Judged:
    """Of greedy parses of these sentences of a library, which the policy must have been shown."""
    blocks, chosen, steps = [], [], 0
    for said, parser, trajectories in parsed(policy, library.corpus, sentences):  # nothing else of a block is kept
        blocks.append(said)
        chosen.append(Choices.of(policy, parser, trajectories))
        steps += trajectories.simulator_steps
    every = joined(blocks)
    places = library.shown.places(every.sentences)
    heads = every.heads == library.heads[places]
    labels = heads & (every.labels == library.labels[places]) if library.names.labels else heads
    tags = every.tags == library.tags[places]
    signs = np.array([name.split(":")[0] == PUNCTUATION for name in library.names.labels] + [False])
    return Judged(every, heads, labels, tags, signs[library.labels[places]], of_blocks(chosen), steps)


def joined(parts: Sequence[Parsed]) -> Parsed:
    """All blocks as one."""
    return Parsed(*(np.concatenate(column) for column in zip(*(vars(part).values() for part in parts), strict=True)))


def of_blocks(parts: Sequence[Choices]) -> Choices:
    """The same of choices; their pages are counted on."""
    counts = np.cumsum([0] + [int(part.page.max()) + 1 for part in parts])
    expected = Expected(
        *(np.concatenate(column) for column in zip(*(vars(part.expected).values() for part in parts), strict=True))
    )
    page = np.concatenate([part.page + before for part, before in zip(parts, counts, strict=False)])
    return Choices(expected, np.concatenate([p.costs for p in parts]), np.concatenate([p.wrong for p in parts]), page)


def correct(policy: SentencePolicy, library: Library, found: Judged) -> None:
    """Make the policy as sure as it was right in these parses."""
    policy.costs.calibrate(found.choices.expected, found.choices.costs, found.choices.wrong)
    left = found.parsed.left
    policy.attached_right = torch.tensor((1 + found.head_right[left].sum()) / (2 + left.sum()), dtype=torch.float32)
    correct_labels(policy, library, found.parsed.sentences)


@torch.no_grad()
def correct_labels(policy: SentencePolicy, library: Library, sentences: Array) -> None:
    """Make it as sure of relations as it is right, given gold heads."""
    tried = np.zeros(len(SURENESS))
    for some in in_blocks(library.shown.lengths, sentences):
        read, places = policy.look(some), library.shown.places(some)
        logits = policy.label_logits(policy.items(read), read.lengths, torch.from_numpy(library.heads[places]))
        classes = torch.from_numpy(library.labels[places])
        tried += [crossed(logits * by, classes).item() for by in SURENESS]
    policy.sureness = torch.tensor(SURENESS[int(np.argmin(tried))])


@dataclass
class Judge:
    """Parses the sentences that are chosen on: LAS, by which the policy is corrected on the way; and what else is seen.

    What is seen of a policy is kept until another is judged, so that it need not be parsed with twice.
    """

    library: Library
    _latest: tuple[str, Facts] = field(default=("", {}), init=False)

    def __call__(self, policy: Policy) -> Validated:
        assert isinstance(policy, SentencePolicy)
        found = judged(policy, self.library, self.library.validation)
        correct(policy, self.library, found)
        self._latest = digest(dict(policy.named_parameters())), of_words(found)
        return Validated(found.las, found.steps)

    def monitor(self, policy: Policy) -> dict[str, float]:
        """UAS, and the share of right tags."""
        assert isinstance(policy, SentencePolicy)
        if self._latest[0] != digest(dict(policy.named_parameters())):
            self(policy)
        return {f"validation_{name}": value for name, value in self._latest[1].items()}


def of_words(found: Judged) -> dict[str, float]:
    """Shares of words."""
    return {"uas": found.uas} | ({"tags": float(found.tag_right.mean())} if found.tag_right.any() else {})


@dataclass(frozen=True)
class TextScore(Score):
    """UAS, LAS and the rest, beside what gold trees come to that were made projective; `test_return` is LAS.

    Where the treebank has no relations, LAS is UAS.
    """

    uas: float
    las: float
    tags: float | None  # None where the treebank has none
    uas_without_punctuation: float | None  # None where there is nothing else
    las_without_punctuation: float | None
    exact_match: float  # sentences without a wrong head
    sentences: int
    words: int
    calibration_error: float  # of heads
    calibration_error_labelled: float  # of heads and relations
    errors_in_most_doubtful_tenth: float  # by expected loss
    errors_in_least_likely_tenth: float  # by the probability of the parse


def score(policy: SentencePolicy, library: Library, sentences: Array) -> TextScore:
    """Of greedy parses of these sentences."""
    return score_of(judged(policy, library, sentences), library)


def score_of(found: Judged, library: Library) -> TextScore:
    """Of parses beside their gold trees."""
    lengths, words = found.parsed.lengths, found.sentence
    right = np.bincount(words, found.label_right)
    gold = reached(library, found.parsed.sentences)
    losses = lengths - np.bincount(words, found.head_right)
    _, error = reliability(found.parsed.head_right, found.head_right)
    _, labelled = reliability(found.parsed.arc_right, found.label_right)
    expert, counted = float(gold.sum() / lengths.sum()), ~found.punctuation
    return TextScore(
        expert_return=expert,
        test_return=found.las,
        ratio=found.las / expert,
        uas=found.uas,
        las=found.las,
        tags=share(found.tag_right) if library.names.tags else None,
        uas_without_punctuation=share(found.head_right[counted]),
        las_without_punctuation=share(found.label_right[counted]),
        exact_match=float((losses == 0).mean()),
        sentences=len(lengths),
        words=int(lengths.sum()),
        calibration_error=error,
        calibration_error_labelled=labelled,
        errors_in_most_doubtful_tenth=worst_tenth(found.parsed.wrong_heads, losses),
        errors_in_least_likely_tenth=worst_tenth(-found.parsed.log_likelihood, losses),
        expert_standard_error=standard_error_of_share(gold, lengths),
        test_standard_error=standard_error_of_share(right, lengths),
    )


def share(right: Array) -> float | None:
    """Of what is right; None of nothing."""
    return float(right.mean()) if len(right) else None


def diagrams(found: Judged) -> Facts:
    """Bins of sureness, of heads and of arcs: how sure in the mean, the share that was right, how many."""
    pairs = {
        "heads": (found.parsed.head_right, found.head_right),
        "arcs": (found.parsed.arc_right, found.label_right),
    }
    return {
        name: [[round(b.sure, 4), round(b.right, 4), b.count] for b in reliability(*pair)[0]]
        for name, pair in pairs.items()
    }


def reached(library: Library, sentences: Array) -> Array:
    """[P]: how many words of each have the same head in the tree that was made projective."""
    gold, lengths = library.corpus.gold[sentences], library.shown.lengths[sentences]
    true = np.split(library.heads[library.shown.places(sentences)], np.cumsum(lengths)[:-1])
    return np.array([(row[1 : len(own) + 1] == own).sum() for row, own in zip(gold, true, strict=True)])
