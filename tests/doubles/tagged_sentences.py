"""Random English sentences of a small grammar, with the part of speech of every word.

Many words have two tags, and the neighboring words decide between them: "they watch her", "her watch". Other words
are made of random syllables, so that a tagger meets new words and must use their spelling.
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
    """Words with the tag of each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)


def generate_sentences(count: int, seed: int) -> list[Sentence]:
    """Return `count` sentences; a longer list begins with the shorter."""
    return [generate_sentence(Random(f"{seed} {number}")) for number in range(count)]


def generate_sentence(rng: Random) -> Sentence:
    """Return one sentence of at most LONGEST words."""
    while True:
        found = clause(rng)
        if rng.random() < 0.3:
            found += [(pick(rng, "and but so"), "CCONJ"), *clause(rng)]
        if rng.random() < 0.1:
            found = [(pick(rng, "yes well no"), "INTJ"), (",", "PUNCT"), *found]
        found.append((".", "PUNCT"))
        if len(found) <= LONGEST:
            words, tags = zip(*found, strict=True)
            return Sentence((words[0].capitalize(), *words[1:]), tags)


def clause(rng: Random) -> Tagged:
    """Return a subject, a verb and its objects."""
    found = noun_phrase(rng)
    if rng.random() < 0.5:
        found.append((pick(rng, MODALS), "AUX"))
        if rng.random() < 0.2:
            found.append(("not", "PART"))
    found.append(verb(rng))
    draw = rng.random()
    if draw < 0.12:
        return [*found, ("that", "SCONJ"), *clause(rng)]
    if draw < 0.22:
        return [*found, ("to", "PART"), verb(rng), *noun_phrase(rng)]
    found += noun_phrase(rng)
    if rng.random() < 0.45:
        found += prepositional_phrase(rng)
    if rng.random() < 0.25:
        found.append((pick(rng, ADVERBS) if rng.random() < 0.8 else invent(rng, "ously"), "ADV"))
    if rng.random() < 0.15:
        found += [(pick(rng, f"{CONJUNCTIONS} {BOTH_PREPOSITION_AND_CONJUNCTION}"), "SCONJ"), *clause(rng)]
    return found


def verb(rng: Random) -> tuple[str, str]:
    """Return a verb; one in four can be a noun, too."""
    draw = rng.random()
    return (pick(rng, BOTH_NOUN_AND_VERB if draw < 0.25 else VERBS) if draw < 0.95 else invent(rng, "ize")), "VERB"


def noun_phrase(rng: Random) -> Tagged:
    """Return a pronoun, a name or a noun with its determiner."""
    draw = rng.random()
    if draw < 0.2:
        return [(pick(rng, PRONOUNS), "PRON")]
    if draw < 0.24:
        return [("that", "PRON")]
    if draw < 0.38:
        return [(pick(rng, NAMES) if rng.random() < 0.85 else invent(rng, "").capitalize(), "PROPN")]
    found = [(pick(rng, DETERMINERS), "DET")]
    if rng.random() < 0.1:
        found.append((pick(rng, NUMBERS) if rng.random() < 0.5 else str(rng.randrange(11, 999)), "NUM"))
    if rng.random() < 0.35:
        draw = rng.random()
        word = pick(rng, ADJECTIVES if draw < 0.75 else BOTH_ADJECTIVE_AND_NOUN)
        found.append((word if draw < 0.9 else invent(rng, "ous"), "ADJ"))
    return [*found, (noun(rng), "NOUN")]


def noun(rng: Random) -> str:
    """Return a noun; one in four can be a verb, an adjective or a modal, too."""
    draw = rng.random()
    if draw < 0.18:
        return pick(rng, BOTH_NOUN_AND_VERB)
    if draw < 0.24:
        return pick(rng, f"{BOTH_ADJECTIVE_AND_NOUN} can will")
    return pick(rng, NOUNS) if draw < 0.9 else invent(rng, "ment")


def prepositional_phrase(rng: Random) -> Tagged:
    """Return a noun with its preposition."""
    return [(pick(rng, f"{PREPOSITIONS} {BOTH_PREPOSITION_AND_CONJUNCTION}"), "ADP"), *noun_phrase(rng)]


def pick(rng: Random, words: str) -> str:
    """Return one of the words, the earlier ones more often."""
    listed = words.split()
    return listed[int(len(listed) * rng.random() * rng.random())]


def invent(rng: Random, ending: str) -> str:
    """Return a word that is in no list."""
    return "".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(2)) + rng.choice("nrtk") + ending
