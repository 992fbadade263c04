r"""Three explanations of a target that varies more where a source is large, and which of them the data support.

The edge acts at times; it always acts and the noise grows with it; it always acts and its effect is curved. Mean and
variance are nearly the same under the first two. The shape of the noise is not: a gate gives two lines, growing noise a
fan. Each node gets one regression in which all explanations are possible,

$$y = b\, f_0 + \sum_j A_j\, w_j c_j + h(c) + e^{\gamma^\top s(c)}\, \sigma\, \varepsilon$$

with the contributions $c_j$ of the sources whose gates are judged and the rest $f_0$ of a fit without gates, a
piecewise linear curve $h$ of each contribution and of the whole output, and columns $s$ for the scale of the noise:
size and sign of each contribution and of the output, the size of the own input, and the sizes of residuals near the row
(:func:`noise_sizes`). The noise $\varepsilon$ is normal, or Student's t if that fits clearly better, so that outliers
and volatile times do not count as gates.

The test of a gate is the likelihood ratio $2 \Delta \ell$ of this regression with and without it. Under growing noise,
$2 \Delta \ell$ has no simple distribution, because the two differ by the shape of the noise only: of 100 simulated
edges of 1,000 rows, 18 exceed the usual quantile of one degree of freedom, and 7 that of ``DEGREES`` = 3, which is
used. With few rows $n$ for the $k$ numbers of the regression it is too large, and is multiplied by $1 - 2 k / n$. If
the test is not significant, the interval contains 1.

Likelihood ratios are divided by the ratio of robust to model variance of the gate in the regression without curves and
growing noise (:func:`~tacit.local.gate_scales`). That of this regression, with its many
numbers, is too uncertain.

An error of measurement in a source does not reach the target: at such a spike the edge does not act. That is no gate,
so rows with unusual inputs are left out (:func:`usual_rows`). The choice depends on the inputs only and biases nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from scipy import special
from torch import Tensor

from tacit.assessment.evidence import smoothed
from tacit.data import SeriesOfPair
from tacit.local import LEVEL, GatedFit, GatedRegression, fit_gated, judge_gates
from tacit.observation import GaussianNoise, ObservationModel, StudentTNoise

DEGREES = 3  # of the chi-square of the likelihood ratio
KNOTS = (-2.5, -1.0, 1.0, 2.5)  # of the curves, in usual sizes of the contribution
SIZES = (1.0, 4.0)  # at which the scale of the noise starts to grow, in usual sizes of the contribution
HALF_LIVES = (4.0, 32.0)  # rows, of the sizes of residuals near a row
PRIOR_ROWS, MOST_SQUARE = 2.0, 25.0  # rows of usual size that are added; largest square of a residual
HEAVIER = 3.0  # nats by which heavy tails must fit better than normal noise
USUAL = 1.4826  # deviation of a normal, in units of its median absolute deviation
START = 0.7  # initial probability of a gate
SMALLEST = 1e-3  # usual size of residuals, in units of their deviation
TINY = 1e-9
UNUSUAL = 5.0  # distance of an input from its median, in usual sizes
MOST_UNUSUAL = 0.1  # share of rows that are left out


class ExplainedGates(NamedTuple):
    """How often edges act, with intervals; 1 if the edge was not judged or the test is not significant.

    ``p_values``  of the test against an edge that always acts, with noise that may grow
    ``nats``      log likelihood of a gate less that of growing noise; NaN for an edge that was not judged
    """

    edge_probs: Float[Tensor, "*node source"]
    low: Float[Tensor, "*node source"]
    high: Float[Tensor, "*node source"]
    p_values: Float[Tensor, "*node source"]
    nats: Float[Tensor, "*node source"]


def noise_sizes(
    residuals: Float[Tensor, "pair node"], nodes: list[int], series: SeriesOfPair | None = None
) -> Float[Tensor, "pair chosen size"]:
    """Return logarithms of the size of residuals near each row: of some nodes themselves, and of all other nodes.

    They follow volatility that changes slowly, of a node or of all nodes. Residuals of the row itself count for the
    other nodes only. Missing residuals are NaN.
    """
    if not nodes:
        return residuals.new_zeros(len(residuals), 0, 2 * len(HALF_LIVES))
    seen = (~residuals.isnan()).to(residuals)
    sizes = (USUAL * residuals.abs().nanmedian(0).values).nan_to_num(1.0).clamp_min(TINY)
    squares = (residuals.nan_to_num(0.0) / sizes).square().clamp_max(MOST_SQUARE)
    others = [one.sum(1, keepdim=True) - one[:, nodes] for one in (squares, seen)]
    found = []
    for (values, present), itself in (((squares[:, nodes], seen[:, nodes]), 0.0), (others, 1.0)):
        for half_life in HALF_LIVES:
            near, mass = (smoothed(one, half_life, series) + itself * one for one in (values, present))
            found.append(((PRIOR_ROWS + near) / (PRIOR_ROWS + mass)).log() / 2)
    return torch.stack(found, 2)


def usual_rows(own: Float[Tensor, "row own"], sent: Float[Tensor, "source row lag"]) -> Bool[Tensor, " row"]:
    """Return the rows of which no input is further from its median than ``UNUSUAL`` usual sizes.

    Columns of which most values are equal, such as indicators and counts of rare events, are not considered.

    >>> own = torch.tensor([[-1.0], [0.5], [1.0], [-0.5], [0.0], [9.0], [0.2], [-0.3], [0.8], [-0.9], [0.1]])
    >>> usual_rows(own, torch.zeros(0, 11, 1)).tolist().index(False)
    5
    """
    inputs = torch.cat([own, *sent], 1)
    away = (inputs - inputs.median(0).values).abs()
    sizes = UNUSUAL * USUAL * away.median(0).values
    largest = (away[:, sizes > TINY] / sizes[sizes > TINY]).amax(1) if bool((sizes > TINY).any()) else 0 * away[:, 0]
    return largest <= largest.quantile(1 - MOST_UNUSUAL, interpolation="lower").clamp_min(1.0)


def explained_regressions(
    data: Sequence[GatedRegression], may_gate: Sequence[Bool[Tensor, " _"]]
) -> list[tuple[GatedRegression, Bool[Tensor, "_ _"]]]:
    """Return for each node the regression in which the edges of ``may_gate`` have curves and noise that grows.

    With it come the columns of the noise that belong to each of these edges, which are its only sources. The noise must
    be added to the output. ``spread`` of the data has the sizes of residuals near each row.
    """
    if not data:
        return []
    base = fit_gated(*_of_kind(data, StudentTNoise(1)))
    parts = [_with_explanations(*one) for one in zip(data, base, may_gate, strict=True)]
    normal, heavy = [one for one, _ in parts], _of_kind([one for one, _ in parts], StudentTNoise(1))
    fits = zip(fit_gated(normal, [one.start() for one in normal]), fit_gated(*heavy), strict=True)
    for place, (one, other) in enumerate(fits):
        if other.log_likelihood - one.log_likelihood > HEAVIER:
            parts[place] = heavy[0][place], parts[place][1]
    return parts


def explained_gates(
    parts: Sequence[tuple[GatedRegression, Bool[Tensor, "_ _"]]],
    may_gate: Sequence[Bool[Tensor, " _"]],
    scales: Sequence[Float[Tensor, " _"]] | None = None,
    *,
    intervals: bool = True,
) -> list[ExplainedGates]:
    """Return for each node how often the edges of ``may_gate`` act, beside curves and growing noise.

    ``parts`` are the :func:`explained_regressions`. ``scales`` divide the likelihood ratios of the sources. Without
    ``intervals`` probabilities only are computed, which takes half the time.
    """
    if not parts:
        return []
    wide, owners = [one for one, _ in parts], [own for _, own in parts]
    every_gate = [torch.ones(len(one.sent), dtype=torch.bool) for one in wide]
    chosen = None if scales is None else [one[mask] for one, mask in zip(scales, may_gate, strict=True)]
    judged = judge_gates(wide, every_gate, scales=chosen, intervals=intervals)
    edges = [(node, source) for node, one in enumerate(wide) for source in range(len(one.sent) if intervals else 0)]
    constant, starts, none = list[GatedRegression](), list[GatedFit](), list[GatedFit]()
    for node, source in edges:  # a gate without noise that grows with its source, and the noise without the gate
        spread, fit = wide[node].spread, judged[node].fit
        assert spread is not None
        constant.append(replace(wide[node], spread=spread * ~owners[node][source]))
        starts.append(fit if fit.gated[source] else fit.with_gate(source, START))
        none.append(fit.without_gate(source))
    both = zip(fit_gated(constant, starts), fit_gated([wide[node] for node, _ in edges], none), strict=True)
    nats = iter([gate.log_likelihood - grows.log_likelihood for gate, grows in both])
    found = []
    for one, data_of, mask in zip(judged, wide, may_gate, strict=True):
        few = max(0.0, 1 - 2 * one.fit.num_parameters / len(data_of.targets))
        better = one.ratios.new_tensor([next(nats, 0.0) for _ in one.ratios])
        p_values = torch.as_tensor(special.chdtrc(DEGREES, (few * one.ratios).cpu().numpy())).to(better)
        always = p_values > 1 - LEVEL
        values = (
            torch.where(always, 1.0, one.fit.edge_probs),
            one.low,
            torch.where(always, 1.0, one.high),
            p_values,
            better,
        )
        every = mask.new_ones(len(values), len(mask)).to(better)
        every[-1] = torch.nan
        every[:, mask] = torch.stack(values)
        found.append(ExplainedGates(*every))
    return found


def _of_kind(data: Sequence[GatedRegression], noise: ObservationModel) -> tuple[list[GatedRegression], list[GatedFit]]:
    """Return the regressions with another kind of noise, and initial values."""
    changed = [replace(one, observation=noise.to(one.targets)) for one in data]
    return changed, [one.start() for one in changed]


def _with_explanations(
    data: GatedRegression, base: GatedFit, mask: Bool[Tensor, " source"]
) -> tuple[GatedRegression, Bool[Tensor, "judged term"]]:
    """Return the regression with all explanations, in units of the noise, and the noise columns of each source."""
    messages = torch.einsum("jnl,jl->nj", data.sent, base.edges)
    rest = data.own @ base.own + messages[:, ~mask].sum(1)
    output = rest + messages[:, mask].sum(1)
    residuals = data.targets - data.offset - output
    size, whole = USUAL * residuals.abs().median(), residuals.square().mean().sqrt()
    size = torch.where(size > SMALLEST * whole, size, whole).clamp_min(TINY)  # most residuals may be 0
    scaled = _scaled(torch.cat([messages[:, mask], output[:, None]], 1))  # (row, judged sources and their sum)
    knots = scaled.new_tensor(KNOTS)
    curves = (knots.sign() * (scaled[..., None] - knots)).clamp_min(0).flatten(1)
    growth = [(scaled / start).square().log1p() / 2 for start in SIZES] + [scaled / (1 + scaled.square()).sqrt()]
    inputs = _scaled(data.own[:, :-1])
    own = (inputs.square().sum(1, keepdim=True) / max(1, inputs.shape[1])).log1p() / 2
    assert data.spread is not None
    spread = torch.cat([*growth, own, data.spread], 1)
    owners = torch.eye(scaled.shape[1], dtype=torch.bool)[:-1].repeat(1, len(growth))
    wide = GatedRegression(
        torch.cat([rest[:, None] / size, torch.ones_like(rest[:, None]), curves], 1),
        messages[:, mask].mT[..., None] / size,
        torch.zeros_like(rest),
        (data.targets - data.offset) / size,
        data.weights,
        GaussianNoise(1).to(rest),
        spread=spread - spread.mean(0),
    )
    others = owners.new_zeros(len(owners), spread.shape[1] - owners.shape[1])
    return wide, torch.cat([owners, others], 1)


def _scaled(values: Float[Tensor, "row column"]) -> Float[Tensor, "row column"]:
    """Return distances from the median in units of their usual size."""
    away = values - values.median(0).values
    size = USUAL * away.abs().median(0).values
    size = torch.where(size > TINY, size, away.square().mean(0).sqrt())  # most values may be equal
    return away / size.clamp_min(TINY)
