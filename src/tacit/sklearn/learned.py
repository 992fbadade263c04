"""What can be asked of a fitted estimator besides predictions: edges, graphs, names, the course of training."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from tacit.graph import GraphDistribution, edge_table, listed_table, to_networkx, to_pyg
from tacit.sklearn.edge_errors import EdgeErrors
from tacit.sklearn.reading import Reading

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

# Whether an edge can be told from the data; nothing is said of one that is held fixed.
FLAGS = ("", "no", "yes")


class Learned(Reading):
    """The attributes that end in an underscore; before ``fit`` there are none of them."""

    @property
    def edge_probs_(self) -> np.ndarray:
        """The probability of every edge: target row, source column."""
        return self._ready().edge_probs

    @property
    def edge_probs_bagged_(self) -> np.ndarray:
        """The mean probability of each edge over the replicas of :meth:`estimate_std_errors`."""
        return self._errors("edge_probs_bagged_").bagged.numpy()

    @property
    def edge_std_errors_(self) -> np.ndarray:
        """Standard errors of ``edge_probs_bagged_``, from :meth:`estimate_std_errors`; 0 where an edge is fixed."""
        return self._errors("edge_std_errors_").std_errors.numpy()

    @property
    def edge_low_(self) -> np.ndarray:
        """Where the 95% interval of each edge probability begins; for other levels see :meth:`edge_intervals`."""
        return self._errors("edge_low_").intervals(self.graph_).low.numpy()

    @property
    def edge_high_(self) -> np.ndarray:
        """Where the 95% interval of each edge probability ends."""
        return self._errors("edge_high_").intervals(self.graph_).high.numpy()

    @property
    def edge_identifiable_(self) -> np.ndarray:
        """True for each edge that the data can tell, from :meth:`identify`; false too where one is held fixed."""
        identifiable = self._ready().identifiable
        if identifiable is None:
            raise AttributeError("edge_identifiable_ is not computed yet; call identify(X, y) first")
        return identifiable.numpy()

    @property
    def edges_(self) -> "pandas.DataFrame":
        """All ordered pairs as a table: source, target, probability and, once asked for, more.

        Of more nodes than ``edge_probs_`` is kept for, the candidates: all other edges are 0.

        ``std_error``, ``low``, ``high``, ``bagged``  from :meth:`estimate_std_errors`: the bagged estimate, its
        standard error and its 95% interval. ``identifiable``  from :meth:`identify`: "yes", "no", or nothing for an
        edge that is held fixed.
        """
        return self._edge_table(self._edge_attributes())

    def to_networkx(self, threshold: float = 0.0) -> "networkx.DiGraph | networkx.Graph":
        """Return the edges above a probability as a networkx graph, each with what ``edges_`` says of it."""
        fitted = self._ready()
        probs, attributes = torch.from_numpy(fitted.edge_probs), self._edge_attributes()
        graph = to_networkx(probs, fitted.nodes, threshold, symmetric=fitted.graph.symmetric, attributes=attributes)
        if "identifiable" in attributes:
            for _, _, edge in graph.edges(data=True):
                edge["identifiable"] = FLAGS[edge["identifiable"]]
        return graph

    def _edge_table(self, attributes: dict[str, Tensor], chosen: Tensor | None = None) -> "pandas.DataFrame":
        """Return all ordered pairs with some attributes, or those that are chosen, each pair without direction once."""
        fitted = self._ready()
        if fitted.graph.slots is not None and chosen is None:
            return listed_table(fitted.graph.edge_probs, fitted.graph.slots, fitted.nodes)
        if chosen is not None:
            attributes = {**attributes, "chosen": chosen.triu() if fitted.graph.symmetric else chosen}
        table = edge_table(torch.from_numpy(fitted.edge_probs), fitted.nodes, attributes=attributes)
        if "identifiable" in attributes:
            table["identifiable"] = [FLAGS[number] for number in table["identifiable"]]
        return table if chosen is None else table[table.pop("chosen")].reset_index(drop=True)

    def _edge_attributes(self) -> dict[str, Tensor]:
        """Return what is known of every edge besides its probability; ``identifiable`` as a place in ``FLAGS``."""
        fitted, attributes = self._ready(), {}
        if fitted.errors is not None:
            ends = fitted.errors.intervals(fitted.graph)
            attributes = {"std_error": fitted.errors.std_errors, "low": ends.low, "high": ends.high}
            attributes["bagged"] = fitted.errors.bagged
        if fitted.identifiable is not None:
            learned = ~fitted.graph.fixed.cpu()
            attributes["identifiable"] = learned.to(torch.uint8) + fitted.identifiable
        return attributes

    def _errors(self, name: str) -> EdgeErrors:
        """Return the standard errors; without them an error says that ``name`` needs them."""
        errors = self._ready().errors
        if errors is None:
            raise AttributeError(f"{name} is not computed yet; call estimate_std_errors(X, y) first")
        return errors

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
    def graph_(self) -> GraphDistribution:
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
        fitted = self._ready()
        return fitted.notes if fitted.errors is None else fitted.notes + fitted.errors.notes
