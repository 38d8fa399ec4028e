"""How well, and how fast, spaCy's small pipeline learns to parse sentences: heads and relations after every epoch.

    python -m venv spacyenv
    spacyenv/bin/pip install -r benchmarks/text_spacy.txt
    spacyenv/bin/python benchmarks/text_spacy.py --train en_ewt-train.conllu --dev en_ewt-dev.conllu [--out PATH]

The configuration is that of `spacy init config --lang en --pipeline tagger,parser --optimize efficiency`, and batches,
optimiser and training loop are spaCy's own; but an epoch is one pass over the training set, and there are `--epochs`.
Words and sentences are the gold ones. UAS and LAS are of all tokens, punctuation too. Seconds are of CPU, on one
thread. Parsing is timed without the tagger, which the parser does not need.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported

# isort: split
import argparse
import json
import platform
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from time import process_time

import spacy
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train_while_improving
from spacy.util import fix_random_seed, registry
from spacy.vocab import Vocab

PACKAGES = ("spacy", "thinc", "blis", "numpy")
NEVER = sys.maxsize


@dataclass(frozen=True)
class Sentence:
    """Its words, and of each the tag (XPOS), the index of the head, or its own if it has none, and the relation."""

    words: list[str]
    tags: list[str]
    heads: list[int]
    relations: list[str]

    def __len__(self) -> int:
        return len(self.words)

    def bare(self, vocab: Vocab) -> Doc:
        """What the parser gets: the words, and that they are one sentence."""
        return Doc(vocab, words=self.words, sent_starts=[i == 0 for i in range(len(self))])

    def example(self, vocab: Vocab) -> Example:
        """What the pipeline learns from."""
        return Example(
            Doc(vocab, words=self.words),
            Doc(vocab, words=self.words, tags=self.tags, heads=self.heads, deps=self.relations),
        )


@dataclass(frozen=True)
class Epoch:
    """What an epoch took, and what dev was like after it."""

    epoch: int
    uas: float
    las: float
    uas_without_punctuation: float
    las_without_punctuation: float
    training_cpu_seconds: float
    training_tokens_per_second: float
    batched_tokens_per_second: float
    single_tokens_per_second: float


def read(path: Path) -> list[Sentence]:
    """The sentences of a CoNLL-U file; lines of multi-word and empty tokens do not count."""
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    rows = [[line.split("\t") for line in block.splitlines() if line.partition("\t")[0].isdigit()] for block in blocks]
    return [sentence(words) for words in rows if words]


def sentence(rows: list[list[str]]) -> Sentence:
    heads = [int(row[6]) - 1 for row in rows]
    return Sentence(
        words=[row[1] for row in rows],
        tags=[row[4] for row in rows],
        heads=[i if head < 0 else head for i, head in enumerate(heads)],
        relations=["ROOT" if row[7] == "root" else row[7] for row in rows],  # spaCy names it so, whatever it is taught
    )


@registry.readers("conllu")
def conllu(path: str) -> Callable[[Language], list[Example]]:
    """A corpus for spaCy's configuration."""
    return lambda nlp: [sentence.example(nlp.vocab) for sentence in read(Path(path))]


def configured(train: Path, dev: Path, seed: int) -> spacy.util.Config:
    """spaCy's default for a tagger and a parser of English, small and fast, with our files."""
    config = init_config(lang="en", pipeline=["tagger", "parser"], optimize="efficiency")
    config["system"]["seed"] = seed
    config["corpora"] = {
        name: {"@readers": "conllu", "path": str(path)} for name, path in (("train", train), ("dev", dev))
    }
    return config


