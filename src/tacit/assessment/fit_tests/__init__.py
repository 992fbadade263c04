"""Goodness of fit without ground truth: ranks, coverage, a kernel test and a verdict."""

from tacit.assessment.fit_tests.controls import GraphControls, graph_controls
from tacit.assessment.fit_tests.kernel_test import KernelTest, kernel_test, own_samples, thinned
from tacit.assessment.fit_tests.ranks import Coverage, Ranks, Uniformity, coverage, holm, uniformity
from tacit.assessment.fit_tests.verdict import Goodness, goodness_of_fit

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
