"""Reading experts: shipped, from a sealed file, or from a Stable-Baselines3 zip. Nothing in them is executed."""

from pathlib import Path
from typing import TypeAlias

from torch import Tensor

from aggrevated.errors import DataError, UsageError
from aggrevated.experts.checkpoint_formats import OwnExpert, expert_from
from aggrevated.experts.ensemble import SeveralWithQ, SeveralWithV, several
from aggrevated.experts.model_card import Card
from aggrevated.experts.stable_baselines import MAX_WEIGHTS, discount, stable_baselines
from aggrevated.experts.vec_normalize import read_normalisation
from aggrevated.simulators import Simulator
from aggrevated.storage import Facts, storage_errors, unseal

SHIPPED = Path(__file__).parent / "weights"
NetworkExpert: TypeAlias = OwnExpert | SeveralWithQ | SeveralWithV


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


def load_expert(name_or_path: str, simulator: Simulator, normalise: str = "") -> NetworkExpert:
    """The expert of that name, or in that file; several of them as one, where there are commas between.

    `normalise` is a file with the statistics of the `VecNormalize` that it was trained behind.
    """
    named = named_in(name_or_path)
    if len(named) > 1:
        return several([load_expert(name, simulator, normalise) for name in named])
    path = SHIPPED / f"{name_or_path}.safetensors"
    with storage_errors(path):
        if not path.is_file():
            path = Path(name_or_path)
    if not path.is_file():
        names = ", ".join(shipped_names())
        raise UsageError(f"no expert {name_or_path!r}: give a file, or the name of a shipped expert ({names})")
    weights, settings = stable_baselines(path) if path.suffix == ".zip" else of_a_card(path)
    statistics = read_normalisation(Path(normalise), simulator) if normalise else None
    return expert_from(weights, settings, name_or_path, simulator, statistics)


def of_a_card(path: Path) -> tuple[dict[str, Tensor], Facts]:
    """The weights in a sealed file and, of all that the card beside them says, what a network needs to be run."""
    weights, card = unseal(path, MAX_WEIGHTS)
    settings = card.get("settings", {})
    if not isinstance(settings, dict):
        raise DataError(f"the card of the expert {path} has settings that are no object; make it again")
    return weights, {"activation": card.get("activation", "relu"), "gamma": discount(path, settings)}
