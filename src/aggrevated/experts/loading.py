"""Reading experts: shipped, from a sealed file, or from a Stable-Baselines3 zip. Nothing in them is executed."""

import io
import pickle
import re
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
LAYER = re.compile(r"q_net\.(\d+)\.(weight|bias)")


def shipped() -> dict[str, Facts]:
    """The cards of the experts in the package, by name."""
    return {path.stem: unseal(path)[1] for path in sorted(SHIPPED.glob("*.safetensors"))}


def load_expert(name_or_path: str, simulator: Simulator) -> QNetworkExpert:
    """The expert of that name, or in that file."""
    path = SHIPPED / f"{name_or_path}.safetensors"
    if not path.is_file():
        path = Path(name_or_path)
    if not path.is_file():
        names = ", ".join(shipped())
        raise UsageError(f"no expert {name_or_path!r}: give a file, or the name of a shipped expert ({names})")
    weights = stable_baselines(path) if path.suffix == ".zip" else unseal(path)[0]
    return expert_from(weights, name_or_path, simulator)


def expert_from(weights: dict[str, Tensor], name: str, simulator: Simulator) -> QNetworkExpert:
    """The expert with these Q-network weights, checked to fit the simulator's observations and actions."""
    layers = sorted({int(match[1]) for key in weights if (match := LAYER.fullmatch(key))})
    try:
        pairs = [(weights[f"q_net.{i}.weight"].numpy().T, weights[f"q_net.{i}.bias"].numpy()) for i in layers]
        has = pairs[0][0].shape[0], pairs[-1][0].shape[1]
    except (KeyError, IndexError) as error:
        raise DataError(
            f"the expert {name} is not a fully connected Q-network; give a DQN with an MlpPolicy"
        ) from error
    needs = int(np.prod(simulator.observation_space.shape)), int(getattr(simulator.action_space, "n", 0))
    if has != needs:
        raise DataError(
            f"the expert {name} maps {has[0]} observations to {has[1]} actions, but {simulator.name} has "
            f"{needs[0]} and {needs[1]}; train one with 'aggrevated expert train {simulator.name}'"
        )
    network = NumpyNetwork(tuple(np.ascontiguousarray(w) for w, _ in pairs), tuple(b for _, b in pairs))
    return QNetworkExpert(name, network, simulator.observe)


def stable_baselines(path: Path) -> dict[str, Tensor]:
    """The Q-network's weights in a Stable-Baselines3 DQN zip. Its pickled part is never opened."""
    with storage_errors(path):
        try:
            with zipfile.ZipFile(path) as archive:
                data = archive.read("policy.pth")
            tensors = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
        except (zipfile.BadZipFile, KeyError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
            raise DataError(
                f"{path} is not a Stable-Baselines3 model ({error}); save it again with model.save"
            ) from error
    return {name.removeprefix("q_net."): w for name, w in tensors.items() if name.startswith("q_net.q_net.")}
