"""Invalid simulators, environments and experts: a typed error with component, step, episode and remedy."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from aggrevated import (
    CategoricalHead,
    ControlProblem,
    FeedForwardPolicy,
    GaussianHead,
    GymnasiumSimulator,
    Learner,
    MonteCarloOracle,
    ProcessEngine,
    QStarOracle,
    RegularUpdate,
    Run,
    Task,
    UsageError,
    UserCodeError,
    ValueFunctionOracle,
    aggrevated,
    all_actions_loss,
    best_action_nll_loss,
    evaluate_mean_return,
    make_zero_one_oracle,
    set_time_limit,
    train,
)
from aggrevated.core.errors import DataError
from aggrevated.core.user_code import TIME_LIMIT_VARIABLE
from aggrevated.experts.loading import BUILTIN_WEIGHTS
from aggrevated.simulators import Simulator
from aggrevated.simulators.cartpole import CartPole
from aggrevated.storage import load_checksummed, save_checksummed
from aggrevated.validation import evaluate_returns
from helpers.command_line import failure
from helpers.small_runs import fit_run
from helpers.tiny_mdp import Home, TinyExpert, TinyMdp, Walk, linear_policy

SEEDS = np.arange(4, dtype=np.uint64)
TINY = {"iterations": 3, "trajectories": 2, "validation_episodes": 2, "test_episodes": 4, "hidden": (4,)}


class Env(gymnasium.Env[Any, Any]):
    """Environment that counts to eight; `corrupt` changes the result of its third step."""

    observation_space = spaces.Box(-10, 10, (2,), np.float32)
    action_space = spaces.Discrete(3)
    corrupt: Callable[[Any], Any] = staticmethod(lambda result: result)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        result = np.full(2, self.t, np.float32), -1.0, self.t == 8, False, {}
        return type(self).corrupt(result) if self.t == 3 else result


def make_broken_environment(corrupt: Callable[[Any], Any]) -> type[Env]:
    return type("Broken", (Env,), {"corrupt": staticmethod(corrupt)})


def raise_division_error(_: Any) -> Any:
    raise ZeroDivisionError("the motor is off")


FAULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "NaN": (lambda u: (np.array([0.0, np.nan]), *u[1:]), r"gave an observation that is not finite \(number 1 is nan\)"),
    "inf": (lambda u: (np.array([-np.inf, 0.0]), *u[1:]), r"not finite \(number 0 is -inf\)"),
    "a scalar": (lambda u: (np.float32(1.0), *u[1:]), r"an observation of shape \(\)"),
    "too long": (lambda u: (np.zeros(3), *u[1:]), r"an observation of shape \(3,\)"),
    "text": (lambda u: (np.array(["a", "b"]), *u[1:]), "an observation of type"),
    "None": (lambda u: (None, *u[1:]), "an observation of type object"),
    "four parts": (lambda u: u[:4], "returned a tuple of 4 from step"),
    "no tuple": (lambda u: 3, "returned int from step"),
    "no reward": (lambda u: (u[0], None, *u[2:]), "raised TypeError"),
    "a vector as reward": (lambda u: (u[0], np.zeros(2), *u[2:]), "raised TypeError"),
    "raises": (raise_division_error, r"raised ZeroDivisionError: the motor is off \(test_user_code.py, line \d+\)"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_gymnasium_simulator_reports_what_a_broken_environment_returned(kind: str) -> None:
    corrupt, words = FAULTS[kind]
    with pytest.raises(UserCodeError, match=f"^Broken .*{words}.* in step 2 of the episode of seed 0; .*") as caught:
        GymnasiumSimulator(make_broken_environment(corrupt), 8)
    assert caught.value.exit_code == 65 and (caught.value.step, caught.value.seed) == (2, 0)


@dataclass(frozen=True)
class FaultySimulator:
    """Simulator with a fault at one step of one of its trajectories."""

    corrupt: Callable[[Any, Any, Any], Any]
    name: str = "late"
    horizon: int = 6
    observation_space = spaces.Box(-10, 10, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, seeds: Any) -> Any:
        return np.stack([(seeds % np.uint64(1000)).astype(float), np.zeros(len(seeds))], axis=1)

    def observe(self, state: Any) -> Any:
        return state[:, 1:].astype(np.float32)

    def step(self, state: Any, action: Any) -> Any:
        following = state + np.array([0.0, 1.0])
        result = following, np.ones(len(state)), np.zeros(len(state), bool)
        return self.corrupt(*result) if state[0, 1] == 3 else result


@dataclass(frozen=True)
class ScriptedExpert:
    """Expert whose actions are a function of n and t."""

    what: Callable[[int, int], Any]  # function of n and t
    name: str = "says"

    def act(self, states: Any, t: int) -> Any:
        return self.what(len(states), t)


def make_nan_fault(seed: int) -> Callable[[Any, Any, Any], Any]:
    def corrupt(following: Any, costs: Any, done: Any) -> Any:
        following[following[:, 0] == seed, 1] = np.nan
        return following, costs, done

    return corrupt


@pytest.mark.parametrize(
    ("corrupt", "words"),
    [
        (make_nan_fault(2), r"late gave observations that are not finite .* in step 4 of the episode of seed 2; "),
        (lambda f, c, d: (f, c[:-1], d), r"late gave costs of shape \(3,\) in step 3 .*must be of shape \(4,\)"),
        (lambda f, c, d: (f, c, d[:, None]), r"late gave done of shape \(4, 1\)"),
        (lambda f, c, d: (f[0], c, d), r"late gave states of shape \(2,\)"),
        (lambda f, c, d: (f, c), "late returned tuple from step"),
        (lambda f, c, d: raise_division_error(f), "late raised ZeroDivisionError"),
    ],
)
def test_rollouts_report_what_a_broken_simulator_returned(corrupt: Any, words: str) -> None:
    policy = FeedForwardPolicy(1, CategoricalHead(2), (4,))
    with pytest.raises(UserCodeError, match=words):
        evaluate_returns(policy, FaultySimulator(corrupt), SEEDS)
    if "observations" in words:
        return  # rollouts of the expert need no observations
    with pytest.raises(UserCodeError, match=f"{words[:15]}.* in step 3 "):
        MonteCarloOracle(FaultySimulator(corrupt), ScriptedExpert(lambda n, t: np.zeros(n, int)))(
            roll_in_new_policy(FaultySimulator(lambda *result: result))
        )


def roll_in_new_policy(simulator: Simulator) -> Any:
    from aggrevated import RollInPolicy
    from aggrevated.rollout.roll_in import roll_in

    return roll_in(simulator, RollInPolicy(None, FeedForwardPolicy(1, CategoricalHead(2), (4,)).actor()), SEEDS)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda n, t: np.full(n, np.nan), r"gave actions that are not finite \(nan\) in step 0"),
        (lambda n, t: np.full(n, 7), "chose action 7 of 2 in step 0 .*integers from 0 to 1"),
        (lambda n, t: np.full(n, -1), "chose action -1 of 2"),
        (lambda n, t: np.full(n, 0.5), "chose action 0.5 of 2"),
        (lambda n, t: np.zeros((n, 1), int), r"gave actions of shape \(4, 1\) .*must be of shape \(4,\)"),
        (lambda n, t: 0, r"gave actions of shape \(\)"),
        (lambda n, t: ["left"] * n, "gave actions of type"),
        (lambda n, t: None, "gave actions of type object"),
        (lambda n, t: raise_division_error(n), "raised ZeroDivisionError: the motor is off"),
        (lambda n, t: np.full(n, 9 if t == 3 else 0), "chose action 9 of 2 in step 3 of the episode of seed 0"),
    ],
)
def test_rollouts_and_oracles_report_what_a_broken_expert_returned(what: Any, words: str) -> None:
    valid = FaultySimulator(lambda *result: result)
    expert = ScriptedExpert(what)
    with pytest.raises(UserCodeError, match=f"^the expert says .*{words}"):
        evaluate_returns(expert, valid, SEEDS)
    rolled = roll_in_new_policy(valid)
    for oracle in (MonteCarloOracle(valid, expert), make_zero_one_oracle(expert, valid.action_space)):
        with pytest.raises(UserCodeError, match=f"^the expert says .*{words.partition(' of the episode')[0]}"):
            oracle(rolled)


def test_evaluate_returns_refuses_invalid_action_vectors_of_an_expert() -> None:
    for bad, words in ((np.nan, "not finite"), (np.inf, "not finite")):
        with pytest.raises(UserCodeError, match=f"the expert says gave actions that are {words}"):
            evaluate_returns(ScriptedExpert(lambda n, t, bad=bad: np.full((n, 2), bad)), Walk(), SEEDS)  # type: ignore[misc]
    with pytest.raises(UserCodeError, match=r"gave actions of shape \(4,\).*must be of shape \(4, 2\)"):
        evaluate_returns(ScriptedExpert(lambda n, t: np.zeros(n)), Walk(), SEEDS)


@pytest.fixture
def short_time_limit() -> Any:
    set_time_limit(0.3)
    yield
    import os

    del os.environ[TIME_LIMIT_VARIABLE]


@pytest.mark.usefixtures("short_time_limit")
def test_time_limit_ends_user_code_that_hangs() -> None:
    def sleep(*_: Any) -> Any:
        time.sleep(60)

    began = time.monotonic()
    with pytest.raises(
        UserCodeError, match=r"Broken did not return from step within 0\.3 seconds in step 2 .*--time-limit"
    ):
        GymnasiumSimulator(make_broken_environment(sleep), 8)
    with pytest.raises(UserCodeError, match=r"the expert says did not return from act within 1\.2 seconds"):
        evaluate_returns(ScriptedExpert(sleep), FaultySimulator(lambda *result: result), SEEDS)

    def stubborn(*_: Any) -> Any:
        while True:
            try:
                time.sleep(0.05)
            except Exception:
                continue

    with pytest.raises(UserCodeError, match="did not return from act"):
        evaluate_returns(ScriptedExpert(stubborn), FaultySimulator(lambda *result: result), SEEDS)
    assert time.monotonic() - began < 7


def test_ragged_answers_of_user_code_are_refused() -> None:
    class Ragged(ScriptedExpert):
        def q(self, states: Any) -> Any:
            return [[1.0], *([1.0, 2.0],) * (len(states) - 1)]

    with pytest.raises(UserCodeError, match="the expert says gave costs-to-go that are not an array"):
        QStarOracle(Ragged(lambda n, t: None))(roll_in_new_policy(FaultySimulator(lambda *result: result)))
    with pytest.raises(UserCodeError, match="late gave states that are not an array"):
        policy = FeedForwardPolicy(1, CategoricalHead(2), (4,))
        evaluate_returns(policy, FaultySimulator(lambda f, c, d: ([[1.0], *f.tolist()[1:]], c, d)), SEEDS)


class FlakyEnvironment(Env):
    """Environment that fails only while a file exists."""

    flag: Path

    def step(self, action: Any) -> Any:
        if type(self).flag.exists() and self.t == 4:
            raise RuntimeError("moody")
        return super().step(action)


@pytest.mark.parametrize("engine", ["here", "processes"])
def test_run_can_be_resumed_after_user_code_failed(tmp_path: Path, engine: str) -> None:
    kind = type("Moody", (FlakyEnvironment,), {"flag": tmp_path / "broken"})
    expert = ScriptedExpert(lambda n, t: np.ones(n, int))
    problem = ControlProblem(
        make=lambda horizon: GymnasiumSimulator(kind, horizon), make_expert=lambda _: expert, horizon=8
    )
    task = Task(name="moody", title="Moody", problem=problem)
    uninterrupted = train(task, "dagger", out=tmp_path / "whole", **TINY).result()
    run = Run.create(tmp_path / "run", Run.open(tmp_path / "whole", task).config)

    def break_it(_: object) -> None:
        (tmp_path / "broken").touch()

    engine_object = ProcessEngine(2) if engine == "processes" else None
    with pytest.raises(UserCodeError, match=r"raised RuntimeError: moody .* in step 4 of the episode of seed \d+"):
        fit_run(run, break_it, **({"engine": engine_object} if engine_object else {}))
    if engine_object:
        engine_object.close()
    (tmp_path / "broken").unlink()
    resumed = fit_run(Run.open(run.folder, task))
    assert uninterrupted is not None and resumed.weights_sha256 == uninterrupted.weights_sha256


def test_learner_refuses_policy_simulator_expert_and_oracle_that_do_not_fit() -> None:
    def begin(policy: Any, simulator: Any, expert: Any = None, oracle: Any = None) -> None:
        learner = Learner(policy, RegularUpdate())
        list(
            islice(
                aggrevated(learner, simulator, expert, oracle or QStarOracle(TinyExpert()), all_actions_loss, k=2), 1
            )
        )

    categorical = FeedForwardPolicy(4, CategoricalHead(2), (4,))
    cartpole = CartPole()
    cases = [
        (FeedForwardPolicy(3, CategoricalHead(2), (4,)), cartpole, r"cannot read the observations of cartpole"),
        (FeedForwardPolicy(4, GaussianHead(2), (4,)), cartpole, r"are vectors, .*CategoricalHead\(2\)"),
        (FeedForwardPolicy(4, CategoricalHead(3), (4,)), cartpole, "the policy has 3 actions, cartpole has 2"),
        (FeedForwardPolicy(4, CategoricalHead(1), (4,)), cartpole, "the policy has 1 actions, cartpole has 2"),
        (FeedForwardPolicy(1, CategoricalHead(2), (4,)), Walk(), r"are a finite set, .*GaussianHead\(2\)"),
        (FeedForwardPolicy(1, GaussianHead(3), (4,)), Walk(), "the policy has 3 actions, walk has 2"),
        (categorical, gymnasium.make("CartPole-v1"), "is not a simulator: it has no method observe"),
    ]
    for policy, simulator, words in cases:
        with pytest.raises(UsageError, match=words):
            begin(policy, simulator)
    with pytest.raises(UsageError, match="has no method act"):
        begin(categorical, cartpole, expert=object())
    with pytest.raises(UsageError, match="cannot read the observations of cartpole"):
        evaluate_mean_return(FeedForwardPolicy(3, CategoricalHead(2), (4,)), cartpole, SEEDS)
    for oracle, method in ((QStarOracle, "q"), (ValueFunctionOracle, "v")):
        with pytest.raises(UsageError, match=f"the expert home has no method {method};"):
            oracle(Home())
    begin(linear_policy(None).float(), TinyMdp(), TinyExpert())  # these are compatible


def test_evaluate_returns_refuses_a_mean_when_many_episodes_diverged() -> None:
    def make_diverging_simulator(share: int) -> FaultySimulator:
        def corrupt(following: Any, costs: Any, done: Any) -> Any:
            return following, np.where(following[:, 0] % share == 0, np.nan, costs), done

        return FaultySimulator(corrupt)

    policy = FeedForwardPolicy(1, CategoricalHead(2), (4,))
    n_episodes = np.arange(100, dtype=np.uint64)
    returns, _ = evaluate_returns(policy, make_diverging_simulator(20), n_episodes)
    assert len(returns) == 95
    with pytest.raises(DataError, match="50 of 100 episodes diverged, more than a tenth"):
        evaluate_returns(policy, make_diverging_simulator(2), n_episodes)
    learner = Learner(policy, RegularUpdate())
    expert = ScriptedExpert(lambda n, t: np.zeros(n, int))
    oracle = make_zero_one_oracle(expert, spaces.Discrete(2))
    simulator = make_diverging_simulator(20)
    run = aggrevated(learner, simulator, expert, oracle, best_action_nll_loss, k=5, validation_episodes=200)
    list(islice(run, 1))
    assert 0 < learner.diverged_validation_episodes < 40


@pytest.mark.parametrize(("task", "weight"), [("cartpole", 0), ("hopper", 2), ("hopper", -1)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("command", ["train --method dagger", "train --oracle monte-carlo", "expert evaluate"])
def test_commands_refuse_an_expert_with_one_non_finite_weight(
    tmp_path: Path, task: str, weight: int, bad: float, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    weights, card = load_checksummed(BUILTIN_WEIGHTS / f"{task}.safetensors")
    name = sorted(weights)[weight]
    weights[name] = weights[name].clone()
    weights[name].view(-1)[0] = bad
    save_checksummed(tmp_path / "bad.safetensors", weights, card)
    verb, *rest = command.split()
    words = [verb, *rest, task] if verb == "expert" else [verb, task, *rest, "--out", str(tmp_path / "run")]
    code, output = failure([*words, "--expert", str(tmp_path / "bad.safetensors")], capsys)
    assert code == 65 and "not finite" in output and "bad.safetensors" in output and not (tmp_path / "run").exists()
