r"""Samples of the predictive distribution of each pair, with independent graphs and noise for every pair.

$$z_{is} = f_\psi(x_i, A_{is}) \; [+ \; \sigma\, e_{is}], \qquad A_{is} \sim P_\theta$$

with graphs that are independent over pairs $i$ and samples $s$.

:meth:`LatentGraphModel.sample` shares its graphs between pairs, which is sufficient for a mean but not for a test,
where samples of different pairs must be independent.
"""

from collections.abc import Iterator

import torch
from torch import Generator

from tacit.data import Pairs
from tacit.errors import require, require_int
from tacit.graph import Context
from tacit.shapes import Inputs, Samples
from tacit.training import LatentGraphModel

NUM_SAMPLES = 199  # with the target 200 candidates: p-values in steps of .005, and whole ranks at 50, 80 and 95%
# Numbers in memory at once, by device. A sample uses num_nodes x max(num_nodes, WIDTH) of them, or over a table of
# candidates rows x max(candidates, WIDTH).
CHUNK_NUMBERS = {"cuda": 2**26}
CHUNK_NUMBERS_ELSEWHERE = 2**22
WIDTH = 64


@torch.no_grad()
def own_samples(
    model: LatentGraphModel, inputs: Inputs, num_samples: int, *, generator: Generator, context: Context | None = None
) -> Samples:
    """Return ``num_samples`` samples of each pair, with independent graphs and noise.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, predictor = BernoulliGraph(torch.full((2, 2), 0.5)), HopPredictor(torch.ones(1, 1, 1))
    >>> model = LatentGraphModel(graph, predictor, EnergyScore())
    >>> own_samples(model, torch.ones(3, 2, 1), 5, generator=Generator().manual_seed(0)).shape
    torch.Size([3, 5, 2, 1])
    """
    graph = model.graph_for(inputs, context)
    graphs = graph.sample(num_samples, num_pairs=len(inputs), generator=generator)
    return model.observation.draw(model.describe(inputs, graph.as_operator(graphs)), generator=generator)


def sample_chunks(
    model: LatentGraphModel, pairs: Pairs, num_samples: int, *, generator: Generator
) -> Iterator[tuple[slice, Samples]]:
    """Yield chunks of rows with their samples, in bounded memory and without waiting for the device.

    >>> list(chunk_rows(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    receivers, sources = model.graph.edge_shape
    numbers, context = CHUNK_NUMBERS.get(pairs.inputs.device.type, CHUNK_NUMBERS_ELSEWHERE), Context.of(pairs)
    for rows in chunk_rows(len(pairs), max(1, numbers // (num_samples * receivers * max(sources, WIDTH)))):
        yield rows, own_samples(model, pairs.inputs[rows], num_samples, generator=generator, context=context[rows])


def chunk_rows(count: int, size: int) -> Iterator[slice]:
    """Yield slices of ``size`` rows that cover ``count`` rows."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def thinned(pairs: Pairs, stride: int) -> Pairs:
    """Return every ``stride``-th pair.

    Forecasts ``h`` steps ahead overlap: the errors of neighbours share ``h - 1`` steps, while every test assumes that
    pairs are independent given their inputs. ``stride=h`` keeps pairs that do not overlap.

    >>> thinned(Pairs(torch.zeros(10, 1, 1), torch.arange(10.0).view(10, 1, 1)), 4).targets.flatten().tolist()
    [0.0, 4.0, 8.0]
    """
    require_int("stride", stride)
    return pairs if stride == 1 else pairs[::stride]


def require_comparable(model: LatentGraphModel, pairs: Pairs, num_samples: int, generator: Generator) -> None:
    """Raise :class:`InputError` unless model, pairs and generator are compatible and there are at least two pairs."""
    for name, value, kind in (("model", model, LatentGraphModel), ("pairs", pairs, Pairs)):
        require(isinstance(value, kind), f"{name} must be a {kind.__name__}, got {type(value).__name__}; build one")
    require_int("num_samples", num_samples, 2)
    require(len(pairs) >= 2, f"pairs must have at least 2 pairs, got {len(pairs)}; pass more, or a smaller stride")
    nodes, device = model.graph.num_nodes, model.graph.raw.device
    require(
        pairs.num_nodes == nodes,
        f"pairs must have {nodes} nodes like the graph of the model, got {pairs.num_nodes}; pass data for the same "
        "nodes",
    )
    require(
        pairs.inputs.device == device and pairs.inputs.dtype == model.graph.raw.dtype,
        f"pairs must have the device and type of the model, {device} and {model.graph.raw.dtype}, got "
        f"{pairs.inputs.device} and {pairs.inputs.dtype}; use pairs.to(device, dtype)",
    )
    require(
        generator.device.type == device.type,
        f"generator must have the device of the model, {device}, got {generator.device}; use Generator(device=...)",
    )
