r"""The mean equation of every node, with the joint covariance of its weights and the edges that may be in it.

$$E[y_i \mid x] = o_i + b_i + u_i^\top z_i + \sum_j \beta_{ij}^\top x_j, \qquad \beta_{ij} = \theta_{ij}\, w_{ij}$$

$z_i$ is the node's own past and $x_j$ that of source $j$. The mean depends on a weight and on how often its edge acts
through the product alone, which regressions determine better than its factors. So one covariance $C_i$ of all
coefficients of a node holds the uncertainty of both: that of least squares, valid for noise whose size varies, as gates
make it vary, and for rows that depend on each other (:class:`~tacit.local.Dependence`).

The equation has a column for every edge that may exist, with at least the probability ``LEAST``. A draw of the
equations draws the edges first, each with its ``exists``. Without some edges $d$ the others $r$ are estimated again,

$$\beta_r \mid \beta_d = 0 \;\sim\;
  N\big(\beta_r - C_{rd} C_{dd}^{-1} \beta_d,\; C_{rr} - C_{rd} C_{dd}^{-1} C_{dr}\big),$$

which is the regression without their columns if $C$ is that of least squares.

A window has more lags than most edges use, and errors of weights that are 0 grow over the steps of a response. So a
draw also decides, for every edge and own past, whether it has one lag or all of them. The other lags $d$ are in with
the probability

$$\Big(1 + n^{|d| / 2}\, e^{-W / 2}\Big)^{-1}, \qquad W = \beta_d^\top C_{dd}^{-1} \beta_d,$$

the weight of the Bayesian information criterion. The one lag of an edge is that for which $W$ of the others is least;
that of an own past is the newest.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.local.dependence import Dependence
from tacit.local.model import LocalModel, has_gated_weights
from tacit.local.moments import influence, regress
from tacit.predictors import GraphFilter, SeriesLayout
from tacit.shapes import EdgeProbs
from tacit.training import LatentGraphModel

LEAST = 0.02  # ``exists`` of an edge that may be in the equation of its target
CERTAIN = 0.98  # ``exists`` from which an edge is in every draw
BEST = 0.5  # ``exists`` of the edges of the best graph
ROWS_PER_COLUMN = 2
MOST_COLUMNS = 512  # of one node
MOST_NUMBERS = 2**22  # of all covariances: 16 MiB of a run
PREFIX = "equations."  # of the names of the tensors in a file


@dataclass(frozen=True, eq=False)
class MeanEquations:
    """The equations of all nodes.

    ``source``, ``target``  the edges that may exist, by target; ``exists`` their probabilities
    ``own``         (node, column): coefficients of the own inputs that :func:`own_columns` names
    ``edges``       (edge, column): coefficients of what the source sends; the last one is the step itself, if edges may
                    act within a step
    ``window``      number of lags: neither the step itself nor a level is one
    ``rows``        $n$ of each node
    ``covariance``  the matrices $C_i$, one after the other; the columns of node $i$ are its own, then those of its
                    edges in their order
    """

    source: Int[Tensor, " edge"]
    target: Int[Tensor, " edge"]
    exists: Float[Tensor, " edge"]
    own: Float[Tensor, "node column"]
    edges: Float[Tensor, "edge sent"]
    window: Int[Tensor, ""]
    rows: Float[Tensor, " node"]
    covariance: Float[Tensor, " number"]

    @property
    def uncertain(self) -> Bool[Tensor, " edge"]:
        """The edges that are in some draws and not in others."""
        return (self.exists >= LEAST) & (self.exists < CERTAIN)

    @property
    def best(self) -> "MeanEquations":
        """The equations with the best graph alone: it has the edges that exist more likely than not."""
        return replace(self, exists=(self.exists >= BEST).to(self.exists))

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by the names that they have in a file."""
        return {f"{PREFIX}{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "MeanEquations | None":
        """Return the equations from :meth:`tensors`; None if there are none."""
        names = [field.name for field in fields(cls)]
        if any(f"{PREFIX}{name}" not in tensors for name in names):
            return None
        return cls(*(tensors[f"{PREFIX}{name}"] for name in names))

    def draw(
        self, count: int, generator: Generator
    ) -> tuple[Float[Tensor, "draw node column"], Float[Tensor, "draw edge sent"]]:
        """Return drawn coefficients, those of edges that are not drawn 0.

        Draws come in pairs with the same edges and opposite errors, so that the mean of a coefficient is exact.
        """
        half = (count + 1) // 2
        uniforms = torch.rand(half, len(self.exists), generator=generator, dtype=torch.float64)
        present = torch.where(self.uncertain, uniforms < self.exists, self.exists >= CERTAIN)
        longer = torch.rand(half, len(self.exists) + len(self.own), generator=generator, dtype=torch.float64)
        (nodes, width), sent, lags = self.own.shape, self.edges.shape[1], int(self.window)
        own = self.own.new_zeros(2 * half, nodes, width, dtype=torch.float64)
        edges = self.edges.new_zeros(2 * half, *self.edges.shape, dtype=torch.float64)
        first = 0
        for node in range(nodes):
            into = (self.target == node).nonzero()[:, 0]
            size = width + len(into) * sent
            beta = torch.cat([self.own[node], self.edges[into].flatten()]).double()
            covariance = self.covariance[first : first + size**2].view(size, size).double()
            first += size**2
            sources = (width + torch.arange(size - width)).view(-1, sent)[:, :lags]
            blocks = [torch.arange(lags), *sources.unbind()]
            kept = torch.cat([present.new_ones(half, width), present[:, into].repeat_interleave(sent, 1)], 1)
            for number, block in enumerate(blocks):
                used = block[covariance[block, block] > 0]
                others, prob = _other_lags(beta, covariance, used, float(self.rows[node]), newest=number == 0)
                one_lag = longer[:, len(self.exists) + node if number == 0 else int(into[number - 1])] >= prob
                kept[:, others] &= ~one_lag[:, None]
            normals = torch.randn(half, size, generator=generator, dtype=torch.float64)
            drawn = own.new_zeros(2 * half, size)
            masks, which = torch.unique(kept, dim=0, return_inverse=True)
            for number, mask in enumerate(masks):
                rows = (which == number).nonzero()[:, 0]
                mean, root = _without(beta, covariance, ~mask)
                errors = normals[rows] @ root.mT
                drawn[rows], drawn[rows + half] = mean + errors, mean - errors
            own[:, node] = drawn[:, :width]
            edges[:, into] = drawn[:, width:].view(2 * half, len(into), sent)
        return own, edges


def _other_lags(
    beta: Float[Tensor, " column"],
    covariance: Float[Tensor, "column column"],
    lags: Int[Tensor, " lag"],
    rows: float,
    *,
    newest: bool,
) -> tuple[Int[Tensor, " other"], float]:
    r"""Return the lags beside the best one, or the newest, and the probability that they are in the equation.

    With $P$ the inverse of $C$ for all lags, $W$ of all but lag $j$ is $\beta^\top P \beta - (P \beta)_j^2 / P_{jj}$.
    """
    if len(lags) < 2:
        return lags[:0], 1.0
    inverse = torch.linalg.pinv(covariance[lags][:, lags], hermitian=True)
    explained = inverse @ beta[lags]
    statistics = beta[lags] @ explained - explained.square() / inverse.diagonal()
    kept = len(lags) - 1 if newest else int(statistics.argmin())
    others = torch.cat([lags[:kept], lags[kept + 1 :]])
    exponent = (len(others) * math.log(rows) - float(statistics[kept])) / 2
    return others, 1 / (1 + math.exp(min(700.0, exponent)))


def _without(
    beta: Float[Tensor, " column"], covariance: Float[Tensor, "column column"], left_out: Bool[Tensor, " column"]
) -> tuple[Float[Tensor, " column"], Float[Tensor, "column column"]]:
    """Return mean and a root of the covariance of the coefficients given that some are 0."""
    kept = ~left_out
    if left_out.any():
        gain = covariance[:, left_out] @ torch.linalg.pinv(covariance[left_out][:, left_out], hermitian=True)
        beta = (beta - gain @ beta[left_out]).masked_fill(left_out, 0.0)
        covariance = covariance - gain @ covariance[left_out]
    covariance = covariance[kept][:, kept]  # with rows of 0, the decomposition may not converge
    scale = covariance.diagonal().clamp_min(0).sqrt()
    inverse = torch.where(scale > 0, 1 / scale, 0.0)
    sizes, directions = torch.linalg.eigh(covariance * inverse[:, None] * inverse)
    root = covariance.new_zeros(len(beta), len(beta))
    root[kept.nonzero(), kept.nonzero()[:, 0]] = scale[:, None] * directions * sizes.clamp_min(0).sqrt()
    return beta, root


def own_columns(layout: SeriesLayout) -> list[int]:
    """Return the places of the own inputs that change with the values of a node: its lags and its level.

    >>> own_columns(SeriesLayout(window=2, num_features=2, known=3, levels=1))
    [0, 2, 6]
    """
    lags = [lag * layout.num_features for lag in range(layout.window)]
    return lags + list(range(layout.in_channels - layout.levels, layout.in_channels))


def has_linear_mean(model: LatentGraphModel) -> bool:
    """Return whether the mean of each target is linear in the inputs, with one probability per edge."""
    observation = model.observation
    return has_gated_weights(model) and {*(observation.supports or (observation.support,))} == {"real"}


def mean_equations(
    model: LatentGraphModel, train: Pairs, exists: EdgeProbs, dependence: Dependence
) -> MeanEquations | None:
    """Return the equations of a model with :func:`has_linear_mean`, from its training pairs.

    None if a node has too few pairs for its coefficients, or if the covariances are too large to be kept.

    ``exists``  the probability of each edge; NaN where it was not tested: then it is known
    """
    data, predictor = LocalModel.of(model, train), model.predictor
    assert isinstance(predictor, GraphFilter)
    exists = torch.where(exists.isnan(), data.present.to(exists), exists.to(data.present.device))
    exists = (exists * (exists >= LEAST)).fill_diagonal_(0.0)
    data = replace(data, present=exists > 0)
    target, source = data.present.nonzero().unbind(1)
    chosen, width, sent = own_columns(predictor.layout), data.parts.own.shape[2], data.parts.sent.shape[2]
    sizes = len(chosen) + sent * data.present.sum(1)
    enough = ROWS_PER_COLUMN * (sizes + width + 1 - len(chosen)) <= (data.weights > 0).sum(0)
    if not enough.all() or int(sizes.max()) > MOST_COLUMNS or int((sizes**2).sum()) > MOST_NUMBERS:
        return None
    own, edges, rows, covariances = [], [], [], []
    for node in range(len(exists)):
        regression, weights = data.moments(node), data.weights[:, node]
        design, left = regression.design, regression.targets - regression.offset
        every = torch.ones(1, design.shape[1], dtype=torch.bool, device=design.device)
        beta = regress(design, left[None], weights[None], every)[0]
        errors = influence(design, left - design @ beta, weights)
        own.append(beta[chosen])
        edges.append(beta[width + 1 :].view(-1, sent))
        rows.append(weights.sum())
        kept = [*chosen, *range(width + 1, design.shape[1])]
        covariances.append(dependence.covariances(errors[:, kept]).flatten())
    numbers = exists[target, source], torch.stack(own), torch.cat(edges), torch.stack(rows), torch.cat(covariances)
    probs, own_weights, edge_weights, counts, covariance = (one.detach().float().cpu() for one in numbers)
    window = torch.tensor(predictor.layout.window)
    return MeanEquations(source.cpu(), target.cpu(), probs, own_weights, edge_weights, window, counts, covariance)
