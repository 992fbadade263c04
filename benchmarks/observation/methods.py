"""The methods by name: the evidence of tacit, the kind chosen or with Gaussian noise, and regressions node by node.

The other method is the usual one: a generalised linear model per node (statsmodels) with the right family, on the own
past and that of all other nodes, ranked by the size of the Wald statistics with errors that allow for another variance
(HC0). Pairs are listed by Benjamini and Hochberg at 10%. It is told the family; ``tacit`` is not.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from benchmarks.existence.systems import Graph, Values
from benchmarks.observation.systems import Observed
from jaxtyping import Float

TACIT, GAUSSIAN, GLM = "tacit", "tacit, gaussian", "GLM"
RATE = 0.1
Matrix = Float[np.ndarray, "node node"]


@dataclass(frozen=True, eq=False)
class Answer:
    """A number for every edge, rows receive, higher is surer; ``chosen`` is the observation model that was chosen.

    ``listed`` is given where the numbers are not probabilities. ``causes`` are the names of findings, and ``driver`` is
    whether a shared driver is one of them; None if the method does not look for one.
    """

    scores: Matrix
    chosen: str = ""
    listed: Graph | None = None
    driver: bool | None = None
    causes: tuple[str, ...] = ()


Method = Callable[[Observed], Answer]


def tacit(system: Observed, *, kind: str = "auto") -> Answer:
    """Return ``exists`` of every edge as the plan of a fit has it, and the kind that was chosen."""
    from tacit.config import FitConfig, override
    from tacit.data import Series
    from tacit.pipeline.plan import resolve
    from tacit.pipeline.sources import Source

    nodes = tuple(f"v{node}" for node in range(len(system.truth)))
    series = Series(np.ascontiguousarray(system.series)[:, :, None], nodes)
    config = override(FitConfig(), {"predictor": {"kind": "filter"}, "observation": {"kind": kind}})
    plan = resolve(Source("series", series), config, seed=0, device=torch.device("cpu"), command="benchmark")
    assert plan.evidence is not None
    exists = np.nan_to_num(np.asarray(plan.evidence.table.matrix("exists"), dtype=float))
    return Answer(exists, kind_in_words(plan.config.observation.kind))


def gaussian(system: Observed) -> Answer:
    """Return the evidence with Gaussian noise whatever the values are."""
    return tacit(system, kind="gaussian")


def kind_in_words(kind: object) -> str:
    """Return the kind of all nodes, or how many nodes have which."""
    if not isinstance(kind, dict):
        return str(kind)
    names = [str(one) for one in kind.values()]
    counted = {name: names.count(name) for name in sorted(set(names))}
    return next(iter(counted)) if len(counted) == 1 else ", ".join(f"{name} {n}" for name, n in counted.items())


def generalised_linear(system: Observed) -> Answer:
    """Return the sizes of the Wald statistics of one regression per node."""
    from scipy.stats import false_discovery_control, norm

    now, before = system.series[1:], _sent(system)[:-1]
    design = np.column_stack([np.ones(len(before)), (before - before.mean(0)) / before.std(0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # separation and slow convergence: the numbers are taken as they are
        rows = [_statistics(now[:, node], design, kind) for node, kind in enumerate(system.kinds)]
    sizes = np.nan_to_num(np.abs(np.stack(rows)))
    np.fill_diagonal(sizes, 0.0)
    apart, listed = ~np.eye(len(sizes), dtype=bool), np.zeros_like(sizes, dtype=bool)
    listed[apart] = false_discovery_control(2 * norm.sf(sizes[apart])) <= RATE
    return Answer(sizes, listed=listed)


def _sent(system: Observed) -> Values:
    """Return what regressions read: the logarithm of counts and positive numbers, whose models have a log link."""
    logs = np.isin(system.kinds, ("poisson", "negative_binomial", "log_normal"))
    return np.where(logs, np.log1p(np.maximum(system.series, 0)), system.series)


def _statistics(
    target: Float[np.ndarray, " time"], design: Float[np.ndarray, "time column"], kind: str
) -> Float[np.ndarray, " node"]:
    import statsmodels.api as sm

    families = {
        "poisson": sm.families.Poisson(),
        "negative_binomial": sm.families.NegativeBinomial(alpha=0.4),
        "bernoulli": sm.families.Binomial(),
        "log_normal": sm.families.Gamma(sm.families.links.Log()),
    }
    if kind in families:
        found = sm.GLM(target, design, family=families[kind]).fit(cov_type="HC0")
    elif kind == "student_t":
        found = sm.RLM(target, design, M=sm.robust.norms.TukeyBiweight()).fit()
    else:
        found = sm.OLS(target, design).fit(cov_type="HC0")
    return np.asarray(found.tvalues[1:])


METHODS: dict[str, Method] = {TACIT: tacit, GAUSSIAN: gaussian, GLM: generalised_linear}
