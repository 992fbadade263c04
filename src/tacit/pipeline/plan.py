"""Resolve a fit: prepare the data, choose the open options, find the evidence, and estimate the memory.

The memory estimate of a fit, before anything is allocated.

====================  ==================================================================================================
a step of training    :func:`~tacit.graph.step_bytes`, for every replica; $16$ bytes for each weight of each entry if
                      edges have weights; the hidden values of the sources under each graph with two or more layers; a
                      number for each pair of graphs and node if the loss compares graphs
a score               $S' = 200$ graphs that the pairs share, with their uniforms: $9 S'$ bytes an entry
a record, all pairs   a row of ``edges.csv`` is about 800 bytes while it is read
====================  ==================================================================================================

An entry is a pair of nodes, or a slot of the table of candidates. The largest of the three must fit in memory.
"""

from dataclasses import replace

import torch

from tacit.assessment.evaluation import NUM_GRAPHS
from tacit.config import FitConfig
from tacit.data import NO_BACKGROUND
from tacit.edges import EdgeTable
from tacit.errors import InputError, require
from tacit.graph import EdgeRules, require_memory, step_bytes
from tacit.local import steps_read
from tacit.pipeline.backgrounds import background_choice, background_words, choose_backgrounds, fit_background
from tacit.pipeline.building import build_model
from tacit.pipeline.choices import ENOUGH_FOR_A_NETWORK, FILTER, choose_kind, resolve_defaults, settle_events
from tacit.pipeline.closed_form import has_closed_form
from tacit.pipeline.dataset import Dataset, longest_window, network_window
from tacit.pipeline.evidence import (
    FIRST_LOOK,
    REGRESSION,
    RegressionEvidence,
    evidence_method,
    find_evidence,
    first_edges,
    have_real_values,
    lags_beyond,
    with_lags,
    with_small_effects,
)
from tacit.pipeline.known_edges import left_out, place_nodes, read_rules, require_lag_ranges, window_for_lags
from tacit.pipeline.look import looked_at
from tacit.pipeline.observation_choice import (
    settle_first,
    with_chosen_kinds,
    with_open_noise,
)
from tacit.pipeline.observation_kinds import AUTO, regression_observation
from tacit.pipeline.parts import MOST_EXPANDED, OwnParts
from tacit.pipeline.preparation import SeriesPreparation, require_resampling
from tacit.pipeline.simultaneous import require_series, settle_simultaneous
from tacit.pipeline.situations import (
    context_variables,
    require_source,
    settle_own_inputs,
    settle_situations,
    with_changes,
)
from tacit.pipeline.sources import Source, about
from tacit.pipeline.state import Fit, TimedListener
from tacit.registry import PREDICTORS
from tacit.threads import threads_for
from tacit.training import LatentGraphModel, Listener
from tacit.words import Choice, choose

NUMBER_BYTES = 4
FEWER = "lower batch_size or replicas in [training], num_graphs in [model] or bootstrap_replicas in [assessment]"


def require_memory_for(
    config: FitConfig, dataset: Dataset, rules: EdgeRules, own: OwnParts, device: torch.device
) -> None:
    """Raise :class:`InputError` if training, scoring or writing would need more memory than is free."""
    nodes, layout = len(dataset.nodes), rules.layout(config.graph.layout)
    rows, columns = layout.shape
    training = training_bytes(config, dataset, own, rows, columns, config.training.replicas or 1)
    if config.assessment.replicas and nodes <= MOST_EXPANDED:  # standard errors: over all pairs, all replicas at once
        at_once = max(config.assessment.replicas, config.assessment.starts or 0)
        training = max(training, training_bytes(config, dataset, own, nodes, nodes, at_once))
    needed = max(training, 9 * NUM_GRAPHS * rows * columns, layout.written_bytes)
    require_memory(needed, device, f"a fit over {layout.words}", f"{layout.smaller}, or {FEWER}")


