"""Two processes that train together give what one gives: parameters, losses, choices; what cannot be is refused."""

import functools
import multiprocessing
import os
import time
from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from made_once import made_once
from tacit.data import Pairs
from tacit.errors import InputError, ProcessesError
from tacit.estimators import Concrete, DisARM
from tacit.graph import BernoulliGraph, EdgePrior
from tacit.losses import EnergyScore, NodewiseExpectedError
from tacit.observation import GaussianNoise
from tacit.predictors import HopPredictor
from tacit.systems import CommunitySystem
from tacit.training import Checkpoints, CosineDecay, FitSettings, LatentGraphModel, Processes, fit
from tacit.training.gradient import StepResult
from tacit.training.processes import LOST

PROBS = torch.tensor([[0.7, 0.3, 0.0, 0.0], [0.0, 0.6, 0.4, 0.0], [0.0, 0.0, 0.5, 0.9], [0.8, 0.0, 0.0, 0.5]])
SYSTEM = CommunitySystem(PROBS)
SLOW = CosineDecay(0.02)  # at a rate of 0.1 a start that is off by 1e-15 can end 1e-3 apart: rounding would show
STEPS_100 = FitSettings(epochs=5, batch_size=16, average_fraction=0.3, schedule=SLOW)
STEPS_40 = replace(STEPS_100, epochs=2)
UNEVEN = FitSettings(epochs=1, batch_size=3, schedule=SLOW)  # 106 steps an epoch, shares of one and two pairs
HALVED = FitSettings(epochs=4, batch_size=17, halve_after=(2,), patience=3, schedule=SLOW)
CASES = {  # model, settings, seeds, the part of the pairs that has no targets, other arguments
    "graphs per pair": ({"known": True}, STEPS_100, (3,), 0, {}),
    "graphs shared, psi trained": ({"loss": EnergyScore(scope="joint"), "share_graphs": True}, STEPS_40, (3,), 0, {}),
    "missing targets": ({}, STEPS_40, (3,), 0.1, {}),
    "missing targets at joint scope": ({"loss": EnergyScore(scope="joint")}, STEPS_40, (3,), 0.1, {}),
    "a prior": ({"prior": EdgePrior(0.2, weight=0.1)}, STEPS_40, (3,), 0, {}),
    "shares and batches without any target": ({"prior": EdgePrior(0.2, weight=0.1)}, UNEVEN, (3,), 0.5, {}),
    "replicas in turn, halved": ({}, HALVED, (1, 2, 3), 0, {"lift": "loop"}),
    "replicas at once, halved": ({}, HALVED, (1, 2, 3), 0, {"lift": "vmap"}),
    "moving average": ({"loss": NodewiseExpectedError("mae")}, STEPS_40, (3,), 0, {}),
    "antithetic, with noise": ({"estimator": DisARM(), "noise": True}, STEPS_40, (3,), 0, {}),
    "temperature": ({"estimator": Concrete(1.0, 0.2)}, STEPS_40, (3,), 0, {}),
}
ON_GPU = ("graphs shared, psi trained", "missing targets", "replicas at once, halved", "temperature")
REFUSED = {
    "paper": "baseline 'paper' mixes the pairs of a batch, and these are split between 2 processes; use",
    "moving average": "baseline 'moving_average' weights pairs by their missing targets, and these are split",
    "small batch": "batch_size must have a pair for each of 2 processes, got 1; start fewer processes",
    "other data": "training inputs must be the same in every process, got #",
    "fewer data": "training pairs must be the same in every process, got 320 in process 0 and 319 in process 1;",
    "other seeds": "seeds must be the same in every process, got [0] in process 0 and [1] in process 1; use the same",
    "other settings": "epochs must be the same in every process, got 1 in process 0 and 2 in process 1; use the same",
    "other start": "start must be the same in every process",
    "checkpoint in one": "checkpoint must be the same in every process, got one in process 0 and none in process 1",
    "other times": "training times must be the same in every process, got #",
    "times in one": "validation times must be the same in every process, got None in process 0 and #",
    "other noise": "observation must be the same in every process, got #",
    "other loss": "loss must be the same in every process, got #",
    "checkpoint of another": "belongs to another training run: epochs is 1 here and 2 there, another schedule; use the",
}


