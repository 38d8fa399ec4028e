"""Runs of the task algebra: the loop, folder and repeatability of all other runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aggrevated.config.builder import build_algorithm_inputs
from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import DataError, UsageError
from aggrevated.oracles.entropy_bonus import EntropyBonusOracle
from aggrevated.parsing.dataset import load_dataset
from aggrevated.parsing.learners.kernel import KernelPolicy
from aggrevated.parsing.learners.parser_policies import ParsingPolicy
from aggrevated.parsing.parser import Parser
from aggrevated.parsing.problem import PageEvaluationSettings
from aggrevated.parsing.scoring import evaluate_micro_uas
from aggrevated.storage import digest_tensors
from aggrevated.tasks import algebra
from aggrevated.training.evaluation import evaluate_run
from aggrevated.training.run_folder import Run
from aggrevated.training.trainer import Trainer
from helpers.algebra_runs import make_tiny_config
from helpers.handwriting import crohme_like
from helpers.small_runs import assert_resume_is_bit_identical, create_and_run, fit_run, make_small_config, stop_after


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
def test_algebra_runs_of_every_policy_resume_bit_identically(
    tmp_path: Path, method: str, update: str, given: dict[str, Any]
) -> None:
    """With dropout, an entropy bonus and annealed learning rates where the task has them."""
    config = make_tiny_config(method, update, **given)
    assert_resume_is_bit_identical(tmp_path, config, config.loop.iterations // 2)
    run = Run.open(tmp_path / "whole")
    result = run.result()
    lines = run.metrics()
    assert result is not None
    assert ["test_uas" in line.more for line in lines] == [False, True, False, True][: config.loop.iterations]
    current = [line.current_return for line in lines]
    assert current[0::2] == [
        result.initial_return,
        *current[1:-1:2],
    ]  # iterations without validation repeat the last score
    score = result.more
    assert score["uas_micro"] == score["test_return"] == score["ratio"]
    assert {"uas_macro", "exact_match", "uas_next_head"} <= set(score) and score["expert_return"] == 1.0
    assert (score["pages"], result.iterations) == (2, config.loop.iterations) and 0 <= score["uas_micro"] <= 1
    pages = load_dataset("", 20, 0, False, config.problem.augmented_copies)
    assert score["symbols"] == pages.corpus.lengths[pages.test].sum()
    assert (run.folder / "curve.png").is_file()


def test_algebra_run_learns_from_demonstrations(tmp_path: Path) -> None:
    """Demonstrations alone make it better than the simplest parser in a second, on pages by other writers."""
    start = {"start": "supervised", "start_steps": 60, "demonstrations": 200, "start_learning_rate": 0.01}
    config = make_tiny_config(**start, iterations=1, validate_every=1, hidden=(32,))
    _, result = create_and_run(tmp_path / "run", config)
    random = build_algorithm_inputs(config)
    assert result.best_return > random.problem.validate(random.learner.policy).value + 0.15
    assert result.initial_return > 0.3


def test_evaluate_run_of_algebra_repeats_the_result_and_reads_new_pages(tmp_path: Path) -> None:
    run, result = create_and_run(tmp_path / "run", make_tiny_config())
    policy = Run.open(run.folder).policy
    assert isinstance(policy, ParsingPolicy) and digest_tensors(policy.state_dict()) == result.weights_sha256
    actual = evaluate_run(run, PageEvaluationSettings()).more
    for name in ("uas_micro", "uas_macro", "exact_match", "pages", "symbols", "uas_next_head"):
        assert actual[name] == result.more[name], name
    assert sum(kind["symbols"] for kind in actual["by_symbol"].values()) == result.more["symbols"]
    assert sum(kind["symbols"] for kind in actual["by_arc_length"].values()) == result.more["symbols"]
    right = sum(kind["symbols"] * kind["uas"] for kind in actual["by_arc_length"].values())
    assert right / result.more["symbols"] == pytest.approx(result.more["uas_micro"])
    assert actual["by_arc_length"]["ROOT"]["symbols"] == result.more["pages"]
    real = evaluate_run(run, PageEvaluationSettings(str(crohme_like(tmp_path / "crohme"))))
    assert (real.more["pages"], real.more["symbols"], real.more["by_symbol"]["="]["symbols"]) == (3, 14, 3)
    assert real.weights_sha256 == result.weights_sha256


def test_evaluate_run_on_training_folder_uses_test_pages_only(tmp_path: Path) -> None:
    """A folder without parts is split by writers: eleven of twelve are for training and validation."""
    folder = crohme_like(tmp_path / "crohme") / "train"
    config = make_tiny_config(crohme=str(folder), iterations=1, validate_every=1, augmented_copies=0)
    run, result = create_and_run(tmp_path / "run", config)
    actual = evaluate_run(run, PageEvaluationSettings(str(folder))).more
    score = result.more
    assert (actual["pages"], actual["symbols"], actual["uas_micro"]) == (1, score["symbols"], score["uas_micro"])
    assert (
        evaluate_run(run, PageEvaluationSettings(str(folder.parent))).more["pages"] == 3
    )  # dev/, which the run never used


def test_kernel_run_is_loaded_and_evaluated_as_saved(tmp_path: Path) -> None:
    run, result = create_and_run(tmp_path / "run", make_tiny_config("dagger", policy="kernel-svm", iterations=2))
    policy = run.policy
    assert isinstance(policy, KernelPolicy) and digest_tensors(policy.state_dict()) == result.weights_sha256
    assert evaluate_run(run, PageEvaluationSettings()).more["uas_micro"] == result.more["uas_micro"]


def test_algebra_run_rejects_changed_page_settings_on_resume(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", make_tiny_config())
    stop_after(run, 2)
    for settings in ({"data_seed": 1}, {"generated_pages": 21}, {"augmented_copies": 0}, {"dropout": 0.1}):
        with pytest.raises(DataError, match="changed after the run began"):
            fit_run(replace(run, config=run.config.with_settings(**settings)))


def test_algebra_run_rejects_changed_ink_on_resume(tmp_path: Path) -> None:
    """The config is equal, the files are not."""
    folder = crohme_like(tmp_path / "crohme")
    run = Run.create(tmp_path / "run", make_tiny_config(crohme=str(folder)))
    stop_after(run, 2)
    path = folder / "train" / "000.inkml"
    path.write_text(path.read_text().replace('<trace id="0.0">', '<trace id="0.0">60.5 60.5, ', 1))  # one point more
    load_dataset.cache_clear()  # as in another process
    with pytest.raises(DataError, match="changed after the run began"):
        fit_run(Run.open(run.folder))


def test_algebra_run_keeps_its_annealing_when_extended(tmp_path: Path) -> None:
    config = make_tiny_config(update="regular")
    assert config.update.anneal_iterations == 4  # to the end
    run, _ = create_and_run(tmp_path / "run", config)
    longer = replace(run, config=run.config.with_settings(iterations=6))
    assert fit_run(longer).iterations == 6
    assert json.loads((run.folder / "config.json").read_text())["update"]["anneal_iterations"] == 4


def test_learning_rates_and_entropy_bonus_anneal_as_configured() -> None:
    setup = build_algorithm_inputs(
        make_tiny_config(update="regular", anneal_iterations=10, entropy=0.5, learning_rate=0.1)
    )
    assert isinstance(setup.oracle, EntropyBonusOracle)
    bonus = setup.oracle.bonus
    rate = setup.learner.update.learning_rate
    assert [bonus(n) for n in (1, 6, 11, 99)] == pytest.approx([0.5, 0.275, 0.05, 0.05])
    assert [rate(n) for n in (1, 6, 11, 99)] == pytest.approx([0.1, 0.05, 0.0, 0.0])
    natural = build_algorithm_inputs(
        make_tiny_config(update="natural", anneal_iterations=10, delta_kl=0.2)
    ).learner.update.delta_kl
    assert [natural(n) for n in (1, 6, 11)] == pytest.approx([0.2, 0.1, 0.0])
    fixed = build_algorithm_inputs(
        make_tiny_config(update="regular", anneal_iterations=0, entropy=0.5, learning_rate=0.1)
    )
    assert fixed.oracle.bonus == 0.5 and fixed.learner.update.learning_rate == 0.1
    assert not isinstance(
        build_algorithm_inputs(make_tiny_config(update="regular", entropy=0.0)).oracle, EntropyBonusOracle
    )
    assert not isinstance(
        build_algorithm_inputs(make_tiny_config()).oracle, EntropyBonusOracle
    )  # the default update needs none
    assert not isinstance(
        build_algorithm_inputs(make_small_config()).oracle, EntropyBonusOracle
    )  # control tasks have none of this by default
    assert (
        build_algorithm_inputs(make_small_config("reinforce", learning_rate=0.02)).learner.update.learning_rate == 0.02
    )


def test_use_geometry_adds_geometry_columns_to_the_policy() -> None:
    policies = {
        geometry: build_algorithm_inputs(make_tiny_config(use_geometry=geometry)).learner.policy
        for geometry in (False, True)
    }
    assert [policies[geometry].features.shape[2] for geometry in (False, True)] == [160, 168]
    assert [policy.projection.width for policy in policies.values()] == [160, 168]
    assert build_algorithm_inputs(make_tiny_config()).learner.policy.projection.width == 168  # contextual
    assert (
        build_algorithm_inputs(make_tiny_config(policy="lstm")).learner.policy.projection.width == 160
    )  # as in the paper


def test_algebra_problem_trains_validates_and_tests_on_different_pages() -> None:
    setup = build_algorithm_inputs(make_tiny_config())
    problem = setup.problem
    policy = setup.learner.policy
    pages = load_dataset("", 20, 0, False, 1)
    met = {int(page) for page in problem.simulator.reset(np.arange(500, dtype=np.uint64))[:, 0]}
    assert met == set(pages.train.tolist())
    chosen_on, reported = (Parser(pages.corpus, part, in_order=True) for part in (pages.validation, pages.test))
    expected = [evaluate_micro_uas(policy, part) for part in (chosen_on, reported)]
    assert expected[0] != expected[1]
    assert [problem.validate(policy).value, problem.test(policy).to_dict()["uas_micro"]] == expected
    assert problem.monitor(policy) == {"test_uas": expected[1]} and problem.test(policy).to_dict()["pages"] == 2
    assert problem.validate(problem.expert).value == 1.0


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
def test_run_label_names_method_policy_and_data(given: dict[str, Any], label: str) -> None:
    assert Run(Path("nowhere"), make_tiny_config(**given)).label == label


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
def test_resolve_config_rejects_settings_without_effect_on_algebra(given: dict[str, Any], words: str) -> None:
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
def test_resolve_config_rejects_invalid_algebra_settings(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve_config("algebra", "aggrevated", **given)


def test_algebra_run_rejects_value_function_oracle() -> None:
    words = "value-function needs an expert with the method v, which gold does not have; choose another --oracle"
    with pytest.raises(UsageError, match=words):
        Trainer(make_tiny_config(oracle="value-function")).build()


def test_algebra_run_rejects_too_few_pages() -> None:
    with pytest.raises(UsageError, match="ask for at least 10 sets"):
        Trainer(make_tiny_config(generated_pages=5)).build()


@pytest.mark.parametrize("width", [1, 7])
def test_contextual_policy_rejects_odd_width(width: int) -> None:
    with pytest.raises(UsageError, match="even: half of it reads forward, half backward"):
        make_tiny_config(hidden=(width,))
    setup = build_algorithm_inputs(make_tiny_config(policy="lstm", hidden=(width,)))
    assert 0 <= setup.problem.validate(setup.learner.policy).value <= 1


@pytest.mark.parametrize(
    ("update", "iterations", "every"),
    [
        *(("regular", *row) for row in ((100, 25), (20, 20), (13, 13), (31, 1), (60, 20), (1, 1))),
        *((None, *row) for row in ((100, 5), (20, 5), (13, 1), (12, 4), (4, 4), (1, 1))),
    ],
)
def test_validate_every_divides_iterations_by_default(update: str | None, iterations: int, every: int) -> None:
    """At most as often as the task's setting: every 25 iterations in the paper's rows, every 5 otherwise."""
    assert algebra.STEP_BY_STEP["validate_every"] == 25
    assert resolve_config("algebra", "aggrevated", update=update, iterations=iterations).loop.validate_every == every
    with pytest.raises(UsageError, match="--validate-every is 7, but must be a divisor of the 100 iterations"):
        resolve_config("algebra", "aggrevated", iterations=100, validate_every=7)
