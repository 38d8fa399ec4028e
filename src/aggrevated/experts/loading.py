"""Reading experts: shipped, from a sealed file, or from a Stable-Baselines3 zip. Nothing in them is executed."""

import io
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from gymnasium.spaces import Discrete
from torch import Tensor

from aggrevated.errors import DataError, UsageError
from aggrevated.experts.actor_critic import ActorCriticExpert
from aggrevated.experts.card import Card
from aggrevated.experts.layers import ACTOR, CRITIC, Q_NETWORK, network
from aggrevated.experts.q_network import QNetworkExpert
from aggrevated.experts.several import SeveralWithQ, SeveralWithV, several
from aggrevated.files import (
    MAX_JSON,
    Facts,
    chunks,
    decoded,
    in_short,
    open_zip,
    parsed,
    plain_file,
    read_state_dict,
    storage_errors,
    unseal,
)
from aggrevated.simulators import Simulator

SHIPPED = Path(__file__).parent / "weights"
MAX_WEIGHTS = 192 << 20  # bytes, 50 million float32: reading takes twice as much
NetworkExpert: TypeAlias = QNetworkExpert | ActorCriticExpert | SeveralWithQ | SeveralWithV


def shipped() -> dict[str, Card]:
    """The cards of the experts in the package, by name."""
    return {path.stem: Card.read(unseal(path)[1], path) for path in sorted(SHIPPED.glob("*.safetensors"))}


def shipped_names() -> list[str]:
    """Of the experts in the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.safetensors"))


def named_in(names_or_paths: str) -> list[str]:
    """The names and files between commas; what is a file is one, whatever is in its name."""
    with storage_errors(Path(names_or_paths)):
        if Path(names_or_paths).is_file():
            return [names_or_paths]
    return [name.strip() for name in names_or_paths.split(",")]


def load_expert(name_or_path: str, simulator: Simulator) -> NetworkExpert:
    """The expert of that name, or in that file; several of them as one, where there are commas between."""
    named = named_in(name_or_path)
    if len(named) > 1:
        return several([load_expert(name, simulator) for name in named])
    path = SHIPPED / f"{name_or_path}.safetensors"
    with storage_errors(path):
        if not path.is_file():
            path = Path(name_or_path)
    if not path.is_file():
        names = ", ".join(shipped_names())
        raise UsageError(f"no expert {name_or_path!r}: give a file, or the name of a shipped expert ({names})")
    weights, settings = stable_baselines(path) if path.suffix == ".zip" else of_a_card(path)
    return expert_from(weights, settings, name_or_path, simulator)


def of_a_card(path: Path) -> tuple[dict[str, Tensor], Facts]:
    """The weights in a sealed file and, of all that the card beside them says, what a network needs to be run."""
    weights, card = unseal(path, MAX_WEIGHTS)
    settings = card.get("settings", {})
    if not isinstance(settings, dict):
        raise DataError(f"the card of the expert {path} has settings that are no object; make it again")
    return weights, {"activation": card.get("activation", "relu"), "gamma": discount(path, settings)}


def discount(path: Path, settings: Facts) -> float:
    """γ, if it is one."""
    gamma: Any = settings.get("gamma", 0.99)
    if not isinstance(gamma, int | float) or isinstance(gamma, bool) or not 0 <= gamma <= 1:
        raise DataError(f"the expert {path} has gamma {in_short(gamma, 40)}; give one with a number from 0 to 1")
    return float(gamma)


def expert_from(weights: dict[str, Tensor], settings: Facts, name: str, simulator: Simulator) -> NetworkExpert:
    """The expert with these weights, checked to fit the simulator's observations and actions."""
    finite, activation = isinstance(simulator.action_space, Discrete), settings["activation"]
    kind = "a DQN" if finite else "a TRPO, PPO or A2C"
    try:
        actor = network(weights, Q_NETWORK if finite else ACTOR, activation)
        critic = actor if finite else network(weights, CRITIC, activation)
    except DataError as error:
        raise DataError(f"the expert {name} {error}") from error
    except KeyError as error:
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
    judges = critic.weights[0].shape[0], critic.weights[-1].shape[1]
    if not finite and judges != (needs[0], 1):
        raise DataError(
            f"the expert {name} has a critic from {judges[0]} observations to {judges[1]} values, where "
            f"{simulator.name} has {needs[0]} and 1; save the model again"
        )
    if isinstance(simulator.action_space, Discrete):
        return QNetworkExpert(name, actor, simulator.observe, settings["gamma"])
    low, high = simulator.action_space.low, simulator.action_space.high
    return ActorCriticExpert(name, actor, critic, settings["gamma"], low, high, simulator.observe)


def actions_in(simulator: Simulator) -> int:
    """How many outputs an expert must have."""
    space = simulator.action_space
    return int(space.n) if isinstance(space, Discrete) else int(np.prod(space.shape))


def stable_baselines(path: Path) -> tuple[dict[str, Tensor], Facts]:
    """The weights in a Stable-Baselines3 zip, its activation and its γ. Nothing that is pickled in it is run."""
    with plain_file(path, "a Stable-Baselines3 model") as file:
        try:
            policy, data = unpacked(file)
            tensors, settings = read_state_dict(policy, MAX_WEIGHTS), parsed(decoded(data))
            if not isinstance(settings, dict):
                raise DataError("its data is no JSON object")
        except OSError:
            raise
        except Exception as error:  # what decoders may say about hostile bytes is not written down anywhere
            raise DataError(
                f"{path} is not a Stable-Baselines3 model ({in_short(error)}); save it again with model.save"
            ) from error
    return tensors, {"activation": activation_in(path, tensors, settings), "gamma": discount(path, settings)}


def unpacked(file: BinaryIO) -> tuple[BinaryIO, bytes]:
    """(policy.pth, data), in memory."""
    with open_zip(file) as archive:
        policy = io.BytesIO()
        policy.writelines(chunks(archive, archive.getinfo("policy.pth"), MAX_WEIGHTS))
        return policy, b"".join(chunks(archive, archive.getinfo("data"), MAX_JSON))


def activation_in(path: Path, tensors: dict[str, Tensor], settings: Facts) -> str:
    """What the zip says in words of its activation, or else Stable-Baselines3's usual one for such a model."""
    layout = settings.get("policy_kwargs") or {}
    if not isinstance(layout, dict):
        raise DataError(f"the expert {path} has policy_kwargs that are no object; save it again with model.save")
    named = str(layout.get("activation_fn", ""))
    if not named:
        return "relu" if any(key.startswith("q_net.") for key in tensors) else "tanh"
    for activation in ("relu", "tanh"):
        if f".{activation}'" in named.lower():
            return activation
    raise DataError(f"the expert {path} uses {in_short(named)}; give one with ReLU or Tanh")
