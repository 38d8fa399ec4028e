"""Reading experts: the shipped ones by name, a sealed safetensors file, or a Stable-Baselines3 zip. Nothing is executed."""

import io
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from aggrevated.errors import DataError, UsageError
from aggrevated.experts.q_network import QNetworkExpert
from aggrevated.policies.networks import NumpyNetwork
from aggrevated.runs.storage import Facts, storage_errors, unseal
from aggrevated.simulators import Simulator

SHIPPED = Path(__file__).parent / "weights"


def shipped() -> dict[str, Facts]:
    """The cards of the experts in the package, by name."""
    return {path.stem: unseal(path)[1] for path in sorted(SHIPPED.glob("*.safetensors"))}


def load_expert(name_or_path: str, simulator: Simulator) -> QNetworkExpert:
    """The expert, checked to fit the simulator's observations and actions."""
    weights = _weights(name_or_path)
    linear = sorted({name.rsplit(".", 1)[0] for name in weights}, key=lambda name: int(name.rsplit(".", 1)[-1]))
    network = NumpyNetwork(
        tuple(np.ascontiguousarray(weights[f"{layer}.weight"].numpy().T) for layer in linear),
        tuple(weights[f"{layer}.bias"].numpy() for layer in linear),
    )
    has = (network.weights[0].shape[0], network.weights[-1].shape[1])
    needs = (int(np.prod(simulator.observation_space.shape)), int(getattr(simulator.action_space, "n", 0)))
    if has != needs:
        raise DataError(
            f"the expert {name_or_path} maps {has[0]} observations to {has[1]} actions, but {simulator.name} has "
            f"{needs[0]} and {needs[1]}; train one with 'aggrevated expert train {simulator.name}'"
        )
    return QNetworkExpert(name_or_path, network, simulator.observe)


def _weights(name_or_path: str) -> dict[str, Tensor]:
    path = Path(name_or_path)
    if (SHIPPED / f"{name_or_path}.safetensors").is_file():
        path = SHIPPED / f"{name_or_path}.safetensors"
    elif not path.is_file():
        known = ", ".join(sorted(file.stem for file in SHIPPED.glob("*.safetensors")))
        raise UsageError(f"no expert {name_or_path!r}: give a file, or one of the shipped experts ({known})")
    weights = _stable_baselines(path) if path.suffix == ".zip" else unseal(path)[0]
    if not weights or any(tensor.ndim not in (1, 2) for tensor in weights.values()):
        raise DataError(f"{path} does not hold a fully connected Q-network; give a DQN expert with an MlpPolicy")
    return weights


def _stable_baselines(path: Path) -> dict[str, Tensor]:
    """The Q-network's weights of a Stable-Baselines3 DQN zip. Its pickled part is never opened."""
    with storage_errors(path):
        try:
            with zipfile.ZipFile(path) as archive:
                data = archive.read("policy.pth")
            tensors = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
        except (zipfile.BadZipFile, KeyError, RuntimeError, ValueError, EOFError) as error:
            raise DataError(f"{path} is not a Stable-Baselines3 model ({error}); save it again with model.save") from error
    prefix = "q_net.q_net."
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
