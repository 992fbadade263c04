"""Does a model fit? Answers that need no ground truth: ranks, coverage, a kernel test, a verdict in words."""

from tacit.goodness.controls import GraphControls, graph_controls
from tacit.goodness.coverage import Coverage, coverage
from tacit.goodness.kernel_sums import KernelTest
from tacit.goodness.kernel_test import kernel_test
from tacit.goodness.ranks import Ranks
from tacit.goodness.samples import own_samples, thinned
from tacit.goodness.uniformity import Uniformity, holm, uniformity
from tacit.goodness.verdict import Goodness, goodness_of_fit

__all__ = [
    "Coverage",
    "Goodness",
    "GraphControls",
    "KernelTest",
    "Ranks",
    "Uniformity",
    "coverage",
    "goodness_of_fit",
    "graph_controls",
    "holm",
    "kernel_test",
    "own_samples",
    "thinned",
    "uniformity",
]
