"""What can be asked of a fitted estimator besides predictions: edges, graphs, names, the course of training."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from tacit.graph import BernoulliGraph, edge_table, to_networkx, to_pyg
from tacit.sklearn.stored_estimator import StoredEstimator

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data


class Learned(StoredEstimator):
    """The attributes that end in an underscore; before ``fit`` there are none of them."""

    @property
    def edge_probs_(self) -> np.ndarray:
        """The probability of every edge: target row, source column."""
        return self._ready().edge_probs

    @property
    def edge_std_errors_(self) -> np.ndarray:
        """Standard errors of ``edge_probs_``, once :meth:`estimate_std_errors` has computed them."""
        errors = self._ready().std_errors
        if errors is None:
            raise AttributeError("edge_std_errors_ is not computed yet; call estimate_std_errors(X, y) first")
        return errors

    @property
    def edges_(self) -> "pandas.DataFrame":
        """All ordered pairs as a table: source, target, probability and, once computed, its standard error."""
        fitted = self._ready()
        table = edge_table(torch.from_numpy(fitted.edge_probs), fitted.nodes)
        if fitted.std_errors is not None:
            place = {node: number for number, node in enumerate(fitted.nodes)}
            target, source = (table[end].map(place).to_numpy() for end in ("target", "source"))
            table["std_error"] = fitted.std_errors[target, source]
        return table

    def to_networkx(self, threshold: float = 0.0) -> "networkx.DiGraph | networkx.Graph":
        """Return the edges above a probability as a networkx graph, each with its ``probability``."""
        fitted = self._ready()
        probs = torch.from_numpy(fitted.edge_probs)
        return to_networkx(probs, fitted.nodes, threshold, symmetric=fitted.graph.symmetric)

    def to_pyg(self, threshold: float = 0.0) -> "Data":
        """Return the edges above a probability as a PyG graph with ``edge_index`` and ``edge_prob``."""
        fitted = self._ready()
        return to_pyg(torch.from_numpy(fitted.edge_probs), fitted.nodes, threshold)

    @property
    def nodes_(self) -> list[str]:
        """The names of the nodes from the tables, or their places as words."""
        return self._ready().nodes

    @property
    def channels_(self) -> list[str] | None:
        """The names of the channels of ``X``, or None without names."""
        return self._ready().channels

    @property
    def graph_(self) -> BernoulliGraph:
        """The learned distribution of graphs."""
        return self._ready().graph

    @property
    def predictor_(self) -> nn.Module | None:
        """The trained predictor; it works in the units of training (``scale``)."""
        return self._with_predictor().predictor

    @property
    def history_(self) -> list[dict[str, Any]]:
        """What each epoch showed: losses of all replicas, None for those that were dropped."""
        return self._ready().history

    @property
    def replicas_(self) -> list[dict[str, Any]]:
        """Seed, validation loss and, if it was given up, the last epoch of each replica."""
        return self._ready().replicas

    @property
    def best_replica_(self) -> int:
        """Which of ``replicas_`` was kept."""
        return self._ready().best_replica

    @property
    def notes_(self) -> list[str]:
        """What was chosen from the data, and what did not go as it should."""
        return self._ready().notes
