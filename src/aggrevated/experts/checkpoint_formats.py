"""Which kind of expert a file holds, found from the names of its tensors, and that expert for a simulator."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from torch import Tensor

from aggrevated.actors.feed_forward import NumpyNetwork
from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.experts.checkpoint_layers import (
    ACTOR,
    CRITIC,
    Q_NETWORK,
    QUANTILES,
    SQUASHED,
    average_quantiles,
    binary_to_two_class_logits,
    find_layer_names,
    get_layer_sizes,
    list_q_critic_layer_names,
    read_network,
    scale_outputs,
)
from aggrevated.experts.network_experts import ActorCriticExpert, ActorQExpert, CategoricalExpert, QNetworkExpert
from aggrevated.experts.vec_normalize import NormalizedExpert, VecNormalizeStats
from aggrevated.simulators import Simulator
from aggrevated.storage import JsonDict, truncate_message

CheckpointExpert: TypeAlias = QNetworkExpert | CategoricalExpert | ActorCriticExpert | ActorQExpert
FUNCTION = (
    "give one with an MlpPolicy, or in Python a function: expert=lambda observation: model.predict(observation)[0]"
)
LAYERS = "|".join((*Q_NETWORK, *QUANTILES, *ACTOR, *CRITIC, *SQUASHED, *list_q_critic_layer_names(r"\d")))
READ = re.compile(  # and what acting has no need of
    rf"(?:{LAYERS})\.(?:weight|bias)|(?:q_net|quantile_net|actor|critic)_target\..*|(?:actor\.)?log_std(?:\.\w+)?",
    re.ASCII,
)


@dataclass(frozen=True)
class ParsedCheckpoint:
    """The tensors of a file, what it says of them, and where they are to act."""

    weights: dict[str, Tensor]
    settings: JsonDict
    name: str
    simulator: Simulator
    normalisation: VecNormalizeStats | None

    @property
    def discount(self) -> float:
        return float(self.settings["gamma"])

    @property
    def observe(self) -> Callable[[Array], Array]:
        """What it sees of states."""
        own = self.simulator.observe
        return own if self.normalisation is None else NormalizedExpert(own, self.normalisation)

    @property
    def inputs(self) -> int:
        return int(np.prod(self.simulator.observation_space.shape))

    @property
    def box(self) -> Box:
        """The space of its actions, if they are vectors; else it is not of the kind that is needed."""
        if not isinstance(self.simulator.action_space, Box) or self.settings.get("finite"):
            raise KeyError("vectors")
        return self.simulator.action_space

    @property
    def choices(self) -> tuple[int, ...]:
        """How many there are of each choice, if actions are finitely many."""
        if not isinstance(self.simulator.action_space, Discrete) or self.settings.get("finite") is False:
            raise KeyError("choices")
        native = getattr(getattr(self.simulator, "space_adapter", None), "actions", None)
        if isinstance(native, MultiDiscrete):
            return tuple(map(int, native.nvec.ravel()))
        return (2,) * int(np.prod(native.shape)) if isinstance(native, MultiBinary) else (self.count,)

    @property
    def count(self) -> int:
        """How many actions there are, if they are finitely many."""
        if not isinstance(self.simulator.action_space, Discrete):
            raise KeyError("choices")
        return int(self.simulator.action_space.n)

    def build_network(self, layers: tuple[str, ...]) -> NumpyNetwork:
        return read_network(self.weights, layers, self.settings["activation"])

    def build_critic_network(self, layers: tuple[str, ...]) -> NumpyNetwork:
        """A network to rewards, in the unit in which they were before they were normalised."""
        return scale_outputs(self.build_network(layers), self.normalisation.reward_unit if self.normalisation else 1.0)

    def check_actor(self, actor: NumpyNetwork, outputs: int) -> None:
        """Raise a `DataError` if it is not from the simulator's observations to so many numbers."""
        has = get_layer_sizes(actor)
        needs = (self.inputs, outputs)
        if has != needs:
            raise DataError(
                f"maps {has[0]} observations to {has[1]} actions, but {self.simulator.name} has "
                f"{needs[0]} and {needs[1]}; give one that was trained in it"
            )

    def check_critic(self, critic: NumpyNetwork, inputs: int) -> None:
        """Raise a `DataError` if it is not from so many numbers to one."""
        has = get_layer_sizes(critic)
        if has != (inputs, 1):
            raise DataError(
                f"has a critic from {has[0]} observations to {has[1]} values, where "
                f"{self.simulator.name} has {inputs} and 1; save the model again"
            )


def build_q_expert(found: ParsedCheckpoint) -> QNetworkExpert:
    """A DQN."""
    outputs = found.count
    q = found.build_critic_network(Q_NETWORK)
    found.check_actor(q, outputs)
    return QNetworkExpert(found.name, q, found.observe, found.discount)


