"""Value of generated ink for real ink: training on `written` pages only, test on CROHME.

    python benchmarks/written_ink.py CROHME [--pages 8000] [--iterations 400] [--seed 0]

CROHME is a folder with train/ and dev/. UAS is that of the contextual policy (a supervised start, then the regular
update), and labels are those of a network with one hidden layer on a symbol's gradients and geometry, without context.
"""

import argparse
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import nn

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.core.schedules import linear_schedule
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.entropy_bonus import EntropyBonusOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.parsing.dataset import make_corpus_and_features
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.features.symbols import PIXELS, extract_raw_features
from aggrevated.parsing.learners.parser_policies import ParsingPolicy
from aggrevated.parsing.pages.crohme import load
from aggrevated.parsing.parser import Parser
from aggrevated.parsing.scoring import compute_uas, parse_batch
from aggrevated.starts.supervised import pretrain_policy
from aggrevated.updates.regular import RegularUpdate
from aggrevated_reader.pages.generated import generate_pages

# those of the task `algebra`
RATE = 2e-3
BONUS = 0.4
DROPOUT = 0.3
START = 600
DEMONSTRATIONS = 4000
K = 32
# of the network for labels
HIDDEN = 256
EPOCHS = 12
MINIBATCH = 128


def real(folder):
    """Return CROHME's pages by part: core expressions, and others that are no longer than the generated ones."""
    parts = {}
    for part in ("train", "dev"):
        core = {page.name: page for page in load(folder / part, core=True)}
        others = [page for page in load(folder / part) if page.name not in core and 3 <= len(page) <= 30]
        parts |= {f"{part}, core": list(core.values()), f"{part}, others": others}
    return parts


def parser_scores(train, parts, iterations, seed):
    """Return the UAS on each part, by symbols."""
    projection = Projection.fit(extract_raw_features(train[:2000]))
    corpus, features = make_corpus_and_features(
        [*train, *(page for pages in parts.values() for page in pages)], projection
    )
    parser = Parser(corpus, np.arange(len(train)))
    policy = ParsingPolicy(projection, actions=4, kind="contextual", dropout=DROPOUT, seed=seed)
    policy.with_pages(features, corpus.lengths)
    pretrain_policy(policy, parser, parser.expert, min(len(train), DEMONSTRATIONS), START, RATE, seed)
    oracle = EntropyBonusOracle(
        AdvantageOracle(QStarOracle(parser.expert)), linear_schedule(BONUS, BONUS / 10, iterations)
    )
    learner = Learner(policy, RegularUpdate(linear_schedule(RATE, 0.0, iterations)))
    learning = aggrevated(
        learner, parser, parser.expert, oracle, all_actions_loss, k=K, seed=seed, validate_every=iterations
    )
    for _ in islice(learning, iterations):
        pass
    policy.eval()
    ends = len(train) + np.cumsum([0, *map(len, parts.values())])
    held = {name: np.arange(ends[i], ends[i + 1]) for i, name in enumerate(parts)}
    tests = {name: Parser(corpus, pages, in_order=True) for name, pages in held.items()}
    return {name: compute_uas(parse_batch(policy, test), test.gold)[0] for name, test in tests.items()}


def label_scores(train, parts, seed):
    """Return the share of symbols with the right label, on each part."""
    labels = [symbol for page in train for symbol in page.symbols]
    classes = sorted(set(labels))
    torch.manual_seed(seed)
    inputs = scaled(train)
    wanted = torch.tensor([classes.index(label) for label in labels])
    network = nn.Sequential(
        nn.Linear(inputs.shape[1], HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, len(classes))
    )
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    for epoch in range(EPOCHS):
        optimizer.param_groups[0]["lr"] = 1e-3 * (1 - epoch / EPOCHS)
        for some in torch.randperm(len(inputs)).split(MINIBATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs[some]), wanted[some]).backward()
            optimizer.step()
    network.eval()
    return {name: share_right(network, classes, pages) for name, pages in parts.items()}


def share_right(network, classes, pages):
    """Return the share of correct labels among the symbols of these pages."""
    with torch.no_grad():
        found = network(scaled(pages)).argmax(dim=1).tolist()
    return float(np.mean([classes[i] == s for i, s in zip(found, (s for p in pages for s in p.symbols), strict=True)]))


def scaled(pages):
    """Return the features with HoG scaled like the geometry."""
    features = extract_raw_features(pages)
    features[:, :PIXELS] *= 8
    return torch.from_numpy(features)


def main():
    """Print both scores of every part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crohme", type=Path)
    parser.add_argument("--pages", type=int, default=8000)
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    half = options.pages // 2
    train = generate_pages(half, 2 * options.seed) + generate_pages(
        options.pages - half, 2 * options.seed + 1, structures=False
    )
    parts = real(options.crohme)
    labels = label_scores(train, parts, options.seed)
    trees = parser_scores(train, parts, options.iterations, options.seed)
    for name, pages in parts.items():
        print(f"{name:14} {len(pages):5} pages   UAS {trees[name]:.3f}   labels {labels[name]:.3f}", flush=True)


if __name__ == "__main__":
    main()
