r"""The verdict: whether the model fits, where and by how much it does not, and what to try.

It combines two tests, each at half the level: the kernel test (the whole distribution) and the ranks (each number
separately, with Holm's correction). So a right model is rejected in at most a share ``level`` of all data sets.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Generator

from tacit.assessment.fit_tests.coverage import Coverage, coverage
from tacit.assessment.fit_tests.kernel_sums import KernelSums, KernelTest
from tacit.assessment.fit_tests.ranks import gathered_ranks, rank_of
from tacit.assessment.fit_tests.samples import NUM_SAMPLES, require_comparable, sample_chunks, thinned
from tacit.assessment.fit_tests.scales import pilot_scales
from tacit.assessment.fit_tests.uniformity import FEWEST_PAIRS, Uniformity, uniformity
from tacit.assessment.fit_tests.verdict_sentences import advice, findings, headline
from tacit.data import Pairs
from tacit.errors import require
from tacit.observation import ObservationModel
from tacit.training import LatentGraphModel


@dataclass(frozen=True)
class Goodness:
    """The result of the tests, with a verdict as sentences.

    ``names``      names of the predicted numbers: nodes, or nodes and channels
    ``no_spread``  for each number, whether all samples of every pair were equal
    ``noise``      kind of noise: "none", "node", "input" (sigma depends on the input), "joint" (of all nodes), "mixed"
                   (one kind per node), or the support of the targets, such as "counts"
    ``wider``      the observation model to try if targets vary more than the model; empty if there is none
    ``trained``    false if the fit has a closed form, for which epochs have no meaning
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
    wider: str = ""
    trained: bool = True

    @property
    def ranks_p_value(self) -> float | None:
        """The p-value of all ranks together, corrected for their number; None if there were too few pairs."""
        return min((one.adjusted for one in self.ranks if one.adjusted is not None), default=None)

    @property
    def p_value(self) -> float:
        """The p-value of the verdict: twice the smaller of the two tests, or that of the kernel test if it is alone."""
        ranks = self.ranks_p_value
        return self.kernel.p_value if ranks is None else min(1.0, 2 * min(self.kernel.p_value, ranks))

    @property
    def fits(self) -> bool | None:
        """False if the model is rejected, else true; None if there were too few pairs."""
        if self.p_value <= self.level:
            return False
        return None if self.num_pairs < FEWEST_PAIRS or self.ranks_p_value is None else True

    @property
    def coverage_gap(self) -> float:
        """The largest difference, over the levels, between overall and nominal coverage."""
        return max(abs(one.gap) for one in self.coverage)

    def sentences(self) -> list[str]:
        """Return the verdict as sentences: whether the model fits, what is wrong and by how much, and what to try."""
        return [headline(self), *findings(self), *advice(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return numbers, strings, lists and None, for a record in JSON."""
        verdict = {"fits": self.fits, "p_value": self.p_value, "sentences": self.sentences()}
        return _plain(asdict(self) | verdict)  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> "Goodness":
        """Build the result from :meth:`to_dict`; the verdict is computed again."""
        return cls(
            **{name: stored[name] for name in ("num_pairs", "num_samples", "stride", "level", "noise")},
            names=tuple(stored["names"]),
            kernel=KernelTest(**stored["kernel"]),
            ranks=tuple(Uniformity(**_tuples(one)) for one in stored["ranks"]),
            coverage=tuple(Coverage(**_tuples(one)) for one in stored["coverage"]),
            no_spread=tuple(stored["no_spread"]),
            wider=stored.get("wider", ""),
            trained=stored.get("trained", True),
        )


@torch.no_grad()
def goodness_of_fit(
    model: LatentGraphModel,
    pairs: Pairs,
    *,
    generator: Generator,
    num_samples: int = NUM_SAMPLES,
    stride: int = 1,
    level: float = 0.05,
    node_names: list[str] | None = None,
    trained: bool = True,
) -> Goodness:
    """Compare a model with pairs that it was not trained on; all tests use the same samples.

    ``stride`` keeps every ``stride``-th pair: for forecasts ``h`` steps ahead, which overlap, pass ``h``. Pass
    ``trained=False`` for a fit in closed form, so that the advice does not name epochs.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, predictor = BernoulliGraph(torch.full((2, 2), 0.5)), HopPredictor(torch.ones(1, 1, 1))
    >>> model = LatentGraphModel(graph, predictor, EnergyScore())
    >>> pairs = Pairs(torch.ones(50, 2, 1), torch.zeros(50, 2, 1))  # no edge, ever
    >>> goodness_of_fit(model, pairs, generator=Generator().manual_seed(0)).fits
    False
    """
    pairs = thinned(pairs, stride)
    require_comparable(model, pairs, num_samples, generator)
    require(
        isinstance(level, float) and 0 < level < 1 and 2 / (num_samples + 1) <= level,
        f"level must be in [2 / (num_samples + 1), 1) = [{2 / (num_samples + 1):.3g}, 1), got {level!r}; "
        "pass for example 0.05, or raise num_samples",
    )
    names = _number_names(pairs, node_names)
    scales = pilot_scales(model, pairs, generator=generator)
    sums = KernelSums.start(pairs, scales, num_samples, generator=generator)
    spread, parts = torch.zeros_like(scales.same), []
    for rows, samples in sample_chunks(model, pairs, num_samples, generator=generator):
        targets = pairs.targets[rows]
        parts.append(rank_of(targets, samples, scales.same, generator=generator))
        sums.add(samples, targets, None if pairs.observed is None else pairs.observed[rows])
        spread = torch.maximum(spread, (samples.amax(1) - samples.amin(1)).amax(0))
    ranks = gathered_ranks(parts, pairs, num_samples)
    no_spread = tuple((spread <= scales.same).flatten().tolist())
    noise = _noise_of(model.observation), model.observation.wider
    tests = sums.result(), uniformity(ranks), coverage(ranks)
    return Goodness(len(pairs), num_samples, stride, level, names, *tests, no_spread, *noise, trained)


def _noise_of(observation: ObservationModel) -> str:
    if not observation.random or observation.joint:
        return "joint" if observation.joint else "none"
    if len(set(observation.supports)) > 1:
        return "mixed"
    if observation.support != "real":
        return observation.support
    return "input" if observation.follows_input else "node"


def _number_names(pairs: Pairs, node_names: list[str] | None) -> tuple[str, ...]:
    nodes, channels = pairs.targets.shape[1:]
    names = [str(node) for node in range(nodes)] if node_names is None else node_names
    require(
        len(names) == nodes, f"node_names must have {nodes} names, one per node, got {len(names)}; pass one for each"
    )
    if channels == 1:
        return tuple(names)
    return tuple(f"{name} (channel {channel})" for name in names for channel in range(channels))


def _plain(value: Any) -> Any:
    """Return lists for tuples, at any depth."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _tuples(stored: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()}
