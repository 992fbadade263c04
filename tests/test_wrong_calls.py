"""Calls that a hurried user makes from Python: each ends in one clear line, never in a traceback from inside."""

import pytest
import torch

from tacit import (
    MMD,
    BernoulliGraph,
    EnergyScore,
    FitSettings,
    HopPredictor,
    InputError,
    LatentGraphModel,
    Pairs,
    fit,
)
from tacit.assessment.evaluation import edge_prob_errors
from tacit.systems import CommunitySystem

RNG = torch.Generator().manual_seed(0)
GRAPH = BernoulliGraph.uniform(3, generator=RNG)
PREDICTOR = HopPredictor.random(2, 1, generator=RNG)
PAIRS = Pairs(torch.zeros(20, 3, 1), torch.zeros(20, 3, 1))


def model():
    return LatentGraphModel(GRAPH, PREDICTOR, EnergyScore())


CALLS = {
    "edge_probs as list": (lambda: BernoulliGraph([[0.5]]), "edge_probs must be a tensor of floats, got list"),
    "edge_probs as integers": (lambda: BernoulliGraph(torch.zeros(2, 2).long()), "got torch.int64"),
    "edge_probs not square": (lambda: BernoulliGraph(torch.zeros(2, 3)), "edge_probs must be a square matrix"),
    "fixed as floats": (
        lambda: BernoulliGraph(torch.zeros(2, 2), torch.zeros(2, 2)),
        "fixed must be a tensor of booleans",
    ),
    "half a node": (lambda: BernoulliGraph.uniform(3.5, generator=RNG), "num_nodes must be an integer"),
    "graphs as float": (lambda: GRAPH.sample(2.0, generator=RNG), "num_graphs must be an integer"),
    "negative pairs": (lambda: GRAPH.sample(2, num_pairs=-1, generator=RNG), "num_pairs must be an integer"),
    "hop_weights as list": (lambda: HopPredictor([[1.0]]), "hop_weights must be a tensor of floats"),
    "hops as float": (lambda: HopPredictor.random(2.0, 1, generator=RNG), "num_hops must be an integer"),
    "loss by name": (lambda: LatentGraphModel(GRAPH, PREDICTOR, "mmd"), "loss must be an object like EnergyScore"),
    "loss as class": (lambda: LatentGraphModel(GRAPH, PREDICTOR, MMD), "loss must be an object like EnergyScore"),
    "graph as tensor": (lambda: LatentGraphModel(torch.zeros(3, 3), PREDICTOR, MMD()), "graph must be an object like"),
    "predictor as class": (lambda: LatentGraphModel(GRAPH, HopPredictor, MMD()), "predictor must be an object like"),
    "graphs as text": (
        lambda: LatentGraphModel(GRAPH, PREDICTOR, MMD(), num_graphs="8"),
        "num_graphs must be a wh",
    ),
    "seeds as number": (
        lambda: fit(model(), PAIRS, PAIRS, seeds=3),
        "seeds must have at least one seed and no seed twice",
    ),
    "a seed twice": (lambda: fit(model(), PAIRS, PAIRS, seeds=(1, 1)), "no seed twice, got"),
    "half a seed": (lambda: fit(model(), PAIRS, PAIRS, seeds=(0.5,)), "each of seeds must be an integer"),
    "settings as dict": (
        lambda: fit(model(), PAIRS, PAIRS, {"epochs": 1}),
        "settings must be a FitSettings, got dict",
    ),
    "data as tuple": (lambda: fit(model(), (1, 2), PAIRS), "train must be a Pairs, got tuple"),
    "misspelt lift": (
        lambda: fit(model(), PAIRS, PAIRS, lift="vmp"),
        "lift must be one of auto, loop, vmap, got 'vmp'",
    ),
    "epochs as text": (lambda: FitSettings(epochs="3"), "epochs must be an integer of at least 1, got '3'"),
    "schedule by name": (lambda: FitSettings(schedule="cosine"), "schedule must be an object like CosineDecay"),
    "infinite rate": (
        lambda: FitSettings(predictor_learning_rate=float("inf")),
        "predictor_learning_rate must be positive",
    ),
    "one beta": (lambda: FitSettings(adam_betas=(0.9,)), "adam_betas must have two numbers"),
    "one epoch to halve": (lambda: FitSettings(halve_after=1), "halve_after must be epochs counted from 1"),
    "half a pair": (lambda: CommunitySystem().generate(10.5), "num_pairs must be an integer"),
    "truth of another size": (
        lambda: edge_prob_errors(torch.zeros(3, 3), torch.zeros(1, 3)),
        "true_edge_probs must have the",
    ),
    "two channels of targets": (
        lambda: EnergyScore()(torch.zeros(2, 4, 3, 1), torch.zeros(2, 3, 2)),
        "must have the same batch, nodes and channels",
    ),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_call(name):
    call, message = CALLS[name]
    with pytest.raises(InputError) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