def training_bytes(config: FitConfig, dataset: Dataset, own: OwnParts, rows: int, columns: int, replicas: int) -> int:
    """Return the memory for training ``replicas`` replicas at once, with a matrix or table of this size."""
    batch = min(config.training.batch_size or 1, len(dataset.split.train))
    kind, graphs, sizes = own.kind(config.predictor), config.model.num_graphs, dataset.preparation.sizes
    channels = kind.edge_channels(sizes, config.predictor)
    step = step_bytes(
        rows=rows,
        columns=columns,
        num_graphs=graphs,
        draws=1 if config.model.share_graphs else batch,
        batch=batch,
        nodes=sizes.num_nodes,
        channels=channels,
        number_bytes=NUMBER_BYTES,
    )
    loss = own.loss or config.model.build_loss(dataset.split.train.targets)
    if loss.pairwise and loss.scope == "node":
        step += NUMBER_BYTES * batch * graphs**2 * sizes.num_nodes  # every two graphs are compared
    weights = kind.edge_weights(sizes)
    if weights:
        step += 4 * NUMBER_BYTES * rows * columns * weights
    elif config.graph.layout == "table" and kind.num_layers(config.predictor) > 1:
        step += 2 * NUMBER_BYTES * rows * columns * channels * batch * graphs
    return replicas * step


PREPARING = "preparing: parts, scales and candidates"
LONGEST_TRIED = 96  # steps of a window: with more, a short training of a network takes a minute or longer
SCALES = {"all": "same scale", "level": "levels differ", "series": "deviations differ"}  # reasons
TAKEN_OUT = "Edges were tested beside the background of the nodes: {words}."
FEWER_STEPS = (
    "regressions on all {window} steps of the window would take long: the weights of the newest {read} start at "
    "regressions, those of older steps at 0; use a shorter window, for example --window 24"
)


def resolve(
    source: Source,
    config: FitConfig,
    *,
    seed: int,
    device: torch.device,
    command: str,
    name: str | None = None,
    own: OwnParts | None = None,
    listener: Listener | None = None,
    notes: tuple[str, ...] = (),
) -> Fit:
    """Prepare the data and choose the open options; impossible combinations are refused.

    The result is a fit with all options set, the evidence and the untrained model.
    """
    own, listener = own or OwnParts(), TimedListener.of(listener)
    looked = looked_at(source)
    for line in looked:
        listener.say(line)
    # What the reader and the other options leave open.
    config, of_events = settle_events(settle_situations(source.settled(config)))
    require_source(source, config)
    config, settled = settle_simultaneous(config)
    config, by_inputs = settle_own_inputs(config)
    config, sorts, values = settle_first(source, config, own, seed)
    kinds = config.observation.kind
    # Which edges may exist; the window and the kind of noise follow from them.
    dataset, rules, evidence, config, observed = _with_evidence(source, config, own, seed, listener, sorts)
    values = values if config.observation.kind == kinds else []
    config, scaled = _with_scale(config, dataset)
    # The kind of predictor. A network has its own noise, so heavy tails that were chosen for a filter are left open.
    noise = with_open_noise(config, sorts)
    tried, dataset, chosen = _with_kind(source, noise, dataset, evidence, own, seed, device, listener)
    if tried.predictor.kind not in (AUTO, FILTER) and noise is not config:
        config, observed = noise, []
    config = config.model_copy(update={"predictor": tried.predictor})
    listener.stage("fit: starting values")
    given = config
    if evidence is not None and dataset.preparation.is_series:
        chosen = [*background_choice(evidence.backgrounds, dataset, config), *chosen]
    # All others.
    config, choices = resolve_defaults(config, dataset, rules, own, evidence, on_gpu=device.type == "cuda")
    require_resampling(config.assessment, dataset.preparation, dataset.split.train)
    require_memory_for(config, dataset, rules, own, device)
    kept, within = (None, None) if evidence is None else (evidence.kept, evidence.within)
    model = build_model(config, dataset, rules, own, seed, kept, within)
    beyond = lags_beyond(evidence, dataset) if evidence is not None else []
    closed_form = evidence is not None and has_closed_form(model, given)
    if config.data.events and closed_form:  # training learns how often edges act
        of_events = [choose("acts", 1, "few counts"), *of_events]
    return Fit(
        name=name or source.name,
        command=command,
        config=config,
        seed=seed,
        device=device,
        dataset=dataset,
        rules=rules,
        untrained=model,
        split=dataset.split,
        edges=EdgeTable(model.graph.index(dataset.nodes), fdr=config.assessment.fdr),
        choices=(*of_events, *scaled, *settled, *by_inputs, *values, *observed, *chosen, *choices),
        notes=(*dataset.notes, *looked, *left_out(rules), *_steps_left_out(model, dataset), *beyond, *notes),
        coordinates=place_nodes(dataset, config.graph),
        own=own,
        listener=listener,
        evidence=evidence,
        closed_form=closed_form,
    )


