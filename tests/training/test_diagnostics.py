"""Stalled learning is reported, and learning that improves or has converged is not."""

import math
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete

from aggrevated import train
from aggrevated.algorithm import Learner, aggrevated
from aggrevated.cli import main
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.oracles import CostToGo
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle
from aggrevated.oracles.monte_carlo import MonteCarloOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.oracles.zero_one import ZeroOneOracle
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.starts.random import RandomStartSettings
from aggrevated.training.diagnostics import (
    CONFIDENTLY_WRONG,
    GRADIENT_VANISHED,
    MIN_STREAK,
    REMEDY,
    STEPS_SHORTENED,
    MistakeStats,
    TrainingMonitor,
    UpdateWithDiagnostics,
    compute_mistake_stats,
)
from aggrevated.training.records import Metrics
from aggrevated.training.run_folder import Run
from aggrevated.updates import Update, UpdateResult
from aggrevated.updates.exponentiated import ExponentiatedUpdate
from aggrevated.updates.natural import NaturalUpdate
from aggrevated.updates.regular import RegularUpdate
from aggrevated.updates.safe_step import MAX_HALVINGS
from helpers.small_runs import fit_run
from helpers.tiny_mdp import (
    EXPERT,
    Array,
    TinyExpert,
    TinyMdp,
    Walk,
    flat,
    linear_policy,
    random_policy,
    random_trajectories,
    with_vectors,
)

ADVANTAGE = AdvantageOracle(QStarOracle(TinyExpert()))
WORST = np.array([0, 2, 1])  # at the last step, and close to the worst before


def make_confident_policy(actions: Array, logit: float = 20.0) -> Any:
    """Return a policy of the tiny MDP that takes these actions with high probability."""
    policy = linear_policy(None).float()
    with torch.no_grad():
        policy.network[0].weight.copy_(logit * torch.eye(3)[torch.from_numpy(actions)].T)
    return policy


def make_full_trajectory() -> Trajectories:
    """Return one trajectory through the three states of the tiny MDP with action 0 at each step."""
    states = np.array([[[0, 0, 0], [1, 0, 0], [2, 0, 0]]])
    seen = np.eye(3, dtype=np.float32)[None]
    steps = np.ones((1, 3), bool)
    return Trajectories(states, seen, np.zeros((1, 3), int), np.zeros((1, 3)), steps, ~steps, 3)


def make_costs(values: list[Any], **known: Any) -> CostToGo:
    """Return the costs of one trajectory with a query at every step."""
    costs = np.array([values], np.float32)
    return CostToGo(costs, np.ones(costs.shape[:2], np.float32), **known)


def test_mistake_stats_of_all_actions_match_hand_computed_values() -> None:
    """A* is 0, 3 and 0 at the first state and 0 elsewhere except for two values of 1: its RMS is √(11/9) = 1.1."""
    costs = make_costs([[5.0, 8.0, 5.0], [1.0, 2.0, 1.0], [0.0, 1.0, 0.0]])
    found = compute_mistake_stats(make_confident_policy(np.array([1, 1, 0])), make_full_trajectory(), costs)
    assert found.confident_error_rate == pytest.approx(1 / 3)  # the mistake at the second state costs less than the RMS
    assert found[1:] == pytest.approx(((3 + 1 + 0) / 3, math.sqrt(11 / 9)))
    assert compute_mistake_stats(make_confident_policy(np.array([2, 0, 0])), make_full_trajectory(), costs)[0] == 0.0
    unsure = compute_mistake_stats(
        make_confident_policy(np.array([1, 1, 0]), logit=2.0), make_full_trajectory(), costs
    )  # probability 0.79
    assert unsure.confident_error_rate == 0.0 and unsure.mean_advantage is not None and unsure.mean_advantage > 0.5