def build_quantile_expert(found: ParsedCheckpoint) -> QNetworkExpert:
    """A QR-DQN: the mean of quantiles is linear in the last layer."""
    outputs = found.count
    quantiles = found.build_critic_network(QUANTILES)
    if get_layer_sizes(quantiles)[1] % outputs == 0:
        quantiles = average_quantiles(quantiles, outputs)
    found.check_actor(quantiles, outputs)
    return QNetworkExpert(found.name, quantiles, found.observe, found.discount)


def build_actor_critic_expert(found: ParsedCheckpoint) -> ActorCriticExpert | CategoricalExpert:
    """A PPO, A2C or TRPO."""
    if isinstance(found.simulator.action_space, Discrete):
        return build_categorical_expert(found)
    box = found.box
    actor = found.build_network(ACTOR)
    critic = found.build_critic_network(CRITIC)
    found.check_actor(actor, int(np.prod(box.shape)))
    found.check_critic(critic, found.inputs)
    squash = bool(found.settings.get("squash"))
    if squash:
        check_bounded(box, found)
    return ActorCriticExpert(found.name, actor, critic, found.discount, box.low, box.high, found.observe, squash)


def build_categorical_expert(found: ParsedCheckpoint) -> CategoricalExpert:
    """The same for finitely many actions."""
    choices = found.choices
    actor = found.build_network(ACTOR)
    critic = found.build_critic_network(CRITIC)
    native = getattr(getattr(found.simulator, "space_adapter", None), "actions", None)
    if isinstance(native, MultiBinary) and get_layer_sizes(actor)[1] == len(choices):
        actor = binary_to_two_class_logits(actor)
    found.check_actor(actor, sum(choices))
    found.check_critic(critic, found.inputs)
    return CategoricalExpert(found.name, actor, critic, choices, found.discount, found.observe)


def build_actor_q_expert(found: ParsedCheckpoint) -> ActorQExpert:
    """A SAC, TD3, DDPG or TQC."""
    box = check_bounded(found.box, found)
    actor = found.build_network(SQUASHED)
    actions = int(np.prod(box.shape))
    found.check_actor(actor, actions)
    count = sum(bool(find_layer_names(found.weights, list_q_critic_layer_names(i))) for i in range(10))
    critics = tuple(
        average_quantiles(found.build_critic_network(list_q_critic_layer_names(i)), 1) for i in range(max(count, 1))
    )
    for critic in critics:
        found.check_critic(critic, found.inputs + actions)
    clipped = (
        "actor.mu.0.weight" in found.weights and "actor.log_std" in found.weights
    )  # by exploring with noise on states
    limit = found.settings.get("clip_mean", 2.0) if clipped else np.inf
    return ActorQExpert(found.name, actor, critics, found.discount, box.low, box.high, found.observe, limit)


def check_bounded(box: Box, found: ParsedCheckpoint) -> Box:
    """The space, if it has bounds."""
    if not np.isfinite([box.low, box.high]).all():
        raise DataError(
            f"acts between bounds, and the actions of {found.simulator.name} have none; wrap the environment"
        )
    return box


@dataclass(frozen=True)
class CheckpointFormat:
    """Of models whose tensors' names begin so."""

    begins: str
    usual: str  # activation, if the zip names none
    build: Callable[[ParsedCheckpoint], CheckpointExpert]


CHECKPOINT_FORMATS = (
    CheckpointFormat("q_net.", "relu", build_q_expert),
    CheckpointFormat("quantile_net.", "relu", build_quantile_expert),
    CheckpointFormat("action_net.weight", "tanh", build_actor_critic_expert),
    CheckpointFormat("actor.", "relu", build_actor_q_expert),
)


def detect_format(weights: dict[str, Tensor]) -> CheckpointFormat | None:
    """The first that fits."""
    return next((kind for kind in CHECKPOINT_FORMATS if any(name.startswith(kind.begins) for name in weights)), None)


def build_expert(
    weights: dict[str, Tensor],
    settings: JsonDict,
    name: str,
    simulator: Simulator,
    normalisation: VecNormalizeStats | None = None,
) -> CheckpointExpert:
    """The expert with these weights, checked to fit the simulator's observations and actions."""
    found = ParsedCheckpoint(weights, settings, name, simulator, normalisation)
    kind = detect_format(weights)
    try:
        if kind is None:
            raise KeyError("kind")
        if strange := next((key for key in weights if not READ.fullmatch(key)), None):
            raise DataError(
                f"has {truncate_message(strange, 60)}, as policies with pictures, a memory or features of "
                "their own have, and "
                f"only fully connected ones are read; {FUNCTION}"
            )
        if len(simulator.observation_space.shape) != 1:
            raise DataError(f"reads vectors, and {simulator.name} shows pictures; {FUNCTION}")
        return kind.build(found)
    except DataError as error:
        raise DataError(f"the expert {name} {error}") from error
    except KeyError as error:
        finite = isinstance(simulator.action_space, Discrete)
        needed = "a DQN, QR-DQN, PPO, A2C or TRPO" if finite else "a TRPO, PPO, A2C, SAC, TD3 or DDPG"
        raise DataError(
            f"the expert {name} is not fully connected, or not of the kind that {simulator.name} needs; "
            f"give {needed} with an MlpPolicy"
        ) from error
