"""Handling of Ctrl-C and SIGTERM: delay them until the results are saved."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_interrupts(*, termination: bool = False) -> Iterator[list[int]]:
    """Delay Ctrl-C until the block is done, and with ``termination`` also SIGTERM; yields the numbers of both.

    >>> with deferred_interrupts() as deferred:
    ...     signal.raise_signal(signal.SIGINT)
    >>> len(deferred)
    1
    """
    held: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield held
        return
    numbers = (signal.SIGINT, signal.SIGTERM) if termination else (signal.SIGINT,)
    before = {number: signal.signal(number, lambda number, _: held.append(number)) for number in numbers}
    try:
        yield held
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Terminated(BaseException):
    """Request of the system or the user to stop the process; open files are cleaned up on the way out."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__("stopped by the user" if number == signal.SIGINT else "stopped by SIGTERM")
        self.number = number


@contextmanager
def noted_interrupts() -> Iterator[None]:
    """Turn an unhandled Ctrl-C into :class:`Terminated` with its notes, which typer would drop."""
    try:
        yield
    except KeyboardInterrupt as error:
        stopped = Terminated(signal.SIGINT)
        for note in getattr(error, "__notes__", ()):
            stopped.add_note(note)
        raise stopped from None


@contextmanager
def heeded_termination(*, ctrl_c: bool = False) -> Iterator[None]:
    """Turn SIGTERM into :class:`Terminated` while the block runs, and with ``ctrl_c`` also an unhandled Ctrl-C.

    >>> with heeded_termination():
    ...     signal.raise_signal(signal.SIGTERM)
    Traceback (most recent call last):
    ...
    tacit.interrupts.Terminated: stopped by SIGTERM
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT) if ctrl_c else (signal.SIGTERM,)
    before = {number: signal.signal(number, _terminate) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(number: int, frame: object) -> None:  # noqa: ARG001 - what Python hands to it
    signal.signal(number, signal.SIG_IGN)  # a second signal would interrupt the cleanup
    raise Terminated(number)
