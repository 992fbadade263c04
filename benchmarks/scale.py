r"""Many nodes: training over a table of candidates, from 1,000 nodes up.

A chain of the paper's communities (``benchmarks.large_system``): every node has two to five true neighbours at
$\theta^* = 0.75$ among 50 candidates, and the output reads two hops. psi is known, energy score at node scope, graphs
shared by the batch. For each size: AUROC and error of theta over the candidates, seconds an epoch (compilation aside),
and the most memory the process held. Every size runs in a process of its own, so that its memory is its own.

Targets: on two cores 10,000 nodes and 500,000 candidates within 8 GB, AUROC at least 0.99, and time per epoch at most
linear in the edges from 1,000 nodes on; on a GPU 100,000 nodes and 5,000,000 candidates train at all.

Run ``python -m benchmarks.scale [--nodes 1000 10000] [--device cpu] [--json FILE]``.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

import torch
from benchmarks.large_system import LargeSystem
from scipy.stats import rankdata
from torch import Tensor

from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.randomness import generator_for
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, fit

PAIRS, VALIDATION, BATCH, GRAPHS, EPOCHS, RATE = 1600, 64, 16, 16, 8, 0.1
MOST_GIGABYTES, LEAST_AUROC = 8.0, 0.99


def auroc(scores: Tensor, truth: Tensor) -> float:
    """Return the chance that a true edge has the higher score of the two, ties counting half."""
    ranks, true = torch.from_numpy(rankdata(scores.numpy())), int(truth.sum())
    return float((ranks[truth].sum() - true * (true + 1) / 2) / (true * (len(truth) - true)))


def train(nodes: int, device: str, epochs: int) -> dict[str, float]:
    """Train one size and return what was seen."""
    system = LargeSystem(round(nodes / 6))
    pairs = system.generate(PAIRS + VALIDATION, device=device)
    graph = BernoulliGraph.uniform(system.num_nodes, generator=generator_for(0, "graph"), candidates=system.candidates)
    predictor = system.true_predictor()
    model = LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=GRAPHS, share_graphs=True)
    settings = FitSettings(epochs=epochs, batch_size=BATCH, schedule=CosineDecay(RATE))
    result = fit(model, pairs[:PAIRS], pairs[PAIRS:], settings)
    used = system.candidates.used
    found, truth = model.graph.edge_probs.detach().cpu()[used], system.true_edge_probs[used]
    seconds = sorted(epoch.seconds for epoch in result.history[1:] or result.history)
    on_gpu = torch.device(device).type == "cuda"
    most = torch.cuda.max_memory_allocated() if on_gpu else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "nodes": system.num_nodes,
        "candidates": system.candidates.num_edges,
        "true_edges": int((truth > 0).sum()),
        "pairs": PAIRS,
        "epochs": epochs,
        "steps": result.steps,
        "auroc": auroc(found.double(), truth > 0),
        "edge_prob_mae": (found - truth).abs().mean().item(),
        "edge_prob_mae_true_edges": (found - truth).abs()[truth > 0].mean().item(),
        "epoch_seconds": seconds[len(seconds) // 2],
        "train_seconds": result.train_seconds,
        "compile_seconds": result.compile_seconds,
        "gigabytes": most / 1e9,
        "compiled": not result.warnings,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Training over candidates, from 1,000 nodes up.")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 3_000, 10_000])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(train(args.nodes[0], args.device, args.epochs)))
        return
    name = torch.cuda.get_device_name() if args.device != "cpu" else f"cpu, {torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}  {name}")
    heads = ("nodes", "candidates", "AUROC", "MAE", "s / epoch", "of linear", "training, s", "GB")
    print("".join(f"{head:>12}" for head in heads))
    rows: list[dict[str, float]] = []
    for nodes in args.nodes:
        call = [sys.executable, "-m", "benchmarks.scale", "--one", "--nodes", str(nodes), "--device", args.device]
        done = subprocess.run([*call, "--epochs", str(args.epochs)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{nodes} nodes failed:\n{done.stderr[-2000:]}")
        row = json.loads(done.stdout.splitlines()[-1])
        first = rows[0] if rows else row
        per_edge = row["epoch_seconds"] / row["candidates"]
        row["of_linear"] = per_edge / (first["epoch_seconds"] / first["candidates"])
        rows.append(row)
        cells = (
            f"{row['nodes']:,}",
            f"{row['candidates']:,}",
            f"{row['auroc']:.4f}",
            f"{row['edge_prob_mae']:.4f}",
            f"{row['epoch_seconds']:.2f}",
            f"{row['of_linear']:.2f}",
            f"{row['train_seconds']:.0f}",
            f"{row['gigabytes']:.2f}",
        )
        print("".join(f"{cell:>12}" for cell in cells), flush=True)
        if args.json:
            args.json.write_text(json.dumps({"device": name, "results": rows}, indent=2) + "\n")
    last = rows[-1]
    print(f"AUROC >= {LEAST_AUROC}: {'met' if last['auroc'] >= LEAST_AUROC else 'NOT met'}")
    if args.device == "cpu":
        print(f"memory <= {MOST_GIGABYTES:g} GB: {'met' if last['gigabytes'] <= MOST_GIGABYTES else 'NOT met'}")
        print(f"time at most linear in the edges: {'met' if last['of_linear'] <= 1 else 'NOT met'}")


if __name__ == "__main__":
    main()
