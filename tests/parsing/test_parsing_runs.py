"""Runs of the task algebra: the same loop, folder and bits as all others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import assert_the_same_bits_after_stops, finished, small, stop_after

from aggrevated.config import Config
from aggrevated.config.builder import build_algorithm_inputs
from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import DataError, UsageError
from aggrevated.oracles.entropy_bonus import EntropyBonusOracle
from aggrevated.parsing.dataset import dataset
from aggrevated.parsing.learners.kernel import KernelPolicy
from aggrevated.parsing.learners.parser_policies import ParsingPolicy
from aggrevated.parsing.pages.handwriting import write_page
from aggrevated.parsing.parser import Parser
from aggrevated.parsing.problem import PageEvaluationSettings
from aggrevated.parsing.scoring import micro_uas
from aggrevated.storage import digest_tensors
from aggrevated.tasks import algebra
from aggrevated.training.evaluation import evaluate_run
from aggrevated.training.run_folder import Run
from aggrevated.training.trainer import run_to_end
from aggrevated_experiments.figures import config_of
from aggrevated_experiments.parsing.table1 import pages_after
from aggrevated_reader.pages_report import ParsedPage, arcs_of, frames_of, of_run, some
from aggrevated_reader.pictures.segmentation import SegmentedPage
from helpers.handwriting import crohme_like

TINY: dict[str, Any] = {
    "generated_pages": 20,
    "augmented_copies": 1,
    "iterations": 4,
    "trajectories": 3,
    "validate_every": 2,
}
TINY |= {"checkpoint_every": 1, "hidden": (8,)}
START = {"start_steps": 3, "demonstrations": 4}


def tiny(method: str = "aggrevated", update: str | None = None, **given: Any) -> Config:
    """The config of a run of a second, without what would have no effect on it."""
    chosen = {name: given[name] for name in ("policy", "start") if name in given}
    start = START if resolve_config("algebra", method, update=update, **chosen).start.name == "supervised" else {}
    settings = {**TINY, **start, **given}
    if "crohme" in given:
        settings.pop("generated_pages")
    if given.get("policy") == "kernel-svm":
        settings.pop("hidden")
    return resolve_config("algebra", method, update=update, **settings)


@pytest.mark.parametrize(
    ("method", "update", "given"),
    [
        ("aggrevated", "regular", {"policy": "contextual"}),
        ("aggrevated", "regular", {"policy": "lstm", "transition_system": "arc-hybrid"}),
        ("aggrevated", "regular", {"policy": "reactive"}),
        ("aggrevated", "natural", {"policy": "lstm"}),
        ("aggrevated", "exponentiated", {"policy": "contextual"}),
        ("aggrevated", "exponentiated", {"policy": "reactive", "oracle": "monte-carlo"}),
        ("aggrevated", "regular", {"policy": "contextual", "oracle": "monte-carlo", "query_steps": 2}),
        ("dagger", "follow-the-leader", {"policy": "reactive", "trajectories": 1, "iterations": 2}),
        ("dagger", "support-vectors", {"policy": "kernel-svm", "alpha_decay": 0.5}),
        ("sl-rl", "natural", {"policy": "reactive"}),
    ],
    ids=str,
)
def test_every_policy_runs_and_resumes_with_the_same_bits(
    tmp_path: Path, method: str, update: str, given: dict[str, Any]
) -> None:
    """With dropout, an entropy bonus and falling rates where the task has them."""
    config = tiny(method, update, **given)
    assert_the_same_bits_after_stops(tmp_path, config, config.loop.iterations // 2)
    run = Run.open(tmp_path / "whole")
    result = run.result()
    lines = run.metrics()
    assert result is not None
    assert ["test_uas" in line.more for line in lines] == [False, True, False, True][: config.loop.iterations]
    current = [line.current_return for line in lines]
    assert current[0::2] == [result.initial_return, *current[1:-1:2]]  # between validations that of the last
    score = result.more
    assert score["uas_micro"] == score["test_return"] == score["ratio"]
    assert {"uas_macro", "exact_match", "uas_next_head"} <= set(score) and score["expert_return"] == 1.0
    assert (score["pages"], result.iterations) == (2, config.loop.iterations) and 0 <= score["uas_micro"] <= 1
    pages = dataset("", 20, 0, False, config.problem.augmented_copies)
    assert score["symbols"] == pages.corpus.lengths[pages.test].sum()
    assert (run.folder / "curve.png").is_file()


def test_it_learns(tmp_path: Path) -> None:
    """From demonstrations alone: better than the simplest parser in a second, on pages by others."""
    start = {"start": "supervised", "start_steps": 60, "demonstrations": 200, "start_learning_rate": 0.01}
    config = tiny(**start, iterations=1, validate_every=1, hidden=(32,))
    _, result = finished(tmp_path / "run", config)
    random = build_algorithm_inputs(config)
    assert result.best_return > random.problem.validate(random.learner.policy) + 0.15
    assert result.initial_return > 0.3


def test_the_policy_of_a_run_reads_pages_that_it_never_saw(tmp_path: Path) -> None:
    run, result = finished(tmp_path / "run", tiny())
    policy = Run.open(run.folder).policy
    assert isinstance(policy, ParsingPolicy) and digest_tensors(policy.state_dict()) == result.weights_sha256
    found = evaluate_run(run, PageEvaluationSettings()).more
    for name in ("uas_micro", "uas_macro", "exact_match", "pages", "symbols", "uas_next_head"):
        assert found[name] == result.more[name], name
    assert sum(kind["symbols"] for kind in found["by_symbol"].values()) == result.more["symbols"]
    assert sum(kind["symbols"] for kind in found["by_arc_length"].values()) == result.more["symbols"]
    right = sum(kind["symbols"] * kind["uas"] for kind in found["by_arc_length"].values())
    assert right / result.more["symbols"] == pytest.approx(result.more["uas_micro"])
    assert found["by_arc_length"]["ROOT"]["symbols"] == result.more["pages"]
    real = evaluate_run(run, PageEvaluationSettings(str(crohme_like(tmp_path / "crohme"))))
    assert (real.more["pages"], real.more["symbols"], real.more["by_symbol"]["="]["symbols"]) == (3, 14, 3)
    assert real.weights_sha256 == result.weights_sha256


def test_on_the_folder_that_it_learned_from_only_the_test_pages_are_evaluated(tmp_path: Path) -> None:
    """A folder without parts is split by writers: eleven of twelve were for training and validation."""
    folder = crohme_like(tmp_path / "crohme") / "train"
    config = tiny(crohme=str(folder), iterations=1, validate_every=1, augmented_copies=0)
    run, result = finished(tmp_path / "run", config)
    found = evaluate_run(run, PageEvaluationSettings(str(folder))).more
    score = result.more
    assert (found["pages"], found["symbols"], found["uas_micro"]) == (1, score["symbols"], score["uas_micro"])
    assert evaluate_run(run, PageEvaluationSettings(str(folder.parent))).more["pages"] == 3  # dev/, which it never saw


def test_a_kernel_machine_is_loaded_and_evaluated_as_it_was_saved(tmp_path: Path) -> None:
    run, result = finished(tmp_path / "run", tiny("dagger", policy="kernel-svm", iterations=2))
    policy = run.policy
    assert isinstance(policy, KernelPolicy) and digest_tensors(policy.state_dict()) == result.weights_sha256
    assert evaluate_run(run, PageEvaluationSettings()).more["uas_micro"] == result.more["uas_micro"]


def test_a_page_is_parsed_step_by_step(tmp_path: Path) -> None:
    run, _ = finished(tmp_path / "run", tiny(iterations=1, validate_every=1))
    page = write_page(["x=3+a", "a=2"], 5, 0)
    reads = of_run(run).reads
    heads = reads.read([page])[0].heads.tolist()
    frames = frames_of(*reads.parser_of(page))
    assert len(heads) == 8 and all(0 <= head <= 8 and head != number for number, head in enumerate(heads, 1))
    assert frames[0][3] == "start" and frames[0][1] == [0] and frames[0][2] == 1 and (frames[0][0] == -1).all()
    assert frames[-1][2] == 9 and all(int(head) in (-1, own) for head, own in zip(frames[-1][0], heads, strict=True))
    assert [len(some(frames, count)) for count in (1, 3, 6)] == [1, 3, 6] and some(frames, 1) == [frames[-1]]
    assert some(frames[:2])[-1] is frames[1]
    lines = arcs_of(ParsedPage(Path("page"), SegmentedPage(page), reads.read([page])[0]))
    assert len(lines) == 8 and lines[0].split()[:2] == ["1", "x"] and lines[0].split()[3] == str(heads[0])


def test_symbols_that_were_left_without_a_head_depend_on_the_first_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a policy that only shifts."""
    config = tiny()
    policy = build_algorithm_inputs(config).learner.policy
    with torch.no_grad():
        policy.readout.weight.zero_()
        policy.readout.bias.copy_(torch.tensor([5.0, 0.0, 0.0, 0.0]))
    monkeypatch.setattr(Run, "policy", policy)
    reads = of_run(Run(tmp_path, config)).reads
    page = write_page(["x=3"], 5, 0)
    heads = reads.read([page])[0].heads.tolist()
    frames = frames_of(*reads.parser_of(page))
    assert heads == [0, 1, 1] and [frame[3] for frame in frames] == ["start", "shift", "shift", "shift"]
    assert frames[-1][0].tolist() == [-1, -1, -1]


