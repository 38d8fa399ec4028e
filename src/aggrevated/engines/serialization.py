"""What travels to workers: pickled here, for processes that we have started ourselves, and never read from a file."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import cloudpickle

from aggrevated.core.errors import UsageError

T = TypeVar("T")


class CachedObject(Generic[T]):
    """A value that does not change, and that a worker is sent only once: a simulator, an expert, pages."""

    def __init__(self, value: T) -> None:
        self.value = value
        self._parcels: tuple[str, dict[str, bytes]] | None = None

    def __deepcopy__(self, memo: object) -> CachedObject[T]:
        return self  # it does not change

    def to_parcels(self) -> tuple[str, dict[str, bytes]]:
        """(a name that belongs to its contents, all that travels by name: what is kept in it, and last it itself)."""
        if self._parcels is None:
            data, inside = serialize(self.value)
            name = hashlib.sha256(data).hexdigest()
            self._parcels = name, {**inside, name: data}
        return self._parcels


class Serializer(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles, but for what is kept: of that it writes the name."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.kept: dict[str, bytes] = {}

    def persistent_id(self, value: Any) -> str | None:
        if not isinstance(value, CachedObject):
            return None
        name, parcels = value.to_parcels()
        self.kept.update(parcels)
        return name


class Deserializer(pickle.Unpickler):
    """Reads what `Packer` wrote; `find` gives what is kept, by its name."""

    def __init__(self, data: bytes, find: Callable[[str], CachedObject[Any]]) -> None:
        super().__init__(io.BytesIO(data))
        self.find = find

    def persistent_load(self, name: str) -> CachedObject[Any]:
        return self.find(name)


def serialize(value: Any) -> tuple[bytes, Mapping[str, bytes]]:
    """(the value as it travels, what of it is kept by the name)."""
    file = io.BytesIO()
    packer = Serializer(file)
    try:
        packer.dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, RuntimeError) as error:
        raise UsageError(
            f"this cannot be sent to a worker ({error}): make simulator and expert picklable, or work in process, "
            "without --engine and --workers"
        ) from error
    return file.getvalue(), packer.kept


def deserialize(data: bytes, find: Callable[[str], CachedObject[Any]]) -> Any:
    """The value again."""
    return Deserializer(data, find).load()
