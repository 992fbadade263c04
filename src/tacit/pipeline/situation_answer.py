"""The stage of the assessment for situations or regimes: its name, its inputs and its results."""

from dataclasses import replace

from tacit.config import FitConfig
from tacit.pipeline.answer import CONSTANT_GRAPH
from tacit.pipeline.comparisons import compare_to
from tacit.pipeline.findings import Assessment, AssessmentInputs
from tacit.pipeline.resampling import block_length
from tacit.pipeline.situation_stage import SituationFit, StageInputs, find_varying

NO_SITUATIONS = "Not computed, whether edges depend on the situation: training stopped too early."
REGIMES = ("regimes", "which edges switch together")


def asks_situations(config: FitConfig) -> bool:
    """Return whether the config has ``depends_on`` or ``regimes``."""
    return bool(config.graph.depends_on) or config.graph.regimes is not None


def situation_stage(config: FitConfig) -> tuple[str, str]:
    """Return the name of the stage, and its question."""
    names = config.graph.depends_on
    return ("situations", f"which edges depend on {', '.join(names)}") if names else REGIMES


def ask_situations(answer: Assessment, fit: AssessmentInputs) -> None:
    """Find which edges depend on the situation, or their regimes, and compare with the constant graph."""
    if fit.result.late_fall:
        answer.findings.append(NO_SITUATIONS)
        return
    split = fit.split
    inputs = StageInputs(
        fit.result.model,
        split,
        answer.edges,
        fit.preparation.nodes,
        fit.done,
        fit.config.assessment.fdr,
        fit.seed,
        compile=fit.compile,
        block=block_length(fit.config.assessment, fit.preparation, len(split.train)),
        listener=fit.listener,
    )
    found = _found_regimes(inputs, fit) if fit.config.graph.regimes is not None else find_varying(inputs, fit.variables)
    graph = fit.result.model.graph
    columns = {name: None if values is None else graph.vector(values) for name, values in found.columns.items()}
    answer.edges = replace(answer.edges.updated(**columns), by=found.by)
    answer.model, answer.situations, answer.situation_sentences = found.model, found.record, found.sentences
    answer.findings += found.findings
    if found.model is not None:
        compared = compare_to(found.model, fit.result.model, split, fit.preparation, fit.seed)
        answer.references = {**answer.references, CONSTANT_GRAPH: compared}


def _found_regimes(inputs: StageInputs, fit: AssessmentInputs) -> SituationFit:
    """Fit regimes; the module is imported only if they are requested."""
    from tacit.pipeline.regime_stage import find_regimes

    graph = fit.config.graph
    assert graph.regimes is not None
    assert fit.dataset is not None
    return find_regimes(inputs, fit.dataset, graph.regimes, graph.blocks)
