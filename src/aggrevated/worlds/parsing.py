"""Parsing: pages of handwriting, an expert that knows their gold trees, other pages to choose on and to report."""

from __future__ import annotations

from typing import TypeAlias

import torch

from aggrevated.experiments import Task
from aggrevated.parsing.dataset import dataset
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.learners.kernel import KernelPolicy
from aggrevated.parsing.learners.readers import ParsingPolicy
from aggrevated.parsing.parser import Parser
from aggrevated.parsing.scoring import micro, parsed, scores
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.randomness import Purpose, seeds
from aggrevated.runs.config import Config
from aggrevated.worlds import World

Reader: TypeAlias = ParsingPolicy | KernelPolicy


def world(task: Task, config: Config) -> World:
    """The world of a parsing task. What is measured is UAS, so the expert's is 1."""
    pages = dataset(config.crohme, config.sets, config.data_seed, config.single_writer, config.warps)
    system = SYSTEMS[config.system]
    simulator = Parser(pages.corpus, pages.train, system=system)
    chosen_on, reported = (Parser(pages.corpus, part, True, system) for part in (pages.validation, pages.test))
    policy = policy_for(config, pages.projection)
    policy.with_pages(pages.features[:, :, : policy.projection.width], pages.corpus.lengths)
    return World(
        simulator,
        simulator.expert,
        policy,
        validate=lambda policy: micro(policy, chosen_on),
        test=lambda policy: scores(parsed(policy, reported), reported).facts(),
        monitor=lambda policy: {"test_uas": micro(policy, reported)},
        fingerprint={"pages": torch.tensor(list(bytes.fromhex(pages.key)), dtype=torch.uint8)},
    )


def blank_policy(task: Task, config: Config) -> Reader:
    """A policy of that config, to load weights into; it has no pages yet."""
    return policy_for(config, Projection.blank())


def policy_for(config: Config, projection: Projection) -> Reader:
    """The random policy of a config, without pages."""
    projection = projection if config.geometry else projection.without_geometry()
    actions = len(SYSTEMS[config.system].actions)
    if config.policy == "kernel-svm":
        return KernelPolicy(projection, actions)
    return ParsingPolicy(
        projection,
        actions,
        config.policy,
        hidden=config.hidden[0],
        dropout=config.dropout,
        seed=int(seeds(config.seed, Purpose.INITIAL_POLICY, 0, 1)[0] >> 1),  # torch takes signed seeds
    )
