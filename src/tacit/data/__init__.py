"""Pairs of inputs and targets, however they came to be: a user's tables, series and arrays."""

from tacit.data.air import load_beijing_air, read_aqi36
from tacit.data.arrays import NamedPairs, pairs_from_arrays, read_named_pairs
from tacit.data.coordinates import read_coordinates
from tacit.data.frames import read_frame
from tacit.data.pairs import Pairs, Split
from tacit.data.resampling import bootstrap_rows, resampling_words, usual_block
from tacit.data.scaling import Scaling
from tacit.data.series import Series
from tacit.data.tables import read_series
from tacit.data.windows import NewPairs, SeriesPairs, Windows

__all__ = [
    "NamedPairs",
    "NewPairs",
    "Pairs",
    "Scaling",
    "Series",
    "SeriesPairs",
    "Split",
    "Windows",
    "bootstrap_rows",
    "load_beijing_air",
    "pairs_from_arrays",
    "read_aqi36",
    "read_coordinates",
    "read_frame",
    "read_named_pairs",
    "read_series",
    "resampling_words",
    "usual_block",
]
