"""Graphs with regimes: gradients against exact enumeration, one regime is the constant graph, and what a fit finds."""

import itertools

import pytest
import torch
from torch.func import functional_call

import oracles
from enumeration import cells_of, exact_gradient, mean_gradient, sets_of
from tacit.estimators import DisARM, GlobalCredit, ReceptiveFieldCredit
from tacit.graph import BernoulliGraph, CandidateEdges, EdgePrior, MixtureGraph, SineSquared
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel
from toys import TOLERANCE

ROW = torch.tensor([[True, True], [False, False]])
CROSSED = torch.tensor([[False, True], [True, False]])
ALL = torch.ones(2, 2, dtype=torch.bool)


def mixture(free, num_regimes=2, blocks="rows", *, table=False, symmetric=False, held=0.0, seed=3):
    """Regimes with probabilities and weights at random."""
    rng = torch.Generator().manual_seed(seed)
    probs, fixed = torch.where(free, 0.5, 0.0).double(), ~free
    probs[1, 1] = held
    if symmetric:
        probs, fixed = probs.triu() + probs.triu(1).mT, fixed.triu() | fixed.triu().mT
    candidates = None
    if table:
        candidates = CandidateEdges.from_mask(ALL)
        places = (candidates.row_node[:, None], candidates.sources)
        probs, fixed = probs[places], fixed[places]
    graph = MixtureGraph(BernoulliGraph(probs, fixed, symmetric=symmetric, candidates=candidates), num_regimes, blocks)
    with torch.no_grad():
        for value in graph.parameters():
            value.copy_(torch.randn(value.shape, generator=rng, dtype=torch.float64))
    return graph


def toy(graph, loss, num_graphs, **choices):
    rng = torch.Generator().manual_seed(4)
    predictor = HopPredictor(torch.randn(2, 2, 1, generator=rng, dtype=torch.float64))
    model = LatentGraphModel(graph, predictor, loss, num_graphs=num_graphs, **choices).double()
    inputs = torch.randn(2, 2, 2, generator=rng, dtype=torch.float64)
    return model, inputs, 0.5 * torch.randn(2, 2, 1, generator=rng, dtype=torch.float64)


def probability_by_hand(graph, own, dense):
    """P(A) of one graph over all pairs of nodes: a product over blocks of sums over regimes of products over edges."""
    weights, table = own["weight_logits"].softmax(-1), graph.candidates
    blocks = {"rows": [[0], [1]], "all": [[0, 1]]}[graph.blocks]
    total = 1.0
    for block, nodes in enumerate(blocks):
        inside = 0.0
        for k in range(graph.num_regimes):
            product = weights[block, k]
            for i, j in itertools.product(nodes, range(2)):
                if graph.symmetric and i > j:
                    continue
                row, slot = (
                    (i, j)
                    if table is None
                    else divmod(int(table.positions(torch.tensor([j]), torch.tensor([i]))), graph.edge_shape[1])
                )
                theta = torch.sigmoid(own["edge_logits"][k, row, slot])
                if graph.fixed[row, slot]:
                    theta = graph.fixed_probs[row, slot]
                product = product * (theta if dense[i, j] > 0 else 1 - theta)
            inside = inside + product
        total = total * inside
    return total


def everything_of(graph):
    everything = oracles.all_graphs(ALL)
    return everything[(everything == everything.mT).flatten(1).all(1)] if graph.symmetric else everything


def in_slots(graph, dense):
    table = graph.candidates
    return dense if table is None else dense[:, table.row_node[:, None], table.sources]


def expected_of(model, inputs, targets):
    graph, everything = model.graph, everything_of(model.graph)

    def expected(parameters):
        own = {name.removeprefix("graph."): v for name, v in parameters.items() if name.startswith("graph.")}
        probs = torch.stack([probability_by_hand(graph, own, one) for one in everything])
        weights = {"hop_weights": parameters["predictor.hop_weights"]}
        samples = functional_call(model.predictor, weights, (inputs, everything[None]))
        return oracles.expected_loss("energy", model.loss.scope, probs, samples, targets)

    return expected


def thresholds(graph):
    """What the uniforms are compared with, (threshold, row, slot + 1): the last column chooses the regimes."""
    rows, columns = graph.uniforms_shape
    found = torch.zeros(graph.num_regimes, rows, columns, dtype=torch.float64)
    found[:, :, :-1] = graph.upper_triangle(graph.regime_probs.detach())
    bounds = graph.regime_weights.detach().cumsum(-1)[:, :-1]  # (block, regime - 1)
    found[:-1, graph.first_row, -1] = bounds.mT
    return found


