r"""Choice of the observation model from the data, with the graph in the model.

The values of a node determine the possible kinds: 0 and 1, counts, positive numbers, any numbers. Among several kinds,
the likelihood with the edges that may exist decides; those of the simplest kind have gates if needed. A kind gains

$$G = \sum_{t, i} \big(\ell_{ti} - \ell^0_{ti}\big) - \tfrac{k - k_0}{2} \log n, \qquad
\ell_{ti} \text{ of row } t \text{ and node } i, \quad k \text{ parameters of noise and gates}, \quad n \text{ rows},$$

over the simplest kind, with superscript 0 (:func:`~tacit.local.choose_gates`). A count whose rate
changes because edges act at times has a variance above its mean; without gates, this would look like overdispersion.

One kind is chosen for all numbers of a table, and one for all integers. A kind that is not the simplest must gain

$$G > \delta\, n + c\, s, \qquad s \text{ the standard error of } G, \quad \delta \text{ nats per row},$$

over all nodes together, and at least the price $\delta$ for most nodes. In doubt the simplest kind loses little, and is
the same for the next rows of the table. A node gets a kind of its own only if it clearly needs one: a larger price and
more standard errors, for this node alone.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.evidence import num_sent
from tacit.config import FitConfig
from tacit.data import NamedPairs, Pairs, usual_block
from tacit.errors import InputError
from tacit.local import Dependence, GatedFit, GatedRegression, choose_gates
from tacit.observation import ObservationModel, PositiveMean
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.evidence import REGRESSION, RegressionEvidence, evidence_method, layout_of
from tacit.pipeline.observation_kinds import AUTO, kinds_of, settle_observation, source_values, target_values
from tacit.pipeline.parts import OwnParts
from tacit.pipeline.sources import Source
from tacit.registry import OBSERVATIONS
from tacit.words import Choice, choose

FILTER, HEAVY, ORDERED = "filter", "student_t", "ordered"
MOST_MEAN = 100.0  # integers with a larger mean are treated as real numbers
MOST_CATEGORIES = 7  # different integers that may be ordered categories
MOST_NODES, DECIDING_NODES = 10, 5  # of more nodes than the first, about as many as the second decide for all
MOST_ROWS, MOST_PARENTS, MOST_GATES = 1500, 4, 3  # of a node; the time grows with 2 to the power of the gates
LIKELY = 0.5  # lowest ``exists`` of the parents that are used
BIASED, STD_ERRORS = 0.05, 4.0  # mean of residuals in deviations of the target, and in standard errors
NOISELESS = 0.02  # of a target's deviation
WORTH, ERRORS = 0.03, 2.0  # nats per row and node that another kind must gain, and in how many standard errors,
NEEDED, SURE = 0.15, 4.0  # and the same for one node alone
OVERDISPERSED, WIDER = 0.01, "negative_binomial"  # a Poisson model of such counts would be too sure of edges
FEWEST_NATS = 6.0  # per node, with few rows
YES_NO, COUNTS, GRADES, POSITIVE, REAL = "bernoulli", "poisson", "grades", "positive", "gaussian"
FIRST = {GRADES: COUNTS, POSITIVE: REAL}  # the simplest kind of a sort, if it has another name
NUMBERS = (REAL, POSITIVE)
KINDS = {  # of the sorts that are decided together, the simplest first
    (COUNTS,): ("poisson", "negative_binomial", "gaussian"),
    (GRADES,): ("poisson", "negative_binomial", "ordered"),
    NUMBERS: ("gaussian", "student_t", "log_normal"),
}
IMPOSSIBLE = (REAL, "log_normal")


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
    """Return the sort of the values of each node: 0 and 1, counts, positive numbers or any numbers.

    There are no sorts, and so no choice, with several target variables.
    """
    content = source.content
    if not isinstance(content, NamedPairs) and len(config.data.targets or content.channels) != 1:
        return ()
    values = source_values(content, config.data.targets)
    if values.ndim == 3 and values.shape[2] != 1:
        return ()
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
) -> tuple[FitConfig, tuple[str, ...], list[Choice]]:
    """Return the config with kinds for the evidence, the sorts of values if kinds are chosen, and the choices.

    Gaussian noise is kept if such a kind would refuse the data, for example because a node is constant at first.
    """
    sorts = sorts_of(source, config) if may_choose(config, own) else ()
    guessed = first_kinds(config, sorts, source)
    try:
        settled, choices = settle_observation(source, guessed, own, seed)
        return settled, sorts, choices
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
) -> tuple[FitConfig, list[Choice], bool]:
    """Return the config with the kinds that fit best, the choices, and whether the kinds changed."""
    if not sorts:
        return config, [], False
    kinds, choices = choose_kinds(config, dataset, evidence, sorts)
    before = kinds_of(config, dataset.nodes)
    if all(old in (kind, AUTO) and kind in (old, REAL) for old, kind in zip(before, kinds.values(), strict=True)):
        return config, choices, False
    open_values = {
        "observation": config.observation.model_copy(update={"categories": None, "largest_count": None}),
        "data": config.data.model_copy(update={"from_zero": ()}),
    }
    config = _with_kinds(config.model_copy(update=open_values), kinds)
    ordered = [kind == ORDERED for kind in kinds.values()]
    if any(ordered):  # all values, including categories that do not occur in the training part
        values = np.unique(source_values(source.content, config.data.targets)[:, ordered])
        categories = tuple(values[~np.isnan(values)].tolist())
        config = config.model_copy(
            update={"observation": config.observation.model_copy(update={"categories": categories})}
        )
    config, said = settle_observation(source, config, own, seed)
    return config, [*choices, *said], True


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


def choose_kinds(
    config: FitConfig, dataset: Dataset, evidence: RegressionEvidence, sorts: tuple[str, ...]
) -> tuple[dict[str, str], list[Choice]]:
    """Return the kind of each node, and a choice for each kind; Gaussian noise of real numbers needs no reason."""
    kinds, choices, count = dict(zip(dataset.nodes, sorts, strict=True)), list[Choice](), len(sorts)

    def made(kind: str, nodes: list[str], **values: Any) -> Choice:
        return choose("observation", kind, kind, nodes_with_it=nodes, num_nodes=count, **values)

    if YES_NO in sorts:
        choices.append(made(YES_NO, [name for name, kind in kinds.items() if kind == YES_NO]))
    for together, possible in KINDS.items():
        nodes = [node for node, sort in enumerate(sorts) if sort in together]
        if nodes:
            chosen, grounds = _chosen(config, dataset, evidence, nodes, sorts, possible)
            found = {dataset.nodes[node]: kind for node, kind in zip(nodes, chosen, strict=True)}
            kinds |= found
            for kind in dict.fromkeys(chosen):
                if together != NUMBERS or kind != REAL:
                    mine = [name for name, one in found.items() if one == kind]
                    choices.append(made(kind, mine, **grounds.get(kind, {})))
    return kinds, choices


def _chosen(
    config: FitConfig,
    dataset: Dataset,
    evidence: RegressionEvidence,
    nodes: list[int],
    sorts: tuple[str, ...],
    kinds: tuple[str, ...],
) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Return the kind of each node, and what the kinds other than the simplest were decided on.

    If a kind would win without gates, it must also win against the simplest kind with gates. If there are many nodes,
    some of them decide for all.
    """
    simplest = kinds[0]
    some = nodes if len(nodes) <= MOST_NODES else nodes[:: math.ceil(len(nodes) / DECIDING_NODES)]
    step = math.ceil(len(dataset.split.train) / MOST_ROWS)
    train, reach = dataset.split.train[::step].to("cpu"), math.ceil(dataset.preparation.reach / step)
    dependence = Dependence(usual_block(len(train), reach) if reach else 1, train.series)
    known = _known(train)[:, some]
    rows = known.sum(0).double()  # (node,)
    least = {
        kind: torch.maximum((OVERDISPERSED if kind == WIDER else WORTH) * rows, torch.tensor(FEWEST_NATS))
        for kind in kinds
    }
    places, models, data = dict[str, list[int]](), dict[str, ObservationModel](), dict[str, list[GatedRegression]]()
    for kind in kinds:
        mine = [place for place, node in enumerate(some) if (sorts[node], kind) != IMPOSSIBLE]
        model = _model(config, dataset, train, [some[place] for place in mine], kind) if mine else None
        if model is not None:
            places[kind], models[kind] = mine, model
            data[kind] = [_regression(dataset, train, evidence, model, some[place]) for place in mine]
    gains = dict[str, Float[Tensor, "row node"]]()  # over the simplest kind; 0 where a kind is impossible or not suited
    fits = dict[str, list[GatedFit]]()
    for gates in (False, True):
        for kind, ones in data.items():
            if kind == simplest or not gates:
                fits[kind] = choose_gates(ones, [torch.full((len(one.sent),), gates) for one in ones], MOST_GATES)
        gains = {simplest: torch.zeros(len(train), len(some), dtype=torch.float64)}
        for kind in data.keys() - {simplest}:
            spacing = _log_spacing(models[simplest], models[kind], some)
            gains[kind] = gains[simplest].clone()
            for place, one, fit in zip(places[kind], data[kind], fits[kind], strict=True):
                base, first = data[simplest][place], fits[simplest][place]
                if not (_has_noise(one, fit) and _has_noise(base, first) and _is_unbiased(one, fit)):
                    continue
                price = (_num_parameters(one, fit) - _num_parameters(base, first)) / 2 * math.log(float(rows[place]))
                gain = one.row_log_likelihoods(fit) - base.row_log_likelihoods(first) + spacing[place]
                gains[kind][known[:, place], place] = gain - price / rows[place]
        data = {kind: data[kind] for kind in data if kind == simplest or bool((gains[kind].sum(0) > least[kind]).any())}
        if len(data) == 1:
            return [simplest] * len(nodes), {}
    # all nodes together that can have a kind
    found, grounds = [simplest] * len(some), dict[str, dict[str, Any]]()
    for kind in sorted(data.keys() - {simplest}, key=lambda kind: -float(gains[kind].sum())):
        mine = [place for place in places[kind] if found[place] != kind]
        earlier = found[mine[0]]
        over = gains[kind][:, mine] - torch.stack([gains[found[place]][:, place] for place in mine], 1)
        of_all, its_error = _total(over.sum(1, keepdim=True), dependence)
        total, error, asked = float(of_all), float(its_error), least[kind][mine]
        if total > float(asked.sum()) + ERRORS * error and bool((over.sum(0) / asked).median() > 1):
            values, number = float(rows[mine].sum()), None if len(mine) == len(nodes) else len(mine)
            better = {"nodes": number, "nats": total / values, "std_error": error / values, "over": earlier}
            grounds[kind] = {"decided": better}
            for place in mine:
                found[place] = kind
    if len(some) < len(nodes):
        of_sort = {sorts[some[place]]: kind for place, kind in enumerate(found)}
        return [of_sort.get(sorts[node], simplest) for node in nodes], grounds
    # a node alone
    together, best = list(found), torch.zeros(len(some), dtype=torch.float64)
    for kind in data:
        over = gains[kind] - torch.stack([gains[one][:, place] for place, one in enumerate(together)], 1)
        totals, errors = _total(over, dependence)
        needs = totals > torch.maximum(NEEDED * rows, least[kind]) + SURE * errors
        for place in (needs & (totals > best)).nonzero()[:, 0].tolist():
            found[place], best[place] = kind, totals[place]
    for kind in {*found} - {*together}:
        lowest = min(float(best[place] / rows[place]) for place, one in enumerate(found) if one == kind)
        grounds[kind] = {"decided": {"nats": lowest}}
    return found, grounds


