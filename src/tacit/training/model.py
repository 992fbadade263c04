r"""The model that is trained: a graph distribution and a predictor, a loss and a gradient estimator.

$$A \sim P_\theta, \qquad \hat y = f_\psi(x, A)$$
"""

from typing import Literal

import torch
from torch import Generator, Tensor, nn

from tacit.errors import InputError, require, require_whole
from tacit.estimators import GlobalCredit, ReceptiveFieldCredit, ScoreFunction, check_locality
from tacit.graph import BernoulliGraph
from tacit.losses import Loss
from tacit.predictors import initial_parameters, num_hops_of
from tacit.randomness import generator_for
from tacit.shapes import Graphs, Inputs, PairLoss, Samples, Scalar, Targets, Uniforms

CreditName = Literal["auto", "global", "receptive_field"]


class LatentGraphModel(nn.Module):
    """Everything a training step needs except data and randomness; what cannot go together is refused here.

    ``credit`` is "auto" by default: by receptive field where the loss has node scope and the predictor declares its
    number of hops, else global. ``share_graphs`` draws one set of graphs per batch instead of one per pair.
    """

    def __init__(
        self,
        graph: BernoulliGraph,
        predictor: nn.Module,
        loss: Loss,
        *,
        num_graphs: int = 16,
        share_graphs: bool = False,
        credit: CreditName = "auto",
    ) -> None:
        super().__init__()
        _require_parts(graph, predictor, loss)
        require_whole("num_graphs", num_graphs)
        require(
            num_graphs >= loss.min_graphs,
            f"{type(loss).__name__} needs num_graphs >= {loss.min_graphs} with this baseline, got {num_graphs}; "
            "raise num_graphs",
        )
        self.graph = graph
        self.predictor = predictor
        self.loss = loss
        self.num_graphs = num_graphs
        self.share_graphs = share_graphs
        self.estimator = ScoreFunction(_choose_credit(credit, loss, predictor))

    def forward(self, inputs: Inputs, targets: Targets, uniforms: Uniforms) -> tuple[Scalar, PairLoss]:
        """Return a number whose gradient is the estimate for theta and psi at once, and the loss of each pair."""
        graphs = self.graph.sample_from(uniforms)
        terms = self.loss(self.predictor(inputs, graphs), targets)
        losses = terms.value.mean(-1)
        surrogate = self.estimator.surrogate(terms, graphs, self.graph.row_log_prob(graphs))
        return losses.mean() + surrogate, losses

    @torch.no_grad()
    def sample(self, inputs: Inputs, num_graphs: int, *, generator: Generator) -> Samples:
        """Draw graphs that all pairs share, and return the prediction of every pair under each of them."""
        graphs: Graphs = self.graph.sample(num_graphs, generator=generator)
        samples: Samples = self.predictor(inputs, graphs)
        return samples

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return fresh initial values for all trainable parameters, by their full names."""
        parts = {"graph": self.graph, "predictor": self.predictor}
        fresh = {f"{part}.{k}": v for part, m in parts.items() for k, v in initial_parameters(m, generator).items()}
        return {name: fresh[name] for name, value in self.named_parameters() if value.requires_grad}

    def check(self, inputs: Inputs, targets: Targets) -> None:
        """Raise :class:`InputError` if model and data do not fit, or if the predictor is not as local as it says."""
        nodes = self.graph.num_nodes
        require(
            inputs.shape[1] == nodes,
            f"inputs needs {nodes} nodes like the graph, got {inputs.shape[1]}; build the graph with "
            f"num_nodes={inputs.shape[1]}",
        )
        generator = generator_for(0, "check", inputs.device)
        samples = self.sample(inputs[:2], self.num_graphs, generator=generator)
        expected = (len(inputs[:2]), self.num_graphs, *targets.shape[1:])
        require(
            tuple(samples.shape) == expected,
            f"{type(self.predictor).__name__} needs to return (batch, graph, node, channel) = {expected}, "
            f"got {tuple(samples.shape)}; see tacit.predictors.protocol for an example",
        )
        if isinstance(self.estimator.credit, ReceptiveFieldCredit):
            hops = self.estimator.credit.num_hops
            check_locality(self.predictor, nodes, inputs.shape[2], hops, generator=generator)


def _require_parts(graph: object, predictor: object, loss: object) -> None:
    for name, value, kind, example in (
        ("graph", graph, BernoulliGraph, "BernoulliGraph.uniform(12, generator=rng)"),
        ("predictor", predictor, nn.Module, "HopPredictor.random(2, 4, generator=rng)"),
        ("loss", loss, Loss, 'EnergyScore(scope="node")'),
    ):
        if isinstance(value, type) or not isinstance(value, kind):
            got = repr(value) if isinstance(value, str | type) else type(value).__name__
            raise InputError(f"{name} needs an object like {example}, got {got}; build one")


def _choose_credit(credit: CreditName, loss: Loss, predictor: nn.Module) -> GlobalCredit | ReceptiveFieldCredit:
    num_hops = num_hops_of(predictor)
    if credit == "global":
        return GlobalCredit()
    if credit == "auto":
        return GlobalCredit() if num_hops is None or loss.scope != "node" else ReceptiveFieldCredit(num_hops)
    if credit != "receptive_field":
        raise InputError(f"credit needs one of auto, global, receptive_field, got '{credit}'; use 'auto'")
    if loss.scope != "node":
        raise InputError(
            "credit='receptive_field' needs a loss of node scope, got joint scope; use scope='node' or credit='global'"
        )
    if num_hops is None:
        raise InputError(
            f"credit='receptive_field' needs a predictor that declares num_hops, got {type(predictor).__name__}; "
            "add num_hops if its output is local, or use credit='global'"
        )
    return ReceptiveFieldCredit(num_hops)
