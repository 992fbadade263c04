"""The bagged estimate takes the place of the fit, unless it predicts worse."""

import torch

from tacit.assessment.uncertainty import adopt, bootstrap
from tacit.losses import EnergyScore
from tacit.training import CosineDecay, FitSettings
from toys import visible

LOOPS = torch.diag(torch.linspace(0.3, 0.7, 4))


def test_a_better_mean_is_adopted_and_a_worse_one_is_not():
    model, pairs = visible(LOOPS, 200, EnergyScore())
    right = model.graph.edge_probs.detach().clone()
    settings = FitSettings(epochs=4, batch_size=20, schedule=CosineDecay(0.2))
    found = bootstrap(model, pairs, pairs[:50], settings, replicas=6, compile=False)
    name = f"graph.{model.graph.link.parameter}"

    wrong = torch.where(model.graph.fixed, right, (right + 0.25).clamp_max(0.99))
    found.parameters[name] = torch.logit(wrong)
    assert not adopt(model, found.parameters, pairs)
    assert torch.equal(model.graph.edge_probs, right)

    model.graph.start_around(wrong)
    found.parameters[name] = torch.logit(right)
    assert adopt(model, found.parameters, pairs)
    assert torch.allclose(model.graph.edge_probs, right, atol=1e-6)


def test_edges_that_nothing_moves_are_not_known_exactly():
    """Of a node that was never observed the replicas keep what the fit had: the error is that of knowing nothing."""
    model, pairs = visible(LOOPS, 200, EnergyScore())
    observed = torch.ones_like(pairs.targets)
    observed[:, 2] = 0
    blind = type(pairs)(pairs.inputs, pairs.targets, observed)
    settings = FitSettings(epochs=4, batch_size=20, schedule=CosineDecay(0.2))
    found = bootstrap(model, blind, blind[:50], settings, replicas=6, compile=False)
    assert found.std_errors[2, 2] == 0.5
    assert 0 < found.std_errors[1, 1] < 0.2
