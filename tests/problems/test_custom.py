"""A world of one's own: any environment, any expert, by name or as the objects that they are."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import aggrevated
from aggrevated.core.errors import DataError, UsageError
from aggrevated.problems.code_references import import_reference, is_reference, make_reference
from aggrevated.problems.normalization import observation_stats, typical_action_stats
from aggrevated.tasks import as_task, find_task
from aggrevated.training.run_folder import Run
from helpers import gymnasium_environments as surroundings

SHORT = {"iterations": 2, "validation_episodes": 8, "test_episodes": 8, "horizon": 20}
ENVIRONMENT = "surroundings:make"
EXPERT = "surroundings:act"


def silent(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("own") / "run"
    said: list[str] = []
    made = aggrevated.train(
        surroundings.make, expert=surroundings.lazy, out=folder, say=said.append,
        iterations=12, validation_episodes=20, test_episodes=50, horizon=20,
    )  # fmt: skip
    assert len(said) <= 5 and "3 numbers, 3 actions" in said[0] and "lazy" in "".join(said)
    return made


def test_it_goes_past_its_expert(run: Run) -> None:
    result = run.result()
    assert result is not None and result.more["expert_return"] < 3.0  # who waits at every third step
    assert result.more["test_return"] > result.more["expert_return"] + 0.5


def test_its_policy_speaks_the_language_of_the_environment(run: Run) -> None:
    seen = {"goal": 1, "place": np.zeros(1, np.float32)}
    actions = [int(run.policy.predict(seen, deterministic=True)[0]) for _ in range(3)]
    assert actions == [1, 1, 1]
    batch = {"goal": np.array([0, 1]), "place": np.zeros((2, 1), np.float32)}
    assert run.policy.predict(batch, deterministic=True)[0].tolist() == [-1, 1]


def test_what_can_be_imported_is_known_by_its_name(run: Run) -> None:
    assert run.config.task.name == ENVIRONMENT
    assert run.config.problem.to_values()["expert"] == "surroundings:lazy"


def test_a_folder_imports_nothing_unless_it_is_trusted(run: Run) -> None:
    stranger = Run.open(run.folder)  # its settings can be read
    assert stranger.config == run.config
    with pytest.raises(DataError, match=r"is Python code.*--trust-code"):
        _ = stranger.config.problem.spaces()
    trusted = Run.open(run.folder, trust_code=True)
    assert trusted.config.world.spaces()[1].n == 3  # type: ignore[attr-defined]


def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = aggrevated.train(ENVIRONMENT, expert=EXPERT, out=tmp_path / "whole", say=silent, **SHORT)
    half = aggrevated.train(ENVIRONMENT, expert=EXPERT, out=tmp_path / "half", say=silent, **SHORT | {"iterations": 1})
    longer = Run.open(half.folder, trust_code=True)
    longer = Run(longer.folder, longer.config.with_settings(iterations=2))
    assert aggrevated.run_to_end(longer).weights_sha256 == whole.result().weights_sha256  # type: ignore[union-attr]


def test_a_changed_expert_is_noticed(tmp_path: Path) -> None:
    expert = Changing()
    task = as_task(surroundings.make, expert)
    run = aggrevated.train(task, out=tmp_path / "run", say=silent, **SHORT)
    expert.action = 0
    longer = Run(run.folder, run.config.with_settings(iterations=3))
    with pytest.raises(DataError, match="changed after the run began"):
        aggrevated.run_to_end(longer)


class Changing:
    """Goes where it is told."""

    action = 1

    def act(self, observation: object) -> int:
        return self.action


def test_by_its_id_with_options(tmp_path: Path) -> None:
    options = {"environment_options": '{"is_slippery": false}', "iterations": 1, "test_episodes": 5}
    run = aggrevated.train("FrozenLake-v1", expert=lambda o: 1, out=tmp_path / "run", say=silent, **options)
    assert run.config.problem.spaces()[0].shape == (16,) and run.config.problem.to_values()["horizon"] == 100


def test_columns_hide_from_the_learner_what_the_expert_sees(tmp_path: Path) -> None:
    run = aggrevated.train(
        ENVIRONMENT, expert=EXPERT, observation_columns=[2], out=tmp_path / "run", say=silent, **SHORT
    )
    assert run.config.policy.name == "lstm" and run.config.problem.spaces()[0].shape == (1,)
    assert run.policy.predict({"goal": 1, "place": np.zeros(1, np.float32)})[0] in (-1, 0, 1)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "needs an expert"),
        ({"expert": EXPERT, "observation_columns": [3]}, "--observation-columns is .* below 3"),
        ({"expert": EXPERT, "environment_options": "{"}, "no JSON"),
        ({"expert": EXPERT, "environment_options": "[1]"}, "JSON object"),
        ({"expert": "surroundings:nobody"}, "has no nobody"),
        ({"expert": "nowhere:nobody"}, "cannot be imported"),
        ({"expert": "nowhere.zip"}, "no expert"),
    ],
)
def test_what_cannot_be_is_said(settings: dict[str, object], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        aggrevated.train(ENVIRONMENT, out=tmp_path / "run", say=silent, **SHORT | settings)
    assert not (tmp_path / "run").exists()


def test_an_environment_that_needs_more_says_what(tmp_path: Path) -> None:
    def sized(length: int) -> surroundings.Corridor:
        return surroundings.Corridor(length)

    def broken() -> surroundings.Corridor:
        raise OSError("no map")

    with pytest.raises(UsageError, match=r"sized needs length .*--environment-options '{\"length\": \"...\"}'"):
        aggrevated.train(sized, expert=surroundings.act, out=tmp_path / "run", say=silent, **SHORT)
    with pytest.raises(DataError, match=r"broken raised OSError: no map .*mend its making of environments"):
        aggrevated.train(broken, expert=surroundings.act, out=tmp_path / "run", say=silent, **SHORT)
    options = {"environment_options": '{"length": 2}'}
    run = aggrevated.train(sized, expert=surroundings.act, out=tmp_path / "run", say=silent, **SHORT, **options)
    assert run.result().more["expert_return"] == 8.0  # type: ignore[union-attr]


def test_unknown_names_are_said_to_be_so() -> None:
    with pytest.raises(UsageError, match=r"unknown task 'LunarLandr-v3' .did you mean LunarLander-v3"):
        find_task("LunarLandr-v3")
    with pytest.raises(UsageError, match="nothing to learn in"):
        as_task(3)


def test_a_simulator_of_ones_own_is_not_taken_for_a_shipped_task() -> None:
    assert as_task(aggrevated.CartPole(20), surroundings.act).name == "own-cartpole"


def test_references() -> None:
    assert is_reference("a.b:c.d") and not is_reference("a/b:c") and not is_reference("LunarLander-v3")
    assert not is_reference("a:b-v0") and not is_reference(":c") and not is_reference(3)
    assert import_reference(EXPERT, True) is surroundings.act
    assert make_reference(surroundings.act) == EXPERT and make_reference(lambda: 0) is None
    assert make_reference(surroundings.make().render) is None
    with pytest.raises(DataError, match="Python code"):
        import_reference(EXPERT, False)


def test_scales_leave_what_is_no_measure() -> None:
    world = as_task(surroundings.make, surroundings.act).problem
    mean, scale = observation_stats(world.raw)  # type: ignore[attr-defined]
    assert mean[:2].tolist() == [0.0, 0.0] and scale[:2].tolist() == [1.0, 1.0]  # the goal is one of two
    assert 50 < scale[2] < 1000


class Clock(gymnasium.Env[Any, Any]):
    """Guess the sign of what is added to the seconds since 1970; beside it are a tiny number and a fixed one."""

    observation_space = Box(-np.inf, np.inf, (3,), np.float64)
    action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        right = action == (self.number > 0)
        return self._seen(), float(right), False, False, {}

    def _seen(self) -> Any:
        self.number = float(self.np_random.normal())
        return np.array([1.7e9 + self.number, 1e-9 * float(self.np_random.normal()), 7e5])


def since(observation: Any) -> int:
    return int(observation[0] > 1.7e9)


def test_huge_and_tiny_numbers_are_not_rounded_before_they_are_scaled(tmp_path: Path) -> None:
    few = {"horizon": 10, "iterations": 12, "validation_episodes": 20, "test_episodes": 50}
    run = aggrevated.train(Clock, expert=since, out=tmp_path / "run", say=silent, **few)
    result = run.result()
    assert result is not None and result.more["expert_return"] == 10.0 and result.more["test_return"] > 9.0
    mean, scale = observation_stats(run.config.world.raw)  # type: ignore[attr-defined]
    assert abs(mean[0] - 1.7e9) < 1 and 0.5 < scale[0] < 2 and 5e-10 < scale[1] < 2e-9
    assert (mean[2], scale[2]) == (7e5, 7e5)
    assert [run.policy.predict(np.array([1.7e9 + x, 0.0, 7e5]), deterministic=True)[0] for x in (-1, 1)] == [0, 1]


def test_on_the_command_line_beside_ones_own_module(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(Path(surroundings.__file__).read_text(encoding="utf-8"), encoding="utf-8")

    def aggrevated_(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "aggrevated", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    few = ["--horizon", "20", "--iterations", "2", "--validation-episodes", "8", "--test-episodes", "8"]
    trained = aggrevated_("train", "mine:Corridor", "--expert", "mine:act", "--out", "run", "--json", *few)
    assert trained.returncode == 0, trained.stderr
    assert json.loads(trained.stdout)["test_return"] > 4 and "rolled out for Q*" in trained.stderr
    assert aggrevated_("evaluate", "run", "--episodes", "5").returncode == 65
    trusted = aggrevated_("evaluate", "run", "--episodes", "5", "--trust-code", "--json")
    assert trusted.returncode == 0 and json.loads(trusted.stdout)["test_return"] > 4
    assert aggrevated_("compare", "run").returncode == 0  # which needs no environment
    watched = aggrevated_("watch", "run", "--trust-code", "--json")
    assert watched.returncode == 0, watched.stderr
    assert (tmp_path / "run" / "watch.gif").stat().st_size > 500
    (tmp_path / "run" / "evil.py").write_text("open('../marker', 'w')\n", encoding="utf-8")
    inside = subprocess.run(
        [sys.executable, "-m", "aggrevated", "train", "evil:make", "--expert", "evil:act"],
        cwd=tmp_path / "run", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert inside.returncode == 2 and not (tmp_path / "marker").exists()


def test_workers_and_sweeps_find_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(Path(surroundings.__file__).read_text(encoding="utf-8"), encoding="utf-8")

    def aggrevated_(*words: str) -> subprocess.CompletedProcess[str]:
        few = ["--horizon", "20", "--iterations", "2", "--validation-episodes", "8", "--test-episodes", "8"]
        command = [sys.executable, "-m", "aggrevated", *words, "--expert", "mine:lazy", "--json", *few]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    here, there = (aggrevated_("train", "mine:make", *more) for more in ([], ["--workers", "2"]))
    assert json.loads(here.stdout)["weights_sha256"] == json.loads(there.stdout)["weights_sha256"]
    swept = aggrevated_("sweep", "mine:make", "--vary", "temperature=0.05,0.1", "--seeds", "1", "--out", "sweep")
    assert swept.returncode == 0, swept.stderr


# ---- actions in units of their own


class Valve(gymnasium.Env[Any, Any]):
    """Bring a pressure to its goal, in one step: what is to be done is in thousands and in thousandths."""

    observation_space = Box(-3.0, 3.0, (2,))
    action_space = Box(np.array([-1e6, -np.inf]), np.array([1e6, np.inf]), dtype=np.float64)
    units = np.array([2000.0, 0.002])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.seen = self.np_random.normal(size=2).clip(-3, 3).astype(np.float32)
        return self.seen, {}

    def step(self, action: Any) -> Any:
        cost = float(np.abs(action / self.units - self.seen).sum())
        self.seen = self.np_random.normal(size=2).clip(-3, 3).astype(np.float32)
        return self.seen, -cost, False, False, {}


def opened(observation: Any) -> Any:
    return Valve.units * observation


def test_a_policy_acts_in_the_units_of_its_expert(tmp_path: Path) -> None:
    """Nothing of a normal deviation of 1 is lost: acting at random costs 1.6 a step, and 20 steps are 32."""
    run = aggrevated.train(
        Valve, expert=opened, out=tmp_path / "run", say=silent,
        iterations=12, validation_episodes=20, test_episodes=50, horizon=20,
    )  # fmt: skip
    result = run.result()
    assert result is not None and result.more["test_return"] > -8.0
    loaded = run.policy  # without a question to the expert
    np.testing.assert_allclose(loaded.head.cost_scale, Valve.units, rtol=0.3)


def test_the_usual_actions_are_the_experts() -> None:
    """An expert that always does the same: half of what is allowed is the unit, or its own size."""
    simulator = aggrevated.GymnasiumSimulator(Valve, 20)
    centre, unit = typical_action_stats(simulator, aggrevated.as_expert(lambda _: np.array([500.0, 30.0]), simulator))
    assert centre.tolist() == [500.0, 30.0] and unit.tolist() == [1e6, 30.0]
