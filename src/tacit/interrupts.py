"""Ctrl-C at a bad moment: hold it back until what was learned is safe."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_interrupts() -> Iterator[list[int]]:
    """Hold Ctrl-C back until the block is done; the list it yields is not empty if one came.

    >>> with deferred_interrupts() as held:
    ...     signal.raise_signal(signal.SIGINT)
    >>> len(held)
    1
    """
    held: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread hears signals
        yield held
        return
    before = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield held
    finally:
        signal.signal(signal.SIGINT, before)


class Terminated(BaseException):
    """The system or the user asks the process to end: what is open is put away on the way out."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__("stopped by the user" if number == signal.SIGINT else "stopped by SIGTERM")
        self.number = number


@contextmanager
def noted_interrupts() -> Iterator[None]:
    """Turn Ctrl-C that nothing was made of into :class:`Terminated`, with its notes, which typer would drop."""
    try:
        yield
    except KeyboardInterrupt as error:
        stopped = Terminated(signal.SIGINT)
        for note in getattr(error, "__notes__", ()):
            stopped.add_note(note)
        raise stopped from None


@contextmanager
def heeded_termination(*, ctrl_c: bool = False) -> Iterator[None]:
    """Turn SIGTERM into :class:`Terminated` while the block runs, and Ctrl-C too where nothing else is made of it.

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
    signal.signal(number, signal.SIG_IGN)  # once is enough: a second one would disturb the putting away
    raise Terminated(number)
