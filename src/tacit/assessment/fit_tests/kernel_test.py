r"""A kernel test of the predictive distribution, with an exact p-value.

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
"""

import torch
from torch import Generator

from tacit.assessment.fit_tests.features import JOINT_FEATURES, NODE_FEATURES
from tacit.assessment.fit_tests.kernel_sums import KernelSums, KernelTest
from tacit.assessment.fit_tests.samples import NUM_SAMPLES, require_comparable, sample_chunks, thinned
from tacit.assessment.fit_tests.scales import pilot_scales
from tacit.data import Pairs
from tacit.training import LatentGraphModel


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