def test_mistake_stats_ignore_masked_actions() -> None:
    costs = make_costs([[0.0, 3.0, 3.0], [0.0, 1.0, 2.0], [0.0, 9.0, 1.0]])
    legal = np.array([[[False, True, True], [True, True, False], [True, False, True]]])
    restricted = replace(make_full_trajectory(), action_mask=legal)
    found = compute_mistake_stats(make_confident_policy(np.array([1, 1, 2])), restricted, costs)
    assert found.confident_error_rate == pytest.approx(2 / 3)  # at the first state no legal action is better than 3
    assert found[1:] == pytest.approx((2 / 3, math.sqrt(2 / 6)))


def test_mistake_stats_of_taken_actions_count_positive_advantages_only() -> None:
    costs = make_costs([2.0, -2.0, 0.0], advantage=True)
    found = compute_mistake_stats(make_confident_policy(np.array([0, 0, 0])), make_full_trajectory(), costs)
    assert found.confident_error_rate == pytest.approx(1 / 3)
    assert found[1:] == pytest.approx((2 / 3, math.sqrt(8 / 3)))
    assert (
        compute_mistake_stats(
            make_confident_policy(np.array([1, 1, 1])), make_full_trajectory(), costs
        ).confident_error_rate
        == 0.0
    )  # confident in another action
    partly = replace(costs, weight=np.array([[0.0, 1.0, 1.0]], np.float32))
    assert compute_mistake_stats(make_confident_policy(np.array([0, 0, 0])), make_full_trajectory(), partly) == (
        0.0,
        0.0,
        math.sqrt(2),
    )  # no action is worse


def test_mistake_stats_are_none_where_feedback_does_not_tell() -> None:
    policy = make_confident_policy(EXPERT)
    trajectories = make_full_trajectory()
    assert (
        compute_mistake_stats(policy, trajectories, make_costs([2.0, -2.0, 0.0])) == MistakeStats()
    )  # Q of the taken action
    assert compute_mistake_stats(policy, trajectories, make_costs([0.0, 0.0, 0.0])) == (
        None,
        0.0,
        0.0,
    )  # nothing to learn from
    gaussian = random_policy(Walk(), "mlp", (4,), seed=0)
    vectors = with_vectors(replace(random_trajectories(3, 3, 1, dtype=np.float32), horizon=30), 2)
    costs = CostToGo(np.ones((3, 3), np.float32), vectors.mask.astype(np.float32), advantage=True)
    assert compute_mistake_stats(gaussian, vectors, costs) == (None, 1.0, 1.0)
    assert compute_mistake_stats(gaussian, vectors, replace(costs, expert_actions=vectors.actions)) == (
        None,
        1.0,
        1.0,
    )  # costs and expert actions
    none_lost = replace(costs, values=np.zeros_like(costs.values), expert_actions=vectors.actions)
    assert compute_mistake_stats(gaussian, vectors, none_lost) == (None, 0.0, 0.0)  # A* where it was queried
    assert (
        compute_mistake_stats(gaussian, vectors, replace(none_lost, advantage=False)) == MistakeStats()
    )  # expert actions only
    assert (
        compute_mistake_stats(policy, trajectories, replace(make_costs([1.0, 1.0, 1.0]), weight=np.zeros((1, 3))))
        == MistakeStats()
    )


def test_cost_to_go_says_whether_it_is_an_advantage() -> None:
    trajectories = roll_in(
        TinyMdp(), RollInPolicy(None, make_confident_policy(WORST).actor()), np.arange(16, dtype=np.uint64)
    )
    assert not QStarOracle(TinyExpert())(trajectories).advantage and ADVANTAGE(trajectories).advantage
    assert (
        TakenActionOracle(ADVANTAGE)(trajectories).advantage
        and not TakenActionOracle(QStarOracle(TinyExpert()))(trajectories).advantage
    )
    assert not AdvantageOracle(RewardToGoOracle())(trajectories).advantage  # over other actions, not over π*
    for advantage in (True, False):
        assert MonteCarloOracle(TinyMdp(), TinyExpert(), advantage=advantage)(trajectories).advantage == advantage


