"""Which network forecasts best for its time: encoder, window, learning rate and number of steps.

``python benchmarks/networks.py [TABLE.csv ...] --out runs/networks --json FILE``

Variants are chosen by the validation loss on ``beijing-air``; the other tables are looked at once. Every variant is a
fit with ``tacit fit`` and ``assessment.enabled=false``; CRPS is that of the test part. The network itself is in
``tacit.predictors.network``.
"""

import argparse
import json
import math
import statistics
from pathlib import Path

import torch

from tacit.config import FitConfig
from tacit.pipeline.job import run_fit
from tacit.records import read_run

# kind, window, learning rate of the predictor, steps
VARIANTS = {
    f"{kind}, window {window}, rate {rate:g}, {steps} steps": (kind, window, rate, steps)
    for kind, window, rate, steps in [
        ("recurrent", 12, 0.003, 1500),
        ("recurrent", 6, 0.006, 1500),
        ("recurrent", 6, 0.006, 800),
        ("recurrent", 6, 0.01, 800),
        ("feedforward", 6, 0.003, 1500),
        ("feedforward", 6, 0.006, 1500),
        ("feedforward", 4, 0.006, 800),
        ("feedforward", 6, 0.006, 800),
        ("feedforward", 6, 0.01, 800),
        *(("feedforward", 6, rate, steps) for rate in (0.006, 0.008, 0.01, 0.015) for steps in (1000, 1200)),
        ("feedforward", 12, 0.006, 800),
        ("feedforward", 12, 0.01, 800),
    ]
}


def measure(source: str, pairs: int, variant: str, seed: int, out: Path, device: torch.device) -> dict[str, float]:
    """Fit one variant and return its losses; ``pairs`` is about the number of training pairs."""
    kind, window, rate, steps = VARIANTS[variant]
    epochs = math.ceil(steps / max(1, pairs // 128))
    config = FitConfig(
        predictor={"kind": kind},
        data={"window": window},
        training={"predictor_learning_rate": rate, "epochs": epochs, "batch_size": 128},
        assessment={"enabled": False},
    )
    directory = out / f"{Path(source).stem}-{list(VARIANTS).index(variant)}-{seed}"
    run_fit(source, config, directory, seed=seed, device=device)
    run = read_run(directory)
    validation = min(loss for epoch in run.history for loss in epoch["validation_loss"] if loss is not None)
    return {"validation_loss": validation, "crps": run.record.metrics["crps"]}


def main() -> None:
    """Measure all variants and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/networks"))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    for source in ["beijing-air", *given.tables]:
        lines = 35064 if source == "beijing-air" else Path(source).read_text(encoding="utf-8").count("\n")
        for variant in VARIANTS:
            found = [
                measure(source, round(0.7 * lines), variant, seed, given.out, torch.device(given.device))
                for seed in range(given.seeds)
            ]
            means = {key: statistics.fmean(row[key] for row in found) for key in found[0]}
            rows.append({"table": Path(source).stem, "variant": variant, "seeds": len(found), **means})
            print(json.dumps(rows[-1]), flush=True)
    if given.json:
        given.json.write_text(json.dumps({"device": given.device, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
