"""One index of edges, one table of edges, and the schema of its columns: files, frames and pages are views of it."""

from tacit.edges.by import BY_NUMBERS, EDGES_BY, REGIME, EdgesBy, read_edges_by
from tacit.edges.edges_csv import EDGES, edges_text, read_edges
from tacit.edges.index import EdgeIndex
from tacit.edges.lags import LAGS, LagTable, read_lags
from tacit.edges.listing import FDR, LISTED_FROM, false_discoveries, listed_edges
from tacit.edges.schema import ACTS, DIRECTIONS, FLAGS, OPEN, VARIES, Column
from tacit.edges.table import EdgeTable

__all__ = [
    "ACTS",
    "BY_NUMBERS",
    "DIRECTIONS",
    "EDGES",
    "EDGES_BY",
    "FDR",
    "FLAGS",
    "LAGS",
    "LISTED_FROM",
    "OPEN",
    "REGIME",
    "VARIES",
    "Column",
    "EdgeIndex",
    "EdgeTable",
    "EdgesBy",
    "LagTable",
    "edges_text",
    "false_discoveries",
    "listed_edges",
    "read_edges",
    "read_edges_by",
    "read_lags",
]