def _with_scale(config: FitConfig, dataset: Dataset) -> tuple[FitConfig, list[Choice]]:
    """Set the scaling of several series that was chosen, and return the reason."""
    preparation = dataset.preparation
    if not isinstance(preparation, SeriesPreparation) or config.data.scale_by != "auto":
        return config, []
    by = preparation.scaling.by
    data = config.data.model_copy(update={"scale_by": by})
    choices = [choose("scale_by", by, SCALES[by])] if dataset.split.num_series > 1 else []
    return config.model_copy(update={"data": data}), choices


def _steps_left_out(model: LatentGraphModel, dataset: Dataset) -> list[str]:
    """Return a note if regressions use only a part of the window, because all of it would take long."""
    read, window = steps_read(model, dataset.split.train)
    return [FEWER_STEPS.format(read=read, window=window)] if 0 < read < window else []


def _with_kind(
    source: Source,
    config: FitConfig,
    dataset: Dataset,
    evidence: RegressionEvidence | None,
    own: OwnParts,
    seed: int,
    device: torch.device,
    listener: Listener,
) -> tuple[FitConfig, Dataset, list[Choice]]:
    """Choose the kind of predictor by its forecasts, if it was left open."""
    if config.predictor.kind != "auto" or evidence is None:
        return config, dataset, []
    limited = evidence.rules.lag_ranges is not None
    if limited or _takes_long_to_try(config, dataset):
        predictor = config.predictor.model_copy(update={"kind": FILTER})
        reason = "weight per lag" if limited else "long window"
        chosen = choose("predictor", FILTER, reason, longest=LONGEST_TRIED)
        return config.model_copy(update={"predictor": predictor}), dataset, [chosen]

    def with_longer_window() -> Dataset:
        longer = config.data.window or network_window(source.content, evidence.window)
        if longer == dataset.preparation.sizes.window:
            return dataset
        data = config.data.model_copy(update={"window": longer})
        listener.stage(PREPARING)
        return Dataset.prepare(source, data, seed=seed, scaled=True, background=dataset.preparation.background)

    chosen, dataset = choose_kind(config, dataset, with_longer_window, evidence, own, seed, device, listener)
    predictor = config.predictor.model_copy(update={"kind": chosen.value})
    return config.model_copy(update={"predictor": predictor}), dataset, [chosen]


def _takes_long_to_try(config: FitConfig, dataset: Dataset) -> bool:
    """Return whether trying a network takes too long because of a long window, and a filter uses all options."""
    series, pairs = dataset.preparation.is_series, len(dataset.split.train)
    if not series or dataset.preparation.sizes.window <= LONGEST_TRIED or pairs < ENOUGH_FOR_A_NETWORK:
        return False
    try:
        config.predictor.require_used(PREDICTORS[FILTER])
    except InputError:
        return False
    return True


