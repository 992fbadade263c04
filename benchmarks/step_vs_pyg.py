r"""One training step: tacit against the same step written with PyTorch Geometric's message passing.

The paper's 12-node system, batch 128, 32 graphs: draw graphs, predict, loss, gradients, Adam; with $\psi$ known (a
gradient for $\theta$ alone) and with $\psi$ trained.

$$y_s = \tanh\Big(\sum_{l=1}^{2} 1[A_s^l \neq 0]\, x\, \psi_l\Big), \qquad
\nabla = \tfrac1S \sum_s (w_s - b_s)\, \nabla \log P_\theta(A_s)$$

$w_s$ is the cost of graph $s$ under joint-scope MMD, $b_s$ its leave-one-out baseline (``tacit.losses.distribution``).

``tacit``           what ``tacit.training.fit`` does in a step: all graphs dense, the gradient compiled
``PyG, usual``      a ``Data`` object per pair and graph, edges found graph by graph, ``Batch.from_data_list``
``PyG, careful``    the same disjoint batch built by tensor arithmetic, without objects
``PyG, tuned``      careful, and messages made once per pair and passed as plain numbers: what profiling suggests next
``PyG, channels``   where the batch shares its graphs: 32 disjoint graphs, the 128 pairs as channels

The PyG steps differ in the forward pass only. All must give tacit's gradient from the same uniforms before anything
is timed. Message passing pays per edge and tacit does not, so both ends of a training are measured: the true
probabilities, near which a training takes all but its first steps and for which the targets hold, and the paper's
sparse start. Leave the machine alone meanwhile: with more threads than free cores every parallel region waits for the
scheduler, and all steps take 100 ms and more.

Needs ``pip install tacit[bench]``. Run ``python benchmarks/step_vs_pyg.py [--rounds 7] [--threads 2] [--json FILE]``.
"""

import argparse
import json
import time
from collections.abc import Callable
from itertools import cycle, product
from pathlib import Path
from statistics import median

import torch
import torch_geometric
from torch import Generator, Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import dense_to_sparse

from tacit.data import Pairs
from tacit.data.pairs import epoch_batches
from tacit.graph import BernoulliGraph
from tacit.losses import MMD
from tacit.randomness import UniformStream, generator_for, uniforms_from
from tacit.shapes import EdgeProbs, Graphs, Inputs, Samples, Targets
from tacit.systems import CommunitySystem
from tacit.training import FitSettings, LatentGraphModel
from tacit.training.gradient import LiftedGradient
from tacit.training.settings import StepNumbers, StepPlan
from tacit.training.state import TrainingState, initial_stacks
from tacit.training.step import Update

BATCH_SIZE, NUM_GRAPHS, NUM_PAIRS = 128, 32, 28_000
KERNEL_SCALE = 0.04  # of the rational quadratic with alpha = 1/2: the paper's, and the default of MMD
SETTINGS = FitSettings(batch_size=BATCH_SIZE)
RATE = 1e-5  # so small that theta stays where it is measured
NUMBERS = StepNumbers(RATE, 0.01, 0.9, 0.0, 0.9, 0.9)  # as in the last quarter of a training
TOLERANCE = 1e-4  # largest difference of two gradients, relative to the largest entry
TARGETS = {"PyG, usual": 100, "PyG, careful": 10}
STEPS_PER_TURN = {"tacit": 40, "PyG, usual": 1, "PyG, careful": 10, "PyG, tuned": 10, "PyG, channels": 10}


