"""Serialization of jobs for workers that this process has started; nothing is read from files."""

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
    """An immutable value that is sent to each worker once, such as a simulator or an expert."""

    def __init__(self, value: T) -> None:
        self.value = value
        self._parcels: tuple[str, dict[str, bytes]] | None = None

    def __deepcopy__(self, memo: object) -> CachedObject[T]:
        return self  # the value is immutable

    def to_parcels(self) -> tuple[str, dict[str, bytes]]:
        """Return (SHA-256 of the contents, bytes by SHA-256 of the nested cached objects and of this one)."""
        if self._parcels is None:
            data, nested = serialize(self.value)
            name = hashlib.sha256(data).hexdigest()
            self._parcels = name, {**nested, name: data}
        return self._parcels


class Serializer(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickler that writes cached objects by name."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.cached: dict[str, bytes] = {}

    def persistent_id(self, value: Any) -> str | None:
        if not isinstance(value, CachedObject):
            return None
        name, parcels = value.to_parcels()
        self.cached.update(parcels)
        return name


class Deserializer(pickle.Unpickler):
    """Unpickler of what `Serializer` wrote; `find` returns cached objects by name."""

    def __init__(self, data: bytes, find: Callable[[str], CachedObject[Any]]) -> None:
        super().__init__(io.BytesIO(data))
        self.find = find

    def persistent_load(self, name: str) -> CachedObject[Any]:
        return self.find(name)


def serialize(value: Any) -> tuple[bytes, Mapping[str, bytes]]:
    """Return (the pickled value, the bytes of its cached objects by name)."""
    file = io.BytesIO()
    serializer = Serializer(file)
    try:
        serializer.dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, RuntimeError) as error:
        raise UsageError(
            f"a job cannot be sent to a worker ({error}); make simulator and expert picklable, or run in "
            "this process, without --engine and --workers"
        ) from error
    return file.getvalue(), serializer.cached


def deserialize(data: bytes, find: Callable[[str], CachedObject[Any]]) -> Any:
    """Return the value that `serialize` wrote."""
    return Deserializer(data, find).load()
