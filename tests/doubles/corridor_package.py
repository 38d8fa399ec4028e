"""A third-party package with a task, a simulator, an update, an oracle, a policy, a start and a method.

No file in src/ mentions it. The tests install it by its entry points and train with it by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Space
from torch.nn.utils import parameters_to_vector

from aggrevated import (
    ANY_COMPATIBLE,
    EXPERT_ORACLE,
    CategoricalHead,
    CostToGo,
    EpisodeEvaluator,
    EvaluationSettings,
    Expert,
    Feedback,
    FeedForwardPolicy,
    Head,
    HeadSettings,
    Method,
    OracleSettings,
    Policy,
    PolicySettings,
    Preset,
    Problem,
    ProblemSettings,
    Score,
    SeedPurpose,
    Simulator,
    StartSettings,
    Task,
    Trajectories,
    UpdateResult,
    UpdateSettings,
    compute_gradient_norm,
    compute_loss_and_gradient,
    derive_seeds,
    evaluate_mean_return,
    setting,
    take_safe_step,
)  # fmt: skip
from aggrevated.losses.all_actions import AllActionsSettings


@dataclass(frozen=True)
class Corridor:
    """Walk from 0 to the end; every step costs 1."""

    length: int = 5
    horizon: int = 20
    name: str = "corridor"
    observation_space = Box(0.0, 100.0, (1,), np.float32)
    action_space = Discrete(2)

    def reset(self, seeds):
        return np.zeros((len(seeds), 1))

    def observe(self, state):
        return state.astype(np.float32)

    def step(self, state, action):
        following = np.maximum(state + 2.0 * action[:, None] - 1.0, 0.0)
        return following, np.ones(len(state)), following[:, 0] >= self.length


@dataclass(frozen=True)
class CorridorExpert:
    """Expert of the corridor with exact costs-to-go."""

    length: int
    name: str = "knows the way"

    def q(self, states):
        left = self.length - states[:, 0]
        return np.stack([left + 2, left], axis=1)

    def act(self, states, t):
        return self.q(states).argmin(axis=1)


@dataclass(frozen=True)
class CorridorScore(Score):
    """Returns of policy and expert, and the number of episodes."""

    episodes: int


@dataclass(frozen=True)
class CorridorEvaluationSettings(EvaluationSettings):
    """Settings of an evaluation on new episodes."""

    walks: int = setting(10, "How many walks.")

    def measure(self, problem: ProblemSettings, policy: Policy) -> dict[str, Any]:
        assert isinstance(problem, CorridorProblemSettings)
        return problem.score(policy, self.walks, seed=77).to_dict()


@dataclass(frozen=True, kw_only=True)
class CorridorProblemSettings(ProblemSettings):
    """A corridor and its optimal expert."""

    name = "corridor"
    metric_name = "steps saved"
    evaluation = CorridorEvaluationSettings
    turn: Any = field(default=None, compare=False)  # an object that may not be picklable
    length: int = setting(5, "How long the corridor is.")

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        return Corridor.observation_space, Corridor.action_space

    def build(self, seed: int) -> Problem:
        simulator = Corridor(self.length)
        return Problem(
            simulator,
            CorridorExpert(self.length),
            validate=EpisodeEvaluator(simulator, derive_seeds(seed, SeedPurpose.VALIDATION, 0, 10)),
            test=lambda policy: self.score(policy, 20, seed),
            fingerprint={"length": torch.tensor(self.length)},
        )

    def score(self, policy: Policy, episodes: int, seed: int) -> CorridorScore:
        seeds = derive_seeds(seed, SeedPurpose.TEST, 0, episodes)
        mean_return = evaluate_mean_return(policy, Corridor(self.length), seeds)
        return CorridorScore(-float(self.length), mean_return, -self.length / mean_return, episodes)


@dataclass
class SignedUpdate:
    """An update with a step of the same length for every weight."""

    size: float
    max_kl: float = 1.0

    def __call__(self, policy, loss, trajectories, cost_to_go) -> UpdateResult:
        value, gradient = compute_loss_and_gradient(policy, loss, trajectories, cost_to_go)
        kl, halvings = take_safe_step(policy, trajectories, -self.size * gradient.sign(), self.max_kl)
        return UpdateResult(value, compute_gradient_norm(gradient), kl, halvings)

    def state(self) -> Mapping[str, torch.Tensor]:
        return {}

    def restore(self, state) -> None:
        assert not state


@dataclass(frozen=True)
class SignedSettings(UpdateSettings):
    """An update by the sign of the gradient."""

    name = "signed"
    step_size: float = setting(0.05, "Of every weight's step.")

    def build(self, seed: int) -> SignedUpdate:
        return SignedUpdate(self.step_size)


@dataclass(frozen=True)
class SteppedOracle:
    """Q* of the expert, weighted; it also checks that the learning policy is passed and finite."""

    expert: Any
    weight: float

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        assert policy is not None and torch.isfinite(parameters_to_vector(policy.parameters())).all()
        mask = trajectories.mask
        values = np.zeros((*mask.shape, 2), np.float32)
        values[mask] = self.weight * self.expert.q(trajectories.states[mask])
        return CostToGo(values - values.min(axis=2, keepdims=True), mask.astype(np.float32), trajectories.steps)


@dataclass(frozen=True)
class SteppedSettings(OracleSettings):
    """Q*, weighted."""

    name = "stepped"
    weight: float = setting(1.0, "Of every cost.")

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS

    def build(self, simulator: Simulator, expert: Expert) -> SteppedOracle:
        return SteppedOracle(expert, self.weight)


@dataclass(frozen=True)
class TinySettings(PolicySettings):
    """A linear policy."""

    name = "tiny"

    def build(self, observations: Space[Any], head: Head, seed: int) -> Policy:
        return FeedForwardPolicy(observations.shape[0], head, (), torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class BoldSettings(AllActionsSettings):
    """All actions, by another name."""

    name = "bold"


@dataclass(frozen=True)
class PairSettings(HeadSettings):
    """Several discrete choices as one."""

    name = "pair"
    is_discrete = True

    @classmethod
    def accepts(cls, actions: Space[Any]) -> bool:
        return isinstance(actions, MultiDiscrete)

    def build(self, actions: Space[Any]) -> CategoricalHead:
        return CategoricalHead(int(np.prod(actions.nvec)))


@dataclass(frozen=True)
class EagerStartSettings(StartSettings):
    """A start with a policy that prefers to go right."""

    name = "eager"
    push: float = setting(1.0, "How eagerly.")

    def begin(self, policy: Policy, simulator: Simulator, expert: Expert, seed: int, k: int) -> tuple[int, int]:
        with torch.no_grad():
            list(policy.parameters())[-1][1] += self.push
        return 0, 0


STROLL = Method("Stroll", "random", EXPERT_ORACLE, ("all-actions",), ("signed", ANY_COMPATIBLE))
TASK = Task(
    name="corridor",
    title="A corridor",
    problem=CorridorProblemSettings(),
    policy="tiny",
    components=(TinySettings,),
    presets=(Preset({"iterations": 12, "trajectories": 5}), Preset({"learning_rate": 0.2}, update="regular")),
)
WINDING = replace(TASK, name="winding", problem=CorridorProblemSettings(turn=lambda: "left"))
POINTS = {
    "aggrevated.tasks": "corridor = corridor_package:TASK\nwinding = corridor_package:WINDING",
    "aggrevated.policies": "tiny = corridor_package:TinySettings",
    "aggrevated.losses": "bold = corridor_package:BoldSettings",
    "aggrevated.heads": "pair = corridor_package:PairSettings",
    "aggrevated.updates": "signed = corridor_package:SignedSettings",
    "aggrevated.oracles": "stepped = corridor_package:SteppedSettings",
    "aggrevated.starts": "eager = corridor_package:EagerStartSettings",
    "aggrevated.methods": "stroll = corridor_package:STROLL",
}
