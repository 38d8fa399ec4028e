"""Layouts of the networks of Stable-Baselines3 models, by the names of their tensors, and experts built from them."""

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
    "pass one with an MlpPolicy, or in Python a function: expert=lambda observation: model.predict(observation)[0]"
)
LAYERS = "|".join((*Q_NETWORK, *QUANTILES, *ACTOR, *CRITIC, *SQUASHED, *list_q_critic_layer_names(r"\d")))
KNOWN_TENSORS = re.compile(  # including tensors that are not needed to act
    rf"(?:{LAYERS})\.(?:weight|bias)|(?:q_net|quantile_net|actor|critic)_target\..*|(?:actor\.)?log_std(?:\.\w+)?",
    re.ASCII,
)


@dataclass(frozen=True)
class ParsedCheckpoint:
    """The tensors and settings of a file, and the simulator of the expert to build."""

    weights: dict[str, Tensor]
    settings: JsonDict
    name: str
    simulator: Simulator
    stats: VecNormalizeStats | None

    @property
    def discount(self) -> float:
        return float(self.settings["gamma"])

    @property
    def observe(self) -> Callable[[Array], Array]:
        """Return the function from states to the expert's observations."""
        observe = self.simulator.observe
        return observe if self.stats is None else NormalizedExpert(observe, self.stats)

    @property
    def inputs(self) -> int:
        return int(np.prod(self.simulator.observation_space.shape))

    @property
    def box(self) -> Box:
        """Return the continuous action space, or raise a `KeyError` if actions are discrete."""
        if not isinstance(self.simulator.action_space, Box) or self.settings.get("finite"):
            raise KeyError("vectors")
        return self.simulator.action_space

    @property
    def choices(self) -> tuple[int, ...]:
        """Return the number of options of each choice, or raise a `KeyError` if actions are continuous."""
        if not isinstance(self.simulator.action_space, Discrete) or self.settings.get("finite") is False:
            raise KeyError("choices")
        native = getattr(getattr(self.simulator, "space_adapter", None), "actions", None)
        if isinstance(native, MultiDiscrete):
            return tuple(map(int, native.nvec.ravel()))
        return (2,) * int(np.prod(native.shape)) if isinstance(native, MultiBinary) else (self.count,)

    @property
    def count(self) -> int:
        """Return the number of discrete actions, or raise a `KeyError` if actions are continuous."""
        if not isinstance(self.simulator.action_space, Discrete):
            raise KeyError("choices")
        return int(self.simulator.action_space.n)

    def build_network(self, layers: tuple[str, ...]) -> NumpyNetwork:
        return read_network(self.weights, layers, self.settings["activation"])

    def build_critic_network(self, layers: tuple[str, ...]) -> NumpyNetwork:
        """Return a network whose outputs are rewards in the environment's unit, before normalization."""
        return scale_outputs(self.build_network(layers), self.stats.reward_unit if self.stats else 1.0)

    def check_actor(self, actor: NumpyNetwork, outputs: int) -> None:
        """Raise a `DataError` if an actor does not map the simulator's observations to `outputs` numbers."""
        sizes = get_layer_sizes(actor)
        if sizes != (self.inputs, outputs):
            raise DataError(
                f"maps {sizes[0]} observations to {sizes[1]} actions, but {self.simulator.name} has "
                f"{self.inputs} and {outputs}; pass one that was trained in it"
            )

    def check_critic(self, critic: NumpyNetwork, inputs: int) -> None:
        """Raise a `DataError` if a critic does not map `inputs` numbers to one."""
        sizes = get_layer_sizes(critic)
        if sizes != (inputs, 1):
            raise DataError(
                f"has a critic from {sizes[0]} observations to {sizes[1]} values, where "
                f"{self.simulator.name} has {inputs} and 1; save the model again"
            )


def build_q_expert(checkpoint: ParsedCheckpoint) -> QNetworkExpert:
    """Return the expert of a DQN."""
    outputs = checkpoint.count
    q = checkpoint.build_critic_network(Q_NETWORK)
    checkpoint.check_actor(q, outputs)
    return QNetworkExpert(checkpoint.name, q, checkpoint.observe, checkpoint.discount)


def build_quantile_expert(checkpoint: ParsedCheckpoint) -> QNetworkExpert:
    """Return the expert of a QR-DQN, with the quantiles averaged in the last layer, which is linear."""
    outputs = checkpoint.count
    quantiles = checkpoint.build_critic_network(QUANTILES)
    if get_layer_sizes(quantiles)[1] % outputs == 0:
        quantiles = average_quantiles(quantiles, outputs)
    checkpoint.check_actor(quantiles, outputs)
    return QNetworkExpert(checkpoint.name, quantiles, checkpoint.observe, checkpoint.discount)


