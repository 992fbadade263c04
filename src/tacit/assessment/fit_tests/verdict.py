"""The verdict of the fit tests as sentences: whether the model fits, where and by how much not, and what to try.

It combines two tests, each at half the level: the kernel test (the whole distribution) and the ranks (each number
separately, with Holm's correction). So a right model is rejected in at most a share ``level`` of all data sets.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import torch
from torch import Generator

from tacit.assessment.fit_tests.kernel_test import (
    NUM_SAMPLES,
    KernelSums,
    KernelTest,
    pilot_scales,
    require_comparable,
    sample_chunks,
    thinned,
)
from tacit.assessment.fit_tests.ranks import (
    FEWEST_PAIRS,
    HUMP,
    TOO_HIGH,
    TOO_LOW,
    U_SHAPED,
    UNEVEN,
    UNIFORM,
    Coverage,
    Ranks,
    Uniformity,
    coverage,
    rank_of,
    uniformity,
)
from tacit.data import Pairs
from tacit.errors import require
from tacit.observation import ObservationModel
from tacit.training import LatentGraphModel

SMALL = 0.02  # coverage gap below which a misfit is called small
HEAVY = 0.015  # coverage gap from which tails are called heavy
MOST_NAMES = 6
REAL = ("none", "node", "input", "joint")  # noise of real numbers, which may be transformed
WIDER = {  # purpose of the suggested observation model, by the values of the targets
    "counts": "counts that vary more than their mean",
    "node": "noise with heavier tails",
    "input": "noise with heavier tails",
}
MEANING = {
    U_SHAPED: "U-shaped: the model is overconfident, its intervals are too narrow",
    HUMP: "hump-shaped: the model is underconfident, its intervals are too wide",
    TOO_LOW: "slanted: predictions are too low",
    TOO_HIGH: "slanted: predictions are too high",
    UNEVEN: "uneven: the shape of the distribution is wrong",
}


def headline(found: "Goodness") -> tuple[str, str, str]:
    """Return whether the model fits, the p-values of the tests (compare each with the named level), and what to do."""
    ranks, level = found.ranks_p_value, found.level
    if ranks is None:
        tests = f"kernel test {say_p(found.kernel.p_value, level)}, ranks not tested, {found.num_pairs} pairs"
    else:
        kernel, by_ranks = (say_p(min(1.0, 2 * value), level) for value in (found.kernel.p_value, ranks))
        tests = f"kernel test {kernel}, ranks {by_ranks}, both corrected for two tests, {found.num_pairs} pairs"
    if found.fits is None:
        return "too few pairs to test the fit", tests, ": pass at least 20 observed pairs, preferably hundreds"
    if found.fits:
        return f"the model fits: no evidence against it at the {100 * level:g}% level", tests, ""
    return f"the model does not fit at the {100 * level:g}% level", tests, ""


def findings(found: "Goodness") -> list[str]:
    """Return where ranks and intervals are wrong and by how much, and which predictions have no spread."""
    said = []
    above = {name: one.above_median for name, one in zip(found.names, found.ranks, strict=True)}
    for shape, names in shapes_seen(found).items():
        said.append(f"ranks at {_nodes(names)} are {MEANING.get(shape, shape)}")
        if shape in (TOO_LOW, TOO_HIGH):
            worst = max(names, key=lambda name: abs(above[name] - 0.5))
            said[-1] += f" ({100 * above[worst]:.1f}% of the targets at node {worst} lie above the predicted median)"
    if found.fits is False:
        if not said:
            said.append(
                "the ranks are uniform at every node: the misfit is in the dependence between nodes or on the inputs"
            )
        said.append(_size(found))
    flat = [name for name, none in zip(found.names, found.no_spread, strict=True) if none]
    if flat:
        said.append(f"the prediction at {_nodes(flat)} has no spread")
    return said


def advice(found: "Goodness") -> list[str]:
    """Return suggestions for the misfits that were found; empty if there are none."""
    if found.fits is not False:
        return []
    seen = shapes_seen(found)
    some = any(len(seen[shape]) < len(found.names) for shape in (U_SHAPED, HUMP) if shape in seen)
    tries = list[tuple[str, bool]]()  # what to try, and whether it changes the predictor, the loss or the training

    def suggest(text: str, *, trains: bool = False) -> None:
        tries.append((text, trains))

    if U_SHAPED in seen and found.noise == "none":
        suggest('an observation model (kind = "gaussian" or "gaussian_input"): the graph is the only randomness now')
    elif found.wider and tails_missed(found) > 0:
        suggest(f'{WIDER[found.noise]} (kind = "{found.wider}" in [observation])')
    elif U_SHAPED in seen and not some:
        fewer = "fewer epochs, or patience" if found.trained else "more rows, or a shorter window"
        suggest(f"{fewer}: intervals that are too narrow everywhere often mean overfitting", trains=found.trained)
    elif HUMP in seen and not some:
        converged = "more epochs: noise or edge probabilities have not converged yet"
        suggest(converged if found.trained else "training by gradients (set epochs in [training])", trains=True)
    if some and found.noise != "none":
        steady = (
            'noise whose size depends on the input (kind = "gaussian_input" in [observation]), or '
            if found.noise == "node"
            else ""
        )
        suggest(f"{steady}other inputs for {_nodes([*seen.get(U_SHAPED, ()), *seen.get(HUMP, ())])}")
    elif some and HUMP in seen:
        more = "more epochs, or " if found.trained else ""
        text = f"{more}a more flexible predictor: the graph compensates for what the predictor cannot express"
        suggest(text, trains=True)
    if TOO_LOW in seen or TOO_HIGH in seen:
        suggest("a check for drift between training and test, or for a missing input")
    if UNEVEN in seen:
        scale = "targets on another scale (a logarithm if they are skewed), or "
        suggest((scale if found.noise in REAL else "") + "a more flexible predictor", trains=True)
    if not seen:
        joint = found.kernel.parts["joint"] < min(found.kernel.parts["nodes"], found.kernel.parts["pooled"])
        if joint:
            text = "a loss over all nodes at once (scope joint), since the dependence between nodes is wrong"
            suggest(text, trains=True)
        last = "a longer window, or more epochs" if found.trained else "or a longer window"
        suggest(f"another or a more flexible predictor, {last}", trains=True)
    if any(found.no_spread):
        suggest("a check of edge probabilities at exactly 0 or 1: such edges have no spread")
    # Joint noise is fitted by regressions: no other predictor, loss or training applies.
    possible = [text for text, trains in tries if not (trains and found.noise == "joint")]
    return ["try: " + "; ".join(possible)] if possible else []


def tails_missed(found: "Goodness") -> float:
    r"""Return the coverage gap of the widest intervals beyond their width and chance; positive for heavy tails.

    If the narrowest intervals of a normal distribution, of level $l$, contain a share $q$, it is too wide by the factor
    $\Phi^{-1}((1 + q) / 2) / \Phi^{-1}((1 + l) / 2)$, which predicts the coverage of the widest intervals. If already
    the narrowest intervals contain too few targets, all intervals are too narrow, and the tails are not the cause.
    """
    ordered, normal = sorted(found.coverage, key=lambda one: one.nominal), NormalDist()
    narrow, wide = ordered[0], ordered[-1]
    share, seen = (min(max(one.overall or one.nominal, 1e-6), 1 - 1e-6) for one in (narrow, wide))
    width = normal.inv_cdf((1 + share) / 2) / normal.inv_cdf((1 + narrow.nominal) / 2)
    expected = 2 * normal.cdf(width * normal.inv_cdf((1 + wide.nominal) / 2)) - 1
    if found.noise == "counts":  # their variance is not a free parameter
        expected = wide.nominal
    elif narrow.gap < -SMALL:
        expected = 0.0
    chance = 3 * math.sqrt(wide.nominal * (1 - wide.nominal) / (found.num_pairs * len(found.names)))
    return expected - seen - max(HEAVY, chance)


def shapes_seen(found: "Goodness") -> dict[str, list[str]]:
    """Return the names with ranks that are not uniform at half the level of the verdict, by shape."""
    seen: dict[str, list[str]] = {}
    for name, one in zip(found.names, found.ranks, strict=True):
        if one.adjusted is not None and one.adjusted <= found.level / 2:
            seen.setdefault(UNEVEN if one.shape == UNIFORM else one.shape, []).append(name)
    return seen


def say_p(value: float, level: float = 0.05) -> str:
    """Format a p-value so that rounding does not move it across the level.

    >>> say_p(0.0321), say_p(1e-9), say_p(0.0501), say_p(0.05)
    ('p = 0.032', 'p < 0.001', 'p = 0.0501', 'p = 0.050')
    """
    if value < 0.001:
        return "p < 0.001"
    digits = next(digits for digits in range(3, 18) if (round(value, digits) <= level) == (value <= level))
    return f"p = {value:.{digits}f}"


def _size(found: "Goodness") -> str:
    """Return the size of the coverage gap, to distinguish significance from importance."""
    worst = max(found.coverage, key=lambda one: abs(one.gap))
    gaps = [
        (abs(share - one.nominal) - 2 * math.sqrt(one.nominal * (1 - one.nominal) / found.num_pairs), name, one, share)
        for one in found.coverage
        for name, share in zip(found.names, one.by_number, strict=True)
        if share is not None
    ]
    said = (
        f"central {100 * worst.level:g}% intervals contain {100 * (worst.overall or 0.0):.1f}% of the targets "
        f"({100 * worst.nominal:g}% for a correct model)"
    )
    beyond, name, one, share = max(gaps, key=lambda each: each[0])
    off = max(abs(rank.above_median - 0.5) for rank in found.ranks) - math.sqrt(1 / found.num_pairs)
    if max(found.coverage_gap, beyond, off) < SMALL:
        return (
            f"small at each node: statistically significant, but less than {100 * SMALL:g} points of coverage; {said}"
        )
    if len(found.names) > 1 and beyond > 0:
        said += f"; the largest gap is at {_nodes([name])}: {100 * share:.1f}% in {100 * one.level:g}% intervals"
    return said


def _nodes(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"node{'s' if len(names) > 1 else ''} {', '.join(names[:MOST_NAMES])}{more}"


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
        verdict, tests, remedy = headline(self)
        return [f"{verdict} ({tests}){remedy}", *findings(self), *advice(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return numbers, strings, lists and None, for a record in JSON."""
        verdict, tests, remedy = headline(self)
        said = {"verdict": verdict, "tests": f"({tests}){remedy}", "sentences": self.sentences()}
        return json.loads(json.dumps(asdict(self) | {"fits": self.fits, "p_value": self.p_value} | said))  # type: ignore[no-any-return]

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
    values = torch.cat(parts).cpu()
    seen = torch.ones_like(values, dtype=torch.bool) if pairs.observed is None else pairs.observed.cpu() > 0
    ranks = Ranks(values, seen, num_samples)
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


def _tuples(stored: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()}
