r"""How many pairs does a small error on theta take, and how far is that from what anyone could reach?

The floor is the expected error of an oracle who sees the hidden graph of every training pair and counts each edge,
$\frac{1}{N^2} \sum_{ij} E\,|B_{ij} / n - \theta_{ij}|$ with $B_{ij} \sim \mathrm{Binomial}(n, \theta_{ij})$; it falls
as $n^{-1/2}$. Every run has pairs of its own, and all sizes train for about the same number of steps.
"""

import math

import torch
from matplotlib.figure import Figure

from tacit.assessment.evaluation import edge_prob_errors, oracle_edge_prob_mae
from tacit.data import Pairs
from tacit.experiments.replication import OUR_MODEL, column, mean_and_deviation, predictor_for, quick_note
from tacit.experiments.study import Listener, Options, Records, Study, Table, Tasks, Values, Work
from tacit.graph import BernoulliGraph
from tacit.randomness import generator_for
from tacit.systems import CommunitySystem
from tacit.training import CosineDecay, FitResult, FitSettings, fit

SIZES = (500, 1_000, 2_000, 5_000, 10_000, 28_000, 50_000, 100_000)
PSI = ("known", "learned")
BATCH = 128
# At 28,000 pairs 2,200 steps leave an error of .004, 11,000 steps .0019 and 44,000 steps .0014: what is left after few
# steps is the noise of the gradient, and would hide what more pairs give.
STEPS, QUICK_STEPS = 20_000, 10
QUICK_PART, QUICK_RUNS = 50, 2  # a fiftieth of the pairs
VALIDATION = 0.1  # as many pairs more, for the validation loss that tells a bad basin
FIRST_DATA_SEED = 5_000  # other pairs than those of the other studies
COLOURS = {"known": "#0072b2", "learned": "#d55e00"}
ENTRIES = {"edge_prob_mae": "all entries", "true_edge_mae": "the true edges"}


class SampleSize(Study):
    """Error on theta against the number of training pairs."""

    name = "sample-size"
    title = "The paper's 12 nodes, 500 to 100,000 training pairs, energy score at node scope, and an oracle's error."

    def tasks(self) -> Tasks:
        """One per size, with psi known and learned."""
        return {_name(psi, size): _work(psi, size) for psi in PSI for size in SIZES}

    def tables(self, records: Records) -> list[Table]:
        """Errors over all entries; the figure has those over the true edges too."""
        metric = "edge_prob_mae"
        rows = [_row(metric, known, learned) for known, learned in _by_size(records)]
        columns = ["pairs", "floor", "psi known", "/ floor", "psi learned", "/ floor", "runs known, learned", "steps"]
        notes = [
            *(f"psi {psi}: {_slope_in_words(metric, psi, records)}" for psi in PSI),
            "floor: an oracle that observes the hidden graph of every training pair and counts edges",
            "psi learned: the runs whose validation loss is close to the best one's, of all runs",
            "the figure also has the error over the true edges, which is about twice as large",
            *quick_note(list(records.values())),
        ]
        return [Table(f"MAE on theta over {ENTRIES[metric]}", columns, rows, notes)] if rows else []

    def figures(self, records: Records) -> dict[str, Figure]:
        """Error and floor against the number of pairs, both axes logarithmic."""
        figure = Figure(figsize=(7.4, 3.0), layout="constrained")
        for axis, (metric, entries) in zip(figure.subplots(1, 2), ENTRIES.items(), strict=True):
            for psi in PSI:
                values = [records[_name(psi, size)] for size in SIZES if _name(psi, size) in records]
                if not values:
                    continue
                pairs = [one["pairs"] for one in values]
                errors = [torch.tensor(column(one, metric, good=psi == "learned")) for one in values]
                means = [float(error.mean()) for error in errors]
                spread = [float(error.std()) if len(error) > 1 else 0.0 for error in errors]
                axis.errorbar(pairs, means, spread, color=COLOURS[psi], marker="o", markersize=3, label=f"psi {psi}")
                axis.plot(pairs, [one["floor"][metric] for one in values], color="black", linewidth=0.8)
                guide = [means[0] * math.sqrt(pairs[0] / one) for one in pairs]
                axis.plot(pairs, guide, color=COLOURS[psi], linestyle=":", linewidth=0.8)
            axis.set(
                xscale="log", yscale="log", xlabel="training pairs", ylabel="MAE on theta", title=f"over {entries}"
            )
            axis.plot([], [], color="black", linewidth=0.8, label="floor")
            axis.plot([], [], color="grey", linestyle=":", linewidth=0.8, label="as the root of the pairs")
            axis.legend(fontsize=7)
        return {"errors": figure}