def make_line(**changes: Any) -> Any:
    """Return metrics of a healthy iteration with these changes."""
    healthy = {"roll_in_return": 0.0, "best_return": 0.0, "gradient_norm": 1.0, "step_halvings": 0}
    return SimpleNamespace(
        **{**healthy, "confident_error_rate": 0.0, "mean_advantage": 2.0, "advantage_rms": 4.0, **changes}
    )


SIGNS = {
    STEPS_SHORTENED: {"step_halvings": MAX_HALVINGS},
    GRADIENT_VANISHED: {"gradient_norm": 6e-23},
    CONFIDENTLY_WRONG: {"confident_error_rate": 0.3},
}


@pytest.mark.parametrize("reason", SIGNS)
def test_training_monitor_reports_a_lasting_sign_once(reason: str) -> None:
    health = TrainingMonitor()
    sick = make_line(**SIGNS[reason])
    assert [health.observe(one) for one in [make_line(), *[sick] * (MIN_STREAK - 1), make_line(), sick]] == [""] * (
        MIN_STREAK + 2
    )
    assert health.pop_new_warnings() == []
    assert [health.observe(sick) for _ in range(3)] == ["", reason, reason]
    (sentence,) = health.pop_new_warnings()
    assert reason in sentence and REMEDY in sentence and health.pop_new_warnings() == []
    assert health.observe(make_line()) == "" and [health.observe(sick) for _ in range(3)][-1] == reason
    assert health.pop_new_warnings() == []


@pytest.mark.parametrize("reason", SIGNS)
def test_training_monitor_reports_nothing_when_little_is_left_to_learn(reason: str) -> None:
    health = TrainingMonitor.replay([make_line()])
    arrived = make_line(**SIGNS[reason], mean_advantage=0.03)
    assert [health.observe(arrived) for _ in range(9)] == [""] * 9
    unknown = make_line(**SIGNS[reason], mean_advantage=None, advantage_rms=None)
    assert [health.observe(unknown) for _ in range(9)][-1] == ("" if reason == CONFIDENTLY_WRONG else reason)


def test_training_monitor_counts_a_non_finite_gradient_as_vanished() -> None:
    health = TrainingMonitor.replay([make_line(gradient_norm=math.inf), make_line(gradient_norm=math.nan)])
    assert health.observe(make_line(gradient_norm=math.inf)) == GRADIENT_VANISHED
    assert health.observe(make_line(gradient_norm=1e-9)) == ""  # the first step that is too small


def test_training_monitor_reports_nothing_while_the_return_improves() -> None:
    health = TrainingMonitor()
    assert [health.observe(make_line(confident_error_rate=0.5, best_return=float(n))) for n in range(9)] == [""] * 9
    assert [health.observe(make_line(confident_error_rate=0.5, roll_in_return=float(n))) for n in range(9)] == [""] * 9
    assert [health.observe(make_line(confident_error_rate=0.09)) for _ in range(9)] == [""] * 9


def test_training_monitor_accepts_disagreement_where_action_gaps_are_small() -> None:
    """A CartPole policy that never falls: A* is a hundredth of its value while the pole was falling."""
    health = TrainingMonitor.replay([make_line()])
    assert [
        health.observe(make_line(confident_error_rate=0.3, mean_advantage=0.05, advantage_rms=0.1)) for _ in range(9)
    ] == [""] * 9


def test_training_monitor_joins_all_reasons_and_replays_from_metrics() -> None:
    dead = make_line(step_halvings=MAX_HALVINGS, gradient_norm=0.0, confident_error_rate=1.0)
    lines = [make_line(), dead, dead, dead]
    health = TrainingMonitor()
    assert [health.observe(one) for one in lines][-1] == f"{STEPS_SHORTENED}, {GRADIENT_VANISHED}, {CONFIDENTLY_WRONG}"
    assert len(health.pop_new_warnings()) == 3
    assert TrainingMonitor.replay(lines) == health


