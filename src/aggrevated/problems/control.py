"""Control: a simulator, a trained expert, fresh episodes for every purpose."""

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

VALIDATED = 20_000  # steps
TESTED = 1000  # episodes
# answers by which an expert's pace is measured, and seconds that are worth a word before
PILOT = 4
LONG = 10.0
GIVE_AGAIN = (
    "go on in Python, and give it again: aggrevated.resume(folder, expert=...), or Run.open(folder, expert=...)"
)
SimulatorFactory = Callable[[int], Simulator]  # from the horizon H
_MEASURED: dict[tuple[object, ...], tuple[Array, object]] = {}  # returns of experts; the makers keep their ids


def zero_return(horizon: int) -> float:
    """The lowest return, where every step earns something."""
    return 0.0


def negative_horizon(horizon: int) -> float:
    """The lowest return, where every step costs 1 until the goal."""
    return -float(horizon)


def to_tensors(arrays: dict[str, Array]) -> dict[str, Tensor]:
    """The arrays as torch has them."""
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def to_absolute_path(expert: str) -> str:
    """The whole path of a file, or the name as it is."""
    is_name = not expert or expert in list_builtin_experts() or not Path(expert).is_file()
    return expert if is_name else os.path.realpath(expert)


@dataclass(frozen=True)
class FreshEpisodesSettings(EvaluationSettings):
    """Episodes that were used for nothing else."""

    episodes: int = setting(1000, "How many episodes.", at_least(1))
    seed: int = setting(1_000_000, "The seed of the episodes; the default is one that no training used.", SEED)
    deterministic: bool = setting(False, "Take the policy's most likely action instead of drawing one.")

    def measure(self, world: ProblemSettings, policy: Policy) -> JsonDict:
        assert isinstance(world, ControlProblem)
        score = world.returns(policy, self.episodes, self.seed, self.deterministic)
        return score.to_dict() | {"episodes": self.episodes, "deterministic": self.deterministic}


