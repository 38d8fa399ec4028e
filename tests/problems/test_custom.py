"""Custom problems: any environment, any expert, by name or as objects."""

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
from aggrevated.problems.normalization import estimate_action_stats, estimate_observation_stats
from aggrevated.tasks import as_task, find_task
from aggrevated.training.run_folder import Run
from helpers import gymnasium_environments as environments
from helpers.small_runs import fit_run

SHORT = {"iterations": 2, "validation_episodes": 8, "test_episodes": 8, "horizon": 20}
ENVIRONMENT = "helpers.gymnasium_environments:make"
EXPERT = "helpers.gymnasium_environments:act"


def discard(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("own") / "run"
    lines: list[str] = []
    made = aggrevated.train(
        environments.make, expert=environments.lazy, out=folder, say=lines.append,
        iterations=12, validation_episodes=20, test_episodes=50, horizon=20,
    )  # fmt: skip
    lines = [line for line in lines if "is below that of the policy before training" not in line]  # after it
    assert len(lines) <= 5 and "3 numbers, 3 actions" in lines[0] and "lazy" in "".join(lines)
    return made


def test_custom_problem_run_surpasses_its_expert(run: Run) -> None:
    result = run.result()
    assert result is not None and result.more["expert_return"] < 3.0  # which stays at every third step
    assert result.more["test_return"] > result.more["expert_return"] + 0.5


def test_custom_problem_policy_takes_and_gives_the_environments_own_form(run: Run) -> None:
    seen = {"goal": 1, "place": np.zeros(1, np.float32)}
    actions = [int(run.policy.predict(seen, deterministic=True)[0]) for _ in range(3)]
    assert actions == [1, 1, 1]
    batch = {"goal": np.array([0, 1]), "place": np.zeros((2, 1), np.float32)}
    assert run.policy.predict(batch, deterministic=True)[0].tolist() == [-1, 1]


def test_custom_problem_config_refers_to_importable_objects_by_name(run: Run) -> None:
    assert run.config.task.name == ENVIRONMENT
    assert run.config.problem.to_values()["expert"] == "helpers.gymnasium_environments:lazy"


def test_run_folder_imports_user_code_only_if_trusted(run: Run) -> None:
    untrusted = Run.open(run.folder)  # its settings can be read
    assert untrusted.config == run.config
    with pytest.raises(DataError, match=r"is Python code.*--trust-code"):
        _ = untrusted.config.problem.spaces()
    trusted = Run.open(run.folder, trust_code=True)
    assert trusted.config.problem.spaces()[1].n == 3  # type: ignore[attr-defined]


def test_custom_problem_run_resumes_bit_for_bit(tmp_path: Path) -> None:
    uninterrupted = aggrevated.train(ENVIRONMENT, expert=EXPERT, out=tmp_path / "whole", say=discard, **SHORT)
    stopped = aggrevated.train(
        ENVIRONMENT, expert=EXPERT, out=tmp_path / "half", say=discard, **SHORT | {"iterations": 1}
    )
    longer = Run.open(stopped.folder, trust_code=True)
    longer = Run(longer.folder, longer.config.with_settings(iterations=2))
    assert fit_run(longer).weights_sha256 == uninterrupted.result().weights_sha256  # type: ignore[union-attr]


def test_fit_refuses_an_expert_that_changed(tmp_path: Path) -> None:
    expert = Changing()
    task = as_task(environments.make, expert)
    run = aggrevated.train(task, out=tmp_path / "run", say=discard, **SHORT)
    expert.action = 0
    longer = Run(run.folder, run.config.with_settings(iterations=3))
    with pytest.raises(DataError, match="changed after the run began"):
        fit_run(longer)


class Changing:
    """An expert whose action can be changed."""

    action = 1

    def act(self, observation: object) -> int:
        return self.action


def test_train_makes_an_environment_by_id_with_options(tmp_path: Path) -> None:
    options = {"environment_options": '{"is_slippery": false}', "iterations": 1, "test_episodes": 5}
    run = aggrevated.train("FrozenLake-v1", expert=lambda o: 1, out=tmp_path / "run", say=discard, **options)
    assert run.config.problem.spaces()[0].shape == (16,) and run.config.problem.to_values()["horizon"] == 100


def test_observation_columns_hide_observations_from_the_learner_only(tmp_path: Path) -> None:
    run = aggrevated.train(
        ENVIRONMENT, expert=EXPERT, observation_columns=[2], out=tmp_path / "run", say=discard, **SHORT
    )
    assert run.config.policy.name == "lstm" and run.config.problem.spaces()[0].shape == (1,)
    assert run.policy.predict({"goal": 1, "place": np.zeros(1, np.float32)})[0] in (-1, 0, 1)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "--expert is required for a custom environment"),
        ({"expert": EXPERT, "observation_columns": [3]}, "--observation-columns is .* below 3"),
        ({"expert": EXPERT, "environment_options": "{"}, "is not JSON"),
        ({"expert": EXPERT, "environment_options": "[1]"}, "JSON object"),
        ({"expert": "helpers.gymnasium_environments:nobody"}, "has no nobody"),
        ({"expert": "nowhere:nobody"}, "cannot be imported"),
        ({"expert": "nowhere.zip"}, "no expert"),
    ],
)
def test_train_refuses_invalid_custom_problems(settings: dict[str, object], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        aggrevated.train(ENVIRONMENT, out=tmp_path / "run", say=discard, **SHORT | settings)
    assert not (tmp_path / "run").exists()


def test_train_names_missing_arguments_and_errors_of_an_environment(tmp_path: Path) -> None:
    def sized(length: int) -> environments.Corridor:
        return environments.Corridor(length)

    def broken() -> environments.Corridor:
        raise OSError("no map")

    with pytest.raises(UsageError, match=r"sized needs length .*--environment-options '{\"length\": \"...\"}'"):
        aggrevated.train(sized, expert=environments.act, out=tmp_path / "run", say=discard, **SHORT)
    with pytest.raises(DataError, match=r"broken raised OSError: no map .*fix its making of environments"):
        aggrevated.train(broken, expert=environments.act, out=tmp_path / "run", say=discard, **SHORT)
    options = {"environment_options": '{"length": 2}'}
    run = aggrevated.train(sized, expert=environments.act, out=tmp_path / "run", say=discard, **SHORT, **options)
    assert run.result().more["expert_return"] == 8.0  # type: ignore[union-attr]


def test_find_task_and_as_task_refuse_unknown_names() -> None:
    with pytest.raises(UsageError, match=r"unknown task 'LunarLandr-v3' .did you mean LunarLander-v3"):
        find_task("LunarLandr-v3")
    with pytest.raises(UsageError, match="3 is not a task"):
        as_task(3)


def test_as_task_does_not_take_a_user_simulator_for_a_builtin_task() -> None:
    assert as_task(aggrevated.CartPole(20), environments.act).name == "own-cartpole"


def test_code_references_are_recognized_made_and_imported() -> None:
    assert is_reference("a.b:c.d") and not is_reference("a/b:c") and not is_reference("LunarLander-v3")
    assert not is_reference("a:b-v0") and not is_reference(":c") and not is_reference(3)
    assert import_reference(EXPERT, True) is environments.act
    assert make_reference(environments.act) == EXPERT and make_reference(lambda: 0) is None
    assert make_reference(environments.make().render) is None
    with pytest.raises(DataError, match="Python code"):
        import_reference(EXPERT, False)


def test_observation_stats_leave_categorical_columns_unscaled() -> None:
    problem = as_task(environments.make, environments.act).problem
    mean, scale = estimate_observation_stats(problem.environment_simulator)  # type: ignore[attr-defined]
    assert mean[:2].tolist() == [0.0, 0.0] and scale[:2].tolist() == [1.0, 1.0]  # the goal is one of two
    assert 50 < scale[2] < 1000


class Clock(gymnasium.Env[Any, Any]):
    """Environment: guess the sign of a number added to the Unix time; a tiny and a constant number are observed too."""

    observation_space = Box(-np.inf, np.inf, (3,), np.float64)
    action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        right = action == (self.number > 0)
        return self._observe(), float(right), False, False, {}

    def _observe(self) -> Any:
        self.number = float(self.np_random.normal())
        return np.array([1.7e9 + self.number, 1e-9 * float(self.np_random.normal()), 7e5])


def guess_sign(observation: Any) -> int:
    return int(observation[0] > 1.7e9)


def test_observation_stats_do_not_round_huge_and_tiny_numbers(tmp_path: Path) -> None:
    few = {"horizon": 10, "iterations": 12, "validation_episodes": 20, "test_episodes": 50}
    run = aggrevated.train(Clock, expert=guess_sign, out=tmp_path / "run", say=discard, **few)
    result = run.result()
    assert result is not None and result.more["expert_return"] == 10.0 and result.more["test_return"] > 9.0
    mean, scale = estimate_observation_stats(run.config.problem.environment_simulator)  # type: ignore[attr-defined]
    assert abs(mean[0] - 1.7e9) < 1 and 0.5 < scale[0] < 2 and 5e-10 < scale[1] < 2e-9
    assert (mean[2], scale[2]) == (7e5, 7e5)
    assert [run.policy.predict(np.array([1.7e9 + x, 0.0, 7e5]), deterministic=True)[0] for x in (-1, 1)] == [0, 1]


def test_command_line_finds_user_code_in_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(Path(environments.__file__).read_text(encoding="utf-8"), encoding="utf-8")

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


def test_workers_and_sweeps_find_user_code_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(Path(environments.__file__).read_text(encoding="utf-8"), encoding="utf-8")

    def aggrevated_(*words: str) -> subprocess.CompletedProcess[str]:
        few = ["--horizon", "20", "--iterations", "2", "--validation-episodes", "8", "--test-episodes", "8"]
        command = [sys.executable, "-m", "aggrevated", *words, "--expert", "mine:lazy", "--json", *few]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    here, there = (aggrevated_("train", "mine:make", *more) for more in ([], ["--workers", "2"]))
    assert json.loads(here.stdout)["weights_sha256"] == json.loads(there.stdout)["weights_sha256"]
    swept = aggrevated_("sweep", "mine:make", "--vary", "temperature=0.05,0.1", "--seeds", "1", "--out", "sweep")
    assert swept.returncode == 0, swept.stderr


# ---- action scales


class Valve(gymnasium.Env[Any, Any]):
    """Environment: bring a pressure to its goal in one step, with actions in thousands and in thousandths."""

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


def open_valve(observation: Any) -> Any:
    return Valve.units * observation


def test_custom_problem_policy_acts_in_the_units_of_its_expert(tmp_path: Path) -> None:
    """The cost is not that of a normal deviation of 1: random actions cost 1.6 a step, and 20 steps cost 32."""
    run = aggrevated.train(
        Valve, expert=open_valve, out=tmp_path / "run", say=discard,
        iterations=12, validation_episodes=20, test_episodes=50, horizon=20,
    )  # fmt: skip
    result = run.result()
    assert result is not None and result.more["test_return"] > -8.0
    loaded = run.policy  # without queries of the expert
    np.testing.assert_allclose(loaded.head.unit, Valve.units, rtol=0.3)


def test_typical_action_stats_follow_the_actions_of_the_expert() -> None:
    """If the expert's action is constant, the unit is half of the allowed range, or the action's absolute value."""
    simulator = aggrevated.GymnasiumSimulator(Valve, 20)
    centre, unit = estimate_action_stats(simulator, aggrevated.as_expert(lambda _: np.array([500.0, 30.0]), simulator))
    assert centre.tolist() == [500.0, 30.0] and unit.tolist() == [1e6, 30.0]