def diagnose_learning(
    update: Update, policy: Any, oracle: Any = ADVANTAGE, loss: Any = all_actions_loss, n: int = 5
) -> list[str]:
    """Return what the monitor reports for each iteration on the tiny MDP."""
    learner = Learner(policy, UpdateWithDiagnostics(update))
    health = TrainingMonitor()
    iterations = islice(aggrevated(learner, TinyMdp(), TinyExpert(), oracle, loss, k=20, validation_episodes=16), n)
    return [health.observe(SimpleNamespace(**asdict(one), **asdict(one.step))) for one in iterations]


def test_training_monitor_reports_a_confidently_wrong_initial_policy() -> None:
    assert diagnose_learning(RegularUpdate(), make_confident_policy(WORST, 40.0), n=9)[-3:] == [
        CONFIDENTLY_WRONG,
        CONFIDENTLY_WRONG,
        CONFIDENTLY_WRONG,
    ]


@dataclass
class PolicyRuiningUpdate:
    """Update that learns, and from the third iteration on makes the policy prefer the worst actions."""

    inner: Update
    n: int = 0

    def __call__(self, policy: Any, *rest: Any) -> UpdateResult:
        self.n += 1
        step = self.inner(policy, *rest)
        if self.n > 2:
            policy.load_state_dict(make_confident_policy(WORST, 40.0).state_dict())
        return step


def test_training_monitor_reports_a_vanished_gradient() -> None:
    assert (
        diagnose_learning(PolicyRuiningUpdate(RegularUpdate()), linear_policy(None).float(), n=7)[-1]
        == f"{GRADIENT_VANISHED}, {CONFIDENTLY_WRONG}"
    )  # type: ignore[arg-type]


def test_training_monitor_reports_steps_shortened_to_nothing() -> None:
    broken = NaturalUpdate(
        solver=lambda s, gradient, damping: torch.full_like(gradient, torch.nan, dtype=torch.float64)
    )
    assert diagnose_learning(broken, linear_policy(None).float()) == [
        "",
        "",
        STEPS_SHORTENED,
        STEPS_SHORTENED,
        STEPS_SHORTENED,
    ]


@pytest.mark.parametrize(
    ("update", "oracle", "loss"),
    [
        (RegularUpdate(0.5), ADVANTAGE, all_actions_loss),
        (RegularUpdate(0.5), QStarOracle(TinyExpert()), all_actions_loss),
        (RegularUpdate(0.5), ZeroOneOracle(TinyExpert(), Discrete(3)), best_action_nll_loss),
        (NaturalUpdate(delta_kl=0.1), ADVANTAGE, all_actions_loss),
        (ExponentiatedUpdate(5.0), ADVANTAGE, all_actions_loss),
        (ExponentiatedUpdate(), ADVANTAGE, all_actions_loss),
        (ExponentiatedUpdate(), QStarOracle(TinyExpert()), all_actions_loss),
    ],
)
def test_training_monitor_reports_nothing_on_a_converged_table(update: Update, oracle: Any, loss: Any) -> None:
    policy = linear_policy(None).float()
    assert diagnose_learning(update, policy, oracle, loss, n=150) == [""] * 150
    assert (policy.predict(np.eye(3, dtype=np.float32), deterministic=True)[0] == EXPERT).all()


def test_update_with_diagnostics_changes_no_weights_and_no_state() -> None:
    policies = [linear_policy(1).float() for _ in range(2)]
    bare = RegularUpdate(0.1)
    examined = UpdateWithDiagnostics(RegularUpdate(0.1))
    for policy, update in zip(policies, (bare, examined), strict=True):
        diagnose_learning(update, policy, n=3)
    np.testing.assert_array_equal(flat(policies[0]), flat(policies[1]))
    assert all(torch.equal(w, examined.state()[name]) for name, w in bare.state().items())
    fresh = UpdateWithDiagnostics(RegularUpdate(0.1))
    fresh.restore(bare.state())
    assert all(torch.equal(w, fresh.update.state()[name]) for name, w in bare.state().items())


