"""What a check says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aggrevated.storage import JsonDict

Verdict = Literal["fine", "warning", "fault", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("fault", "warning", "unknown", "fine")  # the worst first


@dataclass(frozen=True)
class Finding:
    """One sentence with the numbers that it rests on, and what to do about it."""

    check: str
    verdict: Verdict
    sentence: str
    remedy: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> JsonDict:
        """For JSON."""
        numbers = {name: to_plain_number(value) for name, value in self.numbers.items()}
        said = {"check": self.check, "verdict": self.verdict, "sentence": self.sentence, "remedy": self.remedy}
        return said | {"numbers": numbers}


def to_plain_number(value: Any) -> Any:
    """A number of NumPy's as one of Python's; None for one that JSON has no word for."""
    if isinstance(value, list | tuple):
        return [to_plain_number(one) for one in value]
    value = getattr(value, "item", lambda: value)()
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
