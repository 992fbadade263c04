"""Single stages of the assessment for a fitted model, with the data of the fit."""

from dataclasses import replace
from typing import Any

import torch

from tacit.assessment.fit_tests import Goodness, goodness_of_fit
from tacit.assessment.identification import Identifiability
from tacit.assessment.uncertainty import Kept, has_direct_estimate
from tacit.config import AssessmentOptions
from tacit.data import Pairs
from tacit.errors import require
from tacit.pipeline.answer import GAUSSIAN_P, answer_sentences
from tacit.pipeline.assessment import WIDENED, identify_edges
from tacit.pipeline.building import build_prior
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.evidence import REGRESSION, find_evidence
from tacit.pipeline.findings import as_done
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.fitting import fit_settings
from tacit.pipeline.known_edges import read_rules
from tacit.pipeline.model_evidence import why_unknown
from tacit.pipeline.parts import OwnParts
from tacit.pipeline.preparation import block_length, require_resampling
from tacit.pipeline.simultaneous import without_held
from tacit.pipeline.situation_stage import CONSTANT, MIXTURE
from tacit.pipeline.sources import Source
from tacit.pipeline.std_errors import NOT_ADOPTED, STANDARD_ERRORS, estimate_std_errors
from tacit.randomness import generator_for
from tacit.training import Listener


def require_constant(fitted: Fitted, what: str) -> None:
    """Refuse a fit whose edges depend on the situation or have regimes: their stage estimated the errors."""
    kind = fitted.record.situations.get("kind", CONSTANT)
    require(
        kind == CONSTANT,
        f"{what} requires a graph with one probability per edge, got one in which edges "
        f"{'have regimes' if kind == MIXTURE else 'depend on the situation'}; fit without "
        f"{'regimes' if kind == MIXTURE else 'depends_on'}, or use the results of fit",
    )


def same_dataset(fitted: Fitted, source: Source) -> Dataset:
    """Return the data of the fit in the same parts; data with other units is refused."""
    kind = OwnParts(predictor=fitted.own).kind(fitted.config.predictor)
    dataset = Dataset.prepare(
        source,
        fitted.config.data,
        seed=fitted.record.seed,
        scaled=kind.scaled,
        background=fitted.preparation.background,
    )
    require(
        dataset.preparation.has_units_of(fitted.preparation),
        f"{source.name} must be the data of the fit, got data with other nodes, means or deviations; pass what fit "
        "was called with",
    )
    return dataset


def add_std_errors(
    fitted: Fitted,
    dataset: Dataset,
    replicas: int,
    block: int | None,
    listener: Listener,
    own: OwnParts,
) -> None:
    """Estimate standard errors and store them in the fit, replacing earlier ones; the model does not change.

    ``own``  the loss and the table of candidates, if they were passed as objects
    """
    config, train = fitted.config, dataset.split.train
    require(
        fitted.record.converged,
        "standard errors require a converged fit, got one that stopped too early; raise epochs, or "
        "leave out the options of the training",
    )
    options = AssessmentOptions(bootstrap_replicas=replicas, block=block)
    require_resampling(options, dataset.preparation, train)
    if fitted.restored:
        _make_trainable(fitted, dataset, own)
    device, settings = fitted.model.graph.raw.device, fit_settings(config)
    closed_form = not fitted.history and has_direct_estimate(fitted.model)
    found = estimate_std_errors(
        fitted.model,
        dataset.split.to(device),
        as_done(settings, len(fitted.history) or settings.epochs),
        replicas=replicas,
        block=block_length(options, dataset.preparation, len(train)),
        seed=fitted.record.seed,
        compile=bool(config.training.compile),
        listener=listener,
        moments="always" in fitted.record.uncertainty or closed_form,  # then the probabilities come from regressions
        kept=_chosen_again(fitted, dataset, own),
        thorough=config.assessment.thorough,
        trained=not fitted.model.observation.joint,
        switching=bool(config.graph.regimes),
    )
    columns = {name: fitted.graph.vector(values) for name, values in found.columns.items()}
    fitted.edges = without_held(fitted.edges.updated(**columns), fitted.model)
    repeated, replaced = {*found.findings, WIDENED}, (STANDARD_ERRORS, NOT_ADOPTED)
    earlier = [line for line in fitted.record.findings if line not in repeated and not line.startswith(replaced)]
    changes = {
        "uncertainty": found.uncertainty,
        "findings": [*earlier, *found.findings],
        "answer": answer_sentences(
            fitted.table,
            fitted.record.references,
            fitted.record.evidence.get("notes", ()),
            why_unknown(config, fitted.graph),
            gaussian=fitted.record.evidence.get(GAUSSIAN_P),
        ),
    }
    fitted.record = fitted.record.model_copy(update=changes)


def _chosen_again(fitted: Fitted, dataset: Dataset, own: OwnParts) -> Kept | None:
    """Return a function that selects edges on resamples, as in the fit; None if regressions did not select edges."""
    if fitted.config.graph.evidence != REGRESSION:
        return None
    rules, seed = read_rules(dataset, fitted.config.graph, own.candidates), fitted.record.seed
    graph, index = fitted.graph, rules.index("matrix")
    evidence = find_evidence(dataset, rules, fitted.config, seed, index=index)
    evidence = evidence.with_needed(graph.vector(graph.learned) & ~evidence.kept)
    train, preparation = dataset.split.train, dataset.preparation
    return lambda rows: torch.stack([graph.placed(one) for one in evidence.kept_on(train, preparation, rows, seed)])


def _make_trainable(fitted: Fitted, dataset: Dataset, own: OwnParts) -> None:
    """Restore the loss and the priors of a fit that was read from a file."""
    own = replace(own, predictor=fitted.own)
    graph = fitted.config.graph.model_copy(update={"layout": fitted.graph.layout.name})
    config = fitted.config.model_copy(update={"graph": graph})
    rules = read_rules(dataset, config.graph, own.candidates)
    evident = "exists" in fitted.edges  # then priors were used in the evidence, not in the training
    prior = None if evident else build_prior(config, dataset, rules, own)
    fitted.make_trainable(dataset.split.train, prior, own)


def add_identifiability(fitted: Fitted, dataset: Dataset, *, injectivity: bool) -> Identifiability:
    """Find which edges are identifiable, and store the result in the fit."""
    device = fitted.model.graph.raw.device
    found = identify_edges(
        fitted.model,
        dataset.split.train.to(device),
        dataset.preparation,
        generator_for(fitted.record.seed, "identify", device),
        injectivity=injectivity,
    )
    flags = fitted.graph.vector(found.flags())
    fitted.edges = without_held(fitted.edges.updated(identifiable=flags), fitted.model)
    return found


def goodness_on(fitted: Fitted, pairs: Pairs, **options: Any) -> Goodness:
    """Test the fit on pairs that the model was not fitted on; pairs without a target are left out."""
    device = fitted.model.graph.raw.device
    pairs = pairs.with_targets()
    generator = generator_for(fitted.record.seed, "goodness", device)
    options |= {"node_names": list(fitted.nodes), "trained": bool(fitted.history)}
    return goodness_of_fit(fitted.model, pairs.to(device), generator=generator, **options)