FEW = {"trajectories": 6, "horizon": 60, "validation_episodes": 5, "test_episodes": 5, "checkpoint_every": 2}


@pytest.mark.parametrize("method", ["aggrevated", "dagger", "reinforce"])
def test_healthy_run_has_no_stalled_iterations(tmp_path: Path, method: str) -> None:
    run = train("cartpole", method, out=tmp_path / "run", iterations=10, trajectories=20, test_episodes=5)
    assert {line.stalled_reason for line in run.metrics()} == {""}  # and no warning, which would be an error here
    result = run.result()
    assert result is not None and result.stalled_iterations == 0


def test_run_with_few_queries_is_not_reported_as_stalled(tmp_path: Path) -> None:
    """One state of each roll-in is queried, mostly where the taken action costs nothing; expert actions still teach."""
    few = {"iterations": 15, "trajectories": 1, "query_steps": 1, "all_actions": False, "horizon": 60}
    way = [1, 2, 1, 0, 1, 0, 1, 0, 2, 1, 1, 0, 0, 2, 2, 0]
    run = train(
        "FrozenLake-v1", expert=lambda place: way[place], out=tmp_path / "run", say=lambda _: None,
        environment_options='{"is_slippery": false}', validation_episodes=5, test_episodes=5, **few,
    )  # fmt: skip
    lines = run.metrics()
    flat = [line.gradient_norm == 0.0 for line in lines]
    assert any(all(flat[i : i + MIN_STREAK]) for i in range(len(flat) - MIN_STREAK + 1))  # looks like stalled learning
    assert {line.stalled_reason for line in lines} == {""}


def make_policy_prefer_left(self: Any, policy: Any, *rest: Any) -> tuple[int, int]:
    """A start that makes the policy confident, and wrong in half of all states."""
    with torch.no_grad():
        policy.network[-1].bias.copy_(torch.tensor([60.0, -60.0]))
    return 0, 0


def test_stalled_run_warns_once_even_if_interrupted_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RandomStartSettings, "begin", make_policy_prefer_left)
    with pytest.warns(
        UserWarning, match="learning has stalled, sure and wrong: .* --update exponentiated has no step size"
    ) as caught:
        whole = train("cartpole", update="regular", out=tmp_path / "whole", iterations=9, **FEW)
    assert len(caught) == 1
    result = whole.result()
    assert (
        result is not None
        and result.stalled_iterations == sum(bool(line.stalled_reason) for line in whole.metrics()) >= 5
    )

    def stop(line: Metrics) -> None:
        if line.iteration == 7:
            raise InterruptedError

    messages: list[str] = []
    with pytest.raises(InterruptedError):
        train(
            "cartpole",
            update="regular",
            out=tmp_path / "broken",
            iterations=9,
            progress=stop,
            warn=messages.append,
            **FEW,
        )
    assert len(messages) == 1
    broken = Run.open(tmp_path / "broken")
    fit_run(broken, warn=messages.append)
    assert len(messages) == 1  # one warning per run, however often it is resumed
    lines = [[replace(line, seconds=0.0, cpu_seconds=0.0) for line in run.metrics()] for run in (whole, broken)]
    assert lines[0] == lines[1] and lines[0][-1].stalled_reason == CONFIDENTLY_WRONG


def test_train_command_prints_the_stall_warning_on_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(RandomStartSettings, "begin", make_policy_prefer_left)
    given = [word for name, value in FEW.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    out = tmp_path / "run"
    main(["train", "cartpole", "--update", "regular", "--iterations", "7", "--out", str(out), "--json", *given])
    output = capsys.readouterr()
    assert output.err.count("learning has stalled") == 1 and '"stalled_iterations": ' in output.out
