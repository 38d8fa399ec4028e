"""Reading experts: shipped, from a sealed file, or from a Stable-Baselines3 zip. Nothing in them is executed."""

import io
import json
import pickle
import re
import zipfile
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from gymnasium.spaces import Discrete
from torch import Tensor

from aggrevated.actors.networks import NumpyNetwork
from aggrevated.errors import DataError, UsageError
from aggrevated.experts.actor_critic import ActorCriticExpert
from aggrevated.experts.card import Card
from aggrevated.experts.q_network import QNetworkExpert
from aggrevated.experts.several import SeveralWithQ, SeveralWithV, several
from aggrevated.files import Facts, storage_errors, unseal
from aggrevated.simulators import Simulator

SHIPPED = Path(__file__).parent / "weights"
NetworkExpert: TypeAlias = QNetworkExpert | ActorCriticExpert | SeveralWithQ | SeveralWithV
Q_NETWORK, ACTOR, CRITIC = (  # the layers of each network, in order, by Stable-Baselines3's names
    r"(?:q_net\.)?q_net\.(\d+)",
    r"mlp_extractor\.policy_net\.(\d+)|action_net",
    r"mlp_extractor\.value_net\.(\d+)|value_net",
)


def shipped() -> dict[str, Card]:
    """The cards of the experts in the package, by name."""
    return {path.stem: Card.read(unseal(path)[1], path) for path in sorted(SHIPPED.glob("*.safetensors"))}


def shipped_names() -> list[str]:
    """Of the experts in the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.safetensors"))


def named_in(names_or_paths: str) -> list[str]:
    """The names and files between commas; what is a file is one, whatever is in its name."""
    if Path(names_or_paths).is_file():
        return [names_or_paths]
    return [name.strip() for name in names_or_paths.split(",")]


def load_expert(name_or_path: str, simulator: Simulator) -> NetworkExpert:
    """The expert of that name, or in that file; several of them as one, where there are commas between."""
    named = named_in(name_or_path)
    if len(named) > 1:
        return several([load_expert(name, simulator) for name in named])
    path = SHIPPED / f"{name_or_path}.safetensors"
    if not path.is_file():
        path = Path(name_or_path)
    if not path.is_file():
        names = ", ".join(shipped_names())
        raise UsageError(f"no expert {name_or_path!r}: give a file, or the name of a shipped expert ({names})")
    weights, settings = stable_baselines(path) if path.suffix == ".zip" else of_a_card(*unseal(path))
    return expert_from(weights, settings, name_or_path, simulator)


def of_a_card(weights: dict[str, Tensor], card: Facts) -> tuple[dict[str, Tensor], Facts]:
    """The weights and, of all that the card says, what a network needs to be run."""
    return weights, {"activation": card.get("activation", "relu"), "gamma": card.get("settings", {}).get("gamma", 0.99)}


def expert_from(weights: dict[str, Tensor], settings: Facts, name: str, simulator: Simulator) -> NetworkExpert:
    """The expert with these weights, checked to fit the simulator's observations and actions."""
    finite, activation = isinstance(simulator.action_space, Discrete), settings["activation"]
    kind = "a DQN" if finite else "a TRPO, PPO or A2C"
    try:
        actor = network(weights, Q_NETWORK if finite else ACTOR, activation)
        critic = actor if finite else network(weights, CRITIC, activation)
    except (KeyError, AssertionError) as error:
        raise DataError(
            f"the expert {name} is not fully connected, or not of the kind that {simulator.name} needs; "
            f"give {kind} with an MlpPolicy"
        ) from error
    has = actor.weights[0].shape[0], actor.weights[-1].shape[1]
    needs = int(np.prod(simulator.observation_space.shape)), actions_in(simulator)
    if has != needs:
        raise DataError(
            f"the expert {name} maps {has[0]} observations to {has[1]} actions, but {simulator.name} has "
            f"{needs[0]} and {needs[1]}; train one with 'aggrevated expert train {simulator.name}'"
        )
    if isinstance(simulator.action_space, Discrete):
        return QNetworkExpert(name, actor, simulator.observe, settings["gamma"])
    low, high = simulator.action_space.low, simulator.action_space.high
    return ActorCriticExpert(name, actor, critic, settings["gamma"], low, high, simulator.observe)


def network(weights: dict[str, Tensor], layers: str, activation: str) -> NumpyNetwork:
    """The network of the layers whose names fit, hidden ones by their number, then the one without."""
    found = {match[0]: match for key in weights if (match := re.match(f"(?:{layers})(?=\\.weight$)", key))}
    if not found:
        raise KeyError(layers)
    order = sorted(found, key=lambda name: float(found[name][1] or np.inf))
    pairs = [(weights[f"{name}.weight"].numpy().T, weights[f"{name}.bias"].numpy()) for name in order]
    return NumpyNetwork(tuple(np.ascontiguousarray(w) for w, _ in pairs), tuple(b for _, b in pairs), activation)


def actions_in(simulator: Simulator) -> int:
    """How many outputs an expert must have."""
    space = simulator.action_space
    return int(space.n) if isinstance(space, Discrete) else int(np.prod(space.shape))


def stable_baselines(path: Path) -> tuple[dict[str, Tensor], Facts]:
    """The weights in a Stable-Baselines3 zip, its activation and its γ. Nothing that is pickled in it is run."""
    with storage_errors(path):
        try:
            with zipfile.ZipFile(path) as archive:
                data, settings = archive.read("policy.pth"), json.loads(archive.read("data"))
            tensors = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
        except (zipfile.BadZipFile, KeyError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
            raise DataError(
                f"{path} is not a Stable-Baselines3 model ({error}); save it again with model.save"
            ) from error
    return tensors, {"activation": activation_in(path, tensors, settings), "gamma": float(settings.get("gamma", 0.99))}


def activation_in(path: Path, tensors: dict[str, Tensor], settings: Facts) -> str:
    """What the zip says in words of its activation, or else Stable-Baselines3's usual one for such a model."""
    named = str((settings.get("policy_kwargs") or {}).get("activation_fn", ""))
    if not named:
        return "relu" if any(key.startswith("q_net.") for key in tensors) else "tanh"
    for activation in ("relu", "tanh"):
        if f".{activation}'" in named.lower():
            return activation
    raise DataError(f"the expert {path} uses {named}; give one with ReLU or Tanh")
