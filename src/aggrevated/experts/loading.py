"""Loading of experts: builtin experts, checksummed weights with a card, and Stable-Baselines3 zips."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self, TypeAlias, get_origin

from torch import Tensor

from aggrevated.core.errors import DataError, UsageError
from aggrevated.experts.ensemble import QExpertEnsemble, StateValueExpertEnsemble, make_expert_ensemble
from aggrevated.experts.network_layouts import CheckpointExpert, build_expert
from aggrevated.experts.stable_baselines import MAX_WEIGHTS, load_sb3_zip, read_discount
from aggrevated.experts.vec_normalize import load_vec_normalize
from aggrevated.simulators import Simulator
from aggrevated.storage import JsonDict, load_checksummed, reraise_storage_errors


@dataclass(frozen=True, kw_only=True)
class ExpertCard:
    """Training and performance of an expert, saved with its weights in one checksummed file."""

    task: str
    algorithm: str
    activation: str = "relu"
    command: str  # that trained the expert
    environment: str
    horizon: int
    seed: int
    step: int  # of training, at which the weights were taken
    chosen: str  # rule by which this expert was selected
    why: str  # reason for that rule
    mean_return: float  # on new episodes
    standard_error: float
    episodes: int
    settings: Mapping[str, Any]  # of the algorithm
    versions: Mapping[str, str]

    @classmethod
    def read(cls, content: JsonDict, source: object) -> Self:
        """Return the card with these fields, or raise a `DataError` that names the source."""
        types: dict[str, Any] = {field.name: get_origin(field.type) or field.type for field in fields(cls)}
        if not types.keys() - {"activation"} <= content.keys() <= types.keys():
            raise DataError(f"{source} has no card of an expert; make it with 'aggrevated expert train'")
        for name, value in content.items():
            kind = int | float if types[name] is float else types[name]
            if not isinstance(value, kind) or isinstance(value, bool):
                raise DataError(f"{source} has a card with an invalid {name}; make it with 'aggrevated expert train'")
        return cls(**content)

    def to_dict(self) -> JsonDict:
        """Return the card as a JSON object."""
        return asdict(self)


BUILTIN_WEIGHTS = Path(__file__).parent / "weights"
NetworkExpert: TypeAlias = CheckpointExpert | QExpertEnsemble | StateValueExpertEnsemble


def read_builtin_expert_cards() -> dict[str, ExpertCard]:
    """Return the cards of the builtin experts by name."""
    return {
        path.stem: ExpertCard.read(load_checksummed(path)[1], path)
        for path in sorted(BUILTIN_WEIGHTS.glob("*.safetensors"))
    }


def list_builtin_experts() -> list[str]:
    """Return the names of the builtin experts."""
    return sorted(path.stem for path in BUILTIN_WEIGHTS.glob("*.safetensors"))


def split_names(names_or_paths: str) -> list[str]:
    """Split names and paths at commas; the path of an existing file is not split."""
    with reraise_storage_errors(Path(names_or_paths)):
        if Path(names_or_paths).is_file():
            return [names_or_paths]
    return [name.strip() for name in names_or_paths.split(",")]


def load_expert(name_or_path: str, simulator: Simulator, vec_normalize: str = "") -> NetworkExpert:
    """Load a builtin expert, a Stable-Baselines3 zip or a checksummed file.

    Args:
        name_or_path: name of a builtin expert, or path of a .zip or .safetensors file. Several, separated by
            commas, become one ensemble.
        simulator: simulator in which the expert acts; its spaces must fit the networks.
        vec_normalize: path of the statistics of the `VecNormalize` wrapper that the expert was trained with, a
            file of `VecNormalize.save` or an .npz; "" if there was none.

    Returns:
        An expert made of NumPy networks. A .zip is read without running any code in it.

    Raises:
        UsageError: there is neither a builtin expert nor a file of that name.
        DataError: the file is damaged, of an unsupported kind, or does not fit the simulator.

    Example:
        >>> import numpy as np
        >>> from aggrevated import CartPole, load_expert
        >>> expert = load_expert("cartpole", CartPole())
        >>> expert.q(np.zeros((3, 4))).shape
        (3, 2)
    """
    names = split_names(name_or_path)
    if len(names) > 1:
        return make_expert_ensemble([load_expert(name, simulator, vec_normalize) for name in names])
    path = BUILTIN_WEIGHTS / f"{name_or_path}.safetensors"
    with reraise_storage_errors(path):
        if not path.is_file():
            path = Path(name_or_path)
    if not path.is_file():
        builtin = ", ".join(list_builtin_experts())
        raise UsageError(f"no expert {name_or_path!r}: pass a file, or the name of a builtin expert ({builtin})")
    read_file = FILE_FORMATS.get(path.suffix, load_checksummed_expert)
    weights, settings = read_file(path)
    statistics = load_vec_normalize(Path(vec_normalize), simulator) if vec_normalize else None
    return build_expert(weights, settings, name_or_path, simulator, statistics)


def load_checksummed_expert(path: Path) -> tuple[dict[str, Tensor], JsonDict]:
    """Return the weights in a checksummed file, and the settings of its card that a network needs."""
    weights, card = load_checksummed(path, MAX_WEIGHTS)
    settings = card.get("settings", {})
    if not isinstance(settings, dict):
        raise DataError(
            f"the card of the expert {path} has settings that are not a JSON object; make it with "
            "'aggrevated expert train'"
        )
    return weights, {"activation": card.get("activation", "relu"), "gamma": read_discount(path, settings)}


FILE_FORMATS = {  # by suffix: the reader of (tensors by name, settings)
    ".zip": load_sb3_zip,
    ".safetensors": load_checksummed_expert,
}
