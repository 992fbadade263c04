import pytest
import torch

from tacit.assessment.identification import CERTAIN, LOOPS_OFF, LOOPS_ON, compare_replicas, find_representations
from tacit.assessment.identification.replicas import graph_relation
from tacit.assessment.identification.representations import COMPLEMENT, WHOLE_COMPLEMENT, other_graphs
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.local import paired_difference
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import HopPredictor
from tacit.training import CosineDecay, FitResult, FitSettings, LatentGraphModel, Replica, pair_losses, with_fixed_graph

SETTINGS = FitSettings(epochs=7, schedule=CosineDecay(0.15), batch_size=64)
OFF_DIAGONAL = ~torch.eye(4, dtype=torch.bool)


class Counting(torch.nn.Module):
    """y_i = w sum_j A_ij x_j + v sum_{j != i} x_j + u x_i: the complement with -w and v + w is the same."""

    def __init__(self, w, v, u):
        super().__init__()
        self.read = torch.nn.Parameter(torch.tensor(w))
        self.total = torch.nn.Parameter(torch.tensor(v))
        self.own = torch.nn.Parameter(torch.tensor(u))

    def forward(self, inputs, graphs):
        others = inputs.sum(1, keepdim=True) - inputs
        return self.read * (graphs @ inputs[:, None]) + (self.total * others + self.own * inputs)[:, None]


def data(model, rng, num_pairs=768):
    inputs = torch.randn(num_pairs, model.graph.num_nodes, 1, generator=rng)
    with torch.no_grad():
        graphs = model.graph.sample(1, num_pairs=num_pairs, generator=rng)
        targets = model.observation.draw(model.describe(inputs, graphs), generator=rng)[:, 0]
    pairs = Pairs(inputs, targets)
    return pairs[:512], pairs[512:]


def search(model, rng):
    train, validation = data(model, rng)
    found = find_representations(model, train, validation, generator=rng, settings=SETTINGS, lift="vmap", compile=False)
    return {one.name: one for one in found}


@pytest.fixture
def probs(rng):
    some = torch.where(torch.rand(4, 4, generator=rng) < 0.5, 0.85, 0.1)
    return torch.where(OFF_DIAGONAL, some, 0.0)


def test_the_exact_complement_has_the_same_loss_pair_by_pair(rng, probs):
    model = LatentGraphModel(
        BernoulliGraph(probs, fixed=~OFF_DIAGONAL), Counting(1.0, 0.3, 0.5), EnergyScore(), num_graphs=5
    )
    _, validation = data(model, rng)
    other = with_fixed_graph(model, other_graphs(model.graph)[COMPLEMENT])
    held = with_fixed_graph(model, model.graph.edge_probs)
    turned = {"predictor.read": torch.tensor(-1.0), "predictor.total": torch.tensor(1.3)}
    generator = lambda: torch.Generator().manual_seed(5)  # noqa: E731
    own, weights = pair_losses(held, {}, validation, generator=generator())
    losses, _ = pair_losses(other, turned, validation, generator=generator())
    unturned, _ = pair_losses(other, {}, validation, generator=generator())
    assert abs(paired_difference(losses, own, weights).mean) < 4 * paired_difference(losses, own, weights).std_error
    assert paired_difference(unturned, own, weights).mean > 10 * paired_difference(unturned, own, weights).std_error


def test_the_complement_is_found_where_the_predictor_can_make_up_for_it(rng, probs):
    model = LatentGraphModel(
        BernoulliGraph(probs, fixed=~OFF_DIAGONAL), Counting(1.0, 0.3, 0.5), EnergyScore(), num_graphs=5
    )
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = search(model, rng)
    assert list(found) == [COMPLEMENT, CERTAIN]
    assert found[COMPLEMENT].equivalent
    assert not found[CERTAIN].equivalent
    assert found[COMPLEMENT].parameters["predictor.read"].item() == pytest.approx(-1, abs=0.1)
    assert found[COMPLEMENT].parameters["predictor.total"].item() == pytest.approx(1.3, abs=0.1)
    assert "predicts as well" in found[COMPLEMENT].sentence()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_complement_is_not_equivalent_for_hops(rng, probs):
    predictor = HopPredictor(torch.tensor([0.8, -0.6]).view(2, 1, 1))
    model = LatentGraphModel(BernoulliGraph(probs, fixed=~OFF_DIAGONAL), predictor, EnergyScore())
    found = search(model, rng)
    assert list(found) == [COMPLEMENT, CERTAIN]
    assert not found[COMPLEMENT].equivalent
    assert "predicts worse" in found[COMPLEMENT].sentence()


def test_self_loops_trade_with_the_own_path(rng, probs):
    """Self-loops that are always there: off, with the own weight raised by w, is the same; and so with v for others."""
    model = LatentGraphModel(BernoulliGraph(probs + torch.eye(4)), Counting(1.0, 0.3, 0.5), EnergyScore(), num_graphs=5)
    found = search(model, rng)
    assert set(found) == {COMPLEMENT, WHOLE_COMPLEMENT, LOOPS_OFF, CERTAIN}
    assert found[LOOPS_OFF].equivalent
    assert found[LOOPS_OFF].parameters["predictor.own"].item() == pytest.approx(1.5, abs=0.1)
    uncertain = LatentGraphModel(
        BernoulliGraph(probs + 0.5 * torch.eye(4)), Counting(1.0, 0.3, 0.5), EnergyScore(), num_graphs=5
    )
    found = search(uncertain, rng)  # a coin cannot be replaced by a number
    assert not found[LOOPS_OFF].equivalent
    assert not found[LOOPS_ON].equivalent
    assert found[COMPLEMENT].equivalent


