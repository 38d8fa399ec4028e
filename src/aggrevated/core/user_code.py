"""Calls of user code, with checks of results, a time limit, and errors that say where they happened."""

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
TIME_LIMIT_VARIABLE = "AGGREVATED_TIME_LIMIT"  # environment variable: seconds; workers inherit it
MAX_MESSAGE_LENGTH = 300  # characters of the message of an error
NUMBERS = "fiub"  # dtype kinds of numeric arrays


class TimeLimitExceeded(BaseException):
    """Time limit exceeded; a `BaseException`, so that user code does not catch it."""


MIN_TIME_LIMIT = 0.001  # seconds; the timer of the operating system takes less for none


def set_time_limit(seconds: float) -> None:
    """Set the time limit of one call of a simulator or expert, here and in workers that start later.

    Args:
        seconds: limit in seconds; 0: no limit.

    Raises:
        UsageError: `seconds` is not finite, or below MIN_TIME_LIMIT and not 0.

    Example:
        >>> set_time_limit(0)
    """
    if seconds != 0 and not MIN_TIME_LIMIT <= seconds < math.inf:
        raise UsageError(f"the time limit is {seconds} seconds, but must be at least {MIN_TIME_LIMIT}, or 0 for none")
    os.environ[TIME_LIMIT_VARIABLE] = str(seconds)


def get_time_limit() -> float:
    """Return the time limit in seconds, 0 for none."""
    text = os.environ.get(TIME_LIMIT_VARIABLE) or "0"
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise UsageError(f"{TIME_LIMIT_VARIABLE} is {text!r}, but must be a number of seconds")
    return seconds


def call_user_code(part: str, method: str, call: Callable[[], R], answers: int = 1) -> R:
    """Return the result of a call, or raise a `UserCodeError` if it fails or exceeds `answers` time limits."""
    limit = get_time_limit() * answers
    try:
        if not limit:
            return call()
        with interrupt_after(limit):
            return call()
    except (AggrevatedError, MemoryError):
        raise
    except TimeLimitExceeded as error:
        remedy = f"fix its {method}, or give it more time with --time-limit"
        raise UserCodeError(part, f"did not return from {method} within {limit:g} seconds", remedy) from error
    except Exception as error:
        message = " ".join(str(error).split())[:MAX_MESSAGE_LENGTH]
        problem = f"raised {type(error).__name__}{f': {message}' if message else ''} ({format_error_location(error)})"
        raise UserCodeError(part, problem, f"fix its {method}") from error


def format_error_location(error: Exception) -> str:
    """Return the file and line that raised an error."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}, line {frame.lineno}"


@contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitExceeded` in a block after some seconds, in the main thread only.

    Compiled code that does not return to Python cannot be interrupted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_time_limit_exceeded(number: int, frame: FrameType | None) -> NoReturn:
        raise TimeLimitExceeded

    old_handler = signal.signal(signal.SIGALRM, raise_time_limit_exceeded)
    started_at = time.monotonic()
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old_handler)
        if remaining:  # restart the timer that was running before
            elapsed = time.monotonic() - started_at
            signal.setitimer(signal.ITIMER_REAL, max(remaining - elapsed, 1e-3), interval)


@contextmanager
def add_error_position(
    seeds: Array | None = None, rows: Array | None = None, step: int | None = None
) -> Iterator[None]:
    """Add the position to a `UserCodeError` in a block.

    Args:
        seeds: seeds of all episodes, or None if unknown here.
        rows: indices of the block's rows among all episodes; None: they are all.
        step: step of the episodes, or None if unknown here.
    """
    try:
        yield
    except UserCodeError as error:
        row = error.row if error.row is None or rows is None else int(rows[error.row])
        seed = None if seeds is None or row is None else int(seeds[row])
        raise error.add_position(row, step, seed) from error.__cause__


def to_array(part: str, noun: str, value: Any, remedy: str) -> Array:
    """Return a value as an array; raise a `UserCodeError` if that fails."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise UserCodeError(part, f"gave {noun} that are not an array ({error})", remedy) from error


def check_numeric_array(part: str, noun: str, value: Any, shape: tuple[int, ...], remedy: str) -> Array:
    """Return a value as a numeric array; raise a `UserCodeError` if it is not, or has another shape."""
    array = to_array(part, noun, value, remedy)
    if array.dtype.kind not in NUMBERS:
        raise UserCodeError(part, f"gave {noun} of type {array.dtype}", remedy)
    if array.shape != shape:
        raise UserCodeError(part, f"gave {noun} of shape {array.shape}", f"they must be of shape {shape}: {remedy}")
    return array


def check_finite(part: str, noun: str, array: Array, remedy: str) -> Array:
    """Return the array; raise a `UserCodeError` with its first row that is not finite."""
    if not np.isfinite(array).all():
        row, *column = np.argwhere(~np.isfinite(array))[0]
        value = array[(row, *column)]
        where = f" (number {column[0]} is {value})" if column else f" ({value})"
        raise UserCodeError(part, f"gave {noun} that are not finite{where}", remedy, row=int(row))
    return array
