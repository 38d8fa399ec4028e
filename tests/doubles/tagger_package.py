"""A third-party package with a task: tag sentences word by word.

No file in src/ mentions it. The tests name it as `tagger_package:TASK` or install it by its entry point.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from zlib import crc32

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete, Space
from tagged_sentences import generate_sentences

from aggrevated import (
    SEED,
    EvaluationSettings,
    Policy,
    Preset,
    Problem,
    ProblemSettings,
    Score,
    Task,
    ValidationScore,
    at_least,
    evaluate_mean_return,
    setting,
)

TAGS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN"),
    *("NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "VERB"),
)
NO_TAG = len(TAGS)
LONGEST = 35


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences as arrays, one word after the other."""

    words: tuple[str, ...]
    tags: np.ndarray  # int [Σn], gold
    lengths: np.ndarray  # int [P]
    seen: np.ndarray  # float32 [Σn, features]: observed features of each word

    @cached_property
    def starts(self):
        """Index of the first word of each sentence, [P]."""
        return np.cumsum(self.lengths) - self.lengths

    def at(self, states):
        """Return the indices of the words to tag next."""
        return self.starts[states[:, 0]] + states[:, 1]


@cache
def make_corpus(sentences: int, seed: int, features: int) -> Corpus:
    """Return generated sentences with hashed features of each word."""
    found = generate_sentences(sentences, seed)
    words = tuple(word for sentence in found for word in sentence.words)
    tags = np.array([TAGS.index(tag) for sentence in found for tag in sentence.tags])
    seen = np.stack([word_features(s.words, place, features) for s in found for place in range(len(s))])
    return Corpus(words, tags, np.array([len(sentence) for sentence in found]), seen)


def word_features(words, place, features):
    """Return features [features]: 1 at the hashes of a word, its ending, its shape and its neighbors."""
    word = words[place]
    before = words[place - 1] if place else ""
    after = (*words, "")[place + 1]
    descriptions = (
        *(f"word {word.lower()}", f"end {word[-3:]}", f"end {word[-2:]}"),
        *(f"before {before.lower()}", f"after {after.lower()}", f"after {after[-2:]}"),
        f"shape {word[0].isupper()} {word[0].isdigit()} {place == 0}",
    )
    seen = np.zeros(features, np.float32)
    seen[[crc32(text.encode()) % features for text in descriptions]] = 1.0
    return seen


@dataclass(frozen=True)
class Tagging:
    """Tag sentences of a corpus; a state is the sentence, the position in it, and the last two tags."""

    corpus: Corpus
    chosen: np.ndarray  # int: which sentences
    name: str = "tagger"
    horizon: int = LONGEST
    action_space = Discrete(len(TAGS))

    @property
    def observation_space(self):
        return make_observation_space(self.corpus.seen.shape[1])

    @property
    def words(self):
        """Number of words of the chosen sentences."""
        return int(self.corpus.lengths[self.chosen].sum())

    def reset(self, seeds):
        sentence = self.chosen[(seeds % np.uint64(len(self.chosen))).astype(np.int64)]
        no_tags = np.full_like(sentence, NO_TAG)
        return np.stack([sentence, np.zeros_like(sentence), no_tags, no_tags], axis=1)

    def observe(self, state):
        given = np.eye(len(TAGS) + 1, dtype=np.float32)[state[:, 2:]].reshape(len(state), -1)
        return np.concatenate([self.corpus.seen[self.corpus.at(state)], given], axis=1)

    def step(self, state, action):
        wrong = action != self.corpus.tags[self.corpus.at(state)]
        following = np.stack([state[:, 0], state[:, 1] + 1, action, state[:, 2]], axis=1)
        return following, wrong.astype(float), following[:, 1] == self.corpus.lengths[state[:, 0]]


def make_observation_space(features: int) -> Box:
    """Return the space of observations: features of a word and the last two tags."""
    return Box(0.0, 1.0, (features + 2 * (len(TAGS) + 1),), np.float32)


@dataclass(frozen=True)
class GoldExpert:
    """Expert that knows the gold tags: a wrong tag costs 1."""

    corpus: Corpus
    name: str = "gold tags"

    def q(self, states):
        return (np.arange(len(TAGS)) != self.act(states, 0)[:, None]).astype(float)

    def act(self, states, t):
        return self.corpus.tags[self.corpus.at(states)]


