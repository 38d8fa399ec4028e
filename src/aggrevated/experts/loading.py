"""What a reader should know of an expert: how it was made, why this one, and how good it is on fresh episodes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self, TypeAlias, get_origin

from torch import Tensor

from aggrevated.core.errors import DataError, UsageError
from aggrevated.experts.checkpoint_formats import CheckpointExpert, build_expert
from aggrevated.experts.ensemble import QExpertEnsemble, StateValueExpertEnsemble, make_expert_ensemble
from aggrevated.experts.stable_baselines import MAX_WEIGHTS, load_sb3_zip, read_discount
from aggrevated.experts.vec_normalize import load_vec_normalize
from aggrevated.simulators import Simulator
from aggrevated.storage import JsonDict, load_checksummed, reraise_storage_errors


@dataclass(frozen=True, kw_only=True)
class ExpertCard:
    """It lies beside the weights, in the same sealed file."""

    task: str
    algorithm: str
    activation: str = "relu"
    command: str  # that made it
    environment: str
    horizon: int
    seed: int
    step: int  # of its training
    chosen: str  # by which rule
    why: str  # so
    mean_return: float
    standard_error: float
    episodes: int
    settings: Mapping[str, Any]  # of the algorithm
    versions: Mapping[str, str]

    @classmethod
    def read(cls, facts: JsonDict, source: object) -> Self:
        """What `facts` gave, or a `DataError` that names its source."""
        kinds: dict[str, Any] = {field.name: get_origin(field.type) or field.type for field in fields(cls)}
        if not kinds.keys() - {"activation"} <= facts.keys() <= kinds.keys():
            raise DataError(f"{source} has no expert's card; make it with 'aggrevated expert train'")
        for name, value in facts.items():
            kind = int | float if kinds[name] is float else kinds[name]
            if not isinstance(value, kind) or isinstance(value, bool):
                raise DataError(f"{source} has a card with an unusual {name}; make it with 'aggrevated expert train'")
        return cls(**facts)

    def to_dict(self) -> JsonDict:
        """For JSON."""
        return asdict(self)


BUILTIN_WEIGHTS = Path(__file__).parent / "weights"
NetworkExpert: TypeAlias = CheckpointExpert | QExpertEnsemble | StateValueExpertEnsemble


def read_builtin_expert_cards() -> dict[str, ExpertCard]:
    """The cards of the experts in the package, by name."""
    return {
        path.stem: ExpertCard.read(load_checksummed(path)[1], path)
        for path in sorted(BUILTIN_WEIGHTS.glob("*.safetensors"))
    }


def list_builtin_experts() -> list[str]:
    """Of the experts in the package."""
    return sorted(path.stem for path in BUILTIN_WEIGHTS.glob("*.safetensors"))


def split_names(names_or_paths: str) -> list[str]:
    """The names and files between commas; what is a file is one, whatever is in its name."""
    with reraise_storage_errors(Path(names_or_paths)):
        if Path(names_or_paths).is_file():
            return [names_or_paths]
    return [name.strip() for name in names_or_paths.split(",")]


def load_expert(name_or_path: str, simulator: Simulator, vec_normalize: str = "") -> NetworkExpert:
    """The expert of that name, or in that file; several of them as one, where there are commas between.

    `vec_normalize` is a file with the statistics of the `VecNormalize` that it was trained behind.
    """
    named = split_names(name_or_path)
    if len(named) > 1:
        return make_expert_ensemble([load_expert(name, simulator, vec_normalize) for name in named])
    path = BUILTIN_WEIGHTS / f"{name_or_path}.safetensors"
    with reraise_storage_errors(path):
        if not path.is_file():
            path = Path(name_or_path)
    if not path.is_file():
        names = ", ".join(list_builtin_experts())
        raise UsageError(f"no expert {name_or_path!r}: give a file, or the name of a shipped expert ({names})")
    weights, settings = load_sb3_zip(path) if path.suffix == ".zip" else load_checksummed_expert(path)
    statistics = load_vec_normalize(Path(vec_normalize), simulator) if vec_normalize else None
    return build_expert(weights, settings, name_or_path, simulator, statistics)


def load_checksummed_expert(path: Path) -> tuple[dict[str, Tensor], JsonDict]:
    """The weights in a sealed file and, of all that the card beside them says, what a network needs to be run."""
    weights, card = load_checksummed(path, MAX_WEIGHTS)
    settings = card.get("settings", {})
    if not isinstance(settings, dict):
        raise DataError(f"the card of the expert {path} has settings that are no object; make it again")
    return weights, {"activation": card.get("activation", "relu"), "gamma": read_discount(path, settings)}
