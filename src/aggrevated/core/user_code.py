"""Parts that others wrote: what they give is looked at, what they raise is told with its place, none takes forever."""

import math
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import AggrevatedError, UsageError, UserCodeError

R = TypeVar("R")
TIME_LIMIT_VARIABLE = (
    "AGGREVATED_TIME_LIMIT"  # an environment variable: seconds; workers have it from whoever began them
)
MAX_MESSAGE_LENGTH = 300  # characters of what an error says
NUMBERS = "fiub"  # the kinds of NumPy's arrays that are numbers


class TimeLimitExceeded(BaseException):
    """The time is over: not to be caught by those who took it."""


def set_time_limit(seconds: float) -> None:
    """Let no answer of a simulator or an expert take longer, here and in workers that begin later; 0: however long."""
    if not 0 <= seconds < math.inf:
        raise UsageError(f"a time limit of {seconds} seconds cannot be kept; give a positive number, or 0 for none")
    os.environ[TIME_LIMIT_VARIABLE] = str(seconds)


def get_time_limit() -> float:
    """Seconds; 0 where there is none."""
    given = os.environ.get(TIME_LIMIT_VARIABLE) or "0"
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise UsageError(f"{TIME_LIMIT_VARIABLE} is {given!r}, but must be a number of seconds")
    return seconds


def call_user_code(part: str, method: str, call: Callable[[], R], answers: int = 1) -> R:
    """What a call gives; a `PartError` if it raises, or takes longer than the limit for so many answers at once."""
    limit = get_time_limit() * answers
    try:
        if not limit:
            return call()
        with interrupt_after(limit):
            return call()
    except (AggrevatedError, MemoryError):
        raise
    except TimeLimitExceeded as error:
        remedy = f"mend its {method}, or give it more time with --time-limit"
        raise UserCodeError(part, f"had not answered {method} after {limit:g} seconds", remedy) from error
    except Exception as error:
        said = " ".join(str(error).split())[:MAX_MESSAGE_LENGTH]
        what = f"raised {type(error).__name__}{f': {said}' if said else ''} ({format_error_location(error)})"
        raise UserCodeError(part, what, f"mend its {method}") from error


def format_error_location(error: Exception) -> str:
    """The file and the line where it was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}, line {frame.lineno}"


@contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """A block that is broken off by a `TooLongError` after so many seconds; in the main thread only, which has signals.

    Code that does not come back to Python cannot be broken off.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_time_limit_exceeded(number: int, frame: FrameType | None) -> NoReturn:
        raise TimeLimitExceeded

    before = signal.signal(signal.SIGALRM, raise_time_limit_exceeded)
    began = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # somebody else's clock goes on
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 1e-3), interval)


@contextmanager
def add_error_position(
    seeds: Array | None = None, rows: Array | None = None, step: int | None = None
) -> Iterator[None]:
    """Say of errors in here in which step of which episode they were, by the seeds of all and which rows these are."""
    try:
        yield
    except UserCodeError as error:
        row = error.row if error.row is None or rows is None else int(rows[error.row])
        seed = None if seeds is None or row is None else int(seeds[row])
        raise error.add_position(row, step, seed) from error.__cause__


def to_array(part: str, what: str, given: Any, remedy: str) -> Array:
    """What was given as an array; a `PartError` if it cannot be one."""
    try:
        return np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:
        raise UserCodeError(part, f"gave {what} that are no array ({error})", remedy) from error


def check_numeric_array(part: str, what: str, given: Any, shape: tuple[int, ...], remedy: str) -> Array:
    """The array of that shape that was given; a `PartError` if it is none of numbers, or of another shape."""
    array = to_array(part, what, given, remedy)
    if array.dtype.kind not in NUMBERS:
        raise UserCodeError(part, f"gave {what} of type {array.dtype}", remedy)
    if array.shape != shape:
        raise UserCodeError(part, f"gave {what} of shape {array.shape}", f"they must be of shape {shape}: {remedy}")
    return array


def check_finite(part: str, what: str, array: Array, remedy: str) -> Array:
    """The array; a `PartError` with the first row of it that is not finite."""
    if not np.isfinite(array).all():
        row, *place = np.argwhere(~np.isfinite(array))[0]
        value = array[(row, *place)]
        where = f" (number {place[0]} is {value})" if place else f" ({value})"
        raise UserCodeError(part, f"gave {what} that are not finite{where}", remedy, row=int(row))
    return array
