"""Reading experts: shipped, from a sealed file, or from a Stable-Baselines3 zip. Nothing in them is executed."""

from pathlib import Path
from typing import TypeAlias

from torch import Tensor

from aggrevated.errors import DataError, UsageError
from aggrevated.experts.checkpoint_formats import CheckpointExpert, build_expert
from aggrevated.experts.ensemble import QExpertEnsemble, StateValueExpertEnsemble, make_expert_ensemble
from aggrevated.experts.model_card import ExpertCard
from aggrevated.experts.stable_baselines import MAX_WEIGHTS, discount, load_sb3_zip
from aggrevated.experts.vec_normalize import load_vec_normalize
from aggrevated.simulators import Simulator
from aggrevated.storage import JsonDict, load_checksummed, reraise_storage_errors

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


def load_expert(name_or_path: str, simulator: Simulator, normalise: str = "") -> NetworkExpert:
    """The expert of that name, or in that file; several of them as one, where there are commas between.

    `normalise` is a file with the statistics of the `VecNormalize` that it was trained behind.
    """
    named = split_names(name_or_path)
    if len(named) > 1:
        return make_expert_ensemble([load_expert(name, simulator, normalise) for name in named])
    path = BUILTIN_WEIGHTS / f"{name_or_path}.safetensors"
    with reraise_storage_errors(path):
        if not path.is_file():
            path = Path(name_or_path)
    if not path.is_file():
        names = ", ".join(list_builtin_experts())
        raise UsageError(f"no expert {name_or_path!r}: give a file, or the name of a shipped expert ({names})")
    weights, settings = load_sb3_zip(path) if path.suffix == ".zip" else load_checksummed_expert(path)
    statistics = load_vec_normalize(Path(normalise), simulator) if normalise else None
    return build_expert(weights, settings, name_or_path, simulator, statistics)


def load_checksummed_expert(path: Path) -> tuple[dict[str, Tensor], JsonDict]:
    """The weights in a sealed file and, of all that the card beside them says, what a network needs to be run."""
    weights, card = load_checksummed(path, MAX_WEIGHTS)
    settings = card.get("settings", {})
    if not isinstance(settings, dict):
        raise DataError(f"the card of the expert {path} has settings that are no object; make it again")
    return weights, {"activation": card.get("activation", "relu"), "gamma": discount(path, settings)}