def build_actor_critic_expert(checkpoint: ParsedCheckpoint) -> ActorCriticExpert | CategoricalExpert:
    """Return the expert of a PPO, A2C or TRPO."""
    if isinstance(checkpoint.simulator.action_space, Discrete):
        return build_categorical_expert(checkpoint)
    box = checkpoint.box
    actor = checkpoint.build_network(ACTOR)
    critic = checkpoint.build_critic_network(CRITIC)
    checkpoint.check_actor(actor, int(np.prod(box.shape)))
    checkpoint.check_critic(critic, checkpoint.inputs)
    squash = bool(checkpoint.settings.get("squash"))
    if squash:
        check_bounded(box, checkpoint)
    return ActorCriticExpert(
        checkpoint.name, actor, critic, checkpoint.discount, box.low, box.high, checkpoint.observe, squash
    )


def build_categorical_expert(checkpoint: ParsedCheckpoint) -> CategoricalExpert:
    """Return the expert of a PPO, A2C or TRPO with discrete actions."""
    choices = checkpoint.choices
    actor = checkpoint.build_network(ACTOR)
    critic = checkpoint.build_critic_network(CRITIC)
    native = getattr(getattr(checkpoint.simulator, "space_adapter", None), "actions", None)
    if isinstance(native, MultiBinary) and get_layer_sizes(actor)[1] == len(choices):
        actor = binary_to_two_class_logits(actor)
    checkpoint.check_actor(actor, sum(choices))
    checkpoint.check_critic(critic, checkpoint.inputs)
    return CategoricalExpert(checkpoint.name, actor, critic, choices, checkpoint.discount, checkpoint.observe)


def build_actor_q_expert(checkpoint: ParsedCheckpoint) -> ActorQExpert:
    """Return the expert of a SAC, TD3, DDPG or TQC."""
    box = check_bounded(checkpoint.box, checkpoint)
    actor = checkpoint.build_network(SQUASHED)
    actions = int(np.prod(box.shape))
    checkpoint.check_actor(actor, actions)
    count = sum(bool(find_layer_names(checkpoint.weights, list_q_critic_layer_names(i))) for i in range(10))
    critics = tuple(
        average_quantiles(checkpoint.build_critic_network(list_q_critic_layer_names(i)), 1)
        for i in range(max(count, 1))
    )
    for critic in critics:
        checkpoint.check_critic(critic, checkpoint.inputs + actions)
    # a SAC with state-dependent exploration clips its mean
    clips_mean = "actor.mu.0.weight" in checkpoint.weights and "actor.log_std" in checkpoint.weights
    limit = checkpoint.settings.get("clip_mean", 2.0) if clips_mean else np.inf
    return ActorQExpert(
        checkpoint.name, actor, critics, checkpoint.discount, box.low, box.high, checkpoint.observe, limit
    )


def check_bounded(box: Box, checkpoint: ParsedCheckpoint) -> Box:
    """Return an action space, or raise a `DataError` if it has no bounds."""
    if not np.isfinite([box.low, box.high]).all():
        raise DataError(
            f"acts between bounds, and the actions of {checkpoint.simulator.name} have none; wrap the environment"
        )
    return box


@dataclass(frozen=True)
class NetworkLayout:
    """The format of models that have a tensor whose name begins with a prefix."""

    prefix: str
    default_activation: str  # if the zip names none
    build: Callable[[ParsedCheckpoint], CheckpointExpert]


NETWORK_LAYOUTS = (
    NetworkLayout("q_net.", "relu", build_q_expert),
    NetworkLayout("quantile_net.", "relu", build_quantile_expert),
    NetworkLayout("action_net.weight", "tanh", build_actor_critic_expert),
    NetworkLayout("actor.", "relu", build_actor_q_expert),
)


def detect_layout(weights: dict[str, Tensor]) -> NetworkLayout | None:
    """Return the first format that fits the names of the tensors, or None."""
    return next((layout for layout in NETWORK_LAYOUTS if any(name.startswith(layout.prefix) for name in weights)), None)


def build_expert(
    weights: dict[str, Tensor],
    settings: JsonDict,
    name: str,
    simulator: Simulator,
    stats: VecNormalizeStats | None = None,
) -> CheckpointExpert:
    """Return the expert with these weights, checked to fit the simulator's observations and actions."""
    checkpoint = ParsedCheckpoint(weights, settings, name, simulator, stats)
    layout = detect_layout(weights)
    try:
        if layout is None:
            raise KeyError("kind")
        if unknown := next((key for key in weights if not KNOWN_TENSORS.fullmatch(key)), None):
            raise DataError(
                f"has the tensor {truncate_message(unknown, 60)} of a convolutional, recurrent or custom policy, and "
                f"only fully connected policies are supported; {FUNCTION}"
            )
        if len(simulator.observation_space.shape) != 1:
            raise DataError(f"takes vectors, and observations of {simulator.name} are images; {FUNCTION}")
        return layout.build(checkpoint)
    except DataError as error:
        raise DataError(f"the expert {name} {error}") from error
    except KeyError as error:
        finite = isinstance(simulator.action_space, Discrete)
        algorithms = "a DQN, QR-DQN, PPO, A2C or TRPO" if finite else "a TRPO, PPO, A2C, SAC, TD3 or DDPG"
        raise DataError(
            f"the expert {name} is not fully connected, or not of the kind that {simulator.name} needs; "
            f"pass {algorithms} with an MlpPolicy"
        ) from error
