"""What is to be learned: pairs in three parts, what is known of the edges, and how to go back to units."""

from dataclasses import dataclass

import numpy as np

from tacit.config import DataConfig, FitConfig
from tacit.config.own_data import SERIES_KEYS, TABLE_KEYS
from tacit.data import Pairs, Series, Split, Windows, read_coordinates
from tacit.data.units import ChannelUnits
from tacit.errors import require
from tacit.graph import EdgeRules
from tacit.own_data.known_edges import left_out, pair_rows, read_rules, series_rows
from tacit.own_data.preparation import PairsPreparation, Preparation, SeriesPreparation, about, read_source

# Seen on 900 rows of a VAR(1) with five nodes: two or three lags tell edges from others, twelve overfit.
SHORT_WINDOW, LONG_WINDOW, ROWS_FOR_A_LONG_ONE = 3, 12, 2500
FEWEST_OBSERVED = 2  # targets of a node in the training part, so that they have a spread


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that was read; ``notes`` says what the readers changed."""

    split: Split
    preparation: Preparation
    rules: EdgeRules
    coordinates: np.ndarray | None
    notes: tuple[str, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return self.preparation.nodes

    @classmethod
    def read(cls, source: str, config: FitConfig) -> "Problem":
        """Read the data and the files that the config names."""
        fractions = config.data.fractions
        read = read_source(source, config.data)
        if isinstance(read, Series):
            with about(source):
                windows = Windows(config.data.window or usual_window(len(read)), config.data.horizon, fractions)
                made = windows.prepare(read, targets=config.data.targets)
            preparation: Preparation = SeriesPreparation(windows, made.scaling)
            split, coordinates, notes = made.split, read.coordinates, read.notes + made.notes
            seen = series_rows(made)
        else:
            config.data.require_unset(TABLE_KEYS + SERIES_KEYS, source, "which has pairs x and y")
            with about(source):
                preparation, split = _pairs(read.pairs, read.nodes, config.data)
            coordinates, notes = None, ()
            seen = pair_rows(split.train)
        with about(source):
            _require_learnable(split, preparation.nodes)
        if config.graph.coordinates is not None:
            coordinates = read_coordinates(config.graph.coordinates, preparation.nodes)
        rules = read_rules(preparation.nodes, config.graph, coordinates, seen)
        return cls(split, preparation, rules, coordinates, notes + left_out(rules))


def usual_window(num_rows: int) -> int:
    """Return how far back to look when nobody says: every lag costs weights, and few rows cannot pay for many."""
    return LONG_WINDOW if num_rows >= ROWS_FOR_A_LONG_ONE else SHORT_WINDOW


def _pairs(pairs: Pairs, nodes: tuple[str, ...], config: DataConfig) -> tuple[PairsPreparation, Split]:
    """Return pairs in parts, in their order, scaled by the first."""
    parts = pairs.split(config.fractions)
    targets, observed = parts.train.targets.double().numpy(), parts.train.observed
    known = targets if observed is None else np.where(observed.numpy() > 0, targets, np.nan)
    units = ChannelUnits.of(parts.train.inputs.double().numpy()), ChannelUnits.of(known)
    preparation = PairsPreparation(nodes, *units)
    scaled = (preparation.scaled(part) for part in (parts.train, parts.validation, parts.test))
    return preparation, Split(*scaled)


def _require_learnable(split: Split, nodes: tuple[str, ...]) -> None:
    """Refuse what could only fail later: a single node, a node without targets, a part with nothing to score."""
    require(len(nodes) > 0, "a graph needs two nodes or more, got none; pass some")
    require(len(nodes) > 1, f"a graph needs two nodes or more, got one, '{nodes[0]}'; add others")
    for name, part in vars(split).items():
        require(
            part.observed is None or bool(part.observed.any()),
            f"no target of the {name} part is known; pass more rows, or set other fractions",
        )
    if split.train.observed is None:
        return
    counts = split.train.observed.sum(0).amin(1)  # of the rarest channel of each node
    fewest = int(counts.argmin())
    require(
        bool(counts[fewest] >= FEWEST_OBSERVED),
        f"node '{nodes[fewest]}' needs {FEWEST_OBSERVED} known targets or more in the training part, "
        f"got {int(counts[fewest])}; leave it out, or train on a larger fraction",
    )