def _with_evidence(
    source: Source, config: FitConfig, own: OwnParts, seed: int, listener: Listener, sorts: tuple[str, ...]
) -> tuple[Dataset, EdgeRules, RegressionEvidence | None, FitConfig, list[Choice]]:
    """Prepare the data and find which edges may exist; an open window gets the length that the evidence needs.

    ``sorts``  sorts of the values of the nodes, if the observation model is chosen, which depends on the edges
    """
    scaled = config.predictor.kind == "auto" or own.kind(config.predictor).scaled
    regression, weight = evidence_method(config, own) == REGRESSION, config.graph.prior_weight
    require(
        not regression or weight is None,
        f"prior_weight in [graph] must be left out if regressions test the edges, got {weight}; set "
        "density, "
        'or evidence = "model" or "none"',
    )
    smallest, usual = config.graph.smallest_effect, type(config.graph).model_fields["smallest_effect"].default
    require(
        regression or smallest == usual,
        f"smallest_effect in [graph] requires regressions that test the edges, got {smallest} without them; leave it "
        'out, or set evidence = "regression" in [graph]',
    )
    require(
        regression or config.data.background in (("auto",), ("none",)),
        f"background in [data] requires regressions that test the edges, got '{', '.join(config.data.background)}' "
        'without them; leave it out, set calendar, or set evidence = "regression" in [graph]',
    )
    window = longest_window(source.content) if regression and config.data.window is None else None
    data = config.data if window is None else config.data.model_copy(update={"window": window})
    listener.stage(PREPARING)
    dataset = Dataset.prepare(source, data, seed=seed, scaled=scaled)
    require_series(dataset, config)
    with about(source.name):
        context_variables(dataset, config)  # impossible variables are refused before the work begins
    rules = read_rules(dataset, config.graph, own.candidates)
    needed = window_for_lags(rules, dataset, config.data.window)
    if needed is not None:
        require_lag_ranges(rules, config.predictor, own)
    if needed is not None and needed > dataset.preparation.sizes.window:
        data = config.data.model_copy(update={"window": needed})
        dataset = Dataset.prepare(source, data, seed=seed, scaled=scaled)
    if not regression:
        return dataset, rules, None, config, []
    listener.stage("evidence: first look")
    layout, *_ = rules.usual_layout(config.graph.layout)
    edges = rules.layout(layout)
    require_memory(edges.evidence_bytes, "cpu", f"a fit over {edges.words}", f"{edges.smaller}, or {FEWER}")
    index = rules.index(layout)
    with threads_for(len(dataset.nodes) ** 2):
        listener.stage("evidence: background")
        backgrounds = choose_backgrounds(dataset, rules, config)
        if said := background_words(backgrounds, dataset.nodes):
            listener.say(f"background: {', '.join(said)}")
        if listener.shows_lines:
            look = find_evidence(dataset, rules, config, seed, index=index, first_look=True, backgrounds=backgrounds)
            listener.say(first_edges(look, config.assessment.fdr, FIRST_LOOK))
        listener.stage("evidence: which edges exist")
        evidence = find_evidence(dataset, rules, config, seed, index=index, averaged=not sorts, backgrounds=backgrounds)
        background, searched = NO_BACKGROUND, dataset
        if config.predictor.kind == AUTO or own.kind(config.predictor).background:
            background = fit_background(evidence, source, config.data.model_copy(update={"window": data.window}), seed)
        if background.terms:
            listener.stage(PREPARING)
            dataset = Dataset.prepare(source, data, seed=seed, scaled=scaled, background=background)
        observed, given = list[Choice](), config.data
        if sorts:  # the choice of an observation model depends on the edges, and the evidence on the observation model
            listener.stage("evidence: which observation model")
            config, observed, changed = with_chosen_kinds(source, config, dataset, evidence, own, seed, sorts)
            listener.stage("evidence: which edges exist")
            same = config.data == given  # of counts and other values that have a zero, the units change
            if not same:
                data = config.data.model_copy(update={"window": data.window})
                dataset = searched = Dataset.prepare(source, data, seed=seed, scaled=scaled)
                if background.terms:
                    dataset = Dataset.prepare(source, data, seed=seed, scaled=scaled, background=background)
            if changed and same:
                same = have_real_values(evidence.observation, regression_observation(config, searched.preparation))
            evidence = find_evidence(
                searched,
                rules,
                config,
                seed,
                index=index,
                backgrounds=backgrounds,
                earlier=evidence if same else None,
            )
        listener.stage("evidence: which lags")
        evidence = with_lags(evidence, dataset, seed)
        evidence = with_small_effects(evidence, config.assessment.fdr)
        evidence = with_changes(evidence, dataset, config.assessment.fdr, config.graph.depends_on)
        if said:
            notes = (TAKEN_OUT.format(words=", ".join(said)), *evidence.notes)
            evidence = replace(evidence, notes=notes)
    listener.say(first_edges(evidence, config.assessment.fdr))
    level = config.data.scale_by == "auto" and evidence.form.offsets and _has_one_scale(dataset)
    if window is not None or level:  # other kinds than the filter may use a longer window
        short = config.predictor.kind == "auto" or own.kind(config.predictor).warm_start
        longer = evidence.window if short else network_window(source.content, evidence.window)
        window = config.data.window if window is None else longer
        if level or window != dataset.preparation.sizes.window:
            data = config.data.model_copy(update={"window": window, **({"scale_by": "level"} if level else {})})
            listener.stage(PREPARING)
            dataset = Dataset.prepare(source, data, seed=seed, scaled=scaled, background=background)
    return dataset, rules, evidence, config, observed


def _has_one_scale(dataset: Dataset) -> bool:
    preparation = dataset.preparation
    return isinstance(preparation, SeriesPreparation) and preparation.scaling.by == "all"
