"""Step counts: every step of every trajectory in the simulator is counted, whichever component takes it."""

import pickle
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.spaces import Box

from aggrevated import ControlProblem, Preset, Task, train
from aggrevated.algorithm import Learner, aggrevated
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles.monte_carlo import MonteCarloOracle
from aggrevated.parsing.pages.handwriting import write_page
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import MicroUasEvaluator, compute_uas, evaluate_micro_uas, parse_batch
from aggrevated.rollout import roll_in as roll_in_module
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import Simulator, count_replayed_steps
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.gymnasium import GymnasiumSimulator
from aggrevated.simulators.partial_observation import PartialObservationSimulator
from aggrevated.starts.supervised import pretrain_policy
from aggrevated.training.records import Metrics
from aggrevated.training.run_folder import Run
from aggrevated.updates.regular import RegularUpdate
from aggrevated.validation import ValidationScore
from helpers.handwriting import LINES
from helpers.small_runs import fit_run
from helpers.tiny_mdp import Array, Home, Walk, random_policy


@dataclass(frozen=True)
class CountingWalk(Walk):
    """The walk with a counter of its steps; every fifth start diverges in the first step."""

    horizon: int = 12
    name: str = "counted"
    batch_sizes: list[int] = field(default_factory=list)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        self.batch_sizes.append(len(state))
        following, cost, done = super().step(state, action)
        return following, np.where(np.abs(state[:, 0] - 2 / 3) < 1e-9, np.nan, cost), done


class CountingCartPole(CartPoleEnv):
    """Gymnasium's CartPole with a counter of the steps of all its copies."""

    steps = 0

    def step(self, action: Any) -> Any:
        CountingCartPole.steps += 1
        return super().step(action)


POLE = Box(-np.inf, np.inf, (2,), np.float32)


@dataclass(frozen=True)
class Balance:
    """Hand-written expert for CartPole."""

    simulator: Simulator
    name: str = "balance"

    def act(self, states: Array, t: int) -> Array:
        seen = self.simulator.observe(states)
        return (seen[:, 2] + seen[:, 3] > 0).astype(np.int64)


def train_learner(simulator: Simulator, expert: Any, iterations: int = 2) -> Learner:
    """Return a learner after a supervised start and some iterations with rollouts of the expert."""
    policy = random_policy(simulator, "mlp", (4,), seed=0)
    steps, queries = pretrain_policy(policy, simulator, expert, demonstrations=6, steps=2)
    learner = Learner(
        policy, RegularUpdate(), simulator_steps=steps, start_simulator_steps=steps, oracle_queries=queries
    )
    oracle = MonteCarloOracle(simulator, expert, steps=3)
    learning = aggrevated(learner, simulator, expert, oracle, taken_action_loss, k=7, validation_episodes=9)
    list(islice(learning, iterations))
    return learner


def test_learner_counts_every_simulator_step_including_diverged_trajectories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggrevated.collection.MAX_DIVERGED_FRACTION", 0.5)
    simulator = CountingWalk()
    learner = train_learner(simulator, Home())
    assert learner.diverged_trajectories > 0
    assert sum(simulator.batch_sizes) == learner.simulator_steps + learner.validation_steps
    assert 0 < learner.start_simulator_steps < learner.simulator_steps - learner.oracle_steps
    assert learner.validation_steps > 3 * 9


@pytest.mark.parametrize("live", [256, 3])
@pytest.mark.parametrize("wrapped", [False, True])
def test_learner_counts_every_environment_step_including_replays(live: int, wrapped: bool) -> None:
    bare = GymnasiumSimulator(CountingCartPole, 15, live=live)
    simulator = (
        PartialObservationSimulator(bare, lambda state: bare.observe(state)[:, 2:], POLE, "partial")
        if wrapped
        else bare
    )
    CountingCartPole.steps = 0
    proof = bare.replayed_steps()
    learner = train_learner(simulator, Balance(bare))
    assert CountingCartPole.steps == learner.simulator_steps + learner.validation_steps
    assert count_replayed_steps(simulator) > proof > 0


def test_few_live_environments_give_the_same_trajectories_in_blocks() -> None:
    bills = []
    found_by = []
    for live in (256, 2):
        simulator = GymnasiumSimulator(CountingCartPole, 15, live=live)
        found = roll_in(
            simulator, RollInPolicy(Balance(simulator), None, 1.0), derive_seeds(0, SeedPurpose.ROLL_IN, 1, 5)
        )
        bills.append((found.steps, found.unseen))
        without_expert = replace(found, by_expert=np.zeros_like(found.by_expert))
        found_by.append(
            (found, MonteCarloOracle(simulator, Balance(simulator), all_actions=True, advantage=False)(without_expert))
        )
    assert bills == [(75, 0)] * 2  # five trajectories, of which two can be live at once: three blocks
    (few, few_costs), (many, many_costs) = found_by
    for name in ("observations", "actions", "costs", "seeds"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name))
    np.testing.assert_array_equal(few_costs.values, many_costs.values)
    assert few_costs.simulator_steps == many_costs.simulator_steps == 2 * 5 * 15 * 15  # to the query, and on to the end


def test_environment_with_its_own_snapshots_needs_no_replay() -> None:
    simulator = GymnasiumSimulator(
        CountingCartPole,
        15,
        get_state=lambda env: np.array(env.unwrapped.state),
        set_state=lambda env, state: setattr(env.unwrapped, "state", state),
    )
    CountingCartPole.steps = 0
    learner = train_learner(simulator, Balance(simulator))
    assert CountingCartPole.steps == learner.simulator_steps + learner.validation_steps
    assert count_replayed_steps(simulator) == count_replayed_steps(CartPole()) == 0


