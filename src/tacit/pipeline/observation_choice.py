r"""Choice of the observation model from the data, with the graph in the model.

The values of a node determine the possible kinds: 0 and 1, counts, positive numbers, any numbers. Among several kinds,
the likelihood with the edges that may exist decides, where edges have gates if these are needed:

$$\ell - \tfrac k2 \log n, \qquad k \text{ parameters of the noise and gates}, \quad n \text{ rows},$$

summed over nodes with the same sort of values (:func:`~tacit.assessment.uncertainty.choose_gates`). A count whose rate
changes because edges act at times has a variance above its mean; without gates, this would look like overdispersion.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import torch

from tacit.assessment.evidence import num_sent
from tacit.assessment.uncertainty import choose_gates
from tacit.config import FitConfig
from tacit.data import NamedPairs, Pairs
from tacit.errors import InputError
from tacit.local import GatedFit, GatedRegression
from tacit.observation import ObservationModel, PositiveMean
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.evidence import REGRESSION, RegressionEvidence, evidence_method, layout_of
from tacit.pipeline.observation_kinds import AUTO, kinds_of, settle_observation, target_values
from tacit.pipeline.parts import OwnParts
from tacit.pipeline.sources import Source
from tacit.pipeline.target_checks import source_values
from tacit.registry import OBSERVATIONS

FILTER, HEAVY, ORDERED = "filter", "student_t", "ordered"
MOST_MEAN = 100.0  # integers with a larger mean are treated as real numbers
MOST_CATEGORIES = 7  # different integers that may be ordered categories
MOST_NODES, DECIDING_NODES = 8, 4  # of more nodes than the first, about as many as the second decide for all
MOST_ROWS, MOST_PARENTS, MOST_GATES = 1500, 4, 3  # of a node; the time grows with 2 to the power of the gates
LIKELY = 0.5  # lowest ``exists`` of the parents that are used
BIASED, STD_ERRORS = 0.05, 4.0  # mean of residuals in deviations of the target, and in standard errors
NOISELESS = 0.02  # of a target's deviation
LEAST_NATS = 2.0  # by which a kind must be better for a node if most nodes have another kind
WORTH = 0.01  # nats per row that a kind with more parameters must gain,
FEWEST_NATS = 6.0  # and per node
YES_NO, COUNTS, GRADES, POSITIVE, REAL = "bernoulli", "poisson", "grades", "positive", "gaussian"
FIRST = {GRADES: COUNTS, POSITIVE: REAL}  # the simplest kind of a sort, if it has another name
KINDS = {
    COUNTS: ("poisson", "negative_binomial", "gaussian"),
    GRADES: ("poisson", "negative_binomial", "ordered"),
    POSITIVE: ("gaussian", "student_t", "log_normal"),
    REAL: ("gaussian", "student_t"),
}
REASONS = {
    "bernoulli": "the values are 0 and 1",
    "poisson": "the values are counts, and with the graph in the model their variance equals their mean",
    "negative_binomial": "the values are counts with a variance above their mean, also with the graph in the model",
    "gaussian": "the values are integers whose variance does not depend on their mean as for counts",
    "ordered": "the values are a few different integers, which distributions of counts do not fit",
    "student_t": "the tails are heavier than those of Gaussian noise, also with the graph in the model",
    "log_normal": "the values are positive, and their spread grows with their size",
}


def may_choose(config: FitConfig, own: OwnParts) -> bool:
    """Return whether the kind is open and the likelihood of the model can compare kinds."""
    return (
        config.observation.kind == AUTO
        and config.predictor.kind in (AUTO, FILTER)
        and config.predictor.activation == "linear"
        and evidence_method(config, own) == REGRESSION
        and not config.graph.simultaneous
        and config.data.scale_by in (AUTO, "all")
        and config.model.loss == "energy"
        and own.loss is None
        and own.predictor is None
    )


def sorts_of(source: Source, config: FitConfig) -> tuple[str, ...]:
    """Return the sort of the values of each node: 0 and 1, counts, positive numbers or any numbers."""
    content = source.content
    if not isinstance(content, NamedPairs) and len(config.data.targets or content.channels) != 1:
        return (REAL,) * len(content.nodes)
    values = source_values(content, config.data.targets)
    if values.ndim == 3 and values.shape[2] != 1:
        return (REAL,) * len(content.nodes)
    return tuple(_sort(values[:, node].ravel()) for node in range(len(content.nodes)))


def _sort(values: np.ndarray) -> str:
    values = values[~np.isnan(values)]
    if not len(values) or values.min() == values.max():
        return REAL
    if values.min() >= 0 and bool((values == np.round(values)).all()):
        if set(np.unique(values).tolist()) <= {0.0, 1.0}:
            return YES_NO
        if values.mean() > MOST_MEAN:
            return REAL
        return GRADES if len(np.unique(values)) <= MOST_CATEGORIES else COUNTS
    return POSITIVE if values.min() > 0 else REAL


def first_kinds(config: FitConfig, sorts: tuple[str, ...], source: Source) -> FitConfig:
    """Return the config with the simplest kind of each sort; left open if all nodes have real numbers."""
    kinds = {node: FIRST.get(sort, sort) for node, sort in zip(source.content.nodes, sorts, strict=False)}
    return config if set(kinds.values()) <= {REAL} else _with_kinds(config, kinds)


def settle_first(
    source: Source, config: FitConfig, own: OwnParts, seed: int
) -> tuple[FitConfig, tuple[str, ...], list[str]]:
    """Return the config with kinds for the evidence, the sorts of values if kinds are chosen, and reasons.

    Gaussian noise is kept if such a kind would refuse the data, for example because a node is constant at first.
    """
    sorts = sorts_of(source, config) if may_choose(config, own) else ()
    guessed = first_kinds(config, sorts, source)
    try:
        settled, reasons = settle_observation(source, guessed, own, seed)
        return settled, sorts, reasons
    except InputError:
        if guessed is config:
            raise
        return config, (), []


def with_chosen_kinds(
    source: Source,
    config: FitConfig,
    dataset: Dataset,
    evidence: RegressionEvidence,
    own: OwnParts,
    seed: int,
    sorts: tuple[str, ...],
) -> tuple[FitConfig, list[str], bool]:
    """Return the config with the kinds that fit best, the reasons, and whether the kinds changed."""
    if not sorts:
        return config, [], False
    choice = choose_kinds(config, dataset, evidence, sorts)
    before = kinds_of(config, dataset.nodes)
    if all(
        old in (kind, AUTO) and kind in (old, REAL) for old, kind in zip(before, choice.kinds.values(), strict=True)
    ):
        return config, choice.reasons, False
    open_values = {
        "observation": config.observation.model_copy(update={"categories": None, "largest_count": None}),
        "data": config.data.model_copy(update={"from_zero": ()}),
    }
    config = _with_kinds(config.model_copy(update=open_values), choice.kinds)
    ordered = [kind == ORDERED for kind in choice.kinds.values()]
    if any(ordered):  # all values, including categories that do not occur in the training part
        values = np.unique(source_values(source.content, config.data.targets)[:, ordered])
        categories = tuple(values[~np.isnan(values)].tolist())
        config = config.model_copy(
            update={"observation": config.observation.model_copy(update={"categories": categories})}
        )
    config, said = settle_observation(source, config, own, seed)
    return config, [*choice.reasons, *said], True


def with_open_noise(config: FitConfig, sorts: tuple[str, ...]) -> FitConfig:
    """Return the config with the kind open again if heavy tails were chosen: networks have their own noise."""
    if not sorts or config.observation.kind != HEAVY:
        return config
    return config.model_copy(update={"observation": config.observation.model_copy(update={"kind": AUTO})})


def _with_kinds(config: FitConfig, kinds: dict[str, str]) -> FitConfig:
    """Return the config with a kind for each node, or one name if all have the same."""
    one = next(iter(kinds.values()))
    kind: str | dict[str, str] = one if set(kinds.values()) == {one} else kinds
    return config.model_copy(update={"observation": config.observation.model_copy(update={"kind": kind})})


@dataclass(frozen=True)
class KindsChoice:
    """The kind of each node, and a sentence for each sort of nodes."""

    kinds: dict[str, str]
    reasons: list[str]


def choose_kinds(
    config: FitConfig, dataset: Dataset, evidence: RegressionEvidence, sorts: tuple[str, ...]
) -> KindsChoice:
    """Return the best kind for each sort of nodes; a node for which another kind is clearly better has that kind."""
    kinds, reasons = dict[str, str](), list[str]()
    for sort in dict.fromkeys(sorts):
        nodes = [node for node, one in enumerate(sorts) if one == sort]
        found = [sort] * len(nodes) if sort == YES_NO else _best(config, dataset, evidence, nodes, KINDS[sort])
        kinds |= {dataset.nodes[node]: kind for node, kind in zip(nodes, found, strict=True)}
    counts = Counter(kinds.values())
    integers = [dataset.nodes[node] for node, sort in enumerate(sorts) if sort == COUNTS]
    counts[REAL] = sum(kinds[node] == REAL for node in integers)  # of real numbers Gaussian noise needs no reason
    for kind, count in counts.items():
        if count:
            some = "" if count == len(kinds) else f" ({count} of {len(kinds)} nodes)"
            reasons.append(f"observation = {kind}{some}: {REASONS[kind]}")
    return KindsChoice({node: kinds[node] for node in dataset.nodes}, reasons)


def _best(
    config: FitConfig, dataset: Dataset, evidence: RegressionEvidence, nodes: list[int], kinds: tuple[str, ...]
) -> list[str]:
    """Return the kind of each node: the one with the largest sum over nodes, or the clearly best one of the node.

    A later kind must be clearly better than the first. Gates are chosen only if a kind would win without them. If there
    are many nodes, some of them decide for all.
    """
    some = nodes if len(nodes) <= MOST_NODES else nodes[:: math.ceil(len(nodes) / DECIDING_NODES)]
    train = dataset.split.train[:: math.ceil(len(dataset.split.train) / MOST_ROWS)].to("cpu")
    models = {kind: model for kind in kinds if (model := _model(config, dataset, train, some, kind)) is not None}
    data = {
        kind: [_regression(dataset, train, evidence, model, node) for node in some] for kind, model in models.items()
    }
    least = max(WORTH * len(train), FEWEST_NATS)
    for gates in (False, True):
        masks = {kind: [torch.full((len(one.sent),), gates) for one in data[kind]] for kind in data}
        fits = {kind: choose_gates(data[kind], masks[kind], MOST_GATES) for kind in data}
        places = range(len(some))
        scores = {
            kind: np.array([_criterion(data[kind][place], fits[kind][place]) for place in places]) for kind in fits
        }
        scores = {
            kind: scores[kind] + _log_spacing(models[kinds[0]], models[kind], data[kind], some) for kind in scores
        }
        noisy = [all(_has_noise(data[kind][place], fits[kind][place]) for kind in fits) for place in places]
        gains = {kind: np.where(noisy, scores[kind] - scores[kinds[0]], 0.0) for kind in scores}
        data = {kind: data[kind] for kind in data if kind == kinds[0] or gains[kind].max() > least}
        if len(data) == 1:
            return [kinds[0]] * len(nodes)
    gains = {kind: gains[kind] for kind in data}
    common = max(gains, key=lambda kind: gains[kind].sum() - least * len(some) * (kind != kinds[0]))
    suits = {kind: [_is_unbiased(data[kind][place], fits[kind][place]) for place in places] for kind in data}
    if len(some) < len(nodes):
        return [common if all(suits[common]) else kinds[0]] * len(nodes)
    names, found = list(gains), list[str]()
    best = [names[place] for place in np.stack([gains[name] for name in names]).argmax(0)]
    for place, kind in enumerate(best):
        needed = LEAST_NATS if kind == kinds[0] else least
        chosen = kind if gains[kind][place] > gains[common][place] + needed else common
        found.append(chosen if suits[chosen][place] else kinds[0])
    return found


def _log_spacing(
    first: ObservationModel, model: ObservationModel, data: list[GatedRegression], nodes: list[int]
) -> np.ndarray:
    """Return the log spacing of integers in scaled units, which makes densities comparable with probability masses."""
    if not isinstance(first, PositiveMean) or first.support != "counts" or model.support != "real":
        return np.zeros(len(nodes))
    units = first.unit[nodes, 0].double().numpy()
    return np.array([-len(one.targets) * math.log(unit) for one, unit in zip(data, units, strict=True)])


def _model(config: FitConfig, dataset: Dataset, train: Pairs, nodes: list[int], kind: str) -> ObservationModel | None:
    """Return the observation model of all nodes; None if some values are not possible for this kind."""
    sizes, values = dataset.preparation.sizes, target_values(config, dataset.preparation)
    if OBSERVATIONS[kind].support == "categories":
        known = (values.offset + values.unit * train.targets)[:, nodes].round()
        known = known if train.observed is None else known[train.observed[:, nodes] > 0]
        found = tuple(torch.unique(known).tolist())
        if not 2 < len(found) <= MOST_CATEGORIES:
            return None
        values = replace(values, categories=found)
    model: ObservationModel = OBSERVATIONS[kind].for_sizes(
        num_nodes=sizes.num_nodes, in_channels=sizes.in_channels, channels=sizes.out_channels, values=values
    )
    return model


def _regression(
    dataset: Dataset, train: Pairs, evidence: RegressionEvidence, model: ObservationModel, node: int
) -> GatedRegression:
    """Return the regression of a node on its own past and on its most likely parents."""
    exists = evidence.shaped(evidence.evidence.units.values, over_table=False)[node].nan_to_num(0.0)
    kept = evidence.shaped(evidence.kept, over_table=False)[node] & (exists >= LIKELY)
    kept[node] = False
    parents = exists.masked_fill(~kept, -1.0).argsort(descending=True)[: min(MOST_PARENTS, int(kept.sum()))]
    layout = layout_of(dataset.preparation)
    sent = layout.lags(train.inputs)[..., : num_sent(layout)].flatten(2).double()  # (row, node, sent)
    known = torch.ones(len(train), dtype=torch.bool) if train.observed is None else train.observed[:, node, 0] > 0
    own = train.inputs[known, node].double()
    return GatedRegression(
        torch.cat([own, torch.ones_like(own[:, :1])], 1),
        sent[known][:, parents].transpose(0, 1),
        own.new_zeros(len(own)),
        train.targets[known, node, 0].double(),
        own.new_ones(len(own)),
        model.chosen([node]).double(),
    )


def _criterion(data: GatedRegression, fit: GatedFit) -> float:
    parameters = sum(value.numel() for value in data.observation.parameters()) + int(fit.gated.sum())
    return fit.log_likelihood - parameters / 2 * math.log(len(data.targets))


def _has_noise(data: GatedRegression, fit: GatedFit) -> bool:
    """Return whether targets differ from the outputs in all states of the gates: else the likelihood is unbounded."""
    if fit.observation.support != "real":
        return True
    nearest = (data.targets[:, None] - data.outputs(fit)).abs().amin(1)
    return float(nearest.median()) > NOISELESS


def _is_unbiased(data: GatedRegression, fit: GatedFit) -> bool:
    """Return whether the mean of the targets equals that of the outputs: skewed noise does not have symmetric tails."""
    if fit.observation.support != "real":
        return True
    messages = torch.einsum("jnl,jl->nj", data.sent, fit.edges)
    left = data.targets - data.offset - data.own @ fit.own - messages @ fit.edge_probs
    allowed = max(BIASED, STD_ERRORS * float(left.std()) / math.sqrt(len(left)))
    return abs(float(left.mean())) < allowed
