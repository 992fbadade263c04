r"""Random features of a predictive distribution and a value, for the kernel test.

A value is standardised by its own prediction, $u = (y - m) / s$, and combined with the prediction's mean $m$ and
standard deviation $s$, scaled over all pairs. For two kernels that are Gaussian in $(m, s, u)$,

$$k(v, v') \approx \frac{2}{D} \sum_d \cos(w_d \cdot v + b_d) \cos(w_d \cdot v' + b_d),
  \qquad w_d \sim N(0, \ell^{-2}), \quad b_d \sim U(0, 2\pi)$$

(Rahimi and Recht, 2007). One kernel uses the numbers of a single node, with the same $w$ at every node so that nodes
can be added. The other uses all nodes at once, with a large width in $(m, s)$, to be sensitive to the dependence
between nodes.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.assessment.fit_tests.scales import Scales
from tacit.shapes import Observed, Targets

# On 12 nodes and 3,500 pairs these take 0.6 s of one core; twice as many detect no smaller misfit (measured).
NODE_FEATURES, JOINT_FEATURES = 16, 128
JOINT_CONTEXT = 0.3  # width 1 / 0.3 in (m, s); width 1 has half the power against correlated noise (measured)

Candidates = Float[Tensor, "batch candidate node channel"]
NodeCosines = Float[Tensor, "batch candidate node feature"]
JointCosines = Float[Tensor, "batch candidate joint_feature"]


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
        values = (candidates - mean[:, None]) / torch.maximum(deviation, _positive(scales.same))[:, None]
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


def _positive(same: Tensor) -> Tensor:
    return same.clamp_min(torch.finfo(same.dtype).tiny)