def pairs(missing, device="cpu"):
    """400 pairs in float64; of a part of the pairs all targets are missing, and of the others as many again."""
    whole = SYSTEM.generate(400, 0).to("cpu", torch.float64)
    if missing:
        rng = torch.Generator().manual_seed(1)
        gone = (torch.rand(400, 1, 1, generator=rng) < missing) | (torch.rand(400, 4, 1, generator=rng) < missing)
        whole = Pairs.with_missing(whole.inputs, whole.targets.masked_fill(gone, torch.nan))
    return whole.to(device).split()


def make(*, known=False, noise=False, loss=None, **choices):
    rng = torch.Generator().manual_seed(0)
    predictor = SYSTEM.true_predictor() if known else HopPredictor.random(2, 4, generator=rng)
    graph = BernoulliGraph.uniform(4, generator=rng)
    return LatentGraphModel(
        graph,
        predictor,
        loss or EnergyScore(),
        **{"num_graphs": 4, "observation": GaussianNoise(4) if noise else None} | choices,
    )


@functools.cache
def train(name, device="cpu"):
    model, settings, seeds, missing, others = CASES[name]
    data = pairs(missing, device)
    result = fit(make(**model), data.train, data.validation, settings, seeds=seeds, compile=False, **others)
    return {
        "parameters": {key: value.cpu() for key, value in result.parameters.items()},
        "history": [[epoch.train_loss, epoch.validation_loss] for epoch in result.history],
        "replicas": [(replica.validation_loss, replica.dropped_after) for replica in result.replicas],
        "best": result.best,
        "steps": result.steps,
        "warnings": result.warnings,
    }


def refusal(name, rank, folder):
    """Return what a wrong call says in this process."""
    data, model, settings, seeds = pairs(0), {}, FitSettings(epochs=1), (0,)
    checkpoint = None
    if name == "paper":
        model = {"loss": EnergyScore(baseline="paper")}
    elif name == "moving average":
        model, data = {"loss": NodewiseExpectedError("mae")}, pairs(0.1)
    elif name == "small batch":
        settings = FitSettings(epochs=1, batch_size=1)
    elif name == "other seeds":
        seeds = (rank,)
    elif name == "other settings":
        settings = FitSettings(epochs=1 + rank)
    elif name == "checkpoint in one":
        checkpoint = Checkpoints(folder / name) if rank == 0 else None
    elif name == "other noise":
        model = {"loss": EnergyScore(scope="joint"), "observation": GaussianNoise(4, initial_sigma=0.5 + 0.1 * rank)}
    elif name == "other loss":
        model = {"loss": EnergyScore(scope=["joint", "node"][rank])}
    elif name == "checkpoint of another":
        checkpoint = Checkpoints(folder / f"{name}-{rank}")  # a file that only the first one sees
        two = FitSettings(epochs=2)
        fit(make(), data.train, data.validation, two, seeds=seeds, compile=False, checkpoint=checkpoint)
    training = data.train
    if name == "other data" and rank == 1:
        training = training[torch.arange(len(training)).flip(0)]
    if name == "fewer data" and rank == 1:
        training = training[1:]
    if name == "other times":
        training = replace(training, times=torch.arange(len(training)).double() + rank)
    if name == "times in one" and rank == 1:
        data = replace(data, validation=replace(data.validation, times=torch.zeros(len(data.validation)).double()))
    starts = {"graph.edge_logits": torch.full((1, 4, 4), float(rank))} if name == "other start" else None
    try:
        choices = {"seeds": seeds, "compile": False, "starts": starts, "checkpoint": checkpoint}
        fit(make(**model), training, data.validation, settings, **choices)
    except InputError as error:
        return str(error)
    return "nothing"


def work(rank, folder):
    """One of two processes: all cases, all refusals, and a training in which process 1 dies."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    torch.save({name: train(name) for name in CASES}, folder / f"cases-{rank}.pt")
    torch.save({name: refusal(name, rank, folder) for name in REFUSED}, folder / f"refused-{rank}.pt")
    data = pairs(0)

    def die(progress):
        if rank == 1 and progress.step == 30:
            os._exit(9)

    start = time.monotonic()
    try:
        fit(make(), data.train, data.validation, STEPS_100, compile=False, on_progress=die)
    except ProcessesError as error:
        torch.save({"said": str(error), "seconds": time.monotonic() - start}, folder / f"alone-{rank}.pt")
        os._exit(0)  # a broken connection may abort a process that ends the usual way


def work_on_gpu(rank, folder):
    """One of two processes that share a GPU: nccl would want one each, gloo does not mind."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    torch.save({name: train(name, "cuda") for name in ON_GPU}, folder / f"cases-{rank}.pt")
    dist.destroy_process_group()


