r"""Evidence from the fitted model: is an edge missed when it is removed, or welcome when it is inserted?

With several hops, or in a network that all nodes share, an edge has effects on nodes that it does not lead to, and
which sources predict a node is not the question any more. There the model itself is asked, on some of the training
pairs, always by the training score:

1. Edges that training drove near 0 are held there. Of the others it is looked at what the score loses without each, the
   rest as it is; an edge whose removal costs next to nothing even so is not needed.
2. One short training per edge that remains, from the present state, without that edge; and one with all of them, on the
   same batches and random numbers. The loss per pair that the others cannot make up for gives $z$
   (:mod:`tacit.evidence.bayes_factor`).
3. Edges that were not missed are removed together and the rest is trained on. From there each edge that is absent is
   tried out: the slope of the score at probability 0 in standard errors is its $z$.
4. Absent edges that would be welcome are put in together, and tested as in step 2: several may stand for one that
   training had lost.

An edge that is not missed when it is removed, but is welcome when others like it are removed with it, can be replaced:
one of several edges exists, and the mean of the two probabilities says so.
"""

from collections.abc import Callable

import torch

from tacit.data import Pairs
from tacit.errors import require_whole
from tacit.evidence.edge_tests import KEEP, SCREENED_PAIRS, EdgeTests, places_of
from tacit.evidence.effects import signed_effects
from tacit.evidence.result import Evidence
from tacit.evidence.retraining import without_prior
from tacit.predictors import edge_parameters_of
from tacit.randomness import generator_for
from tacit.shapes import EdgeProbs
from tacit.training import FitSettings, LatentGraphModel, Progress

MOST_PAIRS = 8192
SOME_PAIRS = "Whether edges exist was judged from {some:,} of {all:,} training pairs, and from all of them where these left a doubt."
SHARED = (
    "Whether edges exist was judged by the model itself, which has weights that all nodes share: it may need an edge "
    "only to tell nodes apart."
)


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
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> Evidence:
    """Return whether each edge exists, of a trained model; edges that are held count as known.

    ``settings``     those of the fit
    ``prior``        probability that an edge exists, one for all or one for each
    ``block``        neighbouring pairs that are not independent, in a series
    ``num_weights``  weights that an edge has of its own

    The model stays as it is.
    """
    model.graph.require_all_pairs("model_evidence")
    require_whole("block", block)
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
    if any(value.requires_grad for value in judge.predictor.parameters()) and not edge_parameters_of(judge.predictor):
        notes.append(SHARED)
    return Evidence(
        exists.float().cpu(),
        effect,
        {"exists": float(before[learned].mean()) if learned.any() else 0.0, "acts": "2 theta on [0, 1]"},
        "model",
        tuple(notes),
    )


def _some(train: Pairs, block: int) -> Pairs:
    """Return the pairs to judge by: all of them, or whole blocks spread over them."""
    if len(train) <= MOST_PAIRS:
        return train
    blocks = len(train) // block
    chosen = torch.arange(MOST_PAIRS // block) * blocks // (MOST_PAIRS // block)
    rows = (chosen[:, None] * block + torch.arange(block)).flatten()
    return train[rows.to(train.inputs.device)]
