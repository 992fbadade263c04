r"""Edges that are correlated: each block of edges is in one of several regimes, each with independent edges.

$$P(A) = \prod_B \sum_{k=1}^K \pi_{Bk} \prod_{ij \in B} \theta_{kij}^{A_{ij}} (1 - \theta_{kij})^{1 - A_{ij}}$$

The blocks $B$ are either the rows, so that each node has its own regimes of incoming edges, or one block of all edges,
so that the whole graph has regimes. $\pi_B$ are the weights of the regimes. With $K = 1$ this is
:class:`~tacit.graph.BernoulliGraph`. The marginal probability of an edge is $\sum_k \pi_{Bk}\, \theta_{kij}$.

A node-scope loss depends on the joint distribution of the edges of one row, but not on how regimes of different rows
are combined. With all edges in one block, use a loss of joint scope.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tacit.errors import require, require_int
from tacit.graph.bernoulli import BernoulliGraph
from tacit.graph.distribution import GraphDistribution, times
from tacit.graph.links import Sigmoid
from tacit.shapes import EdgeMask, EdgeProbs, EdgeWeights, Graphs, LogProb, Scalar, Uniforms

Blocks = Literal["rows", "all"]
APART = 1.0  # initial logits of the regimes are spread from plus to minus this value
SPREAD = 0.5  # standard deviation of the normal noise that is added to each
IMPOSSIBLE = -100.0  # log-probability of an edge that is impossible in a regime; other regimes may have it

RegimeProbs = Float[Tensor, "regime row slot"]
BlockWeights = Float[Tensor, "block regime"]


class MixtureGraph(GraphDistribution):
    r"""A mixture of independent edges in each block; regimes are ordered by weight with :meth:`ordered`.

    ``edge_logits``    (regime, row, slot): those of $\theta_k$
    ``weight_logits``  (block, regime): $\pi$ is their softmax

    >>> graph = MixtureGraph(BernoulliGraph(torch.full((2, 2), 0.5)), 2)
    >>> graph.sample(1000, generator=Generator().manual_seed(0)).shape, graph.num_blocks
    (torch.Size([1, 1000, 2, 2]), 2)
    """

    link = Sigmoid()
    block_of_row: Int[Tensor, " row"]
    first_row: Int[Tensor, " block"]

    def __init__(self, start: BernoulliGraph, num_regimes: int = 2, blocks: Blocks = "rows") -> None:
        """Start with regimes around the probabilities of ``start``, with equal weights; its fixed edges stay fixed."""
        super().__init__()
        require_int("num_regimes", num_regimes)
        require(
            blocks in get_args(Blocks), f"blocks must be one of {', '.join(get_args(Blocks))}, got '{blocks}'; use rows"
        )
        require(
            isinstance(start.link, Sigmoid),
            f"link must be Sigmoid() for a graph with regimes, got {type(start.link).__name__}; leave it out",
        )
        require(
            not start.symmetric or blocks == "all",
            "symmetric requires blocks 'all' for a graph with regimes, because an undirected edge is in two rows; set "
            "blocks='all'",
        )
        self.blocks: Blocks = blocks
        self.symmetric, self.candidates = start.symmetric, start.candidates
        self.initial_range, self.initial_spread = start.initial_range, start.initial_spread
        rows = start.layout.row_node
        block_of_row = torch.zeros_like(rows) if blocks == "all" else rows
        self.num_blocks = 1 if blocks == "all" else start.num_nodes
        first = torch.zeros(self.num_blocks, dtype=torch.long)
        for row, block in reversed(list(enumerate(block_of_row.tolist()))):
            first[block] = row
        raw = start.raw.detach()
        apart = _offsets(num_regimes).to(raw)[:, None, None]
        self.edge_logits = nn.Parameter(torch.where(start.fixed, raw, raw + apart))
        self.weight_logits = nn.Parameter(raw.new_zeros(self.num_blocks, num_regimes))
        self.register_buffer("fixed", start.fixed.clone())
        self.register_buffer("fixed_probs", start.fixed_probs.clone())
        self.register_buffer("block_of_row", block_of_row.to(raw.device), persistent=False)
        self.register_buffer("first_row", first.to(raw.device), persistent=False)

    @property
    def independent_rows(self) -> bool:
        """True if each row has its own regimes."""
        return self.blocks == "rows"

    @property
    def num_regimes(self) -> int:
        """Number of regimes."""
        return self.weight_logits.shape[-1]

    @property
    def edge_shape(self) -> tuple[int, int]:
        """Shape of a tensor with one entry per edge."""
        rows, columns = self.fixed.shape
        return rows, columns

    @property
    def uniforms_shape(self) -> tuple[int, int]:
        """One uniform per edge and one more per row; the one in the first row of a block selects the block's regime."""
        rows, columns = self.edge_shape
        return rows, columns + 1

    @property
    def learned(self) -> EdgeMask:
        """Mask of the edges that are learned."""
        return ~self.fixed

    @property
    def regime_probs(self) -> RegimeProbs:
        r"""The probability $\theta_{kij}$ of each edge in each regime."""
        return torch.where(self.fixed, self.fixed_probs, torch.sigmoid(self.symmetrize(self.edge_logits)))

    @property
    def regime_weights(self) -> BlockWeights:
        r"""The weight $\pi_{Bk}$ of each regime in each block."""
        return self.weight_logits.softmax(-1)

    @property
    def edge_probs(self) -> EdgeProbs:
        r"""The marginal probability $\sum_k \pi_{Bk}\, \theta_{kij}$ of each edge."""
        return torch.einsum("rk,krs->rs", self.regime_weights[self.block_of_row], self.regime_probs)

    def sample_from(self, uniforms: Uniforms) -> Graphs:
        """Return the graphs of given uniforms, a regime for each block and then its edges, without a gradient."""
        edges, chooser = uniforms[..., :-1], uniforms[..., self.first_row, -1]  # chooser: (draw, graph, block)
        bounds = self.regime_weights.detach().cumsum(-1)[..., :-1]  # (block, regime - 1)
        regime = (chooser[..., None] >= bounds).sum(-1)  # (draw, graph, block)
        numbers = torch.arange(self.num_regimes, device=uniforms.device)
        chosen = (regime[..., None] == numbers).to(uniforms.dtype)[..., self.block_of_row, :]
        probs = torch.einsum("dgrk,krs->dgrs", chosen, self.regime_probs.detach())
        return (self.symmetrize(edges) < probs).to(uniforms.dtype)

    def block_log_prob(self, graphs: Graphs) -> Float[Tensor, "draw graph block"]:
        """Return the log-probability of the edges of each block."""
        return (self._regime_log_probs(graphs) + self.weight_logits.log_softmax(-1)).logsumexp(-1)

    def log_prob(self, graphs: Graphs) -> LogProb:
        r"""Return $\log P(A)$; an impossible edge contributes about -100."""
        return self.block_log_prob(graphs).sum(-1)

    def weighted_log_prob(self, weights: EdgeWeights, graphs: Graphs) -> Scalar:
        r"""Return $\mathrm{mean}_s \sum_B w_{sB} \log P(A_{s,B})$: the edges of a block have one weight."""
        per_block = weights[..., 0].expand(*weights.shape[:2], self.edge_shape[0])[..., self.first_row]
        return times(per_block, self.block_log_prob(graphs)).mean((0, 1)).sum()

    def _regime_log_probs(self, graphs: Graphs) -> Float[Tensor, "draw graph block regime"]:
        """Return the log-probability of the edges of each block in each regime."""
        logits = self.symmetrize(self.edge_logits)
        fixed = torch.where(self.fixed, self.fixed_probs, 0.5)
        present = torch.where(self.fixed, fixed.log(), nn.functional.logsigmoid(logits)).clamp_min(IMPOSSIBLE)
        absent = torch.where(self.fixed, (-fixed).log1p(), nn.functional.logsigmoid(-logits)).clamp_min(IMPOSSIBLE)
        present, absent = self.upper_triangle(present), self.upper_triangle(absent)
        rows = (
            torch.einsum("dgrs,krs->dgrk", graphs, present - absent) + absent.sum(-1).mT
        )  # (draw, graph, row, regime)
        if self.num_blocks == rows.shape[-2] and self.blocks == "rows":
            return rows
        summed = rows.new_zeros(*rows.shape[:2], self.num_blocks, self.num_regimes)
        return summed.index_add(2, self.block_of_row, rows)

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return initial values of a replica: separated regimes plus random noise, with equal weights."""
        raw = self.edge_logits.detach()
        normals = torch.randn(raw.shape, generator=generator, device=generator.device, dtype=raw.dtype).to(raw.device)
        if self.initial_range is not None:
            low, high = self.initial_range
            uniforms = torch.rand(raw.shape, generator=generator, device=generator.device, dtype=raw.dtype)
            smallest = torch.finfo(raw.dtype).eps
            around = torch.logit(low + (high - low) * uniforms.clamp_min(smallest)).to(raw.device)
            raw = around + _offsets(self.num_regimes).to(raw)[:, None, None]
        moved = torch.where(self.fixed, self.edge_logits.detach(), raw + SPREAD * normals * (self.num_regimes > 1))
        return {"edge_logits": moved, "weight_logits": torch.zeros_like(self.weight_logits)}

    def clamp_probs(
        self, raw: Float[Tensor, "*replica row slot"], floor: float | Tensor
    ) -> Float[Tensor, "*replica row slot"]:
        """Return logits with probabilities clamped to [floor, 1 - floor]; fixed entries do not change."""
        lowest = torch.as_tensor(floor, dtype=raw.dtype, device=raw.device)
        return torch.where(self.fixed, raw, self.link.clamp_probs(raw, lowest))

    def ordered(self) -> dict[str, Tensor]:
        """Return the parameters with the regimes of each block sorted by weight, the largest first."""
        order = self.regime_weights.detach().argsort(-1, descending=True)  # (block, regime)
        of_row = order[self.block_of_row].mT[..., None].expand_as(self.edge_logits)  # (regime, row, slot)
        return {
            "edge_logits": self.edge_logits.detach().gather(0, of_row),
            "weight_logits": self.weight_logits.detach().gather(1, order),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that are not stored in tensors."""
        return {"num_regimes": self.num_regimes, "blocks": self.blocks}

    @classmethod
    def from_dict(cls, start: BernoulliGraph, stored: Mapping[str, Any]) -> "MixtureGraph":
        """Return a graph with the right shapes, ready to load a state dict."""
        return cls(start, int(stored["num_regimes"]), stored["blocks"])


def _offsets(num_regimes: int) -> Float[Tensor, " regime"]:
    """Return the initial offset of each regime's logits, from high to low; 0 for a single regime."""
    return APART * torch.linspace(1, -1, num_regimes) if num_regimes > 1 else torch.zeros(1)