def in_two_processes(target, folder):
    """Run it twice, side by side; return what was saved, and the exit codes."""
    context = multiprocessing.get_context("spawn")
    running = [context.Process(target=target, args=(rank, folder)) for rank in range(2)]
    for process in running:
        process.start()
    for process in running:
        process.join(300)
        process.kill()
    found = {path.stem: torch.load(path) for path in folder.glob("*.pt")}
    return found | {"exit codes": [process.exitcode for process in running]}


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """What two processes made of everything, which they did once for all tests, and how they ended."""
    return made_once(tmp_path_factory, "processes", lambda folder: in_two_processes(work, folder))


@pytest.mark.parametrize("name", CASES)
def test_two_processes_equal_one(together, name):
    """Float64, up to 106 steps: every parameter to 1e-8, every loss to 1e-9, and both processes to the last bit."""
    check_equal(train(name), *(together[f"cases-{rank}"][name] for rank in range(2)))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires a CUDA device")
def test_two_processes_equal_one_on_a_gpu(tmp_path):
    """One process replays its recorded step; two take theirs one by one, as their sum is not recorded."""
    together = in_two_processes(work_on_gpu, tmp_path)
    assert together["exit codes"] == [0, 0]
    for name in ON_GPU:
        check_equal(train(name, "cuda"), *(together[f"cases-{rank}"][name] for rank in range(2)))


def check_equal(alone, first, second):
    assert alone["steps"] in (40, 72, 100, 106)
    assert alone["warnings"] == first["warnings"] == []  # what is asked for is what ran
    for key, value in alone["parameters"].items():
        assert (value - first["parameters"][key]).abs().max() < 1e-8, key
        assert torch.equal(first["parameters"][key], second["parameters"][key]), key
    for key in ("history", "replicas"):
        flat = [torch.tensor([-9.0 if x is None else x for x in flatten(run[key])]) for run in (alone, first)]
        assert torch.allclose(*flat, rtol=0, atol=1e-9), key
        assert first[key] == second[key]
    assert alone["best"] == first["best"] == second["best"]


def flatten(values):
    return [x for value in values for x in flatten(value)] if isinstance(values, list | tuple) else [values]


def test_the_cases_are_what_they_say():
    """Some shares of UNEVEN observe nothing, some whole batches too; the worse two of three replicas are dropped."""
    seen = pairs(0.5).train.observed.flatten(1).any(1)
    assert 0.1 < seen.double().mean() < 0.5
    assert [replica[1] for replica in train("replicas in turn, halved")["replicas"]].count(2) == 2
    start = make().graph.edge_logits
    assert (train("shares and batches without any target")["parameters"]["graph.edge_logits"] - start).abs().max() > 0.1


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_shared_is_refused_in_every_process(together, name):
    for rank in range(2):
        assert REFUSED[name] in together[f"refused-{rank}"][name]
        assert "\n" not in together[f"refused-{rank}"][name]


def test_a_process_that_dies_ends_the_others(together):
    assert together["exit codes"] == [0, 9]
    assert together["alone-0"]["said"] == LOST
    assert together["alone-0"]["seconds"] < 250  # not the half hour of the process group
    assert "alone-1" not in together


def test_shares_cover_a_batch_once():
    for size, count in ((16, 2), (17, 2), (3, 2), (8, 3), (5, 5)):
        shares = [list(range(size))[Processes(rank, count).share(size)] for rank in range(count)]
        assert [row for share in shares for row in share] == list(range(size))
        assert {len(share) for share in shares} <= {size // count, size // count + 1}


def test_alone_nothing_is_touched():
    result = StepResult({"w": torch.ones(1, 2)}, torch.ones(1, 3), torch.ones(1, 3), {})
    assert Processes.current() == Processes(0, 1)
    assert Processes().combined(result) is result
    assert Processes().meet("word") == ["word"]
