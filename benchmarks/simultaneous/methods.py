"""The methods by name: PCMCI+, VARLiNGAM, and the evidence of tacit with and without effects within a step."""

import numpy as np
import torch
from benchmarks.existence.systems import Values
from benchmarks.simultaneous.peers import PEERS, Answer, Method

TACIT, OFF = "tacit", "tacit, option off"


def tacit(values: Values, *, simultaneous: bool = True) -> Answer:
    """Return ``exists`` of every edge as the plan of a fit has it, and the probabilities of lag 0."""
    from tacit.config import FitConfig, GraphOptions, PredictorOptions
    from tacit.data import Series
    from tacit.pipeline.plan import resolve
    from tacit.pipeline.sources import Source

    series = Series(np.ascontiguousarray(values)[:, :, None], tuple(f"v{node}" for node in range(values.shape[1])))
    config = FitConfig(predictor=PredictorOptions(kind="filter"), graph=GraphOptions(simultaneous=simultaneous))
    plan = resolve(Source("series", series), config, seed=0, device=torch.device("cpu"), command="benchmark")
    assert plan.evidence is not None
    exists = np.nan_to_num(np.asarray(plan.evidence.table.matrix("exists"), dtype=float))
    within = plan.evidence.within
    if within is None:
        if simultaneous:
            raise RuntimeError("the evidence has no effects within a step, although graph.simultaneous is true")
        nothing = np.zeros_like(exists)
        return Answer(exists, 1 - (1 - exists) * (1 - exists.T), nothing, nothing, probabilities=True)
    probs = np.asarray(within.probs, dtype=float)
    either = np.asarray(within.either, dtype=float)
    return Answer(exists, either, probs, np.minimum(probs + probs.T, 1.0), probabilities=True)


def option_off(values: Values) -> Answer:
    """Return the evidence as it is without effects within a step."""
    return tacit(values, simultaneous=False)


METHODS: dict[str, Method] = {**PEERS, TACIT: tacit, OFF: option_off}