def _total(
    gains: Float[Tensor, "row node"], dependence: Dependence
) -> tuple[Float[Tensor, " node"], Float[Tensor, " node"]]:
    """Return the sums over rows, and their standard errors."""
    apart = gains - gains.mean(0)
    return gains.sum(0), dependence.covariance(apart, apart).clamp_min(0.0).sqrt()


def _log_spacing(first: ObservationModel, model: ObservationModel, nodes: list[int]) -> list[float]:
    """Return the log spacing of integers in scaled units, which makes densities comparable with probability masses."""
    if not isinstance(first, PositiveMean) or first.support != "counts" or model.support != "real":
        return [0.0] * len(nodes)
    return [-math.log(float(first.unit[node, 0])) for node in nodes]


def _known(train: Pairs) -> Bool[Tensor, "row node"]:
    shape = train.targets.shape[:2]
    return torch.ones(shape, dtype=torch.bool) if train.observed is None else train.observed[..., 0] > 0


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
    index = evidence.table.index
    places = index.into(node)
    exists, kept = torch.zeros(len(dataset.nodes)), torch.zeros(len(dataset.nodes), dtype=torch.bool)
    exists[index.source[places]] = torch.from_numpy(evidence.exists[places]).nan_to_num(0.0)
    kept[index.source[places]] = torch.from_numpy(evidence.kept[places])
    kept &= exists >= LIKELY
    kept[node] = False
    parents = exists.masked_fill(~kept, -1.0).argsort(descending=True)[: min(MOST_PARENTS, int(kept.sum()))]
    layout = layout_of(dataset.preparation)
    sent = layout.lags(train.inputs)[..., : num_sent(layout)].flatten(2).double()  # (row, node, sent)
    known = _known(train)[:, node]
    own = train.inputs[known, node].double()
    return GatedRegression(
        torch.cat([own, torch.ones_like(own[:, :1])], 1),
        sent[known][:, parents].transpose(0, 1),
        own.new_zeros(len(own)),
        train.targets[known, node, 0].double(),
        own.new_ones(len(own)),
        model.chosen([node]).double(),
    )


def _num_parameters(data: GatedRegression, fit: GatedFit) -> int:
    return sum(value.numel() for value in data.observation.parameters()) + int(fit.gated.sum())


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
