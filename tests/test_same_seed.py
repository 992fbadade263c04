"""Same seed, same machine, same result: to the byte, whatever else the process did and whichever process it is."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import tacit
from own_files import write_files
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.sklearn.saved import KIND
from tacit.training import FitSettings, LatentGraphModel, fit

SETTINGS = FitSettings(epochs=3, batch_size=16, average_fraction=0.5)
SEEDS = (3, 7, 11)
SOURCE = str(Path(tacit.__file__).parents[1])  # wherever the process works


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """The same work of two processes, with other hash seeds, in another order, with other global random states."""
    folder = tmp_path_factory.mktemp("seeds")
    write_files(folder)
    processes = []
    for order, hashes in (("fde", "1"), ("edf", "2")):
        (folder / order).mkdir()
        script = [sys.executable, str(Path(__file__).with_name("same_seed.py")), str(folder / "wide.csv"), order]
        environment = {**os.environ, "PYTHONHASHSEED": hashes, "OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE}
        processes.append(subprocess.Popen(script, cwd=folder / order, env=environment, stdout=subprocess.DEVNULL))
    assert [process.wait() for process in processes] == [0, 0]
    return [everything(folder / order) for order in ("fde", "edf")]


def everything(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def without_times(name, data):
    """A file without the times in it, and without the checksums of what has times in it."""
    if name.endswith("record.json"):
        record = json.loads(data)
        for key in ("train_seconds", "compile_seconds", "evidence_seconds"):
            record["timings"].pop(key, None)
        del record["stages"], record["sha256"], record["files"]["history.jsonl"]
        record["uncertainty"].pop("train_seconds", None)
        return record
    if name.endswith("history.jsonl"):
        return [{**json.loads(line), "seconds": 0} for line in data.splitlines()]
    if name.startswith("estimator"):
        text, tensors = KIND.unpack(data, name)
        for line in text["fitted"]["history"]:
            line["seconds"] = 0
        record = text["fitted"]["record"]
        for key in ("train_seconds", "compile_seconds", "evidence_seconds"):
            record["timings"].pop(key, None)
        del record["stages"]
        record["uncertainty"].pop("train_seconds", None)
        return text, {key: value.numpy().tobytes() for key, value in tensors.items()}
    return data


OTHERS = {  # else sameness would say nothing
    "fit/edges.csv": "other/edges.csv",
    "fit/model.safetensors": "other/model.safetensors",
    "recurrent/model.safetensors": "fit/model.safetensors",
    "forecasts.csv": "other.csv",
    "estimator-0.safetensors": "estimator-1.safetensors",
    "predicted-0.npy": "predicted-1.npy",
    "samples-0.npy": "samples-1.npy",
    "demo/known/edges.csv": "demo/joint/edges.csv",
}


def test_the_files_of_two_processes_are_the_same(twice):
    """Runs, forecasts, figures, estimators; pages only where they show no time. Another seed makes other files."""
    first, second = twice
    assert first.keys() == second.keys()
    assert len(first) > 30
    timed = [name for name in first if first[name] != second[name]]
    estimators = {f"estimator-{seed}.safetensors" for seed in (0, 1)}
    assert {Path(name).name for name in timed} <= {"record.json", "history.jsonl", "report.html"} | estimators
    for name in first:
        if not name.endswith("report.html"):
            assert without_times(name, first[name]) == without_times(name, second[name]), name
    for name, other in OTHERS.items():
        assert first[name] != first[other], name


def pairs(count=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 3, 2, generator=generator)
    return Pairs(inputs, inputs.roll(1, 1)[..., :1] + 0.1 * torch.randn(count, 3, 1, generator=generator))


def learn(seeds=SEEDS, **keywords):
    rng = torch.Generator().manual_seed(0)
    graph, predictor = BernoulliGraph.uniform(3, generator=rng), HopPredictor.random(2, 2, generator=rng)
    model = LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=4)
    return fit(model, pairs(), pairs(20, 1), SETTINGS, seeds=seeds, **{"compile": False} | keywords)


def bits(result):
    """All numbers of a fit, by replica."""
    return {
        seed: (
            {name: value[place].numpy().tobytes() for name, value in result.parameters.items()},
            [(epoch.train_loss[place], epoch.validation_loss[place]) for epoch in result.history],
        )
        for place, seed in enumerate(replica.seed for replica in result.replicas)
    }


def move_global_state():
    """Move what is global and random; the fixture of all tests sees to it that torch's is put back."""
    random.seed(5)
    np.random.seed(5)


@pytest.mark.parametrize("lift", ["loop", "vmap"])
def test_replicas_twice(lift):
    first = bits(learn(lift=lift))
    move_global_state()
    before = torch.get_rng_state()
    torch.manual_seed(99)
    learn(seeds=(1, 2), lift=lift)  # another call in between
    second = bits(learn(lift=lift))
    torch.set_rng_state(before)
    assert first == second
    assert len({json.dumps(str(replica)) for replica in first.values()}) == len(SEEDS)  # each is its own


def test_a_replica_is_what_its_seed_makes_it():
    """To the bit where they are trained in turn, as on a CPU: alone, beside others, and in another order."""
    together = bits(learn())
    assert bits(learn(seeds=SEEDS[::-1])) == together
    for seed in SEEDS:
        assert bits(learn(seeds=(seed,)))[seed] == together[seed]


def test_beside_others_a_lifted_replica_is_the_same_up_to_rounding():
    """One program for all replicas sums in an order of its own."""
    together = learn(lift="vmap")
    for place, seed in enumerate(SEEDS):
        alone = learn(seeds=(seed,), lift="vmap")
        for name, value in together.parameters.items():
            torch.testing.assert_close(value[place], alone.parameters[name][0], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_compiled_replicas_twice():
    first, second = learn(compile=True, seeds=SEEDS[:2]), learn(compile=True, seeds=SEEDS[:2])
    assert first.warnings == second.warnings == []
    assert bits(first) == bits(second)