def test_learner_counts_steps_that_a_custom_validator_reports() -> None:
    for validate, expected in ((lambda policy: ValidationScore(1.0, 10), 30), (lambda policy: 1.0, 0)):
        learner = Learner(random_policy(Walk(), "mlp", (4,), seed=0), RegularUpdate())
        oracle = MonteCarloOracle(Walk(), Home(), steps=1)
        list(islice(aggrevated(learner, Walk(), Home(), oracle, taken_action_loss, k=2, validate=validate), 2))
        assert learner.validation_steps == expected
        assert type(learner.best.best_return) is float


def test_validation_score_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(ValidationScore(2.5, 7))) == ValidationScore(2.5, 7)


FEW = {"iterations": 4, "trajectories": 4, "validation_episodes": 6, "test_episodes": 5, "validate_every": 2}


def test_run_metrics_count_every_simulator_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch_sizes = []
    step = CartPole.step

    def count_step(self: CartPole, state: Array, action: Array) -> Any:
        batch_sizes.append(len(state))
        return step(self, state, action)

    monkeypatch.setattr(CartPole, "step", count_step)
    monkeypatch.setattr(roll_in_module, "try_compiled_rollout", lambda *_, **__: None)  # counted elsewhere
    by_then: list[tuple[int, Metrics]] = []
    rolled_out = {"oracle": "monte-carlo", "query_steps": 2, "start": "supervised", "start_steps": 2, "horizon": 20}
    run = train(
        "cartpole",
        out=tmp_path / "run",
        progress=lambda line: by_then.append((sum(batch_sizes), line)),
        **FEW,
        **rolled_out,
    )
    assert len(by_then) == 4
    for steps, line in by_then:
        assert steps == line.simulator_steps + line.validation_steps
    line = by_then[-1][1]
    result = run.result()
    names = ("simulator_steps", "start_simulator_steps", "oracle_steps", "validation_steps")
    assert [getattr(result, name) for name in names] == [getattr(line, name) for name in names]
    assert result.start_simulator_steps == 4 * 20 and result.oracle_steps > 0
    validated = [line.validation_steps for _, line in by_then]
    assert 0 < validated[0] < validated[1] == validated[2] < validated[3]  # the first policy, and every second one


@pytest.mark.parametrize(("live", "oracle"), [(256, "monte-carlo"), (2, "monte-carlo"), (2, "lols")])
def test_run_metrics_count_every_environment_step_except_proof_and_test(tmp_path: Path, live: int, oracle: str) -> None:
    made: list[GymnasiumSimulator] = []

    def make(horizon: int) -> GymnasiumSimulator:
        made.append(GymnasiumSimulator(CountingCartPole, horizon, live=live))
        return made[-1]

    CountingCartPole.steps = 0
    by_then = []
    world = ControlProblem(make=make, make_expert=Balance, horizon=12)
    task = Task(name="counted", title="Counted", problem=world, oracle=oracle)
    settings = {**FEW, "query_steps": 2, "start": "supervised", "start_steps": 2}
    train(task, out=tmp_path / "run", progress=lambda line: by_then.append((CountingCartPole.steps, line)), **settings)
    proofs = sum(simulator.proof_steps for simulator in made)
    assert len(by_then) == 4
    for steps, line in by_then:
        assert steps == line.simulator_steps + line.validation_steps + proofs
    assert CountingCartPole.steps > by_then[-1][0]  # the final test is not counted


def test_run_metrics_with_replays_are_the_same_after_an_interruption(tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop(line: Metrics) -> None:
        if line.iteration == 3:
            raise StoppedError

    world = ControlProblem(
        make=lambda horizon: GymnasiumSimulator(CountingCartPole, horizon, live=3), make_expert=Balance, horizon=10
    )
    few = FEW | {"query_steps": 2, "checkpoint_every": 2}
    task = Task(name="counted", title="Counted", problem=world, oracle="monte-carlo", defaults=(Preset(few),))
    whole = train(task, out=tmp_path / "whole")
    with pytest.raises(StoppedError):
        train(task, out=tmp_path / "broken", progress=stop)
    broken = Run.open(tmp_path / "broken", replace(task))
    fit_run(broken)
    lines = [[replace(line, seconds=0.0, cpu_seconds=0.0) for line in run.metrics()] for run in (whole, broken)]
    assert lines[0] == lines[1]


def test_micro_uas_counts_the_transitions_of_validation_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [write_page([line], writer, 0) for writer, line in enumerate(LINES[:3])]
    parser = Parser(Corpus.from_pages(pages), np.arange(len(pages)), in_order=True)
    batch_sizes = []
    step = Parser.step

    def count_step(self: Parser, state: Array, action: Array) -> Any:
        batch_sizes.append(len(state))
        return step(self, state, action)

    class NoisyExpert:
        """Expert with occasional mistakes."""

        name = "shifty"

        def act(self, states: Array, t: int) -> Array:
            return parser.action_mask(states).argmax(axis=1) if t % 3 == 0 else parser.expert.act(states, t)

    monkeypatch.setattr(Parser, "step", count_step)
    score = MicroUasEvaluator(parser)(NoisyExpert())
    assert score.steps == sum(batch_sizes) > 0
    assert score.value == compute_uas(parse_batch(NoisyExpert(), parser), parser.gold)[0] < 1.0
    assert evaluate_micro_uas(parser.expert, parser) == 1.0
