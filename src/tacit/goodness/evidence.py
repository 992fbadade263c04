"""What the tests found, as numbers, and what follows from them."""

from dataclasses import dataclass

from tacit.goodness.coverage import Coverage
from tacit.goodness.kernel_sums import KernelTest
from tacit.goodness.uniformity import FEWEST_PAIRS, Uniformity


@dataclass(frozen=True)
class Evidence:
    """What the tests found; ``names`` are those of the numbers that are predicted: nodes, or nodes and channels.

    ``no_spread``  for each number: were all samples one number, at every pair?
    ``noise``      of the model: "none", "node" or "input" (sigma follows the input)
    """

    num_pairs: int
    num_samples: int
    stride: int
    level: float
    names: tuple[str, ...]
    kernel: KernelTest
    ranks: tuple[Uniformity, ...]
    coverage: tuple[Coverage, ...]
    no_spread: tuple[bool, ...]
    noise: str

    @property
    def ranks_p_value(self) -> float | None:
        """The p-value of all ranks together, corrected for their number; None if there were too few pairs."""
        return min((one.adjusted for one in self.ranks if one.adjusted is not None), default=None)

    @property
    def p_value(self) -> float:
        """The p-value of the verdict: twice the smaller of the two tests', or the kernel test's if it is alone."""
        ranks = self.ranks_p_value
        return self.kernel.p_value if ranks is None else min(1.0, 2 * min(self.kernel.p_value, ranks))

    @property
    def fits(self) -> bool | None:
        """False if the model is rejected; else true, or None where there were too few pairs to say."""
        if self.p_value <= self.level:
            return False
        return None if self.num_pairs < FEWEST_PAIRS or self.ranks_p_value is None else True

    @property
    def coverage_gap(self) -> float:
        """The largest distance, over the levels, of the overall coverage from the nominal one."""
        return max(abs(one.gap) for one in self.coverage)
