"""A world of one's own: any environment of Gymnasium, or any simulator, with any expert."""

from __future__ import annotations

import inspect
import json
from collections import OrderedDict
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import gymnasium
from gymnasium.spaces import Space
from torch import Tensor

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.settings import COUNT, Rule, SelectedComponents, check_setting, setting
from aggrevated.core.spaces import SpaceAdapter
from aggrevated.core.user_code import call_user_code
from aggrevated.experts import Expert
from aggrevated.experts.adapters import as_expert, get_expert_capability
from aggrevated.experts.fingerprint import compute_behavior_fingerprint
from aggrevated.experts.loading import load_expert
from aggrevated.policies import Policy
from aggrevated.policies.heads import GaussianHead
from aggrevated.problems import Problem, check_enough_memory
from aggrevated.problems.code_references import import_reference, is_reference
from aggrevated.problems.control import GIVE_AGAIN, ControlProblem, to_absolute_path, to_tensors
from aggrevated.problems.expert_fingerprint import compute_expert_fingerprint
from aggrevated.problems.normalization import estimate_action_stats, estimate_observation_stats
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import observe_float64
from aggrevated.simulators.gymnasium import GymnasiumSimulator
from aggrevated.simulators.partial_observation import PartialObservationSimulator
from aggrevated.storage import JsonDict

ORACLE_BY_CAPABILITY = {
    "q": "q-star",
    "q_of": "state-action-q",
    "v": "value-function",
    "act": "monte-carlo",
}  # by what is known
MIN_TEST_EPISODES = 20  # episodes of an expert: fewer tell nothing
CACHE_SIZE = 10  # simulators and experts: a config is replaced several times before it is built
INDICES = Rule(lambda value: all(0 <= i < 1_000_000 for i in value), "numbers of places, from 0 on")


def raise_no_factory(horizon: int) -> Simulator:
    """A world of one's own is not made from its horizon alone."""
    raise AssertionError("a world of one's own makes its simulator itself")


