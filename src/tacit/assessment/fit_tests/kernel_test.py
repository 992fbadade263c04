r"""A kernel test of predictive distributions with an exact p-value: its samples, features and sums.

The squared kernel calibration error (Widmann, Lindsten, Zachariah, "Calibration tests in multi-class classification",
2019, and "beyond classification", 2021) compares targets with the predictive distributions $P_i$ they should come from:

$$\mathrm{SKCE} = \Big\| E\big[ \phi(P, y) - E_{Z \sim P}\, \phi(P, Z) \big] \Big\|^2$$

It is 0 if $y \sim P$ given $P$. There are three kernels: ``nodes``, the mean of one kernel per node; ``pooled``, which
sums over nodes and so detects small errors at all nodes; and ``joint``, over all nodes at once, which detects a wrong
dependence between nodes.

**The p-value** requires no limit theorem. Pair $i$ has candidates $c = 0 \ldots S$: $y_i$ and $S$ samples. If the model
is right they are exchangeable. So use candidate $c$ of every pair as observed and the mean over the others as expected,

$$T_c = \Big\| \frac1n \sum_i \big( \phi_{ic} - \tfrac1S \sum_{b \ne c} \phi_{ib} \big) \Big\|^2,
  \qquad p = \frac{1 + \#\{c \ge 1 : T_c \ge T_0\}}{S + 1}$$

and $P(p \le \alpha) \le \alpha$ for any number of independent pairs, also with ties. With three kernels $T_c$ is the
largest of three statistics, each standardised over the candidates. Pairs of a series are not independent given all
inputs, because a target is an input later: for series the level is approximate.

**The samples** $z_{is} = f_\psi(x_i, A_{is}) \; [+ \; \sigma\, e_{is}]$ have graphs $A_{is} \sim P_\theta$ and noise
that are independent over pairs $i$ and samples $s$. :meth:`LatentGraphModel.sample` shares its graphs between pairs,
which is sufficient for a mean but not for a test.

**The features** $\phi$ are random. A value is standardised by its own prediction, $u = (y - m) / s$, and combined with
the prediction's mean $m$ and standard deviation $s$, scaled over all pairs. For two kernels that are Gaussian in $(m,
s, u)$,

$$k(v, v') \approx \frac{2}{D} \sum_d \cos(w_d \cdot v + b_d) \cos(w_d \cdot v' + b_d),
  \qquad w_d \sim N(0, \ell^{-2}), \quad b_d \sim U(0, 2\pi)$$

(Rahimi and Recht, 2007). One kernel uses the numbers of a single node, with the same $w$ at every node so that nodes
can be added. The other uses all nodes at once, with a large width in $(m, s)$, to be sensitive to the dependence
between nodes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.errors import InputError, require, require_int
from tacit.graph import Context
from tacit.shapes import Inputs, Observed, Samples, Scalar, Targets
from tacit.training import LatentGraphModel

NUM_SAMPLES = 199  # with the target 200 candidates: p-values in steps of .005, and whole ranks at 50, 80 and 95%
# Numbers in memory at once, by device. A sample uses num_nodes x max(num_nodes, WIDTH) of them, or over a table of
# candidates rows x max(candidates, WIDTH).
CHUNK_NUMBERS = {"cuda": 2**26}
CHUNK_NUMBERS_ELSEWHERE = 2**22
WIDTH = 64
ByNumber = Float[Tensor, "node channel"]
Candidates = Float[Tensor, "batch candidate node channel"]
NodeCosines = Float[Tensor, "batch candidate node feature"]
JointCosines = Float[Tensor, "batch candidate joint_feature"]
ByCandidate = Float[Tensor, "part candidate"]
PILOT_PAIRS, PILOT_SAMPLES = 256, 32  # enough for scales: their errors do not affect the validity of a p-value
# Share of a node's standard deviation within which numbers are equal. Without noise and with a known predictor, a
# target equals samples up to rounding, about 1e-7 in float32. A learned predictor has errors of about 1e-4: if few
# graphs have large probability, as with edges that are correlated within rows, a smaller tolerance would reject any
# learned predictor (measured: p = 1e-169 with weights right to 4 digits). With noise the distribution is continuous,
# and a larger tolerance would tie different values.
SAME, ROUNDED = 1e-3, 1e-5
# On 12 nodes and 3,500 pairs these take 0.6 s of one core; twice as many detect no smaller misfit (measured).
NODE_FEATURES, JOINT_FEATURES = 16, 128
JOINT_CONTEXT = 0.3  # width 1 / 0.3 in (m, s); width 1 has half the power against correlated noise (measured)
PARTS = ("nodes", "pooled", "joint")
# Statistics nearer than this are tied, which counts against rejection; a spread of T below NO_SPREAD is rounding.
TIE = 1e-6
NO_SPREAD = 1e-13


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


@dataclass(frozen=True)
class Scales:
    """Mean and spread over pairs of the predicted mean and standard deviation; ``same`` is the tolerance for ties."""

    mean_centre: ByNumber
    mean_spread: ByNumber
    deviation_centre: ByNumber
    deviation_spread: ByNumber
    same: ByNumber


@torch.no_grad()
def pilot_scales(model: LatentGraphModel, pairs: Pairs, *, generator: Generator) -> Scales:
    """Draw a few samples for some evenly spaced pairs, and return their scales.

    A spread of 0 is replaced by 1.
    """
    some = pairs[:: max(1, len(pairs) // PILOT_PAIRS)]
    parts = [samples for _, samples in sample_chunks(model, some, PILOT_SAMPLES, generator=generator)]
    return scales_of(torch.cat(parts), ROUNDED if model.observation.random else SAME)


def scales_of(samples: Samples, share: float = SAME) -> Scales:
    """Return the scales of given samples; numbers that differ by less than a ``share`` of the spread are equal.

    >>> two_pairs = torch.tensor([[0.0, 2.0], [4.0, 6.0]]).view(2, 2, 1, 1)
    >>> scales = scales_of(two_pairs)
    >>> scales.mean_centre.item(), scales.deviation_centre.item(), scales.deviation_spread.item()  # means 1 and 5
    (3.0, 1.0, 1.0)
    """
    means, deviations = samples.mean(1), samples.std(1, correction=0)
    rounding = 16 * torch.finfo(samples.dtype).eps * samples.abs().amax((0, 1))
    same = torch.maximum(share * samples.std((0, 1), correction=0), rounding)
    spreads = [torch.where(s > same, s, 1.0) for s in (means.std(0, correction=0), deviations.std(0, correction=0))]
    return Scales(means.mean(0), spreads[0], deviations.mean(0), spreads[1], same)


def snapped(targets: Targets, samples: Samples, same: ByNumber) -> Targets:
    """Return the targets, each replaced by the nearest sample of its pair if the two are equal up to the tolerance.

    >>> snapped(torch.tensor([[[1.001]]]), torch.tensor([0.0, 1.0]).view(1, 2, 1, 1), torch.tensor([[0.01]])).item()
    1.0
    """
    gap, nearest = (samples - targets[:, None]).abs().min(1)
    return torch.where(gap <= same, samples.gather(1, nearest[:, None])[:, 0], targets)


@dataclass(frozen=True)
class FourierFeatures:
    """Frequencies for context (mean, standard deviation) and value, and phases, for single nodes and for all nodes."""

    node_context: Float[Tensor, "context feature"]
    node_value: Float[Tensor, "channel feature"]
    node_phase: Float[Tensor, " feature"]
    joint_context: Float[Tensor, "joint_context joint_feature"]
    joint_value: Float[Tensor, "number joint_feature"]
    joint_phase: Float[Tensor, " joint_feature"]

    @classmethod
    def draw(
        cls, like: Targets, *, generator: Generator, num_node: int = NODE_FEATURES, num_joint: int = JOINT_FEATURES
    ) -> "FourierFeatures":
        """Draw frequencies for targets like the given ones; widths are in units of the root mean square of numbers."""
        nodes, channels = like.shape[1:]

        def normals(numbers: int, features: int, width: float) -> Tensor:
            shape = numbers, features
            drawn = torch.randn(shape, generator=generator, device=generator.device, dtype=like.dtype)
            return (drawn * width).to(like.device)

        def phases(features: int) -> Tensor:
            drawn = torch.rand(features, generator=generator, device=generator.device, dtype=like.dtype)
            return (2 * math.pi * drawn).to(like.device)

        node, joint = 1 / math.sqrt(channels), 1 / math.sqrt(nodes * channels)
        return cls(
            normals(2 * channels, num_node, node),
            normals(channels, num_node, node),
            phases(num_node),
            normals(2 * nodes * channels, num_joint, JOINT_CONTEXT * joint),
            normals(nodes * channels, num_joint, joint),
            phases(num_joint),
        )

    def cosines(
        self, candidates: Candidates, observed: Observed | None, scales: Scales
    ) -> tuple[NodeCosines, JointCosines]:
        r"""Return $\cos(w_d \cdot v + b_d)$ for each candidate of each pair.

        Mean and standard deviation are those of all candidates together, so that candidates are exchangeable. Missing
        values are 0 for every candidate, so they do not affect the test.
        """
        mean, deviation = candidates.mean(1), candidates.std(1, correction=0)
        least = scales.same.clamp_min(torch.finfo(scales.same.dtype).tiny)
        values = (candidates - mean[:, None]) / torch.maximum(deviation, least)[:, None]
        mean = (mean - scales.mean_centre) / scales.mean_spread
        deviation = (deviation - scales.deviation_centre) / scales.deviation_spread
        if observed is not None:
            mean, deviation, values = mean * observed, deviation * observed, values * observed[:, None]
        context = torch.cat([mean, deviation], -1)  # (batch, node, 2 channel)
        node = (context @ self.node_context + self.node_phase)[:, None]  # (batch, 1, node, feature)
        for channel, frequencies in enumerate(self.node_value):  # few channels; faster than a product of thin matrices
            node = torch.addcmul(node, values[..., channel, None], frequencies)
        joint = (values.flatten(2) @ self.joint_value).add_(
            (context.flatten(1) @ self.joint_context + self.joint_phase)[:, None]
        )
        return node.cos_(), joint.cos_()


@dataclass(frozen=True)
class KernelTest:
    """The p-value of the test; ``skce`` (unbiased, may be negative); and ``parts``, the p-values of each kernel.

    The p-values of the parts show which kernel detected a misfit; as a test of the model use ``p_value``, which is
    corrected for three kernels.
    """

    p_value: float
    skce: float
    parts: dict[str, float]


@dataclass
class KernelSums:
    """The sums of the test over all pairs, accumulated over chunks without waiting for the device."""

    features: FourierFeatures
    scales: Scales
    node: Float[Tensor, "candidate node feature"]  # sums of cosines over pairs
    joint: Float[Tensor, "candidate joint_feature"]
    own: Float[Tensor, " part"]  # sums over pairs of the squared residual of candidate 0
    count: int = 0

    @classmethod
    def start(
        cls,
        pairs: Pairs,
        scales: Scales,
        num_samples: int,
        *,
        generator: Generator,
        node_features: int = NODE_FEATURES,
        joint_features: int = JOINT_FEATURES,
    ) -> "KernelSums":
        """Draw the features, and start at 0."""
        require_int("node_features", node_features)
        require_int("joint_features", joint_features)
        targets, nodes = pairs.targets, pairs.num_nodes
        features = FourierFeatures.draw(targets, generator=generator, num_node=node_features, num_joint=joint_features)
        shapes = (num_samples + 1, nodes, node_features), (num_samples + 1, joint_features), (len(PARTS),)
        node, joint, own = (torch.zeros(shape, dtype=torch.float64, device=targets.device) for shape in shapes)
        return cls(features, scales, node, joint, own)

    def add(self, samples: Samples, targets: Targets, observed: Observed | None = None) -> None:
        """Add some pairs; targets that equal a sample up to rounding are replaced by that sample."""
        targets = snapped(targets, samples, self.scales.same)
        self.add_candidates(torch.cat([targets[:, None], samples], 1), observed)

    def add_candidates(self, candidates: Candidates, observed: Observed | None = None) -> None:
        """Add the candidates of some pairs, the target first."""
        node, joint = self.features.cosines(candidates, observed, self.scales)
        self.node += node.sum(0)
        self.joint += joint.sum(0)
        residuals = node[:, 0] - node.mean(1), joint[:, 0] - joint.mean(1)
        self.own += torch.stack([size.sum() for size in _sizes(*residuals)])
        self.count += len(candidates)

    def statistics(self) -> ByCandidate:
        r"""Return $T_c$ of each kernel for each candidate: the expectation over the others is in the factor."""
        others = self._others
        node, joint = ((sums - sums.mean(0)) * (others / self.count) for sums in (self.node, self.joint))
        return torch.stack(_sizes(node, joint))

    def result(self) -> KernelTest:
        """Return the result; the SKCE excludes the products of a pair with itself."""
        statistics = self.statistics()
        count = self.count
        unbiased = (count**2 * statistics[:, 0] - self._others**2 * self.own) / (count * (count - 1))
        numbers = torch.stack([p_value(statistics), *(p_value(part[None]) for part in statistics), unbiased.sum()])
        overall, *parts, skce = numbers.tolist()
        return KernelTest(overall, skce, dict(zip(PARTS, parts, strict=True)))

    @property
    def _others(self) -> float:
        """(S + 1) / S, the factor from the mean over all candidates to the mean over the others."""
        candidates = len(self.node)
        return candidates / (candidates - 1)


def p_value(statistics: ByCandidate) -> Scalar:
    """Return the share of candidates with a statistic at least as large as the first one, including itself.

    >>> p_value(torch.tensor([[3.0, 1.0, 2.0, 3.0]])).item()
    0.5
    """
    statistics = statistics.double()
    if not bool(torch.isfinite(statistics).all()):
        raise InputError("the model's samples must be finite, got NaN or infinity; check the predictor")
    spread = statistics.std(1, correction=0, keepdim=True)
    centred = statistics - statistics.mean(1, keepdim=True)
    largest = torch.where(spread > NO_SPREAD, centred / spread.clamp_min(NO_SPREAD), 0.0).amax(0)
    return (largest >= largest[0] - TIE).double().mean()


def _sizes(
    node: Float[Tensor, "*any node feature"], joint: Float[Tensor, "*any joint_feature"]
) -> list[Float[Tensor, "*any"]]:
    """Return the squared norms of residuals under the three kernels."""
    return [
        2 * node.double().square().mean((-2, -1)),
        2 * node.double().mean(-2).square().mean(-1),
        2 * joint.double().square().mean(-1),
    ]


@torch.no_grad()
def kernel_test(
    model: LatentGraphModel,
    pairs: Pairs,
    *,
    generator: Generator,
    num_samples: int = NUM_SAMPLES,
    stride: int = 1,
    node_features: int = NODE_FEATURES,
    joint_features: int = JOINT_FEATURES,
) -> KernelTest:
    """Test whether the model could have generated ``pairs``; use ``stride`` for forecasts that overlap.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, predictor = BernoulliGraph(torch.full((2, 2), 0.5)), HopPredictor(torch.ones(1, 1, 1))
    >>> model = LatentGraphModel(graph, predictor, EnergyScore())
    >>> pairs = Pairs(torch.ones(50, 2, 1), torch.zeros(50, 2, 1))  # no edge, ever
    >>> kernel_test(model, pairs, generator=Generator().manual_seed(0), num_samples=99).p_value
    0.01
    """
    pairs = thinned(pairs, stride)
    require_comparable(model, pairs, num_samples, generator)
    scales = pilot_scales(model, pairs, generator=generator)
    sums = KernelSums.start(
        pairs, scales, num_samples, generator=generator, node_features=node_features, joint_features=joint_features
    )
    for rows, samples in sample_chunks(model, pairs, num_samples, generator=generator):
        sums.add(samples, pairs.targets[rows], None if pairs.observed is None else pairs.observed[rows])
    return sums.result()
