import pytest
import torch

from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import FitSettings, LatentGraphModel
from tacit.training.adam import adam_
from tacit.training.state import ReplicaState, StepNumbers


@pytest.mark.parametrize("betas", [(0.9, 0.99), (0.5, 0.9)])
def test_steps_are_those_of_torch(rng, betas):
    """Also where gradients are tiny, zero, or lie in another order in memory."""
    start = torch.randn(3, 4, 5, generator=rng, dtype=torch.float64)
    theirs, ours = start.clone().requires_grad_(), start.clone()
    first, second = torch.zeros_like(ours), torch.zeros_like(ours)
    optimizer = torch.optim.Adam([theirs], lr=0.1, betas=betas)
    for step in range(1, 30):
        gradient = torch.randn(4, 3, 5, generator=rng, dtype=torch.float64).transpose(0, 1) * 10.0 ** (-step % 9)
        gradient = gradient * (torch.arange(5) > 0)
        rate = 0.1 / step
        for group in optimizer.param_groups:
            group["lr"] = rate
        theirs.grad = gradient.contiguous()
        optimizer.step()
        corrections = (1 - betas[0] ** step, 1 - betas[1] ** step)
        adam_(ours, gradient, first, second, rate=rate, betas=betas, corrections=corrections)
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-12, atol=1e-14)


def test_the_average_is_the_mean_of_the_steps_that_count(rng):
    """Edge probabilities are averaged as probabilities, the rest as it is; tensors of one number do what floats do."""
    graph = BernoulliGraph.uniform(3, generator=rng)
    model = LatentGraphModel(graph, HopPredictor.random(2, 4, generator=rng), EnergyScore(), num_graphs=4).double()
    states = [ReplicaState.create(model, (0, 1), fresh=True) for _ in range(2)]
    gradients = [
        {
            name: torch.randn(value.shape, generator=rng, dtype=torch.float64)
            for name, value in states[0].parameters.items()
        }
        for _ in range(4)
    ]
    seen: list[dict[str, torch.Tensor]] = []
    for step, gradient in enumerate(gradients):
        weight = None if step == 0 else 1 / step
        numbers = (0.1, weight, 0.0, 0.01, 1 - 0.9 ** (step + 1), 1 - 0.99 ** (step + 1))
        states[0].update(gradient, StepNumbers(*numbers), FitSettings())
        as_tensors = [None if value is None else torch.tensor(value, dtype=torch.float64) for value in numbers]
        states[1].update(gradient, StepNumbers(*as_tensors), FitSettings())
        if step > 0:
            seen.append({name: value.clone() for name, value in states[0].parameters.items()})
    for name, average in states[0].averages.items():
        values = torch.stack([values[name] for values in seen])
        wanted = (torch.sigmoid(values) if name == "graph.edge_logits" else values).mean(0)
        torch.testing.assert_close(average, wanted)
        torch.testing.assert_close(states[1].averages[name], average)
