"""Stop signals: after the first, the current work is finished and saved; a second one stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
GRACE_SECONDS = 3.0  # seconds after the first signal until the current work is interrupted


class StopRequest:
    """Handler of stop signals; `signal` is the number of a received one, or None."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._old_handlers = {number: signal.getsignal(number) for number in SIGNALS}
        self._timer: threading.Timer | None = None

    def install_handlers(self) -> None:
        """Handle all stop signals except ignored ones and those with a handler outside Python."""
        for number, handler in self._old_handlers.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(number, self._receive)

    def restore_handlers(self) -> None:
        """Restore the handlers that were installed before."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for number, handler in self._old_handlers.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(number, handler)

    def reraise(self) -> None:
        """Run the old handler of the received signal."""
        assert self.signal is not None
        number = self.signal
        self.signal = None
        self.restore_handlers()
        signal.raise_signal(number)
        self.install_handlers()  # the old handler returned, so the program continues

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            self.reraise()
            return
        self.signal = number
        arguments = threading.main_thread().ident, number
        self._timer = threading.Timer(GRACE_SECONDS, signal.pthread_kill, arguments)
        self._timer.daemon = True
        self._timer.start()


@contextmanager
def defer_signals() -> Iterator[StopRequest]:
    """Defer stop signals in a block, which checks `signal` regularly and calls `reraise`.

    After GRACE_SECONDS or a second signal, the block is interrupted. Only the main thread receives signals.
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