CASES = {
    "rows": ({"free": CROSSED}, {}, {}),
    "rows, both edges of one": ({"free": ROW}, {}, {}),
    "rows, joint": ({"free": CROSSED}, {"scope": "joint"}, {}),
    "rows, global credit": ({"free": CROSSED}, {}, {"credit": "global"}),
    "rows, leave one out": ({"free": ROW}, {"baseline": "leave_one_out"}, {}),
    "all": ({"free": CROSSED, "blocks": "all"}, {}, {}),
    "all, joint": ({"free": CROSSED, "blocks": "all"}, {"scope": "joint"}, {}),
    "all, leave one out": ({"free": CROSSED, "blocks": "all"}, {"baseline": "leave_one_out", "scope": "joint"}, {}),
    "three regimes": ({"free": ROW, "num_regimes": 3}, {}, {}),
    "an edge held at .3": ({"free": CROSSED, "blocks": "all", "held": 0.3}, {"scope": "joint"}, {}),
    "table, rows": ({"free": CROSSED, "table": True}, {}, {}),
    "table, all": ({"free": CROSSED, "table": True, "blocks": "all"}, {"scope": "joint"}, {}),
    "symmetric": ({"free": ROW, "symmetric": True, "blocks": "all"}, {}, {}),
}


@pytest.mark.parametrize("shared", [False, True], ids=["graphs of each pair", "shared graphs"])
@pytest.mark.parametrize("case", CASES)
def test_the_gradient_is_exact(case, shared):
    made, loss, choices = CASES[case]
    loss = EnergyScore(**{"baseline": "none"} | loss)
    model, inputs, targets = toy(mixture(**made), loss, loss.min_graphs, **choices)
    graph = model.graph
    local = graph.blocks == "rows" and loss.scope == "node" and "credit" not in choices
    assert isinstance(model.estimator.credit, ReceptiveFieldCredit if local else GlobalCredit)
    exact = exact_gradient(model, expected_of(model, inputs, targets))
    sets, probs = sets_of(*cells_of(thresholds(graph)), loss.min_graphs)
    if shared:
        found = mean_gradient(model, inputs, targets, sets[:, None], probs)
    else:  # the loss of a pair depends on its own graphs alone
        parts = [mean_gradient(model, inputs[b : b + 1], targets[b : b + 1], sets[:, None], probs) for b in range(2)]
        found = {name: (parts[0][name] + parts[1][name]) / 2 for name in exact}
    for name, value in exact.items():
        assert float(value.abs().max()) > 1e-4, "the check would be empty"
        assert float((found[name] - value).abs().max()) < TOLERANCE, name


def test_two_pairs_of_one_batch_with_graphs_of_their_own():
    """A draw for each pair is the mean of what each pair does alone."""
    model, inputs, targets = toy(mixture(CROSSED), EnergyScore(baseline="none"), 2)
    rng = torch.Generator().manual_seed(0)
    uniforms = torch.rand(5, 2, 2, *model.graph.uniforms_shape, generator=rng, dtype=torch.float64)
    weights = torch.full((5,), 0.2, dtype=torch.float64)
    both = mean_gradient(model, inputs, targets, uniforms, weights)
    alone = [
        mean_gradient(model, inputs[b : b + 1], targets[b : b + 1], uniforms[:, b : b + 1], weights) for b in range(2)
    ]
    for name, value in both.items():
        assert torch.allclose(value, (alone[0][name] + alone[1][name]) / 2, atol=1e-12), name


@pytest.mark.parametrize("case", [c for c in CASES if "leave" not in c and "credit" not in c])
def test_probabilities_add_up_and_have_their_marginals(case):
    graph = mixture(**CASES[case][0])
    own, everything = {name: value.detach() for name, value in graph.named_parameters()}, everything_of(graph)
    probs = graph.log_prob(in_slots(graph, everything)[None])[0].exp().detach()
    by_hand = torch.stack([probability_by_hand(graph, own, one) for one in everything])
    assert torch.allclose(probs, by_hand, atol=1e-12)
    assert float(probs.sum()) == pytest.approx(1, abs=1e-12)
    marginal = torch.einsum("g,gij->ij", probs, in_slots(graph, everything))
    assert torch.allclose(graph.edge_probs.detach(), marginal, atol=1e-12)
    cells, lengths = cells_of(thresholds(graph))
    drawn = graph.sample_from(cells[:, None])[:, 0]
    made = torch.stack([lengths[(drawn == one).flatten(1).all(1)].sum() for one in in_slots(graph, everything)])
    assert torch.allclose(made, by_hand, atol=1e-12), "graphs are drawn as often as their probability says"


def test_edges_of_a_block_come_together():
    graph = mixture(ROW)
    with torch.no_grad():
        graph.edge_logits.copy_(torch.tensor([30.0, -30.0]).view(2, 1, 1).expand(2, 2, 2))
    drawn = graph.sample(2000, generator=torch.Generator().manual_seed(0))[0]
    assert torch.equal(drawn[:, 0, 0], drawn[:, 0, 1])
    assert float(drawn[:, 0, 0].mean()) == pytest.approx(float(graph.regime_weights[0, 0].detach()), abs=0.06)