def _name(psi: str, size: int) -> str:
    return f"{psi}-{size:06}"


def _by_size(records: Records) -> list[tuple[Values | None, Values | None]]:
    both = [(records.get(_name("known", size)), records.get(_name("learned", size))) for size in SIZES]
    return [(known, learned) for known, learned in both if known or learned]


def _row(metric: str, known: Values | None, learned: Values | None) -> list[str]:
    one = known or learned or {}
    least = one["floor"][metric]
    cells = [f"{one['pairs']:,}", f"{least:.5f}"]
    for values, good in ((known, False), (learned, True)):
        errors = column(values, metric, good=good) if values else []
        cells += [mean_and_deviation(errors, 5), f"{sum(errors) / len(errors) / least:.1f}" if errors else "–"]
    count = f"{len(column(learned, metric))} of {len(learned['runs'])}" if learned else "–"
    return [*cells, f"{len(known['runs']) if known else '–'}, {count}", f"{one['steps']:,}"]


def _slope_in_words(metric: str, psi: str, records: Records) -> str:
    """Return the exponent of a least-squares line through the logarithms."""
    points = [
        (math.log(values["pairs"]), math.log(sum(errors) / len(errors)))
        for values in (records.get(_name(psi, size)) for size in SIZES)
        if values and (errors := column(values, metric, good=psi == "learned"))
    ]
    if len(points) < 2:
        return "too few sizes for a slope"
    x, y = torch.tensor(points, dtype=torch.float64).T
    slope = float(((x - x.mean()) * y).sum() / ((x - x.mean()) ** 2).sum())
    return f"the error goes as the number of pairs to the power {slope:.2f} (the floor: -0.50)"


def _work(psi: str, size: int) -> Work:
    def work(options: Options, listener: Listener) -> Values:
        system, num_pairs = CommunitySystem(), size // QUICK_PART if options.quick else size
        truth, seeds = system.true_edge_probs, range(min(options.seeds, QUICK_RUNS) if options.quick else options.seeds)
        listener.stage(f"sample-size, psi {psi}, {num_pairs} pairs: drawing pairs")
        result = _train(psi, num_pairs, seeds, system, options, listener)
        stack = result.model.graph.probs_from(result.parameters["graph.edge_logits"]).detach().cpu()
        runs = []
        for probs, replica in zip(stack, result.replicas, strict=True):
            errors = edge_prob_errors(probs, truth, truth > 0)
            errors["true_edge_mae"] = errors.pop("edge_prob_mae_identifiable")
            runs.append({"seed": replica.seed, "validation_loss": replica.validation_loss, **errors})
        return {
            "pairs": num_pairs,
            "floor": {
                "edge_prob_mae": oracle_edge_prob_mae(truth, num_pairs),
                "true_edge_mae": oracle_edge_prob_mae(truth[truth > 0], num_pairs),
            },
            "runs": runs,
            "warnings": result.warnings,
            "steps": result.steps,
            "train_seconds": result.train_seconds,
        }

    return work


def _train(
    psi: str, num_pairs: int, seeds: range, system: CommunitySystem, options: Options, listener: Listener
) -> FitResult:
    """Train all runs as one program: the pairs of all lie in a row, and each run takes its own, as often as there are
    runs, in an epoch."""
    device = options.torch_device
    sets = [system.generate(num_pairs, seed=FIRST_DATA_SEED + seed) for seed in seeds]
    train = Pairs(torch.cat([one.inputs for one in sets]), torch.cat([one.targets for one in sets])).to(device)
    validation = system.generate(max(1, round(VALIDATION * num_pairs)), seed=FIRST_DATA_SEED - 1).to(device)
    own = torch.arange(len(train)).view(len(seeds), num_pairs).repeat(1, len(seeds))  # (run, place in an epoch)
    batch = min(BATCH, num_pairs)
    epochs = max(1, round((QUICK_STEPS if options.quick else STEPS) / (len(train) // batch)))
    graph = BernoulliGraph.uniform(system.num_nodes, generator=generator_for(0, "graph"))
    result = fit(
        OUR_MODEL.build(graph, predictor_for(system, psi)),
        train,
        validation,
        FitSettings(epochs=epochs, batch_size=batch, schedule=CosineDecay(0.1)),
        seeds=seeds,
        compile=not options.quick,  # 20,000 steps pay for it, on a GPU too
        resamples=own,
        on_progress=listener.step,
    )
    if result.interrupted:  # half a training is no record: the next start does it again
        raise KeyboardInterrupt
    return result