@dataclass(frozen=True)
class Accuracy:
    """Share of words with their gold tag; each sentence is tagged once."""

    tagging: Tagging

    def __call__(self, policy: Policy | GoldExpert) -> ValidationScore:
        numbers = np.arange(len(self.tagging.chosen), dtype=np.uint64)
        right = self.tagging.words + len(numbers) * evaluate_mean_return(
            policy, self.tagging, numbers, deterministic=True
        )
        return ValidationScore(right / self.tagging.words, steps=self.tagging.words)


@dataclass(frozen=True)
class TaggerScore(Score):
    """Accuracies of policy and expert, and of the most frequent tag of each word."""

    words: int
    most_frequent: float


@dataclass(frozen=True)
class TaggerEvaluationSettings(EvaluationSettings):
    """Settings of an evaluation on new sentences."""

    sentences: int = setting(200, "How many sentences.", at_least(1))
    seed: int = setting(1_000_000, "The seed that they come from.", SEED)

    def measure(self, problem: ProblemSettings, policy: Policy) -> dict[str, Any]:
        assert isinstance(problem, TaggerProblemSettings)
        others = make_corpus(self.sentences, self.seed, problem.features)
        return problem.score(policy, Tagging(others, np.arange(self.sentences))).to_dict()


@dataclass(frozen=True, kw_only=True)
class TaggerProblemSettings(ProblemSettings):
    """Generated sentences: 80 % for training, 10 % for validation, 10 % for the test."""

    name = "tagger"
    metric_name = "accuracy"
    digits = 3
    protocol_settings = ("sentences", "data_seed")
    evaluation = TaggerEvaluationSettings
    expert_name = "gold tags"
    sentences: int = setting(500, "How many sentences there are.", at_least(10))
    features: int = setting(1024, "How many features words are hashed to.", at_least(1))
    data_seed: int = setting(0, "The seed of the sentences.", SEED)

    @property
    def steps(self) -> int:
        return 13

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        return make_observation_space(self.features), Tagging.action_space

    def select_tenths(self, *tenths: int) -> Tagging:
        """Return the simulator of some tenths of the sentences."""
        found = make_corpus(self.sentences, self.data_seed, self.features)
        return Tagging(found, np.flatnonzero(np.isin(np.arange(self.sentences) % 10, tenths)))

    def build(self, seed: int) -> Problem:
        training = self.select_tenths(*range(8))
        validation = self.select_tenths(8)
        test = self.select_tenths(9)
        return Problem(
            training,
            GoldExpert(training.corpus),
            validate=Accuracy(validation),
            test=lambda policy: self.score(policy, test),
            monitor=lambda policy: {"test_accuracy": float(Accuracy(test)(policy))},
            fingerprint={
                "seen": torch.from_numpy(training.corpus.seen),
                "tags": torch.from_numpy(training.corpus.tags),
            },
        )

    def score(self, policy: Policy, tagging: Tagging) -> TaggerScore:
        """Return the accuracies of a policy on the sentences of a simulator."""
        by_expert = float(Accuracy(tagging)(GoldExpert(tagging.corpus)))
        share = float(Accuracy(tagging)(policy))
        return TaggerScore(
            by_expert,
            share,
            share / by_expert,
            tagging.words,
            most_frequent_accuracy(self.select_tenths(*range(8)), tagging),
        )


def most_frequent_accuracy(training: Tagging, other: Tagging) -> float:
    """Return the accuracy of the most frequent tag of each word, and of NOUN for new words."""
    counts: dict[str, Counter[int]] = {}
    for word, tag in tagged_words(training):
        counts.setdefault(word, Counter())[tag] += 1
    best = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    return float(np.mean([best.get(word, TAGS.index("NOUN")) == tag for word, tag in tagged_words(other)]))


def tagged_words(tagging: Tagging) -> list[tuple[str, int]]:
    """Return the words of the chosen sentences with their gold tags."""
    found = tagging.corpus
    inside = np.isin(np.repeat(np.arange(len(found.lengths)), found.lengths), tagging.chosen)
    return [(found.words[place].lower(), int(found.tags[place])) for place in np.flatnonzero(inside)]


TASK = Task(
    name="tagger",
    title="A tagger",
    problem=TaggerProblemSettings(),
    defaults=(Preset({"hidden": (32,), "iterations": 6}),),
)
POINTS = {"aggrevated.tasks": "tagger = tagger_package:TASK"}