def trained(nlp: Language, examples: list[Example], epochs: int) -> Iterator[float]:
    """Goes through the examples again and again; yields the CPU seconds of each time."""
    config = nlp.config.interpolate()["training"]
    fix_random_seed(config["seed"])  # again, as spaCy does it between initialisation and training
    settings = registry.resolve(config, schema=ConfigSchemaTraining)
    for epoch in range(epochs):
        start = process_time()
        random.shuffle(examples)
        steps = train_while_improving(
            nlp,
            settings["optimizer"],
            ((epoch, batch) for batch in settings["batcher"](examples)),
            evaluate=lambda: (0.0, {}),  # it asks after its first step, at least; we do so after the epoch
            dropout=settings["dropout"],
            eval_frequency=NEVER,
            accumulate_gradient=settings["accumulate_gradient"],
            patience=0,
            max_steps=0,
            exclude=settings["frozen_components"],
            annotating_components=settings["annotating_components"],
            before_update=settings["before_update"],
        )
        for _ in steps:
            pass
        yield process_time() - start


def parsed(
    nlp: Language, sentences: list[Sentence], parse: Callable[[list[Doc]], list[Doc]]
) -> tuple[list[Doc], float]:
    """The sentences with what the parser thinks of them, and the CPU seconds that it thought."""
    docs = [sentence.bare(nlp.vocab) for sentence in sentences]
    with nlp.select_pipes(disable="tagger"):
        start = process_time()
        docs = parse(docs)
        return docs, process_time() - start


def scores(docs: list[Doc], sentences: list[Sentence]) -> dict[str, float]:
    """UAS and LAS of all tokens, and without those whose gold relation is that of punctuation."""
    right = []
    for doc, gold in zip(docs, sentences, strict=True):
        for token, head, relation in zip(doc, gold.heads, gold.relations, strict=True):
            if "||" in token.dep_:
                raise ValueError(f"{token.dep_} of {token} in {doc}: spaCy has not undone its projective form")
            heads = token.head.i == head
            right.append((heads, heads and token.dep_ == relation, relation.split(":")[0] != "punct"))
    counted = [row for row in right if row[2]]
    return {
        "uas": sum(row[0] for row in right) / len(right),
        "las": sum(row[1] for row in right) / len(right),
        "uas_without_punctuation": sum(row[0] for row in counted) / len(counted),
        "las_without_punctuation": sum(row[1] for row in counted) / len(counted),
    }


def measured(nlp: Language, train: list[Sentence], dev: list[Sentence], epochs: int) -> Iterator[Epoch]:
    """What there is to say after each epoch."""
    words, asked = sum(map(len, train)), sum(map(len, dev))
    examples = [sentence.example(nlp.vocab) for sentence in train]
    for epoch, seconds in enumerate(trained(nlp, examples, epochs), start=1):
        together, batched = parsed(nlp, dev, lambda docs: list(nlp.pipe(docs)))
        _, single = parsed(nlp, dev, lambda docs: [nlp(doc) for doc in docs])
        yield Epoch(
            epoch,
            **scores(together, dev),
            training_cpu_seconds=seconds,
            training_tokens_per_second=words / seconds,
            batched_tokens_per_second=asked / batched,
            single_tokens_per_second=asked / single,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="CoNLL-U")
    parser.add_argument("--dev", type=Path, required=True, help="CoNLL-U")
    parser.add_argument("--epochs", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, help="a file for the JSON, besides the standard output")
    options = parser.parse_args()
    train, dev = read(options.train), read(options.dev)
    nlp = init_nlp(configured(options.train, options.dev, options.seed))
    epochs = []
    for row in measured(nlp, train, dev, options.epochs):
        epochs.append(asdict(row))
        print(", ".join(f"{name} {value:.5g}" for name, value in epochs[-1].items()), file=sys.stderr, flush=True)
    record = {
        "spacy": spacy.__version__,
        "seed": options.seed,
        "pipeline": nlp.pipe_names,
        "train": {"sentences": len(train), "tokens": sum(map(len, train))},
        "dev": {"sentences": len(dev), "tokens": sum(map(len, dev))},
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in PACKAGES},
        "epochs": epochs,
        "best": max(epochs, key=lambda row: row["uas"] + row["las"]),
    }
    text = json.dumps(record, indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