@pytest.mark.parametrize("loss", [EnergyScore(), EnergyScore(scope="joint"), EnergyScore(baseline="none")], ids=repr)
@pytest.mark.parametrize("blocks", ["rows", "all"])
def test_one_regime_is_the_constant_graph(blocks, loss):
    """The same uniforms make the same graphs, probabilities and gradients; the weight of the only regime is 1."""
    rng = torch.Generator().manual_seed(0)
    coins = BernoulliGraph(0.2 + 0.6 * torch.rand(2, 2, generator=rng, dtype=torch.float64), ~CROSSED & ~ROW)
    graph = MixtureGraph(coins, 1, blocks)
    uniforms = torch.rand(50, 2, 4, 2, 3, generator=rng, dtype=torch.float64)
    graphs = graph.sample_from(uniforms[0])
    assert torch.equal(graphs, coins.sample_from(uniforms[0, ..., :2]))
    assert torch.allclose(graph.log_prob(graphs), coins.log_prob(graphs), atol=TOLERANCE)
    assert torch.allclose(graph.edge_probs, coins.edge_probs, atol=TOLERANCE)
    weights = torch.full((50,), 0.02, dtype=torch.float64)
    gradients = []
    for one, some in ((graph, uniforms), (coins, uniforms[..., :2])):
        credit = "auto" if blocks == "rows" else "global"
        model, inputs, targets = toy(one, loss, 4, credit=credit)
        gradients.append(mean_gradient(model, inputs, targets, some, weights))
    mixed, plain = gradients
    assert plain["graph.edge_logits"].abs().max() > 1e-3, "the check would be empty"
    assert torch.allclose(mixed["graph.edge_logits"][0], plain["graph.edge_logits"], atol=TOLERANCE)
    assert torch.allclose(mixed["predictor.hop_weights"], plain["predictor.hop_weights"], atol=TOLERANCE)
    assert not mixed["graph.weight_logits"].any()


def test_regimes_in_the_order_of_their_weights():
    graph = mixture(CROSSED, 3)
    before = {name: value.detach().clone() for name, value in graph.named_parameters()}
    everything = oracles.all_graphs(ALL)[None]
    logs = graph.log_prob(everything).detach()
    graph.load_state_dict(graph.ordered(), strict=False)
    weights = graph.regime_weights.detach()
    assert (weights.diff(dim=-1) <= 0).all()
    assert torch.allclose(graph.log_prob(everything), logs, atol=1e-12)
    assert not torch.equal(graph.weight_logits, before["weight_logits"]), "the check would be empty"


def test_what_was_stored_makes_the_same_graph():
    graph = mixture(CROSSED, 3, "all")
    start = BernoulliGraph(torch.full((2, 2), 0.5, dtype=torch.float64), graph.fixed)
    again = MixtureGraph.from_dict(start, graph.to_dict())
    again.load_state_dict(graph.state_dict())
    everything = oracles.all_graphs(CROSSED)[None]
    assert torch.equal(again.log_prob(everything), graph.log_prob(everything))


def test_replicas_start_apart_and_fixed_edges_stay():
    graph = mixture(CROSSED)
    first, second = (graph.initial_parameters(torch.Generator().manual_seed(seed)) for seed in (0, 1))
    free = ~graph.fixed
    assert (first["edge_logits"] != second["edge_logits"])[:, free].all()
    assert torch.equal(first["edge_logits"][:, graph.fixed], graph.edge_logits.detach()[:, graph.fixed])
    assert not first["weight_logits"].any()
    alone = MixtureGraph(BernoulliGraph(torch.full((2, 2), 0.3)), 1)
    assert torch.equal(alone.initial_parameters(torch.Generator().manual_seed(0))["edge_logits"], alone.edge_logits)


@pytest.mark.usefixtures("unchecked")
def test_refusals(refused):
    coins = BernoulliGraph(torch.full((2, 2), 0.5))
    refused(MixtureGraph, coins, 0)
    refused(MixtureGraph, coins, 2, "columns")
    refused(MixtureGraph, BernoulliGraph(torch.full((2, 2), 0.5), link=SineSquared()))
    refused(MixtureGraph, BernoulliGraph(torch.full((2, 2), 0.5), symmetric=True))
    predictor, whole = HopPredictor(torch.ones(1, 1, 1)), MixtureGraph(coins, 2, "all")
    refused(LatentGraphModel, whole, predictor, EnergyScore(), credit="receptive_field")
    for choices in ({"estimator": DisARM()}, {"prior": EdgePrior(0.5)}):
        refused(LatentGraphModel, MixtureGraph(coins), predictor, EnergyScore(), **choices)
