"""Progress display: a bar on a terminal (with rich), one line in a notebook, otherwise a line every ten seconds."""

import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from types import TracebackType
from typing import Any

from tacit.errors import one_line

SHOWN_SECONDS = 0.05  # shorter stages are not shown
INTERVAL = 10.0  # seconds between lines without a terminal
NOTEBOOK_DELAY, NOTEBOOK_INTERVAL = 2.0, 0.5  # seconds until a notebook shows a job, and between two updates


class Display:
    """Show stages and training progress on standard error, until the ``with`` block ends.

    In a notebook, one line is shown from the first stage or step after two seconds on, and updated in place.
    Without a terminal, the first stage is shown at once and then one line every ten seconds; other stages are skipped.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._update = None if quiet else notebook_line()
        self.quiet = quiet or (sys.stderr is None and self._update is None)
        terminal = not self.quiet and self._update is None and sys.stderr.isatty()
        self.interactive = terminal and find_spec("rich") is not None
        self._text, self._start, self._last = "", time.monotonic(), ""
        self._stop, self._due = threading.Event(), self._start
        self.seconds = 0.0  # total time, set at the end
        self._bar: Any = None
        self._task: Any = None
        self._stage_start = self._start
        self._first_step: int | None = None  # of the training: not 0 if it was resumed
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Display":
        if self.quiet:
            return self
        if self._update is not None:
            self._due = self._start + NOTEBOOK_DELAY
        elif self.interactive:
            self._bar = _terminal_bar()
            self._bar.start()
        else:
            self._thread = threading.Thread(target=self._speak, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self.seconds = time.monotonic() - self._start
        if self._update is not None and self._last:  # it was shown
            self._update(f"{'done' if kind is None else 'stopped'} after {self.seconds:.1f} s")
        if self._thread is not None:
            self._thread.join()
        if self._bar is not None:
            self._bar.stop()

    def stage(self, text: str) -> None:
        """Begin a stage; its name is shown until the next stage."""
        self._text, self._stage_start, self._first_step = text, time.monotonic(), None
        if self._bar is not None:
            if self._task is not None:
                self._bar.update(self._task, visible=False)
            self._task = self._bar.add_task(text, total=None, detail="")
        elif self._update is not None:
            self._refresh()
        elif not self._last:
            self._print(text)

    @property
    def shows_lines(self) -> bool:
        """Does :meth:`say` show its line?"""
        return not self.quiet and self._update is None

    def finished(self, name: str, seconds: float) -> None:
        """Show the time that a stage took, on a terminal."""
        if self._bar is not None and seconds >= SHOWN_SECONDS:
            self._above(f"{name} {seconds:.1f} s")

    def say(self, line: str) -> None:
        """Show a line at once."""
        if self._bar is not None:
            self._above(line)
        elif self._update is None:
            self._print(line)

    def step(self, progress: Any) -> None:
        """Show a training step: epoch, loss and remaining time."""
        first = min(progress.step, progress.step if self._first_step is None else self._first_step)
        done = progress.step - first
        if self.quiet or done == 0:
            self._first_step = first
            return
        name = self._text.split(":")[0]
        loss = "" if progress.loss is None else f"loss {progress.loss:.4f}"
        detail = f"epoch {progress.epoch + 1}/{progress.epochs} {loss}".rstrip()
        if done == 1:
            self.stage(f"{name}: training")
            self._first_step = first
        if self._bar is not None:
            self._bar.update(self._task, completed=progress.step, total=progress.steps, detail=detail)
        else:
            elapsed = time.monotonic() - self._stage_start
            left = elapsed / done * (progress.steps - progress.step)
            self._text = f"{name}: training, {detail}, {left:.0f} s left"
            if self._update is not None:
                self._refresh()

    def _speak(self) -> None:
        while not self._stop.wait(max(self._due - time.monotonic(), 0.01)):
            self.tick()

    def tick(self) -> None:
        """Show the stage once more, if a line is due."""
        if time.monotonic() >= self._due:
            self._print(self._text)

    def _refresh(self) -> None:
        """Update the line of a notebook, if that is due."""
        now = time.monotonic()
        if self._update is not None and now >= self._due:
            self._due, self._last = now + NOTEBOOK_INTERVAL, self._text
            self._update(f"{now - self._start:.0f} s  {one_line(self._text)}")

    def _above(self, line: str) -> None:
        self._bar.console.print(one_line(line), markup=False, highlight=False, soft_wrap=True)

    def _print(self, text: str) -> None:
        self._due = time.monotonic() + INTERVAL
        if text and not self.quiet:
            stamp = f"{time.monotonic() - self._start:5.0f} s  "
            try:
                print(stamp + one_line(text) + (" ..." if text == self._last else ""), file=sys.stderr, flush=True)
            except (OSError, ValueError):  # standard error was closed: continue without output
                self.quiet = True
            self._last = text


def notebook_line() -> Callable[[str], None] | None:
    """Return what shows a line in the running cell of a notebook, each over the one before; None outside of one.

    IPython is used only where it is already loaded. The line is plain text: no widget has to be installed.
    """
    loaded = sys.modules.get("IPython")
    shell = None if loaded is None else loaded.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):  # a shell on a terminal has none
        return None
    from IPython.display import display

    handles: list[Any] = []

    def update(text: str) -> None:
        shown = {"text/plain": text}
        if handles:
            handles[0].update(shown, raw=True)
        else:
            handles.append(display(shown, raw=True, display_id=True))

    return update


def _terminal_bar() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[detail]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
    )
