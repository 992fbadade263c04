"""The sums of the kernel test, accumulated over chunks, and its result; :mod:`.kernel_test` defines them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.assessment.fit_tests.features import JOINT_FEATURES, NODE_FEATURES, Candidates, FourierFeatures
from tacit.assessment.fit_tests.scales import Scales, snapped
from tacit.data import Pairs
from tacit.errors import InputError, require_int
from tacit.shapes import Observed, Samples, Scalar, Targets

PARTS = ("nodes", "pooled", "joint")
# Statistics nearer than this are tied, which counts against rejection; a spread of T below NO_SPREAD is rounding.
TIE = 1e-6
NO_SPREAD = 1e-13

ByCandidate = Float[Tensor, "part candidate"]


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
