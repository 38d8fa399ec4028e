"""What a reader should know of an expert: how it was made, why this one, and how good it is on fresh episodes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self, get_origin

from aggrevated.errors import DataError
from aggrevated.storage import JsonDict


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
