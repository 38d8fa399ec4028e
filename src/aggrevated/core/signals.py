"""Being asked to stop: the first signal lets what is under way be finished and kept, a second one leaves at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
SECONDS = 3.0  # after which what is under way is dropped


class StopRequest:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.signal: int | None = None  # the signal's number
        self._before = {number: signal.getsignal(number) for number in SIGNALS}
        self._timer: threading.Timer | None = None

    def install_handlers(self) -> None:
        """Take the signals, but for those that nobody listens to or that are not Python's to take."""
        for number, handler in self._before.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(number, self._take)

    def restore_handlers(self) -> None:
        """Give them back."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for number, handler in self._before.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(number, handler)

    def reraise(self) -> None:
        """Do now what the signal would have done at once."""
        assert self.signal is not None
        number = self.signal
        self.signal = None
        self.restore_handlers()
        signal.raise_signal(number)
        self.install_handlers()  # whoever was told does not want to stop

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            self.reraise()
            return
        self.signal = number
        again = signal.pthread_kill, (threading.main_thread().ident, number)
        self._timer = threading.Timer(SECONDS, *again)
        self._timer.daemon = True
        self._timer.start()


@contextmanager
def defer_signals() -> Iterator[StopRequest]:
    """A block that a signal does not break off: whoever is in it looks at `asked` now and then, and does `leave`.

    If that takes too long, or a second signal comes, it is broken off after all. Only the main thread has signals.
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    stop.install_handlers()
    try:
        yield stop
    finally:
        stop.restore_handlers()
