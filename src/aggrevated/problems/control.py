"""Control problems: a simulator, a trained expert, and separate episodes for each purpose."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from gymnasium.spaces import Space
from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError, UserCodeError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.core.settings import COUNT, SEED, at_least, setting
from aggrevated.core.statistics import estimate_standard_error
from aggrevated.engines import IN_PROCESS, Engine
from aggrevated.experts import Expert
from aggrevated.experts.checked import query_actions
from aggrevated.experts.fingerprint import collect_expert_arrays, compute_behavior_fingerprint
from aggrevated.experts.loading import list_builtin_experts, load_expert, split_names
from aggrevated.policies import Policy
from aggrevated.problems import EvaluationSettings, Problem, ProblemSettings, Score, check_enough_memory
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import reset_and_check
from aggrevated.storage import JsonDict, digest_tensors
from aggrevated.validation import EpisodeEvaluator, evaluate_returns

VALIDATED = 20_000  # default number of validation steps
TESTED = 1000  # default number of test episodes
PILOT = 4  # queries that measure the expert's speed
LONG = 10.0  # seconds of the expert's test episodes above which a message announces them
GIVE_AGAIN = (
    "continue in Python and pass it again: aggrevated.resume(folder, expert=...), or Run.open(folder, expert=...)"
)
SimulatorFactory = Callable[[int], Simulator]  # from the horizon H
# Returns of experts. The factories are stored because their ids are part of the keys.
_MEASURED: dict[tuple[object, ...], tuple[Array, object]] = {}


def zero_return(horizon: int) -> float:
    """Return 0, the lowest return where no step has a positive cost."""
    return 0.0


def negative_horizon(horizon: int) -> float:
    """Return −H, the lowest return where each step before the goal costs 1.

    Args:
        horizon: H in steps.

    Returns:
        The lowest return.

    Example:
        >>> negative_horizon(200)
        -200.0
    """
    return -float(horizon)


def to_tensors(arrays: dict[str, Array]) -> dict[str, Tensor]:
    """Return the arrays as tensors."""
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def to_absolute_path(expert: str) -> str:
    """Return the absolute path of a file, or an unchanged name."""
    is_name = not expert or expert in list_builtin_experts() or not Path(expert).is_file()
    return expert if is_name else os.path.realpath(expert)


@dataclass(frozen=True)
class FreshEpisodesSettings(EvaluationSettings):
    """Evaluation on episodes that were not used in training.

    Args:
        episodes: number of episodes.
        seed: seed of the episodes.
        deterministic: whether the policy takes its most likely action instead of sampling.
    """

    episodes: int = setting(1000, "Number of episodes.", at_least(1))
    seed: int = setting(1_000_000, "Seed of the episodes; training never uses the default.", SEED)
    deterministic: bool = setting(False, "Take the policy's most likely action instead of sampling.")

    def measure(self, problem: ProblemSettings, policy: Policy) -> JsonDict:
        assert isinstance(problem, ControlProblem)
        score = problem.returns(policy, self.episodes, self.seed, self.deterministic)
        return score.to_dict() | {"episodes": self.episodes, "deterministic": self.deterministic}


@dataclass(frozen=True, kw_only=True)
class ControlProblem(ProblemSettings):
    """Settings of a problem with a simulator and an expert that was trained in it.

    Args:
        make: function from the horizon H to the simulator that the learner observes.
        seen_by_expert: function from H to the simulator that the expert observes; None: `make`.
        make_expert: function from that simulator to an expert, used unless `expert` is set. It is not part of
            the fingerprint, which identifies such an expert by its actions.
        worst_return: function from H to the lowest possible return, from which ratios are measured.
        horizon: H, the number of steps after which an episode is cut.
        expert: name or file of the expert, or several with commas between.
        validation_episodes: number of episodes that select the best policy; 0: 40 to 100, for about 20,000
            steps.
        test_episodes: number of episodes that test the selected policy.
    """

    name = "control"
    protocol_settings: ClassVar[tuple[str, ...]] = ("horizon",)
    evaluation = FreshEpisodesSettings
    make: SimulatorFactory = field(compare=False)
    seen_by_expert: SimulatorFactory | None = field(default=None, compare=False)
    make_expert: Callable[[Simulator], Expert] | None = field(default=None, compare=False)
    worst_return: Callable[[int], float] = field(default=zero_return, compare=False)
    horizon: int = setting(100, "H, the number of steps after which an episode is cut.", at_least(1))
    expert: str = setting(
        "",
        "A builtin expert's name, a .safetensors file of 'expert train', or a Stable-Baselines3 .zip. Of several "
        "with commas between, the best in each state is used.",
    )
    validation_episodes: int = setting(
        0, "Number of episodes that select the best policy; 0: 40 to 100, for about 20,000 steps.", COUNT
    )
    test_episodes: int = setting(
        TESTED, "Number of fresh episodes that test the selected policy at the end.", at_least(1)
    )

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """Return a copy with the absolute path of the expert's file and the number of validation episodes.

        Args:
            iterations: number of iterations of the run.
            given: names of settings that were set explicitly.

        Returns:
            The copy.
        """
        episodes = self.validation_episodes or min(max(VALIDATED // max(self.horizon, 1), 40), 100)
        expert = ",".join(to_absolute_path(name) for name in split_names(self.expert))
        return replace(self, expert=expert, validation_episodes=episodes)

    @property
    def steps(self) -> int:
        return self.horizon

    @cached_property
    def simulator(self) -> Simulator:
        """Simulator that the learner observes."""
        return self.make(self.horizon)

    @property
    def has_unnamed_expert(self) -> bool:
        """True if the expert is a Python object that no setting names."""
        return self.make_expert is not None and not self.expert

    @cached_property
    def loaded_expert(self) -> Expert:
        """The expert π*, loaded on first use.

        Raises:
            UsageError: the expert was a Python object, which a run's folder does not contain.
        """
        if not self.expert and self.make_expert is None:
            raise UsageError(f"the run's expert was a Python object; {GIVE_AGAIN}")
        simulator = (self.seen_by_expert or self.make)(self.horizon)
        if self.make_expert and not self.expert:
            return self.make_expert(simulator)
        return load_expert(self.expert, simulator)

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        return self.simulator.observation_space, self.simulator.action_space

    @property
    def expert_weights(self) -> dict[str, Tensor]:
        """Weights of π* by number; empty for an expert that is not a network."""
        return {str(i): torch.from_numpy(array) for i, array in enumerate(collect_expert_arrays(self.loaded_expert))}

    def build(self, seed: int) -> Problem:
        return Problem(
            self.simulator,
            self.loaded_expert,
            validate=EpisodeEvaluator(
                self.simulator, derive_seeds(seed, SeedPurpose.VALIDATION, 0, self.validation_episodes)
            ),
            test=HeldOutEvaluator(self, seed),
            fingerprint=self.fingerprint(),
            expert_fingerprint=self.expert_fingerprint(),
            validates_expert=bool(self.expert_weights),  # a network is fast; a planner may not be
        )

    def fingerprint(self) -> dict[str, Tensor]:
        """Return tensors that identify everything, besides settings, that determines results.

        Returns:
            Tensors by name: the expert's weights.
        """
        return self.expert_weights

    def expert_fingerprint(self) -> dict[str, Tensor]:
        """Return tensors that identify an expert that is not a network by its actions.

        Returns:
            Tensors by name; empty for networks, and for experts that are random or have memory.
        """
        if not self.has_unnamed_expert or self.expert_weights:
            return {}
        try:
            return to_tensors(compute_behavior_fingerprint(self.loaded_expert, self.simulator))
        except UserCodeError:  # a random expert, or one with memory
            return {}

    @property
    def n_test_episodes(self) -> int:
        """Number of fresh episodes that test the selected policy."""
        return self.test_episodes or TESTED

    def count_expert_test_episodes(self, answers: int) -> int:
        """Return the number of fresh episodes that test the expert.

        Args:
            answers: number of actions that the expert returned in training.

        Returns:
            The number of episodes.
        """
        return self.n_test_episodes

    def returns(
        self,
        policy: Policy,
        episodes: int,
        seed: int,
        deterministic: bool = False,
        engine: Engine = IN_PROCESS,
        by_expert: int | None = None,
    ) -> Score:
        """Score a policy and the expert on test episodes.

        Args:
            policy: the policy.
            episodes: number of episodes.
            seed: seed from which the seeds of the episodes are derived.
            deterministic: whether the policy takes its most likely action instead of sampling.
            engine: the engine that runs the episodes.
            by_expert: number of these episodes that the expert runs; None: all.

        Returns:
            The score.

        Raises:
            UsageError: the episodes need too much memory.
        """
        check_enough_memory("episodes", episodes, self.horizon)
        seeds = derive_seeds(seed, SeedPurpose.TEST, 0, episodes)
        n_expert = min(by_expert or episodes, episodes)
        policy_returns, _ = evaluate_returns(policy, self.simulator, seeds, deterministic, engine)
        expert_returns = self.measure_expert_returns(seeds[:n_expert], engine)
        test = float(policy_returns.mean())
        expert = float(expert_returns.mean())
        return Score(
            expert,
            test,
            self.ratio(test, expert),
            expert_standard_error=estimate_standard_error(expert_returns),
            test_standard_error=estimate_standard_error(policy_returns),
            expert_diverged=n_expert - len(expert_returns),
            test_diverged=episodes - len(policy_returns),
            expert_episodes=n_expert if n_expert < episodes else None,
        )

    def measure_expert_returns(self, fresh: Array, engine: Engine = IN_PROCESS) -> Array:
        """Return the expert's returns; those of an expert from a file are cached in this process.

        Args:
            fresh: seeds of the episodes, uint64 [n].
            engine: the engine that runs the episodes.

        Returns:
            Returns of the episodes that did not diverge, float64, at most n.
        """
        expert_key = self.cache_key()
        if expert_key is None:
            return evaluate_returns(self.loaded_expert, self.simulator, fresh, engine=engine)[0]
        key = *expert_key, fresh.tobytes()
        if key not in _MEASURED:
            factories = self.make, self.seen_by_expert
            returns, _ = evaluate_returns(self.loaded_expert, self.simulator, fresh, engine=engine)
            _MEASURED[key] = returns, factories
        return _MEASURED[key][0]

    def cache_key(self) -> tuple[object, ...] | None:
        """Return everything that the expert's returns depend on.

        Returns:
            A key; None for a Python object, whose behavior may depend on anything.
        """
        if self.make_expert and not self.expert:
            return None
        factories = self.make, self.seen_by_expert
        return *map(id, factories), self.horizon, self.expert, digest_tensors(self.expert_weights)

    def ratio(self, returned: float, expert: float) -> float | None:
        """Return (R − lowest) / (R* − lowest); for Acrobot this is the share of steps saved.

        Args:
            returned: R, the mean return of the policy.
            expert: R*, the mean return of the expert.

        Returns:
            The ratio; None where the expert's return is the lowest, as when H is too short for it.
        """
        lowest = self.worst_return(self.horizon)
        return (returned - lowest) / (expert - lowest) if expert > lowest else None

    def expert_identity(self) -> object:
        return self.expert, self.horizon


@dataclass(frozen=True)
class HeldOutEvaluator:
    """Evaluator of a policy and the expert on test episodes.

    Attributes:
        problem: the problem.
        seed: seed of the run.
        engine: the engine that runs the episodes.
        by_expert: number of episodes of the expert; None: as many as of the policy.
    """

    problem: ControlProblem
    seed: int
    engine: Engine = IN_PROCESS
    by_expert: int | None = None

    def with_engine(self, engine: Engine) -> HeldOutEvaluator:
        """Return a copy that uses another engine."""
        return replace(self, engine=engine)

    def with_training_cost(self, answers: int) -> HeldOutEvaluator:
        """Return a copy for a training in which the expert returned `answers` actions."""
        return replace(self, by_expert=self.problem.count_expert_test_episodes(answers))

    def notice(self) -> str:
        """Return a message on how long the expert's test episodes may take; "" where this is short."""
        problem = self.problem
        expert = problem.loaded_expert
        if problem.expert_weights:
            return ""
        episodes = self.by_expert or problem.n_test_episodes
        states = reset_and_check(problem.simulator, np.arange(PILOT, dtype=np.uint64))
        started_at = time.perf_counter()
        query_actions(expert, states, 0, problem.simulator.action_space)
        seconds_per_query = (time.perf_counter() - started_at) / PILOT
        seconds = seconds_per_query * episodes * problem.horizon
        if seconds < LONG:
            return ""
        return (
            f"the test: {problem.n_test_episodes:,} fresh episodes of the selected policy, and {episodes:,} of the "
            f"expert {expert.name}, which take at most about {format_duration(seconds)} at "
            f"{1000 * seconds_per_query:.3g} ms per query; --test-episodes sets their number"
        )

    def __call__(self, policy: Policy) -> Score:
        episodes = self.problem.n_test_episodes
        return self.problem.returns(policy, episodes, self.seed, engine=self.engine, by_expert=self.by_expert)


def format_duration(seconds: float) -> str:
    """Return a duration in minutes, or in seconds below two minutes."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} seconds"


def require_control_problem(problem: ProblemSettings, caller: str) -> ControlProblem:
    """Return a control problem, or raise for other problems.

    Args:
        problem: settings of the problem.
        caller: the command or page that needs a control problem.

    Raises:
        UsageError: the problem is not a control problem.
    """
    if isinstance(problem, ControlProblem):
        return problem
    raise UsageError(f"{caller} needs a control task, with a simulator and a trained expert; {problem.name} is not one")
