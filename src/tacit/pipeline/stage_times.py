"""The seconds of each stage of a fit."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tacit.training import Listener


class StageTimes:
    """Seconds by stage, in the order in which stages first began; the times of a repeated stage are added.

    The name of a stage is the text before the colon: "fit: compiling" and "fit: training" are one stage.

    >>> times = StageTimes(Listener(stage=print), clock=iter([0.0, 2.0, 3.0]).__next__)
    >>> times.stage("reading: a.csv")
    reading: a.csv
    >>> times.stage("fit: training")
    fit: training
    >>> times.finish()
    >>> times.seconds
    {'reading': 2.0, 'fit': 1.0}
    """

    def __init__(self, listener: Listener, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._listener, self._clock = listener, clock
        self._name, self._start = "", 0.0

    def stage(self, text: str) -> None:
        """Begin a stage, or another part of the current one."""
        name = text.split(":")[0]
        if name != self._name:
            now = self._end()
            self._name, self._start = name, now
        self._listener.stage(text)

    def finish(self) -> None:
        """End the stage that is running."""
        self._end()
        self._name = ""

    def rounded(self) -> dict[str, float]:
        """Return the seconds, rounded to milliseconds, for the record."""
        return {name: round(seconds, 3) for name, seconds in self.seconds.items()}

    def _end(self) -> float:
        now = self._clock()
        if self._name:
            took = now - self._start
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + took
            self._listener.finished(self._name, took)
        return now


@dataclass(frozen=True)
class TimedListener(Listener):
    """A listener whose stages are timed."""

    times: StageTimes = field(default_factory=lambda: StageTimes(Listener()))

    @classmethod
    def of(cls, listener: Listener | None) -> "TimedListener":
        """Return the listener with a clock; a timed listener is returned unchanged."""
        if isinstance(listener, cls):
            return listener
        listener = listener or Listener()
        times = StageTimes(listener)
        return cls(times.stage, listener.step, listener.finished, listener.say, times)
