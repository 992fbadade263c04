"""Targets beside what was measured: ``python -m benchmarks.targets`` draws ``benchmarks/TARGETS.md``."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One figure of a record and its target."""

    topic: str
    what: str
    found: str
    wanted: str
    met: bool

    @property
    def key(self) -> str:
        """Return the name by which a known miss is listed."""
        return f"{self.topic}: {self.what}"


def at_most(topic: str, what: str, value: float, bound: float, form: str = "{:.4g}") -> Target:
    """Return a target that a number is not above.

    >>> at_most("speed", "seconds", 2.5, 3).met
    True
    """
    return Target(topic, what, form.format(value), f"at most {form.format(bound)}", value <= bound)


def at_least(topic: str, what: str, value: float, bound: float, form: str = "{:.4g}") -> Target:
    """Return a target that a number is not below."""
    return Target(topic, what, form.format(value), f"at least {form.format(bound)}", value >= bound)


def between(topic: str, what: str, value: float, low: float, high: float, form: str = "{:.1%}") -> Target:
    """Return a target that a number lies in a range."""
    return Target(topic, what, form.format(value), f"{form.format(low)} to {form.format(high)}", low <= value <= high)