def test_a_weak_edge_without_chance_passes_for_a_strong_one_at_times_where_noise_hides_the_difference(rng, probs):
    """Under much noise the mean decides: an edge of weight 1 at times is one of weight 0.85 always."""
    sparse = torch.where(probs > 0.5, 0.85, 0.0)
    graph = BernoulliGraph(sparse, fixed=~OFF_DIAGONAL | (sparse == 0))
    noise = GaussianNoise(4, initial_sigma=2.0)
    model = LatentGraphModel(graph, Counting(0.3, 0.0, 0.5), EnergyScore(), observation=noise, num_graphs=5)
    found = search(model, rng)
    assert found[CERTAIN].equivalent
    clear = LatentGraphModel(graph, Counting(0.3, 0.0, 0.5), EnergyScore(), num_graphs=5)
    assert not search(clear, rng)[CERTAIN].equivalent


def test_nothing_to_look_for_where_the_predictor_is_known(rng, probs):
    predictor = Counting(1.0, 0.3, 0.5).requires_grad_(False)
    model = LatentGraphModel(BernoulliGraph(probs, fixed=~OFF_DIAGONAL), predictor, EnergyScore())
    train, validation = data(model, rng)
    assert find_representations(model, train, validation, generator=rng) == []


def test_other_graphs_leave_fixed_edges_alone_and_skip_what_changes_nothing():
    half = BernoulliGraph(torch.full((3, 3), 0.5))
    assert list(other_graphs(half)) == [LOOPS_OFF, LOOPS_ON, CERTAIN]
    held = BernoulliGraph(torch.full((3, 3), 0.2), fixed=torch.eye(3, dtype=torch.bool), symmetric=True)
    graphs = other_graphs(held)
    assert list(graphs) == [COMPLEMENT, CERTAIN]
    assert torch.equal(graphs[CERTAIN], 0.2 * torch.eye(3))
    assert torch.allclose(graphs[COMPLEMENT], 0.8 - 0.6 * torch.eye(3))


def result_of(model, stack, losses):
    replicas = [Replica(seed, loss, None) for seed, loss in enumerate(losses)]
    parameters = {"graph.edge_logits": torch.logit(torch.stack(stack)), "predictor.read": torch.zeros(len(stack))}
    best = min(range(len(losses)), key=losses.__getitem__)
    return FitResult(model, best, replicas, [], parameters, 1, 0.0, 0.0, False, [])


def test_replicas_with_another_graph_are_named(probs):
    model = LatentGraphModel(
        BernoulliGraph(torch.full((4, 4), 0.5)), Counting(1.0, 0.3, 0.5), EnergyScore(), num_graphs=5
    )
    best = 0.01 + 0.9 * probs
    loops, other = best + 0.8 * torch.eye(4), best.roll(1, 0)
    stack = [best, best + 0.01, 1 - best, 1 - best, loops, loops, other, other]
    result = result_of(model, stack, [0.5, 0.501, 0.502, 0.7, 0.502, 0.7, 0.502, 0.7])
    found = compare_replicas(result)
    assert [(one.replica, one.relation, one.as_good) for one in found] == [
        (2, "complement", True),
        (3, "complement", False),
        (4, "diagonal", True),
        (6, "other", True),
    ]
    assert found[1].sentence() == ("Replica 3 (seed 3) predicts worse and has the complement of the best one's graph.")
    assert compare_replicas(result, tolerance=0.001)[0].as_good is False


def test_replicas_of_a_known_predictor_are_not_compared(probs):
    model = LatentGraphModel(
        BernoulliGraph(torch.full((4, 4), 0.5)), Counting(1.0, 0.3, 0.5), EnergyScore(), num_graphs=5
    )
    result = result_of(model, [probs, 1 - probs], [0.5, 0.5])
    del result.parameters["predictor.read"]
    assert compare_replicas(result) == []


def test_relation_of_graphs_without_variation_is_no_complement():
    flat = torch.full((3, 3), 0.2)
    assert graph_relation(1 - flat, flat, torch.ones(3, 3, dtype=torch.bool)) == "other"


def test_bad_input_to_the_search_is_named(rng, probs, unchecked, refused):
    model = LatentGraphModel(
        BernoulliGraph(probs, fixed=~OFF_DIAGONAL), Counting(1.0, 0.3, 0.5), EnergyScore(), num_graphs=5
    )
    train, _ = data(model, rng)
    few = Pairs(torch.zeros(2, 3, 1), torch.zeros(2, 3, 1))
    refused(find_representations, model, train, few, generator=rng)
    refused(find_representations, model, train.inputs, train, generator=rng)
    refused(compare_replicas, model)
