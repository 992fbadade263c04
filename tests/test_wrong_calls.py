"""Calls that a hurried user makes from Python: each ends in one clear line, never in a traceback from inside."""

import torch

from tacit import MMD, BernoulliGraph, EnergyScore, FitSettings, HopPredictor, LatentGraphModel, Pairs, fit
from tacit.assessment.evaluation import edge_prob_errors
from tacit.systems import CommunitySystem

RNG = torch.Generator().manual_seed(0)
GRAPH = BernoulliGraph.uniform(3, generator=RNG)
PREDICTOR = HopPredictor.random(2, 1, generator=RNG)
PAIRS = Pairs(torch.zeros(20, 3, 1), torch.zeros(20, 3, 1))


def model():
    return LatentGraphModel(GRAPH, PREDICTOR, EnergyScore())


def test_wrong_calls(unchecked, refused):
    refused(BernoulliGraph, [[0.5]])
    refused(BernoulliGraph, torch.zeros(2, 2).long())
    refused(BernoulliGraph, torch.zeros(2, 3))
    refused(BernoulliGraph, torch.zeros(2, 2), torch.zeros(2, 2))
    refused(BernoulliGraph.uniform, 3.5, generator=RNG)
    refused(GRAPH.sample, 2.0, generator=RNG)
    refused(GRAPH.sample, 2, num_pairs=-1, generator=RNG)
    refused(HopPredictor, [[1.0]])
    refused(HopPredictor.random, 2.0, 1, generator=RNG)
    refused(LatentGraphModel, GRAPH, PREDICTOR, "mmd")
    refused(LatentGraphModel, GRAPH, PREDICTOR, MMD)
    refused(LatentGraphModel, torch.zeros(3, 3), PREDICTOR, MMD())
    refused(LatentGraphModel, GRAPH, HopPredictor, MMD())
    refused(LatentGraphModel, GRAPH, PREDICTOR, MMD(), num_graphs="8")
    refused(fit, model(), PAIRS, PAIRS, seeds=3)
    refused(fit, model(), PAIRS, PAIRS, seeds=(1, 1))
    refused(fit, model(), PAIRS, PAIRS, seeds=(0.5,))
    refused(fit, model(), PAIRS, PAIRS, {"epochs": 1})
    refused(fit, model(), (1, 2), PAIRS)
    refused(fit, model(), PAIRS, PAIRS, lift="vmp")
    refused(FitSettings, epochs="3")
    refused(FitSettings, schedule="cosine")
    refused(FitSettings, predictor_learning_rate=float("inf"))
    refused(FitSettings, adam_betas=(0.9,))
    refused(FitSettings, halve_after=1)
    refused(CommunitySystem().generate, 10.5)
    refused(edge_prob_errors, torch.zeros(3, 3), torch.zeros(1, 3))
    refused(EnergyScore(), torch.zeros(2, 4, 3, 1), torch.zeros(2, 3, 2))