class TacitStep:
    """The step as ``fit`` takes it, with one replica; averaging is on, as in the last quarter of a fit."""

    def __init__(self, system: CommunitySystem, edge_probs: EdgeProbs, *, share: bool, train_psi: bool) -> None:
        graph, loss = BernoulliGraph(edge_probs), MMD(scope="joint", baseline="leave_one_out")
        predictor = system.true_predictor().requires_grad_(train_psi)
        model = LatentGraphModel(graph, predictor, loss, num_graphs=NUM_GRAPHS, share_graphs=share)
        self.lifted = LiftedGradient(model)
        plan = StepPlan.of(SETTINGS, model, BATCH_SIZE)
        self.state = TrainingState.create(model, (0,), plan, initial_stacks(model, (0,), fresh=False))
        self.update = Update(self.state, SETTINGS)
        self.stream: UniformStream | None = None

    def gradient(self, pairs: Pairs, rows: Tensor, *bits: Tensor) -> Tensor:
        """Return the gradients for the edge logits and, if trained, psi, in one row."""
        batch = pairs.inputs[rows], pairs.targets[rows], *bits
        self.grads = self.lifted(self.state.parameters, self.state.constants, [batch], [0]).gradients
        return torch.cat([value[0].flatten() for value in self.grads.values()])

    def __call__(self, pairs: Pairs, rows: Tensor, shape: tuple[int, ...], generator: Generator) -> None:
        """Draw, gather, differentiate, update."""
        if self.stream is None:
            self.stream = UniformStream(shape, generator)
        batch = pairs.inputs[rows], pairs.targets[rows], *self.stream.bits()
        result = self.lifted(self.state.parameters, self.state.constants, [batch], [0])
        self.grads = result.gradients
        self.update(result, NUMBERS)


class HopLayer(MessagePassing):
    r"""$\tanh(\sum_l \sum_{j \to i} m^l_j)$: messages $m^l = x \psi_l$ (hop, node, ...), an ``edge_index`` per hop."""

    def __init__(self) -> None:
        super().__init__(aggr="add", node_dim=0)

    def forward(self, messages: Tensor, edge_index: Tensor, two_hop_index: Tensor) -> Tensor:
        """Return the output of every node."""
        first, second = messages
        return torch.tanh(self.propagate(edge_index, x=first) + self.propagate(two_hop_index, x=second))


class PygStep:
    """Loss, gradient and update in plain PyTorch around a forward pass ``predict`` by message passing."""

    def __init__(
        self, predict: Callable[..., Samples], system: CommunitySystem, edge_probs: EdgeProbs, *, train_psi: bool
    ) -> None:
        self.predict, self.layer = predict, HopLayer()
        self.hop_weights = nn.Parameter(system.hop_weights.clone(), requires_grad=train_psi)
        self.edge_logits = nn.Parameter(torch.logit(edge_probs))
        self.parameters = [self.edge_logits] + [self.hop_weights] * train_psi
        self.optimizer = torch.optim.Adam(self.parameters, RATE, SETTINGS.adam_betas, fused=True)

    def gradient(self, pairs: Pairs, rows: Tensor, *bits: Tensor) -> Tensor:
        r"""Return the gradients, logits $l$ first; $\log P(A) = \sum_{ij} A_{ij} l_{ij} - \log(1 + e^{l_{ij}})$."""
        uniforms = uniforms_from(*bits) if len(bits) == 2 else bits[0]
        graphs = (uniforms < torch.sigmoid(self.edge_logits.detach())).float()
        samples = self.predict(self.layer, self.hop_weights, pairs.inputs[rows], graphs)
        value, advantage = mmd_value_and_advantage(samples, pairs.targets[rows])
        advantage = advantage.detach()
        if len(graphs) == 1:
            advantage = advantage.mean(0, keepdim=True)
        logits = self.edge_logits.flatten()
        log_prob = graphs.flatten(2) @ logits - nn.functional.softplus(logits).sum()  # (draw, graph)
        self.optimizer.zero_grad()
        (value + (advantage * log_prob).mean()).backward()
        return torch.cat([parameter.grad.flatten() for parameter in self.parameters])

    def __call__(self, pairs: Pairs, rows: Tensor, shape: tuple[int, ...], generator: Generator) -> None:
        """Draw, gather, differentiate, update."""
        self.gradient(pairs, rows, torch.rand(shape, generator=generator))
        self.optimizer.step()


