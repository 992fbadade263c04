"""The methods by name; each sees one system and gives a number for every edge, and a list of edges where it has one.

``tacit`` is the evidence with which a fit begins, ``tacit fit`` the list of a complete fit with defaults. Peers see the
values without the dates, and straight lines in place of missing values.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from benchmarks.existence.full_fits import fitted
from benchmarks.existence.methods import STABILITY, existing, method, planned, probabilities
from benchmarks.existence.peers import PEERS, pcmci_results
from benchmarks.existence.systems import System, Values
from benchmarks.observation.methods import Answer
from benchmarks.simultaneous.peers import PCMCIPlus

TACIT, FIT = "tacit", "tacit fit"
Method = Callable[[System], Answer]


def tacit(system: System) -> Answer:
    """Return ``exists`` of every edge as the plan of a fit has it, and the names of what was found."""
    found = planned(system)
    notes = found.found.notes
    causes = tuple(notes) if isinstance(notes, dict) else ()  # versions before the names of findings have a tuple
    return Answer(existing(found), driver="driver" in causes, causes=causes)


def tacit_fit(system: System) -> Answer:
    """Return ``exists`` of every edge as a complete fit writes it to its file."""
    scores = np.zeros(system.truth.shape)
    scores[~np.eye(system.num_nodes, dtype=bool)] = fitted(system.kind, system, 0)["pairs"]["exists"]
    return Answer(scores)


def pcmci(system: System) -> Answer:
    """Return the largest partial correlations of PCMCI, and the links of its graph (level .01 for each)."""
    found = pcmci_results(filled(system).series)
    sizes = np.abs(np.nan_to_num(found["val_matrix"][:, :, 1:])).max(2)
    return Answer(sizes.T, listed=(found["graph"][:, :, 1:] == "-->").any(2).T)


def pcmci_plus(system: System) -> Answer:
    """Return what PCMCI+ gives an edge at any lag, and the links of its graph."""
    directed = PCMCIPlus()(filled(system).series[0]).directed
    return Answer(directed, listed=directed >= 0.5)


def stability(system: System) -> Answer:
    """Return the shares of stability selection, recalibrated to probabilities."""
    return Answer(probabilities(STABILITY, method(STABILITY)(filled(system))))


def ranked(name: str) -> Method:
    """Return a peer that gives scores and no list."""
    nothing = np.zeros((0, 0), dtype=bool)
    return lambda system: Answer(PEERS[name](filled(system).series, False), listed=nothing)


def filled(system: System) -> System:
    """Return the system with straight lines in place of missing values, and the nearest value at the ends."""
    return replace(system, series=tuple(_lines(one) for one in system.series))


def _lines(values: Values) -> Values:
    rows, values = np.arange(len(values)), values.copy()
    for node in range(values.shape[1]):
        gap = np.isnan(values[:, node])
        values[gap, node] = np.interp(rows[gap], rows[~gap], values[~gap, node])
    return values


METHODS: dict[str, Method] = {
    TACIT: tacit,
    FIT: tacit_fit,
    "ridge": ranked("ridge"),
    STABILITY: stability,
    "PCMCI": pcmci,
    "PCMCI+": pcmci_plus,
    "VARLiNGAM": ranked("VARLiNGAM"),
}
