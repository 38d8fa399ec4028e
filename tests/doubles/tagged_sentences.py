"""Sentences of a little English with the part of speech of every word, as a grammar says them by chance.

Many words have two tags, so that what stands beside a word decides: "they watch her", "her watch". Others are made of
syllables, so that a tagger meets words that it has not seen, and has their spelling to go by.
"""

from dataclasses import dataclass
from random import Random

LONGEST = 35  # words of a sentence, with its full stop
Tagged = list[tuple[str, str]]  # words with their tags

NOUNS = "man woman child teacher friend doctor dog cat horse bird house garden city village river story letter song hat"
BOTH_NOUN_AND_VERB = "watch book plan guard cook guide answer walk play paint hope dream visit report promise cut"
VERBS = "see find like help follow greet draw carry sell bring ask tell know say think give leave"
ADJECTIVES = "old small young big happy red long strange quiet tall"
BOTH_ADJECTIVE_AND_NOUN = "green cold light calm present"
ADVERBS = "often never quickly slowly there here again well"
PREPOSITIONS = "in on with near from to"
BOTH_PREPOSITION_AND_CONJUNCTION = "before after until since"
CONJUNCTIONS = "because if while although"
PRONOUNS = "they we you I her them"
NAMES = "Anna Tom Maria Peter Clara Omar Lucy Ivan"
DETERMINERS = "the the the a this that every no her their our"
MODALS = "will can must may have do"
NUMBERS = "two three four seven"


@dataclass(frozen=True)
class Sentence:
    """Words, and the tag of each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)


def generate_sentences(count: int, seed: int) -> list[Sentence]:
    """Return so many sentences; a longer list begins with the shorter."""
    return [generate_sentence(Random(f"{seed} {number}")) for number in range(count)]


def generate_sentence(chance: Random) -> Sentence:
    """Return one sentence that is not too long."""
    while True:
        found = clause(chance)
        if chance.random() < 0.3:
            found += [(pick(chance, "and but so"), "CCONJ"), *clause(chance)]
        if chance.random() < 0.1:
            found = [(pick(chance, "yes well no"), "INTJ"), (",", "PUNCT"), *found]
        found.append((".", "PUNCT"))
        if len(found) <= LONGEST:
            words, tags = zip(*found, strict=True)
            return Sentence((words[0].capitalize(), *words[1:]), tags)


def clause(chance: Random) -> Tagged:
    """Return a subject, a verb, and what belongs to it."""
    found = noun_phrase(chance)
    if chance.random() < 0.5:
        found.append((pick(chance, MODALS), "AUX"))
        if chance.random() < 0.2:
            found.append(("not", "PART"))
    found.append(verb(chance))
    at = chance.random()
    if at < 0.12:
        return [*found, ("that", "SCONJ"), *clause(chance)]
    if at < 0.22:
        return [*found, ("to", "PART"), verb(chance), *noun_phrase(chance)]
    found += noun_phrase(chance)
    if chance.random() < 0.45:
        found += prepositional_phrase(chance)
    if chance.random() < 0.25:
        found.append((pick(chance, ADVERBS) if chance.random() < 0.8 else invent(chance, "ously"), "ADV"))
    if chance.random() < 0.15:
        found += [(pick(chance, f"{CONJUNCTIONS} {BOTH_PREPOSITION_AND_CONJUNCTION}"), "SCONJ"), *clause(chance)]
    return found


def verb(chance: Random) -> tuple[str, str]:
    """Return a verb; one in four can be a noun, too."""
    at = chance.random()
    return (pick(chance, BOTH_NOUN_AND_VERB if at < 0.25 else VERBS) if at < 0.95 else invent(chance, "ize")), "VERB"


def noun_phrase(chance: Random) -> Tagged:
    """Return somebody or something."""
    at = chance.random()
    if at < 0.2:
        return [(pick(chance, PRONOUNS), "PRON")]
    if at < 0.24:
        return [("that", "PRON")]
    if at < 0.38:
        return [(pick(chance, NAMES) if chance.random() < 0.85 else invent(chance, "").capitalize(), "PROPN")]
    found = [(pick(chance, DETERMINERS), "DET")]
    if chance.random() < 0.1:
        found.append((pick(chance, NUMBERS) if chance.random() < 0.5 else str(chance.randrange(11, 999)), "NUM"))
    if chance.random() < 0.35:
        at = chance.random()
        word = pick(chance, ADJECTIVES if at < 0.75 else BOTH_ADJECTIVE_AND_NOUN)
        found.append((word if at < 0.9 else invent(chance, "ous"), "ADJ"))
    return [*found, (noun(chance), "NOUN")]


def noun(chance: Random) -> str:
    """Return a noun; one in four can be a verb, an adjective or a modal, too."""
    at = chance.random()
    if at < 0.18:
        return pick(chance, BOTH_NOUN_AND_VERB)
    if at < 0.24:
        return pick(chance, f"{BOTH_ADJECTIVE_AND_NOUN} can will")
    return pick(chance, NOUNS) if at < 0.9 else invent(chance, "ment")


def prepositional_phrase(chance: Random) -> Tagged:
    """Return a noun with its preposition."""
    return [(pick(chance, f"{PREPOSITIONS} {BOTH_PREPOSITION_AND_CONJUNCTION}"), "ADP"), *noun_phrase(chance)]


def pick(chance: Random, words: str) -> str:
    """Return one of the words, the earlier ones more often."""
    listed = words.split()
    return listed[int(len(listed) * chance.random() * chance.random())]


def invent(chance: Random, ending: str) -> str:
    """Return a word that stands in no list."""
    return (
        "".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(2))
        + chance.choice("nrtk")
        + ending
    )