@dataclass(frozen=True, kw_only=True)
class ControlProblem(ProblemSettings):
    """A simulator with an expert that was trained in it."""

    name = "control"
    protocol_settings: ClassVar[tuple[str, ...]] = ("horizon",)
    evaluation = FreshEpisodesSettings
    make: SimulatorFactory = field(compare=False)
    seen_by_expert: SimulatorFactory | None = field(default=None, compare=False)  # the simulator as the expert sees it
    # unless one is named; what such an expert knows is not in the fingerprint: its `habits` tell it from another
    make_expert: Callable[[Simulator], Expert] | None = field(default=None, compare=False)
    worst_return: Callable[[int], float] = field(
        default=zero_return, compare=False
    )  # return within H; ratios are from there
    horizon: int = setting(100, "H, after how many steps an episode is cut.", at_least(1))
    expert: str = setting(
        "",
        "A shipped expert's name, a .safetensors file of 'expert train', or a Stable-Baselines3 .zip; or several with "
        "commas between, of which the best in each state advises.",
    )
    validation_episodes: int = setting(
        0, "How many episodes the best policy is chosen on; 0: 40 to 100, for 20,000 steps about.", COUNT
    )
    test_episodes: int = setting(
        TESTED, "How many fresh episodes the chosen policy is tested on, at the end.", at_least(1)
    )

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """An expert's file is found again from everywhere; validation has episodes for its number of steps."""
        episodes = self.validation_episodes or min(max(VALIDATED // max(self.horizon, 1), 40), 100)
        expert = ",".join(to_absolute_path(name) for name in split_names(self.expert))
        return replace(self, expert=expert, validation_episodes=episodes)

    @property
    def steps(self) -> int:
        return self.horizon

    @cached_property
    def simulator(self) -> Simulator:
        return self.make(self.horizon)

    @property
    def has_unnamed_expert(self) -> bool:
        """Whether its expert has no name in its settings, as has one that was given in Python."""
        return self.make_expert is not None and not self.expert

    @cached_property
    def loaded_expert(self) -> Expert:
        """π*."""
        if not self.expert and self.make_expert is None:
            raise UsageError(f"the run has an expert that was a Python object; {GIVE_AGAIN}")
        seen = (self.seen_by_expert or self.make)(self.horizon)
        return self.make_expert(seen) if self.make_expert and not self.expert else load_expert(self.expert, seen)

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        return self.simulator.observation_space, self.simulator.action_space

    @property
    def expert_weights(self) -> dict[str, Tensor]:
        """All that π* has learned, by number; nothing of an expert that is no network."""
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
            validates_expert=bool(self.expert_weights),  # a network is quick; a planner may not be
        )

    def fingerprint(self) -> dict[str, Tensor]:
        """Of all that shapes the bits besides the settings."""
        return self.expert_weights

    def expert_fingerprint(self) -> dict[str, Tensor]:
        """Of what an expert does that is no network."""
        if not self.has_unnamed_expert or self.expert_weights:
            return {}
        try:
            return to_tensors(compute_behavior_fingerprint(self.loaded_expert, self.simulator))
        except UserCodeError:  # it draws, or remembers, and has no habits to be known by
            return {}

    @property
    def n_test_episodes(self) -> int:
        """How many fresh episodes the chosen policy is tested on."""
        return self.test_episodes or TESTED

    def count_expert_test_episodes(self, answers: int) -> int:
        """The same of the expert, where it gave so many answers in training."""
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
        """The returns of policy and expert on episodes that were used for nothing else; `by_expert`: on so many."""
        check_enough_memory("episodes", episodes, self.horizon)
        fresh = derive_seeds(seed, SeedPurpose.TEST, 0, episodes)
        own = min(by_expert or episodes, episodes)
        returned, _ = evaluate_returns(policy, self.simulator, fresh, deterministic, engine)
        of_expert = self.measure_expert_returns(fresh[:own], engine)
        test = float(returned.mean())
        expert = float(of_expert.mean())
        return Score(
            expert,
            test,
            self.ratio(test, expert),
            expert_standard_error=estimate_standard_error(of_expert),
            test_standard_error=estimate_standard_error(returned),
            expert_diverged=own - len(of_expert),
            test_diverged=episodes - len(returned),
            expert_episodes=own if own < episodes else None,
        )

    def measure_expert_returns(self, fresh: Array, engine: Engine = IN_PROCESS) -> Array:
        """What π* earns on the episodes of these seeds; of an expert from a file, measured once in a process.

        What another one does may hang on more than its weights, so that it is asked again.
        """
        by = self.cache_key()
        if by is None:
            return evaluate_returns(self.loaded_expert, self.simulator, fresh, engine=engine)[0]
        known = *by, fresh.tobytes()
        if known not in _MEASURED:
            makers = self.make, self.seen_by_expert
            _MEASURED[known] = evaluate_returns(self.loaded_expert, self.simulator, fresh, engine=engine)[0], makers
        return _MEASURED[known][0]

    def cache_key(self) -> tuple[object, ...] | None:
        """All that the expert's returns hang on; None where that cannot be known."""
        if self.make_expert and not self.expert:
            return None
        makers = self.make, self.seen_by_expert
        return *map(id, makers), self.horizon, self.expert, digest_tensors(self.expert_weights)

    def ratio(self, returned: float, expert: float) -> float | None:
        """(R − lowest) / (R* − lowest): for Acrobot that is the share of steps saved.

        None where the expert itself is at the lowest, as it is when H is too short for it.
        """
        lowest = self.worst_return(self.horizon)
        return (returned - lowest) / (expert - lowest) if expert > lowest else None

    def expert_identity(self) -> object:
        return self.expert, self.horizon


@dataclass(frozen=True)
class HeldOutEvaluator:
    """The score on episodes that nothing was chosen by."""

    problem: ControlProblem
    seed: int
    engine: Engine = IN_PROCESS
    by_expert: int | None = None  # episodes; None: as many as of the policy

    def with_engine(self, engine: Engine) -> HeldOutEvaluator:
        """The same by another engine."""
        return replace(self, engine=engine)

    def with_training_cost(self, answers: int) -> HeldOutEvaluator:
        """The same after a training in which the expert gave so many answers."""
        return replace(self, by_expert=self.problem.count_expert_test_episodes(answers))

    def notice(self) -> str:
        """What the expert's part of it will take, where that is long; a network's is not."""
        world = self.problem
        expert = self.problem.loaded_expert
        if world.expert_weights:
            return ""
        episodes = self.by_expert or world.n_test_episodes
        states = reset_and_check(world.simulator, np.arange(PILOT, dtype=np.uint64))
        began = time.perf_counter()
        query_actions(expert, states, 0, world.simulator.action_space)
        pace = (time.perf_counter() - began) / PILOT
        seconds = pace * episodes * world.horizon
        if seconds < LONG:
            return ""
        return (
            f"the test: {world.n_test_episodes:,} fresh episodes of the chosen policy, and {episodes:,} of the expert "
            f"{expert.name}, at most about {format_duration(seconds)} at the {1000 * pace:.3g} ms that it "
            "takes for an answer; "
            "--test-episodes sets how many"
        )

    def __call__(self, policy: Policy) -> Score:
        tested = self.problem.n_test_episodes
        return self.problem.returns(policy, tested, self.seed, engine=self.engine, by_expert=self.by_expert)


def format_duration(seconds: float) -> str:
    """So long, in a unit that people read."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} seconds"


def require_control_problem(world: ProblemSettings, what: str) -> ControlProblem:
    """The world, if it is one of control; else a `UsageError` that says `what` is not for it."""
    if isinstance(world, ControlProblem):
        return world
    raise UsageError(f"{what} is for tasks with a simulator that moves and a trained expert, not for {world.name}")
