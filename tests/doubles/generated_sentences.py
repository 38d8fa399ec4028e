"""Sentences of a little English with their trees, in the manner of Universal Dependencies: a treebank of nobody's.

A grammar says them by throwing dice. Words that stand in no list are made of syllables, so that a reader meets words
that it has not seen, and has their spelling to go by. Where a phrase could belong to two words, it is the words that
decide: a man is seen with a telescope, but a man with a hat is seen. A sentence's number and the seed fix all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
from treebank_sentence import Sentence

from aggrevated_reader.pages.batched_rng import BatchedRng, WeightedChoice

T = TypeVar("T")
Given: TypeAlias = Mapping[str, "Phrase | None"]  # by relation; None is left out
LONGEST = 35  # words of a sentence, with its full stop
_SENTENCE = 106  # a stream of random numbers that meets no other one


def listed(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


# What is earlier in a list is said more often. Nouns are by kind, with plurals that are no -s.
NOUNS = {
    "person": listed(
        "man/men woman/women child/children teacher friend doctor farmer sailor king queen neighbour painter singer "
        "student baker judge guard cook guide"
    ),
    "animal": listed("dog cat horse bird fish/fish fox sheep/sheep mouse/mice wolf/wolves bear"),
    "thing": listed(
        "table box door window cup boat ring lamp stone chair picture watch clock key bottle bridge car bag"
    ),
    "food": listed("apple cake egg onion carrot nut"),
    "tool": listed("knife/knives telescope hammer camera brush stick rope spoon needle torch"),
    "mark": listed("hat beard smile scar limp moustache"),  # what somebody is known by
    "garment": listed("coat dress shirt jacket scarf uniform"),
    "part": listed("roof wall handle lid tower balcony"),
    "place": listed("house garden city village school forest market station kitchen church harbour island valley"),
    "message": listed("book story letter report question plan answer song film poem"),
    "event": listed("dinner war lesson journey storm game wedding meeting concert walk"),
    "time": listed("morning evening night summer winter week"),
    "matter": listed("work music money love history truth hope fear peace trade"),  # without plural or article
}
DAYS = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
NAMES = listed("Anna Tom Maria Peter Clara Omar Lucy Ivan Nora Felix Rosa Amir Lena Oscar Judith David")
FAMILIES = listed("Berg Stone Hill Marsh Baker Lind Okoro Silva Novak Weber")
TITLES = listed("Mr Mrs Dr Captain")
CITIES = listed("Oslo Lima Vienna Cairo Kyoto Accra")
ADJECTIVES = listed(
    "old small young new big happy red long strange quiet poor tired famous green tall cold sad rich heavy brave angry "
    "careful wooden useful beautiful open early clever slow blue"
)
FEELINGS = listed("proud/of afraid/of tired/of famous/for fond/of")
DEGREES = listed("very so too quite rather")
MANNERS = listed("quickly slowly quietly carefully suddenly happily well fast badly bravely")
OFTEN = listed("often never always also still already soon")
AGAIN = listed("again here there early together outside")
NUMBERS = listed("two three four five six seven ten twelve")
MODALS = listed("will can would must could may should might")
MARKS = listed("because if while although before after since until")
OWNERS = listed("his her my their our your its")
CONJUNCTIONS = WeightedChoice.of({"and": 8, "or": 2})
BETWEEN_CLAUSES = WeightedChoice.of({"and": 6, "but": 4, "so": 1})
SINGULAR = WeightedChoice.of(
    {"the": 12, "a": 10, "this": 1.5, "that": 1.5, "every": 1, "another": 1, "no": 0.7, "some": 0.7}
)
PLURAL = WeightedChoice.of({"the": 10, "": 7, "some": 2, "these": 1.5, "those": 1.5, "many": 1.5, "all": 1, "no": 0.7})
COUNTED = WeightedChoice.of({"": 7, "the": 2, "these": 0.5, "those": 0.5})
MASS = WeightedChoice.of({"": 8, "the": 3, "some": 1, "this": 0.7, "no": 0.7})
PRONOMINAL = ("nsubj", "obj", "iobj", "obl")  # relations that pronouns stand in
SUBJECTS = {  # pronouns by kind, with what a verb agrees with: I, it or they
    "person": listed("she/it he/it they/they I/I we/they you/they"),
    "animal": listed("it/it they/they"),
    "thing": listed("it/it they/they"),
    "message": listed("it/it this/it"),
}
OBJECTS = SUBJECTS | {
    "person": listed("him/it her/it them/they me/I us/they you/they"),
    "animal": listed("it/it them/they"),
    "thing": listed("it/it them/they"),
}

# What belongs to a noun behind it: preposition and kinds of noun. No verb has the same behind its object.
BEHIND_NOUNS = {
    "person": ("with mark", "in garment", "from place"),
    "animal": ("with mark", "from place"),
    "thing": ("with part", "of person"),
    "food": ("of person",),
    "place": ("with part", "of person"),
    "message": ("about matter|person|animal|event|place", "by person"),
    "event": ("of person",),
    "matter": ("of person|place",),
    "part": ("of thing|place",),
}
USUAL_WAYS = (*("in place",) * 3, *("in time",) * 2, "on day", "in year", "near place", "during event", "after event")

ENDINGS = {  # of words that are made of syllables
    "person": ("er", "or", "ist"),
    "thing": ("et", "ock", "le"),
    "event": ("ing", "ment"),
    "matter": ("ation", "ness", "ity", "ism"),
    "place": ("ville", "burg", "ia"),
    "adjective": ("ous", "ful", "able", "al", "ish"),
    "adverb": ("ously", "fully", "ally", "ishly"),
    "verb": ("ate", "ize", "en"),
    "name": ("", "a", "o", "in"),
    "family": ("son", "man", "ski", ""),
}
ONSETS = listed("b d f g k l m n p r s t v z br dr fl gr kl pl st tr")
CODAS = listed("b d g k l m n p r t v nd rk")

# Verb forms, helpers first: a verb and its ending, as Penn's tags call it; VBP is VBZ with he, she and it.
FORMS = WeightedChoice.of(
    {
        ("VBD",): 42,
        ("VBP",): 20,
        ("MD", "VB"): 14,
        ("be VBP", "VBG"): 5,
        ("be VBD", "VBG"): 6,
        ("have VBP", "VBN"): 6,
        ("have VBD", "VBN"): 4,
        ("MD", "have VB", "VBN"): 2,
        ("have VBP", "be VBN", "VBG"): 1,
    }
)
BE_FORMS = WeightedChoice.of({("VBD",): 10, ("VBP",): 10, ("MD", "VB"): 3, ("have VBP", "VBN"): 2})
IRREGULAR = {  # by verb, ending and what it agrees with
    ("be", "VBD", "they"): "were",
    ("be", "VBP", "I"): "am",
    ("be", "VBP", "they"): "are",
    ("be", "VBZ", "it"): "is",
    ("have", "VBZ", "it"): "has",
}
FINE = {  # Penn's tag, where there is only one
    **{"ADJ": "JJ", "ADP": "IN", "ADV": "RB", "CCONJ": "CC", "DET": "DT", "INTJ": "UH"},
    **{"NOUN": "NN", "NUM": "CD", "PROPN": "NNP", "PUNCT": ".", "SCONJ": "IN"},
}
NOTHING: Given = {}
CLAUSES = {"acl", "acl:relcl", "advcl", "ccomp", "xcomp"}  # behind one of these, what follows would belong to it


def generated(count: int, seed: int) -> list[Sentence]:
    """So many sentences; a longer list begins with the shorter."""
    return [generated_sentence(number, seed) for number in range(count)]


def generated_sentence(number: int, seed: int) -> Sentence:
    """One of these sentences."""
    dice = BatchedRng(np.random.default_rng([_SENTENCE, seed, number]))
    while True:
        words = tidied(_Speaker(dice).sentence().words)
        if len(words) <= LONGEST:
            return as_sentence(words)


@dataclass(eq=False)
class Word:
    """A word on its way into a sentence. It is told its head when its phrase is put beside another one."""

    input_kind: str
    tag: str  # UPOS
    fine: str  # XPOS
    head: Word | None = None
    label: str = "root"


@dataclass(eq=False)
class Phrase:
    """Words in order, all of which hang on `top`."""

    top: Word
    words: list[Word]
    agrees: str = "it"  # what a verb says with it as its subject: as with I, it or they

    def before(self, label: str, other: Phrase, on: Word | None = None) -> Phrase:
        """This phrase with another in front, which depends on its top or on another word of it."""
        other.top.head = on or self.top
        other.top.label = label
        self.words = other.words + self.words
        return self

    def after(self, label: str, other: Phrase, on: Word | None = None) -> Phrase:
        """This phrase with another behind it, likewise."""
        other.top.head = on or self.top
        other.top.label = label
        self.words = self.words + other.words
        return self

    def has_clause(self) -> bool:
        """Whether there is a clause in it."""
        return any(word.label in CLAUSES for word in self.words)


def tidied(words: Sequence[Word]) -> list[Word]:
    """The words with a capital in front, "an" for "a" where it is said so, and no comma before another mark."""
    kept = [word for word, then in pairwise(words) if word.input_kind != "," or then.fine not in (",", ".")] + [
        words[-1]
    ]
    for word, then in pairwise(kept):
        if word.input_kind == "a" and then.input_kind[0] in "aeiou":
            word.input_kind = "an"
    first = next(word for word in kept if word.input_kind != '"')
    first.input_kind = first.input_kind[0].upper() + first.input_kind[1:]
    return kept


def as_sentence(words: Sequence[Word]) -> Sentence:
    """The finished sentence."""
    places = {id(word): place for place, word in enumerate(words, start=1)}
    heads = np.array([places[id(word.head)] if word.head else 0 for word in words], np.int64)
    told = ((word.input_kind, word.label, word.tag, word.fine) for word in words)
    forms, labels, tags, fine_tags = zip(*told, strict=True)
    return Sentence(forms, heads, labels, tags, fine_tags)


@dataclass(frozen=True)
class Verb:
    """A verb with the forms that rules do not give, and perhaps a particle."""

    base: str
    past: str
    participle: str
    particle: str = ""

    @classmethod
    def of(cls, text: str) -> Verb:
        """Of "see/saw/seen", "buy/bought", "watch" or "pick+up"."""
        text, _, particle = text.partition("+")
        base, *irregular = text.split("/")
        forms = irregular or [with_ed(base)]
        return cls(base, forms[0], forms[-1], particle)

    def input_kind(self, ending: str, agrees: str) -> tuple[str, str]:
        """(as it is said, Penn's tag)."""
        fine = "VBZ" if ending == "VBP" and agrees == "it" else ending
        forms = {"VBD": self.past, "VBN": self.participle}
        if found := IRREGULAR.get((self.base, fine, agrees)) or forms.get(fine):
            return found, fine
        return {"VBZ": with_s, "VBG": with_ing}.get(fine, str)(self.base), fine


def with_s(word: str) -> str:
    """A verb with he, she and it; of a noun, several."""
    if re.search("[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search("(s|x|z|ch|sh|o)$", word) else "s")


def with_ed(verb: str) -> str:
    """Its past."""
    if re.search("[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    return verb + "d" if verb.endswith("e") else doubled(verb) + "ed"


def with_ing(verb: str) -> str:
    """Its participle of the present."""
    return verb[:-1] + "ing" if re.search("[^eo]e$", verb) and verb != "be" else doubled(verb) + "ing"


def doubled(verb: str) -> str:
    """The verb as it is before an ending: stopp of stop."""
    return verb + verb[-1] if re.fullmatch("(be|for)?[^aeiou]*[aeiou][^aeiouwxy]", verb) else verb


@dataclass(frozen=True)
class Need:
    """What a verb wants to have with it."""

    label: str
    kinds: tuple[str, ...]  # of noun, or what else it may be
    preposition: str = ""

    @classmethod
    def of(cls, text: str) -> Need:
        """Of "obj person|animal" or "obl person to"."""
        label, kinds, *preposition = text.split()
        return cls(label, tuple(kinds.split("|")), *preposition)


@dataclass(frozen=True)
class Frame:
    """Verbs that are used in the same way."""

    verbs: tuple[Verb, ...]
    subjects: tuple[str, ...]  # kinds of noun
    needs: tuple[Need, ...]
    ways: tuple[str, ...]  # how, where and when, as in BEHIND_NOUNS

    @classmethod
    def of(cls, verbs: str, subjects: str, *needs: str, ways: Sequence[str] = ()) -> Frame:
        """Of texts as `Verb.of` and `Need.of` take them."""
        return cls(
            tuple(map(Verb.of, verbs.split())),
            tuple(subjects.split("|")),
            tuple(map(Need.of, needs)),
            (*ways, *ways, *USUAL_WAYS),
        )

    @property
    def objects(self) -> tuple[str, ...]:
        """The kinds of noun that it has as objects, and that can be the subject of its passive."""
        return next((need.kinds for need in self.needs if need.label == "obj"), ())

    @property
    def is_short(self) -> bool:
        """Whether it needs no clause."""
        return not any(need.label == "ccomp" or "to" in need.kinds for need in self.needs)


TOOLS = ("with tool",) * 3
COMPANY = ("with person",)
APPEAR = Frame.of("arrive appear vanish return fall/fell/fallen stop", "person|animal|thing|message|event")
SEE = Frame.of("see/saw/seen find/found watch examine draw/drew/drawn", "person", "obj person|animal|place", ways=TOOLS)
READ = Frame.of(
    "read/read write/wrote/written finish remember forget/forgot/forgotten study like", "person", "obj message|matter"
)
SAY = Frame.of("say/said think/thought know/knew/known believe hope report answer", "person", "ccomp that")
WANT = Frame.of("want try decide hope plan refuse learn", "person", "xcomp to")
WEIGHTS: dict[Frame, float] = {
    Frame.of("sleep/slept laugh smile wait dream sing/sang/sung dance work", "person|animal", ways=COMPANY): 6,
    APPEAR: 5,
    Frame.of(
        "go/went/gone come/came/come run/ran/run walk sail",
        *("person|animal", "obl place to"),
        ways=("from place", "through place", *COMPANY),
    ): 6,
    Frame.of("come/came/come run/ran/run return escape", "person|animal", "obl place from"): 2,
    Frame.of("talk speak/spoke/spoken dream sing/sang/sung", "person", "obl matter|person|event about"): 3,
    SEE: 8,
    Frame.of("meet/met help visit love follow guard guide greet", "person|animal", "obj person|animal"): 7,
    Frame.of("cut/cut open break/broke/broken repair paint clean", "person", "obj thing", ways=TOOLS): 6,
    Frame.of("eat/ate/eaten cook bake cut/cut", "person|animal", "obj food", ways=TOOLS[1:]): 3,
    Frame.of(
        "buy/bought carry sell/sold hide/hid/hidden steal/stole/stolen keep/kept",
        *("person", "obj thing|food|tool"),
        ways=("from person", "for person"),
    ): 6,
    Frame.of("pick+up put/put+down bring/brought+back throw/threw/thrown+away", "person", "obj thing|tool|garment"): 3,
    Frame.of("put/put leave/left hide/hid/hidden", "person", "obj thing|tool", "obl thing|place in"): 2,
    READ: 6,
    Frame.of("plan book enjoy miss remember prepare", "person", "obj event"): 4,
    Frame.of("please surprise frighten help", "message|event|matter|thing", "obj person"): 3,
    Frame.of("give/gave/given send/sent show offer lend/lent", "person", "iobj person", "obj thing|message"): 4,
    Frame.of("give/gave/given send/sent show sell/sold", "person", "obj thing|message|food", "obl person to"): 3,
    Frame.of("ask tell/told warn", "person", "obj person", "obl event|matter|animal about"): 2,
    Frame.of("tell/told promise warn", "person", "iobj person", "ccomp that"): 2,
    SAY: 7,
    Frame.of("ask wonder know/knew/known", "person", "ccomp whether"): 2,
    WANT: 6,
    Frame.of("ask persuade teach/taught help", "person", "obj person", "xcomp to"): 2,
    Frame.of("seem become/became/become look feel/felt", "person|animal|place|message", "xcomp adjective"): 4,
}
ANY_FRAME = WeightedChoice.of(WEIGHTS)
SHORT_FRAMES = WeightedChoice.of({frame: weight for frame, weight in WEIGHTS.items() if frame.is_short})
KINDS = (*NOUNS, "day", "year")
WITH_SUBJECT = {
    kind: WeightedChoice.of({f: w for f, w in WEIGHTS.items() if kind in f.subjects and f.is_short} or {APPEAR: 1})
    for kind in KINDS
}
WITH_OBJECT = {
    kind: WeightedChoice.of({f: w for f, w in WEIGHTS.items() if kind in f.objects and f.is_short} or {SEE: 1})
    for kind in KINDS
}
HELPERS = {"be": Verb("be", "was", "been"), "have": Verb("have", "had", "had"), "do": Verb("do", "did", "done")}


class _Speaker:
    """A grammar that throws dice: each rule returns a phrase. `room` is how many more words there should be."""

    def __init__(self, dice: BatchedRng) -> None:
        self.dice = dice
        self.room = dice.count(0, 35)

    def more(self, probability: float) -> bool:
        """True with that probability, as long as there is room."""
        return self.room > 0 and self.dice.chance(probability)

    def often(self, things: Sequence[T]) -> T:
        """One of them, the earlier ones more often."""
        return things[int(len(things) * self.dice.share() * self.dice.share())]

    def word(self, form: str, tag: str, fine: str = "", agrees: str = "it") -> Phrase:
        """A phrase of one word."""
        self.room -= 1
        word = Word(form, tag, fine or FINE[tag])
        return Phrase(word, [word], agrees)

    def comma(self) -> Phrase:
        """A comma."""
        return self.word(",", "PUNCT", ",")

    def invented(self, kind: str) -> str:
        """A word that stands in no list."""
        dice = self.dice
        syllables = [dice.pick(ONSETS) + dice.pick("aeiou") for _ in range(2)]
        return "".join(syllables) + dice.pick(CODAS) + dice.pick(ENDINGS[kind])

    # Sentences

    def sentence(self) -> Phrase:
        """One, with its full stop."""
        rule, mark = self.dice.weigh(SENTENCES)
        return rule(self).after("punct", self.word(mark, "PUNCT"))

    def told(self) -> Phrase:
        """A statement, and perhaps another one."""
        clause = self.fronted(self.clause())
        if self.more(0.1):
            other = self.clause().before("cc", self.word(self.dice.weigh(BETWEEN_CLAUSES), "CCONJ"))
            clause.after("conj", other.before("punct", self.comma()))
        return clause

    def fronted(self, clause: Phrase) -> Phrase:
        """The clause, perhaps with something in front of it that tells when or why."""
        at = self.dice.share() if self.room > 0 else 1.0
        if at < 0.08:
            clause.before("advcl", self.subordinate().after("punct", self.comma()))
        elif at < 0.13:
            when = self.way(self.dice.pick(USUAL_WAYS))
            clause.before("obl", when.after("punct", self.comma()) if self.dice.chance(0.6) else when)
        elif at < 0.16:
            clause.before("obl:tmod", self.day())
        elif at < 0.19:
            clause.before("advcl", self.participle("VBG", self.dice.weigh(SHORT_FRAMES)).after("punct", self.comma()))
        return clause

    def asked(self) -> Phrase:
        """A question."""
        at = self.dice.share()
        if at < 0.4:
            return self.clause(asked=True)
        if at < 0.6:
            kind, form = self.dice.pick((("person", "who"), ("event", "what")))
            return self.verbal(self.dice.weigh(WITH_SUBJECT[kind]), subject=self.word(form, "PRON", "WP"))
        if at < 0.8:
            frame = self.dice.weigh(WITH_OBJECT[self.dice.pick(("thing", "message", "person"))])
            return self.verbal(frame, given={"obj": None}, asked=True).before("obj", self.what(frame.objects))
        adverb = self.word(self.dice.pick(("where", "when", "why", "how")), "ADV", "WRB")
        return self.clause(asked=True).before("advmod", adverb)

    def what(self, kinds: Sequence[str]) -> Phrase:
        """What a question asks for: who, what, which book."""
        if self.dice.chance(0.35):
            noun = self.noun(self.dice.pick(kinds), self.dice.chance(0.2))
            return noun.before("det", self.word("which", "DET", "WDT"))
        return self.word("who" if kinds[0] == "person" else "what", "PRON", "WP")

    def ordered(self) -> Phrase:
        """A command."""
        clause = self.verb_phrase(self.dice.weigh(WITH_SUBJECT["person"]), "VB", "they")
        at = self.dice.share()
        if at < 0.15:
            clause.before("advmod", self.word("not", "PART", "RB")).before("aux", self.word("do", "AUX", "VB"))
        elif at < 0.3:
            clause.before("discourse", self.word("please", "INTJ"))
        elif at < 0.5:
            clause.before("vocative", self.name().after("punct", self.comma()))
        return clause

    def answered(self) -> Phrase:
        """Yes, or no, and mostly more."""
        answer = self.word(self.dice.pick(("yes", "no", "oh", "well")), "INTJ")
        return self.clause().before("discourse", answer.after("punct", self.comma())) if self.more(0.9) else answer

    def quoted(self) -> Phrase:
        """What somebody said, in quotation marks."""
        speech = self.clause().before("punct", self.word('"', "PUNCT", "``")).after("punct", self.comma())
        speaker = self.name() if self.dice.chance(0.6) else self.plain("person")
        said = self.verb(self.often(SAY.verbs), "VBD", "it").after("nsubj", speaker)
        return said.before("ccomp", speech.after("punct", self.word('"', "PUNCT", "''")))

    def crossing(self) -> Phrase:
        """A clause at whose end there is what belongs to a noun further in front, so that arcs cross."""
        frame = self.dice.pick((APPEAR, SEE, READ))
        kind = self.dice.pick(frame.objects or frame.subjects)
        noun = self.plain(kind)
        if frame is APPEAR:
            return self.extraposed(self.verbal(frame, subject=noun, bare=True), noun, kind)
        clause = self.verbal(frame, given={"obj": noun}, bare=True)
        return self.extraposed(clause.after("obl:tmod", self.day()), noun, kind)

    def extraposed(self, clause: Phrase, noun: Phrase, kind: str) -> Phrase:
        """The clause, and behind it something of that noun in it."""
        if kind == "message" and self.dice.chance(0.4):
            return clause.after("nmod", self.way(BEHIND_NOUNS[kind][0], "nmod"), on=noun.top)
        return clause.after("acl:relcl", self.relative(kind, noun.agrees, told=True), on=noun.top)

    def far(self) -> Phrase:
        """A question for what belongs to a verb further down, over which arcs cross."""
        frame = self.dice.pick((SEE, READ))
        if self.dice.chance(0.5):
            below = self.infinitive(frame, {"obj": None})
            upper = WANT
        else:
            below = self.verbal(frame, given={"obj": None})
            upper = SAY
        given = {upper.needs[0].label: below}
        return self.verbal(upper, given=given, asked=True).before("obj", self.what(frame.objects), on=below.top)

    # Clauses

    def clause(self, asked: bool = False) -> Phrase:
        """A finite clause with a subject, in the order of a statement or of a question."""
        at = self.dice.share()
        if at < 0.18:
            return self.copular(asked=asked)
        if at < 0.26:
            return self.passive(asked=asked)
        if at < 0.3 and not asked:
            return self.existential()
        return self.verbal(asked=asked)

    def verbal(
        self,
        frame: Frame | None = None,
        subject: Phrase | None = None,
        given: Given = NOTHING,
        asked: bool = False,
        bare: bool = False,
    ) -> Phrase:
        """A clause around a verb. What is `given` is used as it is, or left out if it is None."""
        frame = frame or self.dice.weigh(ANY_FRAME if self.room > 4 else SHORT_FRAMES)
        subject = subject or self.noun_phrase(self.dice.pick(frame.subjects), "nsubj")
        *helpers, ending = self.input_kind(negated := self.dice.chance(0.08), asked)
        phrase = self.verb_phrase(frame, ending, subject.agrees, given, bare)
        return self.with_subject(phrase, subject, [("aux", helper) for helper in helpers], negated, asked)

    def passive(self, subject: Phrase | None = None, kind: str = "", asked: bool = False) -> Phrase:
        """A clause whose subject something is done to."""
        frame = self.dice.weigh(WITH_OBJECT[kind or self.dice.pick(("thing", "message", "person", "food", "event"))])
        subject = subject or self.noun_phrase(kind or self.dice.pick(frame.objects), "nsubj")
        phrase = self.participle("VBN", frame)
        helpers = self.forms_of_be("aux:pass")
        return self.with_subject(phrase, subject, helpers, self.dice.chance(0.08), asked, "nsubj:pass")

    def copular(self, subject: Phrase | None = None, kind: str = "", asked: bool = False) -> Phrase:
        """A clause that says what somebody or something is, how, or where: that is its top."""
        kind = kind or self.dice.pick(("person", "person", "thing", "animal", "place", "message", "event"))
        subject = subject or self.noun_phrase(kind, "nsubj")
        at = self.dice.share()
        if at < 0.55:
            predicate = self.feeling() if kind == "person" and self.dice.chance(0.2) else self.adjective()
        elif at < 0.75 or kind == "place":
            predicate = self.plain(kind, plural=subject.agrees == "they")
        else:
            predicate = self.way("in place")
        return self.with_subject(predicate, subject, self.forms_of_be("cop"), self.dice.chance(0.1), asked)

    def forms_of_be(self, label: str) -> list[tuple[str, str]]:
        """The verb to be, in that relation, and its own helpers."""
        *helpers, ending = self.dice.weigh(BE_FORMS)
        return [*(("aux", helper) for helper in helpers), (label, f"be {ending}")]

    def existential(self) -> Phrase:
        """A clause that says that there is something."""
        noun = self.described(self.dice.pick(("person", "thing", "animal", "event", "message")))
        verb = self.verb(HELPERS["be"], self.dice.pick(("VBD", "VBP")), noun.agrees)
        verb.after("nsubj", noun).before("expl", self.word("there", "PRON", "EX"))
        return verb if noun.has_clause() else verb.after("obl", self.way("in place"))

    def input_kind(self, negated: bool, asked: bool) -> tuple[str, ...]:
        """The helpers of a verb, and its ending; with a helper at least, where something is asked or denied."""
        form = self.dice.weigh(FORMS)
        return (f"do {form[0]}", "VB") if len(form) == 1 and (negated or asked) else form

    def with_subject(
        self,
        phrase: Phrase,
        subject: Phrase,
        helpers: Sequence[tuple[str, str]],
        negated: bool,
        asked: bool,
        label: str = "nsubj",
    ) -> Phrase:
        """The clause: helpers and subject in front of what is said of it."""
        in_front = [(name, self.helper(text, subject.agrees)) for name, text in helpers]
        between = [("advmod", self.word("not", "PART", "RB"))] if negated else []
        if self.more(0.08):
            between.append(("advmod", self.word(self.often(OFTEN), "ADV")))
        in_front[1:1] = between
        in_front.insert(1 if asked else 0, (label, subject))
        for name, other in reversed(in_front):
            phrase.before(name, other)
        return phrase

    def helper(self, text: str, agrees: str) -> Phrase:
        """An auxiliary verb."""
        if text == "MD":
            return self.word(self.often(MODALS), "AUX", "MD")
        verb, ending = text.split()
        form, fine = HELPERS[verb].input_kind(ending, agrees)
        return self.word(form, "AUX", fine)

    def subordinate(self) -> Phrase:
        """A clause that tells when, why or what for."""
        at = self.dice.share()
        if at < 0.25:
            return self.clause().before("advmod", self.word("when", "ADV", "WRB"))
        if at < 0.4:
            return self.infinitive(self.dice.weigh(WITH_SUBJECT["person"]))
        return self.clause().before("mark", self.word(self.often(MARKS), "SCONJ"))

    def relative(self, kind: str, agrees: str, told: bool = False) -> Phrase:
        """A clause about a noun of that kind; `told`: by a pronoun in any case."""
        at = self.dice.share()
        if at < 0.15 and not told:
            return self.verbal(self.dice.weigh(WITH_OBJECT[kind]), given={"obj": None})
        pronoun = self.dice.pick(("who", "who", "that") if kind == "person" else ("that", "that", "which"))
        said = self.word(pronoun, "PRON", "WP" if pronoun == "who" else "WDT", agrees)
        if at < 0.4:
            return self.verbal(self.dice.weigh(WITH_OBJECT[kind]), given={"obj": None}).before("obj", said)
        if at < 0.5:
            return self.copular(said, kind)
        if at < 0.6:
            return self.passive(said, kind)
        return self.verbal(self.dice.weigh(WITH_SUBJECT[kind]), subject=said)

    # Verbs

    def verb(self, verb: Verb, ending: str, agrees: str) -> Phrase:
        """The verb in that form."""
        form, fine = verb.input_kind(ending, agrees)
        return self.word(form, "VERB", fine)

    def verb_phrase(self, frame: Frame, ending: str, agrees: str, given: Given = NOTHING, bare: bool = False) -> Phrase:
        """A verb in that form with what it needs, and perhaps more; `bare`: no more than that."""
        verb = Verb.of(self.invented("verb")) if self.dice.chance(0.06) else self.often(frame.verbs)
        phrase = self.verb(verb, ending, agrees)
        for need in frame.needs:
            if (found := given[need.label] if need.label in given else self.complement(need)) is not None:
                phrase.after(need.label, found)
        if verb.particle:
            self.with_particle(phrase, verb.particle)
        if bare:
            return phrase
        phrase = self.with_ways(phrase, frame)
        return phrase if None in given.values() else self.with_more(phrase, frame, ending, agrees)

    def with_particle(self, phrase: Phrase, form: str) -> None:
        """Put a particle behind the verb, or behind an object that is short."""
        particle = self.word(form, "ADP", "RP")
        particle.top.head = phrase.top
        particle.top.label = "compound:prt"
        place = len(phrase.words) if len(phrase.words) < 4 and self.dice.chance(0.5) else 1
        phrase.words.insert(place, particle.top)

    def complement(self, need: Need) -> Phrase:
        """What a verb needs."""
        kind = self.dice.pick(need.kinds)
        match kind:
            case "that":
                clause = self.clause()
                return clause.before("mark", self.word("that", "SCONJ")) if self.dice.chance(0.7) else clause
            case "whether":
                return self.clause().before("mark", self.word(self.dice.pick(("whether", "if")), "SCONJ"))
            case "to":
                return self.infinitive(self.dice.weigh(WITH_SUBJECT["person"]))
            case "adjective":
                return self.adjective()
        return self.way(f"{need.preposition} {kind}") if need.preposition else self.noun_phrase(kind, need.label)

    def with_ways(self, phrase: Phrase, frame: Frame) -> Phrase:
        """The verb's phrase, perhaps with how, where and when; not behind a clause."""
        if not phrase.has_clause() and self.more(0.17):
            phrase.after("advmod", self.manner())
        while not phrase.has_clause() and self.more(0.4):
            phrase.after("obl", self.way(self.dice.pick(frame.ways)))
        return phrase

    def with_more(self, phrase: Phrase, frame: Frame, ending: str, agrees: str) -> Phrase:
        """The same, perhaps with a clause that tells more, or with another verb."""
        at = self.dice.share() if self.room > 0 and not phrase.has_clause() else 1.0
        if at < 0.07:
            phrase.after("obl:tmod", self.day())
        elif at < 0.2:
            phrase.after("advcl", self.subordinate())
        elif at < 0.32:
            other = self.verb_phrase(self.dice.weigh(WITH_SUBJECT[frame.subjects[0]]), ending, agrees)
            phrase.after("conj", other.before("cc", self.word("and", "CCONJ")))
        return phrase

    def infinitive(self, frame: Frame, given: Given = NOTHING) -> Phrase:
        """To do something."""
        return self.verb_phrase(frame, "VB", "they", given).before("mark", self.word("to", "PART", "TO"))

    def participle(self, ending: str, frame: Frame) -> Phrase:
        """Doing something, or done by somebody: then without its object."""
        if ending == "VBG":
            return self.verb_phrase(frame, ending, "it", bare=True)
        phrase = self.verb_phrase(frame, ending, "it", {"obj": None, "iobj": None}, bare=True)
        if not phrase.has_clause() and self.more(0.35):
            phrase.after("obl:agent", self.way(f"by {self.dice.pick(frame.subjects)}"))
        return self.with_ways(phrase, frame)

    def way(self, text: str, label: str = "obl") -> Phrase:
        """A noun with its preposition, of "with tool" or "about matter|event"."""
        preposition, kinds = text.split()
        noun = self.noun_phrase(self.dice.pick(kinds.split("|")), label)
        return noun.before("case", self.word(preposition, "ADP"))

    def manner(self) -> Phrase:
        """How something is done, or where."""
        at = self.dice.share()
        if at < 0.25:
            return self.word(self.invented("adverb"), "ADV")
        adverb = self.word(self.often(MANNERS if at < 0.75 else AGAIN), "ADV")
        return adverb.before("advmod", self.word(self.often(DEGREES), "ADV")) if 0.25 < at < 0.35 else adverb

    def day(self) -> Phrase:
        """When, without a preposition: yesterday, last week."""
        if self.dice.chance(0.5):
            return self.word(self.dice.pick(("yesterday", "today", "tomorrow")), "NOUN")
        noun = self.word(self.dice.pick(NOUNS["time"]), "NOUN")
        form, tag, label = self.dice.pick((("last", "ADJ", "amod"), ("every", "DET", "det"), ("that", "DET", "det")))
        return noun.before(label, self.word(form, tag))

    # Nouns

    def noun_phrase(self, kind: str, label: str) -> Phrase:
        """Somebody or something of that kind in that role, or several."""
        phrase = self.one(kind, label)
        if kind in ("day", "year", "time") or phrase.top.tag == "PRON" or phrase.has_clause() or not self.more(0.08):
            return phrase
        return self.several(phrase, lambda: self.one(kind, "conj"))

    def several(self, phrase: Phrase, other: Callable[[], Phrase]) -> Phrase:
        """The phrase and one or two more, with a conjunction before the last."""
        if self.more(0.25):
            phrase.after("conj", other().before("punct", self.comma()))
        phrase.after("conj", other().before("cc", self.word(self.dice.weigh(CONJUNCTIONS), "CCONJ")))
        phrase.agrees = "they"
        return phrase

    def one(self, kind: str, label: str) -> Phrase:
        """Somebody or something of that kind."""
        at = self.dice.share()
        match kind:
            case "day":
                return self.word(self.dice.pick(DAYS), "PROPN")
            case "year":
                return self.word(str(self.dice.count(1700, 2050)), "NUM")
            case "person" if 0.2 <= at < 0.5:
                return self.name()
            case "place" if at < 0.2:
                return self.word(self.invented(kind).capitalize() if at < 0.1 else self.often(CITIES), "PROPN")
        if kind in SUBJECTS and label in PRONOMINAL and at < (0.2 if kind == "person" else 0.08):
            return self.pronoun(kind, label)
        return self.described(kind)

    def pronoun(self, kind: str, label: str) -> Phrase:
        """He, she or it, as a subject or not."""
        form, agrees = self.often((SUBJECTS if label == "nsubj" else OBJECTS)[kind]).split("/")
        return self.word(form, "PRON", "DT" if form == "this" else "PRP", agrees)

    def name(self) -> Phrase:
        """A person's, perhaps with a title or a family's name, or with who that is."""
        at = self.dice.share()
        name = self.word(self.dice.pick(TITLES) if at < 0.1 else self.first_name(), "PROPN")
        if at < 0.25:
            family = self.invented("family").capitalize() if self.dice.chance(0.5) else self.often(FAMILIES)
            name.after("flat", self.word(family, "PROPN"))
        if at > 0.5 and self.more(0.06):
            who = self.plain("person", plural=False).before("punct", self.comma())
            name.after("appos", who.after("punct", self.comma()))
        return name

    def first_name(self) -> str:
        """One of the list, or one that nobody has heard of."""
        return self.invented("name").capitalize() if self.dice.chance(0.35) else self.often(NAMES)

    def described(self, kind: str) -> Phrase:
        """A noun with what belongs to it before, and perhaps behind."""
        noun = self.plain(kind)
        at = self.dice.share() if self.room > 0 else 1.0
        if at < 0.24 and kind in BEHIND_NOUNS:
            return noun.after("nmod", self.way(self.dice.pick(BEHIND_NOUNS[kind]), "nmod"))
        if at < 0.86 or at == 1.0 or kind in ("time", "mark", "garment"):
            return noun
        if at < 0.97:
            return noun.after("acl:relcl", self.relative(kind, noun.agrees))
        ending, frames = self.dice.pick((("VBN", WITH_OBJECT), ("VBG", WITH_SUBJECT)))
        return noun.after("acl", self.participle(ending, self.dice.weigh(frames[kind])))

    def plain(self, kind: str, plural: bool | None = None) -> Phrase:
        """A noun with its determiner, and perhaps with adjectives."""
        if plural is None:
            plural = kind not in ("matter", "time") and self.dice.chance(0.22)
        noun = self.noun(kind, plural)
        if kind in ("thing", "place", "event", "message") and self.more(0.07):
            noun.before("compound", self.noun(self.dice.pick(("thing", "food", "place", "matter")), False))
        while self.more(0.25):
            adjective = self.adjective()
            noun.before("amod", self.several(adjective, self.adjective) if self.more(0.08) else adjective)
        return self.determined(noun, kind, plural)

    def noun(self, kind: str, plural: bool) -> Phrase:
        """The noun alone."""
        if kind in ENDINGS and kind != "place" and self.dice.chance(0.14):
            form = self.invented(kind)
            several = with_s(form)
        else:
            form, _, irregular = self.often(NOUNS[kind]).partition("/")
            several = irregular or with_s(form)
        return self.word(several, "NOUN", "NNS", "they") if plural else self.word(form, "NOUN")

    def determined(self, noun: Phrase, kind: str, plural: bool) -> Phrase:
        """The noun with an article, a number, or whose it is."""
        weights = PLURAL if plural else MASS if kind == "matter" else SINGULAR
        if plural and self.dice.chance(0.2):
            number = str(self.dice.count(11, 999)) if self.dice.chance(0.4) else self.often(NUMBERS)
            noun.before("nummod", self.word(number, "NUM"))
            weights = COUNTED
        if kind not in ("time", "place") and self.dice.chance(0.13):
            return noun.before("nmod:poss", self.owner())
        match "the" if kind == "time" else self.dice.weigh(weights):
            case "":
                return noun
            case "many":
                return noun.before("amod", self.word("many", "ADJ"))
            case form:
                return noun.before("det", self.word(form, "DET"))

    def owner(self) -> Phrase:
        """Whose it is: her, Anna's, the old man's."""
        at = self.dice.share()
        if at < 0.5:
            return self.word(self.often(OWNERS), "PRON", "PRP$")
        owner = self.word(self.first_name(), "PROPN") if at < 0.8 else self.plain("person", plural=False)
        return owner.after("case", self.word("'s", "PART", "POS"))

    def adjective(self) -> Phrase:
        """One, and perhaps how much so."""
        form = self.invented("adjective") if self.dice.chance(0.15) else self.often(ADJECTIVES)
        adjective = self.word(form, "ADJ")
        return adjective.before("advmod", self.word(self.often(DEGREES), "ADV")) if self.more(0.1) else adjective

    def feeling(self) -> Phrase:
        """An adjective with what it is about."""
        form, preposition = self.dice.pick(FEELINGS).split("/")
        return self.word(form, "ADJ").after("obl", self.way(f"{preposition} person|event|matter|animal"))


SENTENCES: WeightedChoice[tuple[Callable[[_Speaker], Phrase], str]] = WeightedChoice.of(
    {
        (_Speaker.told, "."): 77,
        (_Speaker.asked, "?"): 8,
        (_Speaker.ordered, "."): 2,
        (_Speaker.ordered, "!"): 2,
        (_Speaker.quoted, "."): 3,
        (_Speaker.answered, "."): 3,
        (_Speaker.crossing, "."): 3.5,
        (_Speaker.far, "?"): 1.5,
    }
)
