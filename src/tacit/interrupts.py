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
