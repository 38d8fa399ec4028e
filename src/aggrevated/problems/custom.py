"""Custom problems: any Gymnasium environment or simulator, with any expert."""

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
}
MIN_TEST_EPISODES = 20  # of the expert
CACHE_SIZE = 10  # simulators and experts, since a config is replaced several times before it is built
INDICES = Rule(lambda value: all(0 <= i < 1_000_000 for i in value), "indices of columns, from 0 on")


def raise_no_factory(horizon: int) -> Simulator:
    """Raise, since a custom problem overrides `simulator`."""
    raise AssertionError("CustomProblem overrides `simulator` and never calls `make`")


@dataclass(frozen=True, kw_only=True)
class CustomProblem(ControlProblem):
    """Settings of a problem with your environment and your expert.

    Attributes:
        environment: a Gymnasium id, `module:attribute`, a function that makes an environment, or a simulator.
        given: the expert, if it is a Python object.
        trusted: whether code that `environment` and `expert` name may be imported.
        horizon: H, the number of steps after which an episode is cut; 0: the environment's own limit.
        expert: name or file of the expert.
        vec_normalize: file of the VecNormalize statistics that the expert was trained with.
        environment_options: arguments of the environment, as JSON.
        test_episodes: number of test episodes of the selected policy and the expert; 0: 1,000, or fewer for
            an expert that is not a network.
        observation_columns: indices of the columns that the learner observes; empty: all.
        normalize_observations: whether the learner's observations are normalized.
    """

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
    environment: Any = field(compare=False)
    given: Any = field(default=None, compare=False)
    trusted: bool = field(default=False, compare=False)
    horizon: int = setting(
        0, "H, the number of steps after which an episode is cut; 0: the environment's own limit.", COUNT
    )
    expert: str = setting(
        "",
        "A Stable-Baselines3 .zip, a .safetensors file, module:attribute of a function or object that acts, or an "
        ".npz of demonstrations.",
    )
    vec_normalize: str = setting(
        "", "File of the VecNormalize statistics that the expert was trained with, .pkl or .npz."
    )
    environment_options: str = setting("", "Arguments of the environment, as JSON: '{\"is_slippery\": false}'.")
    test_episodes: int = setting(
        0,
        "Number of fresh episodes that test the selected policy and the expert; 0: 1,000. With 0, an expert that is "
        "not a network gets fewer, about as many queries as in training, but at least 20 episodes.",
        COUNT,
    )
    observation_columns: tuple[int, ...] = setting(
        (), "Indices, from 0, of the observation's numbers that the learner sees; the expert sees all.", INDICES
    )
    normalize_observations: bool = setting(
        True, "Normalize the learner's observations by mean and standard deviation under random actions."
    )

    def fill_defaults(self, iterations: int, given: Container[str]) -> Self:
        """Return a copy with the simulator's horizon and absolute paths."""
        filled = replace(
            self, horizon=self.environment_simulator.horizon, vec_normalize=to_absolute_path(self.vec_normalize)
        )
        return super(CustomProblem, filled).fill_defaults(iterations, given)

    def check(self, chosen: SelectedComponents) -> None:
        check_enough_memory("test_episodes", self.n_test_episodes, self.horizon)

    def recommended_components(self) -> dict[str, str]:
        policy = "cnn" if self.space_adapter.is_image else "lstm" if self.observation_columns else "mlp"
        capability = get_expert_capability(self.loaded_expert)
        if capability != "q" and self.expert_weights:  # critics are the weakest part of a trained model
            capability = "act"
        return {"policy": policy, "oracle": ORACLE_BY_CAPABILITY[capability]}

    @property
    def environment_simulator(self) -> Simulator:
        """Simulator without the learner's view, as the expert observes it."""
        key = "simulator", self.environment, self.environment_options, self.horizon
        simulator: Simulator = build_cached(
            key, lambda: make_simulator(self.environment, self._options, self.horizon, self.trusted)
        )
        _CACHE.setdefault(make_comparable_key((*key[:3], simulator.horizon)), (key, simulator))
        return simulator

    @property
    def _options(self) -> JsonDict:
        try:
            options = json.loads(self.environment_options or "{}")
        except json.JSONDecodeError as error:
            raise UsageError(f"--environment-options is not JSON ({error}); pass an object such as {{}}") from error
        check_setting(isinstance(options, dict), "environment_options", self.environment_options, "a JSON object")
        return dict(options)

    @property
    def raw_space_adapter(self) -> SpaceAdapter:
        """Conversion between the environment's observations and actions and the expert's."""
        simulator = self.environment_simulator
        adapter = getattr(simulator, "space_adapter", None)
        return adapter or SpaceAdapter(simulator.observation_space, simulator.action_space)

    @property
    def space_adapter(self) -> SpaceAdapter:
        """Conversion between the environment's observations and actions and the learner's."""
        raw = self.raw_space_adapter
        check_setting(
            not (self.observation_columns and raw.is_image),
            "observation_columns",
            self.observation_columns,
            "left out where observations are images",
        )
        size = raw.observation_space.shape[0]
        check_setting(
            all(i < size for i in self.observation_columns),
            "observation_columns",
            self.observation_columns,
            f"below {size}, the number of columns",
        )
        columns = tuple(self.observation_columns) or None
        if not self.normalize_observations or raw.is_image:
            return replace(raw, columns=columns)
        key = "scales", self.environment, self.environment_options, self.horizon
        mean, scale = build_cached(key, lambda: estimate_observation_stats(self.environment_simulator))
        selected = list(self.observation_columns) or slice(None)
        return replace(raw, columns=columns, mean=mean[selected], scale=scale[selected])

    @property
    def simulator(self) -> Simulator:
        adapter = self.space_adapter
        simulator = self.environment_simulator
        if adapter.columns is None and adapter.mean is None:
            return simulator
        view = LearnerView(simulator, adapter)
        return PartialObservationSimulator(simulator, view, adapter.learner_observation_space, simulator.name)

    @property
    def loaded_expert(self) -> Expert:
        expert: Expert = build_cached(("expert", *self._identity), self._load)
        return expert

    @property
    def _identity(self) -> tuple[Any, ...]:
        """Everything that the expert depends on."""
        environment = self.environment, self.environment_options, self.horizon
        return *environment, self.expert, self.vec_normalize, self.given

    def _load(self) -> Expert:
        if self.given is not None and not self.expert:
            return as_expert(self.given, self.environment_simulator)
        if not self.expert:
            raise UsageError(
                "--expert is required for a custom environment: pass a Stable-Baselines3 .zip, an .npz of "
                "demonstrations, or module:attribute of a function of one observation; if the run's expert was a "
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
        """Set the mean and scale of a Gaussian policy's actions to the expert's."""
        key = "actions", *self._identity
        for module in policy.modules():
            if isinstance(module, GaussianHead):
                center, unit = build_cached(
                    key, lambda: estimate_action_stats(self.environment_simulator, self.loaded_expert)
                )
                module.init_action_scale(center, unit)

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        adapter = self.space_adapter
        return adapter.learner_observation_space, adapter.action_space

    def fingerprint(self) -> dict[str, Tensor]:
        """Return tensors that identify the environment, the expert and the normalization of observations."""
        environment: dict[str, Array] = getattr(self.environment_simulator, "fingerprint", dict)()
        normalization = {"mean": self.space_adapter.mean, "scale": self.space_adapter.scale}
        weights = self.expert_weights or to_tensors(
            compute_behavior_fingerprint(self.loaded_expert, self.environment_simulator)
        )
        return {f"expert.{n}": w for n, w in weights.items()} | to_tensors(
            {f"environment.{n}": array for n, array in environment.items()}
            | {name: array for name, array in normalization.items() if array is not None}
        )

    def expert_fingerprint(self) -> dict[str, Tensor]:
        return (
            {}
            if self.expert_weights
            else to_tensors(compute_expert_fingerprint(self.loaded_expert, self.environment_simulator))
        )

    def count_expert_test_episodes(self, answers: int) -> int:
        """Return the number of test episodes, by default for no more queries than in training."""
        if self.test_episodes or self.expert_weights:
            return self.n_test_episodes
        return min(self.n_test_episodes, max(MIN_TEST_EPISODES, answers // self.horizon))

    def cache_key(self) -> tuple[object, ...] | None:
        """Return None: the expert's behavior may depend on anything."""
        return None

    def ratio(self, returned: float, expert: float) -> float | None:
        """Return None: the lowest return of a custom environment is unknown."""
        return None

    def expert_identity(self) -> object:
        return self.expert, self.environment_options, self.horizon


@dataclass(frozen=True)
class LearnerView:
    """View of the learner: selected columns of the simulator's observations, normalized."""

    simulator: Simulator
    space_adapter: SpaceAdapter

    def __call__(self, states: Array) -> Array:
        return self.space_adapter.view(observe_float64(self.simulator, states))


def make_simulator(environment: Any, options: JsonDict, horizon: int, trusted: bool) -> Simulator:
    """Return the simulator that was passed, or an adapter of the environment.

    Args:
        environment: a Gymnasium id, `module:attribute`, a function that makes an environment, or a simulator.
        options: arguments of the environment.
        horizon: H in steps; 0: the environment's own limit.
        trusted: whether code that `environment` names may be imported.

    Raises:
        UsageError: the environment cannot be made.
    """
    name = environment if isinstance(environment, str) else None
    if is_reference(environment):
        environment = import_reference(environment, trusted)
    if is_simulator_like(environment):
        return check_own_horizon(environment, horizon)
    if callable(environment):
        parameters = list_signature_parameters(environment)
        arguments = options | ({"horizon": horizon} if horizon and "horizon" in parameters else {})
        label = str(name or getattr(environment, "__name__", type(environment).__name__))
        if missing := [parameter for parameter in list_required_parameters(environment) if parameter not in arguments]:
            example = json.dumps(dict.fromkeys(missing, "..."))
            raise UsageError(
                f"{label} needs {' and '.join(missing)} to make an environment: pass --environment-options "
                f"'{example}', or a function without required parameters"
            )
        result = call_user_code(label, "making of environments", lambda: environment(**arguments))
        if is_simulator_like(result):
            return check_own_horizon(result, horizon)
        if isinstance(result, gymnasium.Env):
            result.close()
    if options and isinstance(environment, str):
        environment = partial(gymnasium.make, environment, disable_env_checker=True, **options)
    elif options and callable(environment):
        environment = partial(environment, **options)
    return GymnasiumSimulator(environment, horizon or None, name=name)


def is_simulator_like(value: Any) -> bool:
    """Return whether a value is a simulator and not a class."""
    return not isinstance(value, type) and all(callable(getattr(value, m, None)) for m in ("reset", "observe", "step"))


def check_own_horizon(simulator: Simulator, horizon: int) -> Simulator:
    """Return the simulator, or raise a `UsageError` if it has another horizon."""
    rule = f"{simulator.horizon}, the simulator's own horizon, or left out"
    check_setting(horizon in (0, simulator.horizon), "horizon", horizon, rule)
    return simulator


def list_required_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's parameters without defaults."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def list_signature_parameters(function: Callable[..., Any]) -> Container[str]:
    """Return the names of a function's parameters; empty where they are unknown."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()


# Values with their keys. The keys are stored because ids of their objects are part of the comparable keys.
_CACHE: OrderedDict[tuple[object, ...], tuple[object, Any]] = OrderedDict()


def build_cached(key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """Return the cached value of a key, or make it; objects in keys are compared by identity."""
    comparable = make_comparable_key(key)
    if comparable not in _CACHE:
        _CACHE[comparable] = key, make()
        while len(_CACHE) > CACHE_SIZE:
            _CACHE.popitem(last=False)
    return _CACHE[comparable][1]


def make_comparable_key(key: tuple[Any, ...]) -> tuple[object, ...]:
    """Return the key with ids in place of objects that are not strings or integers."""
    return tuple(part if isinstance(part, str | int) else id(part) for part in key)