def predict_usual(layer: HopLayer, hop_weights: Tensor, inputs: Inputs, graphs: Graphs) -> Samples:
    """Make a ``Data`` object per pair and graph and collate them; edges of shared graphs are found once."""
    # A[i, j] = 1 says that i reads j; an edge_index names the source first, hence the transpose.
    edges = [[(dense_to_sparse(a.t())[0], dense_to_sparse((a @ a > 0).float().t())[0]) for a in own] for own in graphs]
    data = [
        Data(x=x, edge_index=edge_index, two_hop_index=two_hop_index)
        for pair, x in enumerate(inputs)
        for edge_index, two_hop_index in edges[pair % len(edges)]
    ]
    batch = Batch.from_data_list(data)
    output = layer(batch.x @ hop_weights, batch.edge_index, batch.two_hop_index)
    return output.view(len(inputs), NUM_GRAPHS, inputs.shape[1], 1)


def predict_careful(layer: HopLayer, hop_weights: Tensor, inputs: Inputs, graphs: Graphs) -> Samples:
    """Build the batch that PyG would collate by tensor arithmetic: a (node, channel) matrix, ``edge_index`` per hop."""
    x = inputs[:, None].expand(-1, NUM_GRAPHS, -1, -1).reshape(-1, inputs.shape[2])
    output = layer(x @ hop_weights, *batch_edges(inputs, graphs))
    return output.view(len(inputs), NUM_GRAPHS, inputs.shape[1], 1)


def predict_tuned(layer: HopLayer, hop_weights: Tensor, inputs: Inputs, graphs: Graphs) -> Samples:
    """The same edges, but messages are made once per pair, and are numbers instead of vectors of length one."""
    messages = (inputs @ hop_weights[:, None])[..., 0]  # (hop, batch, node)
    messages = messages[:, :, None].expand(-1, -1, NUM_GRAPHS, -1).reshape(2, -1)
    return layer(messages, *batch_edges(inputs, graphs)).view(len(inputs), NUM_GRAPHS, inputs.shape[1], 1)


def batch_edges(inputs: Inputs, graphs: Graphs) -> tuple[Tensor, Tensor]:
    """Return the edges of all pairs and graphs for one and for two hops; those of shared graphs are found once."""
    edges = disjoint_edges(graphs), disjoint_edges(graphs @ graphs)
    if len(graphs) > 1:
        return edges
    offsets = NUM_GRAPHS * inputs.shape[1] * torch.arange(len(inputs))[:, None]
    return tuple((index[:, None] + offsets).flatten(1) for index in edges)


def predict_channels(layer: HopLayer, hop_weights: Tensor, inputs: Inputs, graphs: Graphs) -> Samples:
    """Shared graphs only: the batch is disjoint over graphs, and the pairs are channels."""
    num_pairs, num_nodes = inputs.shape[:2]
    messages = (inputs @ hop_weights[:, None])[..., 0].mT.repeat(1, NUM_GRAPHS, 1)  # (hop, graph * node, batch)
    output = layer(messages, disjoint_edges(graphs), disjoint_edges(graphs @ graphs))
    return output.view(NUM_GRAPHS, num_nodes, num_pairs, 1).permute(2, 0, 1, 3)


def disjoint_edges(graphs: Graphs) -> Tensor:
    """Return (source, target) of all edges, node i of graph s being number s * num_nodes + i."""
    num_nodes = graphs.shape[-1]
    target, sender = (graphs > 0).view(-1, num_nodes).nonzero().unbind(1)
    return torch.stack([target - target % num_nodes + sender, target])


def mmd_value_and_advantage(samples: Samples, targets: Targets) -> tuple[Tensor, Tensor]:
    """Return the loss, and cost minus leave-one-out baseline (batch, graph); ``cdist`` is quickest in eager mode."""
    flat, num_graphs = samples.flatten(2), samples.shape[1]

    def similarity(other: Tensor) -> Tensor:
        distance = torch.cdist(flat, other, compute_mode="donot_use_mm_for_euclid_dist")
        return (1 + distance.square() / (flat.shape[-1] * KERNEL_SCALE**2)).rsqrt()

    row = (similarity(flat).sum(2) - 1) / (num_graphs - 1)
    data = similarity(targets.flatten(1)[:, None])[..., 0]
    row_rest = (row.sum(1, keepdim=True) - 2 * row) / (num_graphs - 2)
    data_rest = (data.sum(1, keepdim=True) - data) / (num_graphs - 1)
    return row.mean() - 2 * data.mean(), 2 * ((row - data) - (row_rest - data_rest))