def test_other_pages_are_another_run(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", tiny())
    stop_after(run, 2)
    for settings in ({"data_seed": 1}, {"generated_pages": 21}, {"augmented_copies": 0}, {"dropout": 0.1}):
        with pytest.raises(DataError, match="changed after the run began"):
            run_to_end(replace(run, config=run.config.with_settings(**settings)))


def test_real_ink_that_changed_is_refused(tmp_path: Path) -> None:
    """The config is the same, the files are not."""
    folder = crohme_like(tmp_path / "crohme")
    run = Run.create(tmp_path / "run", tiny(crohme=str(folder)))
    stop_after(run, 2)
    path = folder / "train" / "000.inkml"
    path.write_text(path.read_text().replace('<trace id="0.0">', '<trace id="0.0">60.5 60.5, ', 1))  # one point more
    dataset.cache_clear()  # as in another process
    with pytest.raises(DataError, match="changed after the run began"):
        run_to_end(Run.open(run.folder))


def test_more_iterations_do_not_change_how_the_rates_fall(tmp_path: Path) -> None:
    config = tiny(update="regular")
    assert config.update.anneal_iterations == 4  # to the end
    run, _ = finished(tmp_path / "run", config)
    longer = replace(run, config=run.config.with_settings(iterations=6))
    assert run_to_end(longer).iterations == 6
    assert json.loads((run.folder / "config.json").read_text())["update"]["anneal_iterations"] == 4


def test_rates_and_bonus_fall_as_the_config_says() -> None:
    setup = build_algorithm_inputs(tiny(update="regular", anneal_iterations=10, entropy=0.5, learning_rate=0.1))
    assert isinstance(setup.oracle, EntropyBonusOracle)
    bonus = setup.oracle.bonus
    rate = setup.learner.update.learning_rate
    assert [bonus(n) for n in (1, 6, 11, 99)] == pytest.approx([0.5, 0.275, 0.05, 0.05])
    assert [rate(n) for n in (1, 6, 11, 99)] == pytest.approx([0.1, 0.05, 0.0, 0.0])
    natural = build_algorithm_inputs(tiny(update="natural", anneal_iterations=10, delta_kl=0.2)).learner.update.delta_kl
    assert [natural(n) for n in (1, 6, 11)] == pytest.approx([0.2, 0.1, 0.0])
    fixed = build_algorithm_inputs(tiny(update="regular", anneal_iterations=0, entropy=0.5, learning_rate=0.1))
    assert fixed.oracle.entropy_bonus == 0.5 and fixed.learner.update.learning_rate == 0.1
    assert not isinstance(build_algorithm_inputs(tiny(update="regular", entropy=0.0)).oracle, EntropyBonusOracle)
    assert not isinstance(build_algorithm_inputs(tiny()).oracle, EntropyBonusOracle)  # the usual update needs none
    assert not isinstance(
        build_algorithm_inputs(small()).oracle, EntropyBonusOracle
    )  # nor has control any of this, unless it is asked for
    assert build_algorithm_inputs(small("reinforce", learning_rate=0.02)).learner.update.learning_rate == 0.02


def test_the_policy_is_told_the_geometry_or_is_not() -> None:
    policies = {
        geometry: build_algorithm_inputs(tiny(use_geometry=geometry)).learner.policy for geometry in (False, True)
    }
    assert [policies[geometry].features.shape[2] for geometry in (False, True)] == [160, 168]
    assert [policy.projection.width for policy in policies.values()] == [160, 168]
    assert build_algorithm_inputs(tiny()).learner.policy.projection.width == 168  # contextual
    assert build_algorithm_inputs(tiny(policy="lstm")).learner.policy.projection.width == 160  # as in the paper


def test_the_world_learns_chooses_and_reports_on_different_pages() -> None:
    setup = build_algorithm_inputs(tiny())
    world = setup.problem
    policy = setup.learner.policy
    pages = dataset("", 20, 0, False, 1)
    met = {int(page) for page in world.simulator.reset(np.arange(500, dtype=np.uint64))[:, 0]}
    assert met == set(pages.train.tolist())
    chosen_on, reported = (Parser(pages.corpus, part, in_order=True) for part in (pages.validation, pages.test))
    expected = [micro_uas(policy, part) for part in (chosen_on, reported)]
    assert expected[0] != expected[1]
    assert [world.validate(policy), world.test(policy).to_dict()["uas_micro"]] == expected
    assert world.monitor(policy) == {"test_uas": expected[1]} and world.test(policy).to_dict()["pages"] == 2
    assert world.validate(world.expert) == 1.0


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ({}, "AggreVaTeD, exponentiated, contextual"),
        ({"start": "supervised"}, "AggreVaTeD, exponentiated, contextual, supervised start"),
        ({"update": "regular"}, "AggreVaTeD, regular, contextual"),
        ({"update": "regular", "policy": "lstm"}, "AggreVaTeD, regular, lstm"),
        ({"update": "regular", "single_writer": True}, "AggreVaTeD, regular, contextual, one writer"),
        ({"update": "regular", "crohme": "ink"}, "AggreVaTeD, regular, contextual, real ink"),
        ({"update": "regular", "start": "random"}, "AggreVaTeD, regular, contextual, random start"),
    ],
)
def test_what_a_legend_calls_it(given: dict[str, Any], label: str) -> None:
    assert Run(Path("nowhere"), tiny(**given)).label == label


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"horizon": 5}, "--horizon has no effect on algebra"),
        ({"validation_episodes": 5}, "--validation-episodes has no effect on algebra"),
        ({"expert": "gold"}, "--expert has no effect on algebra"),
        ({"crohme": "ink", "generated_pages": 20}, "--generated-pages has no effect on real ink"),
        ({"update": "natural", "learning_rate": 0.1}, "--learning-rate has no effect on the update natural"),
    ],
)
def test_settings_without_an_effect_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve_config("algebra", "aggrevated", **given)
    for name in ("dropout", "augmented_copies", "generated_pages", "data_seed"):
        with pytest.raises(UsageError, match="has no effect on cartpole"):
            resolve_config("cartpole", "aggrevated", **{name: 1})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dropout": 1.0}, "--dropout is 1.0, but must be 0 or more, and below 1"),
        ({"augmented_copies": -1}, "--augmented-copies is -1, but must be 0 or more"),
        ({"update": "regular", "entropy": -0.1}, "--entropy is -0.1, but must be 0 or more"),
        (
            {"transition_system": "arc-lazy"},
            "--transition-system is arc-lazy, but must be one of arc-eager, arc-hybrid",
        ),
        ({"hidden": (8, 8)}, "one width for the policy contextual"),
        ({"policy": "gru"}, "unknown policy 'gru'"),
        ({"validate_every": 0}, "--validate-every is 0, but must be at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve_config("algebra", "aggrevated", **given)


def test_an_expert_without_a_critic_cannot_be_asked_for_its_values(tmp_path: Path) -> None:
    words = "value-function asks an expert by its method v, which gold does not have; choose another --oracle"
    with pytest.raises(UsageError, match=words):
        Run.create(tmp_path / "run", tiny(oracle="value-function"))
    assert not (tmp_path / "run").exists()


def test_too_few_sets_are_refused_before_there_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ask for at least 10 sets"):
        Run.create(tmp_path / "run", tiny(generated_pages=5))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("width", [1, 7])
def test_an_odd_width_cannot_read_in_both_directions(width: int) -> None:
    with pytest.raises(UsageError, match="even: half of it reads forwards, half backwards"):
        tiny(hidden=(width,))
    setup = build_algorithm_inputs(tiny(policy="lstm", hidden=(width,)))
    assert 0 <= setup.problem.validate(setup.learner.policy) <= 1


@pytest.mark.parametrize(
    ("update", "iterations", "every"),
    [
        *(("regular", *row) for row in ((100, 25), (20, 20), (13, 13), (31, 1), (60, 20), (1, 1))),
        *((None, *row) for row in ((100, 5), (20, 5), (13, 1), (12, 4), (4, 4), (1, 1))),
    ],
)
def test_the_last_policy_is_validated_unless_asked_otherwise(update: str | None, iterations: int, every: int) -> None:
    """As rarely as the task says, or a little more often: every 25 iterations in the paper's rows, every 5 usually."""
    assert algebra.STEP_BY_STEP["validate_every"] == 25
    assert resolve_config("algebra", "aggrevated", update=update, iterations=iterations).loop.validate_every == every
    with pytest.raises(UsageError, match="--validate-every is 7, but must be a divisor of the 100 iterations"):
        resolve_config("algebra", "aggrevated", iterations=100, validate_every=7)


@pytest.mark.parametrize("quick", [False, True])
def test_every_row_of_the_tables_can_be_resolved(quick: bool) -> None:
    for row in (*algebra.TABLE1, *algebra.CURVES, *algebra.REAL_INK):
        config, usual = (config_of(algebra.TASK, row, shorter) for shorter in (quick, False))
        assert (config.method, config.update.name, config.policy.name) == (row.method, row.update, row.policy)
        assert config.loop.iterations == (max(1, usual.loop.iterations // 5) if quick else usual.loop.iterations)
        open_still = {"oracle", "anneal_iterations", *(["iterations"] if quick else [])}
        given = {name: value for name, value in row.settings.items() if name not in open_still}
        assert given.items() <= config.settings.items()
    assert [row.paper_value for row in algebra.CURVES[:2]] == [0.924, 0.915]
    assert all(row in algebra.TABLE1 for row in algebra.CURVES)  # whose runs they use
    assert all(row in algebra.TABLE1 and not changes[0] for row, changes in algebra.TUNING)


def test_table1_is_even_handed() -> None:
    """All networks see as many pages, those with a start have the same, and what follows costs has the same bonus."""
    configs = [config_of(algebra.TASK, row, quick=False) for row in algebra.TABLE1]
    networks = [config for config in configs if config.policy.name != "kernel-svm"]
    assert {pages_after(config, config.loop.iterations) for config in networks} == {6400}
    assert {config.loop.validate_every * config.loop.trajectories for config in networks} == {320}
    starts = {(config.policy.name, config.start) for config in networks if config.start.name != "random"}
    assert len(starts) == 3 and {start.name for _, start in starts} == {"supervised"}
    for config in networks:
        assert config.loss.entropy == (0.0 if config.update.name == "exponentiated" or is_likelihood(config) else 0.4)
        assert config.oracle.name == ("critic" if not config.method_spec.queries_expert else config.oracle.name)
        assert getattr(config.update, "anneal_iterations", None) == config.loop.iterations
    assert [(c.method, c.policy.name) for c in networks if c.start.name == "random"] == [
        *((method, "lstm") for method in ("aggrevated", "reinforce", "tnpg")),
        *((method, "reactive") for method in ("reinforce", "tnpg")),
    ]


def is_likelihood(config: Config) -> bool:
    return config.loss.name == "likelihood"
