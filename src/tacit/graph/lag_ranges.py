"""Lags at which edges may act: one range for all edges, which ranges of single edges override.

A lag is counted in steps before the target: with horizon $h$ the newest input has lag $h$, and the oldest of a window
of $w$ steps has lag $h + w - 1$. Lag 0 is an effect within the step. A node's own past is not restricted.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tacit.errors import InputError, require

EdgeList = Int[Tensor, " edge"]
NO_LIMIT = 2**31


class LagRange(NamedTuple):
    """The smallest and the largest lag, None for no limit; ``where`` names where it was set, for messages."""

    low: int | None = None
    high: int | None = None
    where: str = "[graph]"

    @property
    def is_open(self) -> bool:
        """True if there is no limit."""
        return self.low is None and self.high is None

    @property
    def reach(self) -> int:
        """The largest lag that is named; 0 if none is."""
        return max(self.low or 0, self.high or 0)

    @property
    def lagged(self) -> "LagRange":
        """The range without lag 0."""
        return LagRange(1 if self.low == 0 else self.low, self.high, self.where)

    def named(self, name: str) -> str:
        """Return the name of a limit for an error message, with file and row or the section of the config."""
        return f"{name} in {self.where}" if self.where.startswith("[") else f"{self.where}: {name}"

    def filled(self, other: "LagRange") -> "LagRange":
        """Fill missing limits from another range; raise an error if the result is empty."""
        low = other.low if self.low is None else self.low
        high = other.high if self.high is None else self.high
        require(
            low is None or high is None or low <= high,
            f"{self.named('min_lag')} must be at most max_lag, got {low} and {high}; correct one of them",
        )
        return LagRange(low, high, self.where)

    def require_lagged(self) -> None:
        """Raise an error for lag 0 if edges may not act within a step."""
        for name, lag in (("min_lag", self.low), ("max_lag", self.high)):
            require(
                lag != 0,
                f"{self.named(name)} must be at least 1 unless edges may act within a step, got 0; raise it, or set "
                "simultaneous = true in [graph] (--simultaneous)",
            )

    def require_within(self, horizon: int, window: int | None) -> None:
        """Raise an error for lags without an input: newer than the newest, or older than the window."""
        for name, lag in (("min_lag", self.low), ("max_lag", self.high)):
            if not lag:  # lag 0 needs no input
                continue
            require(
                lag >= horizon,
                f"{self.named(name)} must be at least {horizon}, the lag of the newest input with horizon={horizon}, "
                f"got {lag}; raise it",
            )
            if window is not None and lag >= horizon + window:
                raise InputError(
                    f"{self.named(name)} must be at most {horizon + window - 1}, the oldest lag with "
                    f"window={window} and horizon={horizon}, got {lag}; lower it, or set window={lag - horizon + 1}"
                )


ANY_LAG = LagRange()


@dataclass(frozen=True, eq=False)
class LagRanges:
    """The ranges of all edges: ``default``, and those of single edges by place (target * number of nodes + source).

    >>> ranges = LagRanges(3, LagRange(1, 2), {1: LagRange(3, 3)})  # 1 -> 0 acts at lag 3
    >>> ranges.allowed(torch.tensor([1, 2]), torch.tensor([0, 0]), window=3, horizon=1).int().tolist()
    [[1, 0, 0], [0, 1, 1]]
    """

    num_nodes: int
    default: LagRange
    by_place: dict[int, LagRange]

    @property
    def all(self) -> list[LagRange]:
        """Every range that was set."""
        return [one for one in (self.default, *self.by_place.values()) if not one.is_open]

    @property
    def reach(self) -> int:
        """The largest lag that is named."""
        return max((one.reach for one in self.all), default=0)

    def within_step(self, source: EdgeList, target: EdgeList) -> Bool[Tensor, " edge"]:
        """Return which of some edges may act at lag 0: those without a positive minimum lag."""
        excluded = [place for place, one in self.by_place.items() if one.low]
        wanted, named = target * self.num_nodes + source, torch.tensor(sorted(self.by_place), dtype=torch.long)
        usual = torch.full_like(wanted, not self.default.low, dtype=torch.bool)
        own = ~torch.isin(wanted, torch.tensor(excluded, dtype=torch.long))
        return torch.where(torch.isin(wanted, named), own, usual)

    def limits(self, source: EdgeList, target: EdgeList) -> tuple[EdgeList, EdgeList]:
        """Return the smallest and the largest lag of some edges, without lag 0; (1, 0) if they act only at lag 0."""
        places = torch.tensor(sorted(self.by_place), dtype=torch.long)
        named = [self.by_place[place] for place in places.tolist()]
        wanted, found = target * self.num_nodes + source, []
        for usual, values in (
            (_lagged_low(self.default), [_lagged_low(one) for one in named]),
            (_lagged_high(self.default), [_lagged_high(one) for one in named]),
        ):
            limit = torch.full_like(wanted, usual)
            if len(places):
                place = torch.searchsorted(places, wanted).clamp_max(len(places) - 1)
                own = torch.tensor(values, dtype=torch.long)
                limit = torch.where(places[place] == wanted, own[place], limit)
            found.append(limit)
        return found[0], found[1]

    def allowed(self, source: EdgeList, target: EdgeList, *, window: int, horizon: int) -> Bool[Tensor, "edge lag"]:
        """Return which inputs of a window each edge may read, the oldest first."""
        low, high = self.limits(source, target)
        lags = horizon + torch.arange(window).flip(0)
        return (low[:, None] <= lags) & (lags <= high[:, None])


def _lagged_low(lags: LagRange) -> int:
    return max(lags.low or 1, 1)


def _lagged_high(lags: LagRange) -> int:
    return NO_LIMIT if lags.high is None else lags.high