def check_gradients(steps: dict[str, TacitStep | PygStep], *batch: Pairs | Tensor) -> None:
    """Exit with an error unless tacit compiles (here, at its first call) and all gradients are the same."""
    wanted = steps["tacit"].gradient(*batch)
    if steps["tacit"].lifted.fallback:
        raise SystemExit(f"tacit needs its compiler for this comparison: {steps['tacit'].lifted.fallback}")
    for name, step in steps.items():
        error = float((step.gradient(*batch) - wanted).abs().max() / wanted.abs().max())
        if not error <= TOLERANCE:
            raise SystemExit(f"{name}: gradient differs from tacit's by {error:.1e} of its largest entry")


def measure(
    system: CommunitySystem, pairs: Pairs, edge_probs: EdgeProbs, *, share: bool, train_psi: bool, rounds: int
) -> dict[str, list[float]]:
    """Return ms per step, the median of each turn; turns alternate so that noise meets all alike."""
    predictors = {"PyG, usual": predict_usual, "PyG, careful": predict_careful, "PyG, tuned": predict_tuned}
    if share:
        predictors["PyG, channels"] = predict_channels
    steps = {"tacit": TacitStep(system, edge_probs, share=share, train_psi=train_psi)}
    steps |= {name: PygStep(predict, system, edge_probs, train_psi=train_psi) for name, predict in predictors.items()}
    shape = (1 if share else BATCH_SIZE, NUM_GRAPHS, system.num_nodes, system.num_nodes)
    generator = generator_for(0, "graphs")
    batches = epoch_batches(len(pairs), BATCH_SIZE, generator_for(0, "batches"))
    check_gradients(steps, pairs, batches[0], *UniformStream(shape, generator).bits())
    rows, turns = cycle(batches), {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            step(pairs, next(rows), shape, generator)  # untimed: the caches are the predecessor's
            times = []
            for _ in range(STEPS_PER_TURN[name]):
                start = time.perf_counter()
                step(pairs, next(rows), shape, generator)
                times.append(1e3 * (time.perf_counter() - start))
            turns[name].append(median(times))
    return turns


def main() -> None:
    parser = argparse.ArgumentParser(description="One training step: tacit against PyTorch Geometric.")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each implementation (default 7)")
    parser.add_argument("--threads", type=int, default=2, help="threads for all of them (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    args = parser.parse_args()
    for name in ("rounds", "threads"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(args, name)}")
    torch.set_num_threads(args.threads)
    system = CommunitySystem()
    pairs = system.generate(NUM_PAIRS)
    start = BernoulliGraph.uniform(system.num_nodes, generator=generator_for(0, "initial"))
    thetas = {"true": system.true_edge_probs.clamp(0.01, 0.99), "start": start.edge_probs.detach()}
    setting = {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__}
    setting |= {"threads": args.threads, "rounds": args.rounds}
    print("  ".join(f"{key} {value}" for key, value in setting.items()))
    print("Targets: tacit at least 100 times as fast as PyG, usual, and 10 times as PyG, careful.")
    print(
        f"{'graphs':<8}{'theta':<7}{'psi':<9}{'implementation':<15}{'ms/step (this machine)':>23}{'ratio':>9}  target"
    )
    results = []
    for mode, theta, psi in product(("shared", "own"), thetas, ("known", "trained")):
        choices = {"share": mode == "shared", "train_psi": psi == "trained", "rounds": args.rounds}
        turns = measure(system, pairs, thetas[theta], **choices)
        for name, times in turns.items():
            ratio = median(t / base for t, base in zip(times, turns["tacit"], strict=True))
            target = TARGETS.get(name) if theta == "true" else None
            verdict = f">= {target} {'met' if ratio >= target else 'NOT met'}" if target else ""
            print(f"{mode:<8}{theta:<7}{psi:<9}{name:<15}{median(times):>23.2f}{ratio:>9.1f}  {verdict}", flush=True)
            figures = {"ms_per_step": median(times), "ratio": ratio, "target": target}
            results.append({"graphs": mode, "theta": theta, "psi": psi, "implementation": name, **figures})
    if args.json:
        args.json.write_text(json.dumps({**setting, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
