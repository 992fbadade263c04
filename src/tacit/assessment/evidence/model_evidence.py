r"""Evidence from the fitted model: does removing an edge worsen the score, or inserting it improve the score?

With several hops, or in a network that all nodes share, an edge also affects nodes other than its target, so
regressions of each node on its sources do not suffice. Instead the model itself is tested on some of the training
pairs, with the training score:

1. Edges that training drove near 0 are fixed at 0. For each other edge, the loss in score without it is computed with
   everything else fixed; an edge whose removal costs almost nothing is not needed.
2. For each remaining edge, one short training from the current state without that edge; and one with all edges, on the
   same batches and random numbers. The loss per pair that other edges cannot compensate gives $z$
   (:mod:`tacit.assessment.evidence.bayes_factor`).
3. Edges that are not needed are removed together, and training continues. From this model each absent edge is tested:
   the slope of the score at probability 0 in standard errors is its $z$.
4. Absent edges that improve the score are inserted together and tested as in step 2: several may be proxies of one
   edge that training had lost.

An edge that is not needed when it is removed alone, but improves the score when similar edges are removed with it, can
be replaced: one of several edges exists. Its probability is the mean of the two.
"""

from collections.abc import Callable, Sequence

import torch

from tacit.assessment.evidence.edge_tests import SCREENED_PAIRS, EdgeTests, places_of
from tacit.assessment.evidence.effects import signed_effects
from tacit.assessment.evidence.exchangeability import differing_nodes, shares_weights
from tacit.assessment.evidence.result import KEEP, Evidence
from tacit.assessment.evidence.retraining import without_prior
from tacit.data import Pairs
from tacit.errors import require_int
from tacit.randomness import generator_for
from tacit.shapes import EdgeProbs
from tacit.training import FitSettings, LatentGraphModel, Progress

MOST_PAIRS = 8192
SOME_PAIRS = "Edges were tested on {some:,} of {all:,} training pairs, and on all pairs where the result was unclear."
DIFFERENT = (
    "The nodes {nodes} differ from the others in ways that weights shared by all nodes cannot express: the model may "
    "use edges to distinguish nodes, and an edge of the model is not necessarily a relation."
)
NAMED = 5  # nodes named in a sentence


def model_evidence(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    *,
    prior: EdgeProbs | float = 0.1,
    seed: int = 0,
    block: int = 1,
    num_weights: int = 0,
    node_names: Sequence[str] | None = None,
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> Evidence:
    """Return the probability that each edge of a trained model exists; fixed edges count as known.

    ``settings``     settings of the fit
    ``prior``        prior probability that an edge exists, one for all or one for each
    ``block``        number of neighbouring pairs in a series that are not independent
    ``num_weights``  number of weights per edge
    ``node_names``   names used in sentences

    The model is not changed.
    """
    model.graph.require_all_pairs("model_evidence")
    require_int("block", block)
    some = _some(train, block)
    judge = without_prior(model).to(train.inputs.device, train.inputs.dtype)
    before = torch.as_tensor(prior, dtype=torch.float64, device=train.inputs.device).expand(judge.graph.edge_shape)
    tests = EdgeTests(
        judge,
        train,
        some,
        validation[:SCREENED_PAIRS],
        settings,
        before,
        seed,
        block,
        num_weights,
        compile,
        on_progress,
    )
    exists = tests.run()
    learned = judge.graph.learned
    places = places_of(exists >= KEEP, symmetric=judge.graph.symmetric)
    generator = generator_for(seed, "effects", train.inputs.device)
    effect = signed_effects(judge, some, places, generator=generator)
    notes = [SOME_PAIRS.format(some=len(some), all=len(train))] if len(some) < len(train) else []
    if shares_weights(judge):
        generator = generator_for(seed, "exchangeability", train.inputs.device)
        differ = differing_nodes(judge, some, generator=generator).nonzero()[:, 0].tolist()
        if differ:
            notes.append(DIFFERENT.format(nodes=_listed(differ, node_names)))
    return Evidence(
        exists.float().cpu(),
        effect,
        {"density": round(float(before[learned].mean()), 6) if learned.any() else 0.0, "acting": "2 theta on [0, 1]"},
        "model",
        tuple(notes),
    )


def _some(train: Pairs, block: int) -> Pairs:
    """Return the pairs for the tests: all of them, or evenly spread whole blocks."""
    if len(train) <= MOST_PAIRS:
        return train
    block = min(block, MOST_PAIRS)
    blocks, count = len(train) // block, MOST_PAIRS // block
    chosen = torch.arange(count) * blocks // count
    rows = (chosen[:, None] * block + torch.arange(block)).flatten()
    return train[rows.to(train.inputs.device)]


def _listed(nodes: list[int], names: Sequence[str] | None) -> str:
    shown = [str(node) if names is None else names[node] for node in nodes]
    rest = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return ", ".join(shown[:NAMED]) + rest