@dataclass(frozen=True, kw_only=True)
class CustomProblem(ControlProblem):
    """An environment of one's own, with an expert of one's own."""

    name = "custom"
    has_ratio = False
    selection_settings: ClassVar[tuple[str, ...]] = (
        "environment_options",
        "horizon",
        "expert",
        "vec_normalize",
        "observation_columns",
    )
    make: Callable[[int], Simulator] = field(default=raise_no_factory, compare=False)
    environment: Any = field(compare=False)  # an id, module:attribute, a function that makes one, or a simulator
    given: Any = field(default=None, compare=False)  # the expert, if it is no name
    trusted: bool = field(default=False, compare=False)  # whether code that it names may be imported
    horizon: int = setting(0, "H, after how many steps an episode is cut; 0: the environment's own limit.", COUNT)
    expert: str = setting(
        "",
        "A Stable-Baselines3 .zip, a .safetensors file, module:attribute of a function or an object that acts, or a "
        ".npz of demonstrations.",
    )
    vec_normalize: str = setting("", "The VecNormalize statistics, .pkl or .npz, that the expert was trained with.")
    environment_options: str = setting("", "What the environment is made with, as JSON: '{\"is_slippery\": false}'.")
    test_episodes: int = setting(
        0,
        "How many fresh episodes the chosen policy and the expert are tested on, at the end; 0: 1,000, but an expert "
        "that is no network answers there about as often as in training at most, in 20 episodes or more.",
        COUNT,
    )
    observation_columns: tuple[int, ...] = setting(
        (), "Which numbers of an observation the learner sees, from 0; the expert sees all. Default: all.", INDICES
    )
    normalize_observations: bool = setting(
        True, "Scale what the learner sees by its mean and spread under random actions."
    )

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """The horizon is the environment's own, where none was given; statistics are found from everywhere."""
        found = replace(
            self, horizon=self.environment_simulator.horizon, vec_normalize=to_absolute_path(self.vec_normalize)
        )
        return super(CustomProblem, found).fill_defaults(iterations, given)

    def check(self, chosen: SelectedComponents) -> None:
        check_enough_memory("test_episodes", self.n_test_episodes, self.horizon)

    def recommended_components(self) -> dict[str, str]:
        policy = "cnn" if self.space_adapter.is_image else "lstm" if self.observation_columns else "mlp"
        rung = get_expert_capability(self.loaded_expert)
        if rung != "q" and self.expert_weights:  # critics are the weakest part of a trained model
            rung = "act"
        return {"policy": policy, "oracle": ORACLE_BY_CAPABILITY[rung]}

    @property
    def environment_simulator(self) -> Simulator:
        """The simulator as it comes, and as the expert sees it."""
        key = "simulator", self.environment, self.environment_options, self.horizon
        made: Simulator = build_cached(
            key, lambda: make_simulator(self.environment, self._options, self.horizon, self.trusted)
        )
        _KEPT.setdefault(make_comparable_key((*key[:3], made.horizon)), (key, made))
        return made

    @property
    def _options(self) -> JsonDict:
        try:
            options = json.loads(self.environment_options or "{}")
        except json.JSONDecodeError as error:
            raise UsageError(f"--environment-options is no JSON ({error}); give an object such as {{}}") from error
        check_setting(isinstance(options, dict), "environment_options", self.environment_options, "a JSON object")
        return dict(options)

    @property
    def raw_space_adapter(self) -> SpaceAdapter:
        """The same up to what the expert sees."""
        found = getattr(self.environment_simulator, "space_adapter", None)
        return found or SpaceAdapter(
            self.environment_simulator.observation_space, self.environment_simulator.action_space
        )

    @property
    def space_adapter(self) -> SpaceAdapter:
        """Between the environment's own observations and actions and what the learner sees and does."""
        raw = self.raw_space_adapter
        check_setting(
            not (self.observation_columns and raw.is_image),
            "observation_columns",
            self.observation_columns,
            "left out where observations are pictures",
        )
        size = raw.observation_space.shape[0]
        check_setting(
            all(i < size for i in self.observation_columns),
            "observation_columns",
            self.observation_columns,
            f"below {size}, as many as are shown",
        )
        columns = tuple(self.observation_columns) or None
        if not self.normalize_observations or raw.is_image:
            return replace(raw, columns=columns)
        key = "scales", self.environment, self.environment_options, self.horizon
        mean, scale = build_cached(key, lambda: estimate_observation_stats(self.environment_simulator))
        chosen = list(self.observation_columns) or slice(None)
        return replace(raw, columns=columns, mean=mean[chosen], scale=scale[chosen])

    @property
    def simulator(self) -> Simulator:
        translation = self.space_adapter
        if translation.columns is None and translation.mean is None:
            return self.environment_simulator
        return PartialObservationSimulator(
            self.environment_simulator,
            LearnerView(self.environment_simulator, translation),
            translation.learner_observation_space,
            self.environment_simulator.name,
        )

    @property
    def loaded_expert(self) -> Expert:
        found: Expert = build_cached(("expert", *self._identity), self._load)
        return found

    @property
    def _identity(self) -> tuple[Any, ...]:
        """All that the expert hangs on."""
        environment = self.environment, self.environment_options, self.horizon
        return *environment, self.expert, self.vec_normalize, self.given

    def _load(self) -> Expert:
        if self.given is not None and not self.expert:
            return as_expert(self.given, self.environment_simulator)
        if not self.expert:
            raise UsageError(
                "an environment of your own needs an expert: give --expert with a Stable-Baselines3 .zip, a .npz of "
                "demonstrations, or module:attribute of a function of one observation; of a run whose expert was a "
                f"Python object, {GIVE_AGAIN}"
            )
        if is_reference(self.expert):
            return as_expert(import_reference(self.expert, self.trusted), self.environment_simulator, self.expert)
        if self.expert.endswith(".npz") or self.expert.startswith("minari:"):
            return as_expert(self.expert, self.environment_simulator)
        return load_expert(self.expert, self.environment_simulator, self.vec_normalize)

    def build(self, seed: int) -> Problem:
        return replace(super().build(seed), prepare=self.init_action_scale)

    def init_action_scale(self, policy: Policy) -> None:
        """Let a policy of vectors act where the expert does, in its units."""
        for part in policy.modules():
            if isinstance(part, GaussianHead):
                part.init_action_scale(
                    *build_cached(
                        ("actions", *self._identity),
                        lambda: estimate_action_stats(self.environment_simulator, self.loaded_expert),
                    )
                )

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        translation = self.space_adapter
        return translation.learner_observation_space, translation.action_space

    def fingerprint(self) -> dict[str, Tensor]:
        """Of how environment and expert behave, and of how observations are scaled."""
        of_environment: dict[str, Array] = getattr(self.environment_simulator, "fingerprint", dict)()
        seen = {"mean": self.space_adapter.mean, "scale": self.space_adapter.scale}
        weights = self.expert_weights or to_tensors(
            compute_behavior_fingerprint(self.loaded_expert, self.environment_simulator)
        )
        return {f"expert.{n}": w for n, w in weights.items()} | to_tensors(
            {f"environment.{n}": array for n, array in of_environment.items()}
            | {name: array for name, array in seen.items() if array is not None}
        )

    def expert_fingerprint(self) -> dict[str, Tensor]:
        return (
            {}
            if self.expert_weights
            else to_tensors(compute_expert_fingerprint(self.loaded_expert, self.environment_simulator))
        )

    def count_expert_test_episodes(self, answers: int) -> int:
        """Unless it was said how many: a slow expert is tested for no longer than it was asked in training."""
        if self.test_episodes or self.expert_weights:
            return self.n_test_episodes
        return min(self.n_test_episodes, max(MIN_TEST_EPISODES, answers // self.horizon))

    def cache_key(self) -> tuple[object, ...] | None:
        return None  # what an expert of one's own does may hang on more than can be known

    def ratio(self, returned: float, expert: float) -> float | None:
        """Nobody knows the lowest return of an environment of one's own."""
        return None

    def expert_identity(self) -> object:
        return self.expert, self.environment_options, self.horizon


@dataclass(frozen=True)
class LearnerView:
    """What the learner sees of states."""

    simulator: Simulator
    space_adapter: SpaceAdapter

    def __call__(self, states: Array) -> Array:
        return self.space_adapter.view(observe_float64(self.simulator, states))


def make_simulator(environment: Any, options: JsonDict, horizon: int, trusted: bool) -> Simulator:
    """The simulator that was given, or one around the environment."""
    name = environment if isinstance(environment, str) else None
    if is_reference(environment):
        environment = import_reference(environment, trusted)
    if is_simulator_like(environment):
        return check_own_horizon(environment, horizon)
    if callable(environment):
        takes = list_signature_parameters(environment)
        own = options | ({"horizon": horizon} if horizon and "horizon" in takes else {})
        called = str(name or getattr(environment, "__name__", type(environment).__name__))
        if missing := [one for one in list_required_parameters(environment) if one not in own]:
            example = json.dumps(dict.fromkeys(missing, "..."))
            raise UsageError(
                f"{called} needs {' and '.join(missing)} to make an environment: give --environment-options "
                f"'{example}', or a function that needs nothing"
            )
        first = call_user_code(called, "making of environments", lambda: environment(**own))
        if is_simulator_like(first):
            return check_own_horizon(first, horizon)
        if isinstance(first, gymnasium.Env):
            first.close()
    if options and isinstance(environment, str):
        environment = partial(gymnasium.make, environment, disable_env_checker=True, **options)
    elif options and callable(environment):
        environment = partial(environment, **options)
    return GymnasiumSimulator(environment, horizon or None, name=name)


def is_simulator_like(thing: Any) -> bool:
    """Whether it is a simulator of ours, and no class of them."""
    return not isinstance(thing, type) and all(callable(getattr(thing, m, None)) for m in ("reset", "observe", "step"))


def check_own_horizon(simulator: Simulator, horizon: int) -> Simulator:
    """The simulator, if that is its horizon."""
    rule = f"{simulator.horizon}, which is the simulator's own; or left out"
    check_setting(horizon in (0, simulator.horizon), "horizon", horizon, rule)
    return simulator


def list_required_parameters(function: Callable[..., Any]) -> list[str]:
    """The names of what it cannot do without."""
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return [one.name for one in taken if one.default is one.empty and one.kind not in several]


def list_signature_parameters(function: Callable[..., Any]) -> Container[str]:
    """The names of what it takes."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()


_KEPT: OrderedDict[tuple[object, ...], tuple[object, Any]] = OrderedDict()  # with what was asked, whose ids it keeps


def build_cached(key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What was made for that key, the last few times; what cannot be compared by value counts as itself."""
    own = make_comparable_key(key)
    if own not in _KEPT:
        _KEPT[own] = key, make()
        while len(_KEPT) > CACHE_SIZE:
            _KEPT.popitem(last=False)
    return _KEPT[own][1]


def make_comparable_key(key: tuple[Any, ...]) -> tuple[object, ...]:
    """The key by what can be compared."""
    return tuple(part if isinstance(part, str | int) else id(part) for part in key)
