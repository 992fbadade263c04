r"""Series of counts, yes or no, categories, positive numbers and heavy tails with a known graph.

Every function takes a seed and returns an :class:`Observed`. With $z$ what a node sends, $A_t$ drawn anew at every step
with the probabilities theta (1 for edges that always act), all but the log-linear counts follow

$$f_i = c_i + o_i\, z_i(t-1) + \sum_j A_{ij}(t)\, w_{ij}\, z_j(t-1), \qquad v_i(t) \sim p(v \mid f_i)$$

Rows of ``truth`` receive, and its diagonal is empty. :data:`KINDS` has all families by name. Methods are chosen on the
seeds ``CHOOSE``; the seeds ``TEST`` are scored once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from benchmarks.existence.systems import (
    BURN_IN,
    CHOOSE,
    OWN,
    SEEDS,
    TEST,
    Graph,
    Values,
    Weights,
    random_weights,
    stable,
)
from jaxtyping import Float

__all__ = ["CHOOSE", "KINDS", "SEEDS", "TEST", "Observed", "heavy_tails"]

NODES, ROWS, DENSITY = 10, 500, 0.13
DISPERSION = 0.4  # alpha of negative binomial counts: variance m + alpha m^2
LOG_SIGMA = 0.5  # of log-normal numbers
CUTS = np.array([-2.0, -0.7, 0.7, 2.0])  # between five categories
DEGREES = 3.0  # of Student t noise
PER_NODE = Float[np.ndarray, " node"]


@dataclass(frozen=True, eq=False)
class Observed:
    """One series and its graph; ``theta`` is how often an edge acts, ``kinds`` the observation model of each node."""

    kind: str
    series: Values
    truth: Graph
    theta: Weights
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """How values are drawn given f, and what a node sends of its value: a number of size about 1 to 3."""

    name: str
    draw: Callable[[np.random.Generator, PER_NODE], PER_NODE]
    sent: Callable[[PER_NODE], PER_NODE]


def softplus(f: PER_NODE) -> PER_NODE:
    """Return log(1 + exp(f))."""
    return np.logaddexp(0.0, f)


def _negative_binomial(rng: np.random.Generator, f: PER_NODE) -> PER_NODE:
    mean = softplus(f)
    return rng.poisson(rng.gamma(1 / DISPERSION, DISPERSION * mean)).astype(float)


def _log_normal(rng: np.random.Generator, f: PER_NODE) -> PER_NODE:
    return softplus(f) * np.exp(LOG_SIGMA * rng.normal(size=len(f)) - LOG_SIGMA**2 / 2)


def _ordered(rng: np.random.Generator, f: PER_NODE) -> PER_NODE:
    return 1.0 + (f[:, None] + rng.logistic(size=(len(f), 1)) > CUTS).sum(1)


FAMILIES = {
    one.name: one
    for one in (
        Family("poisson", lambda rng, f: rng.poisson(softplus(f)).astype(float), lambda v: v),
        Family("negative_binomial", _negative_binomial, lambda v: v),
        Family("log_normal", _log_normal, lambda v: v),
        Family(
            "bernoulli", lambda rng, f: (rng.random(len(f)) < 1 / (1 + np.exp(-f))).astype(float), lambda v: v - 0.5
        ),
        Family("ordered", _ordered, lambda v: (v - 3) / 2),
        Family("student_t", lambda rng, f: f + rng.standard_t(DEGREES, len(f)), lambda v: v),
        Family("gaussian", lambda rng, f: f + rng.normal(size=len(f)), lambda v: v),
    )
}
POSITIVE = ("poisson", "negative_binomial", "log_normal")
# Sizes of the weights: those of yes or no and of categories are log odds per what is sent.
SIZES = {"bernoulli": (0.8, 2.0), "ordered": (0.5, 1.2)}
LINEAR_SIZES, GATED_SIZES = (0.15, 0.5), (0.3, 0.7)
LEVELS = (0.7, 6.0)  # of counts and positive numbers


def series_of(
    rng: np.random.Generator,
    family: Family,
    weights: Weights,
    theta: Weights,
    own: PER_NODE,
    constant: PER_NODE,
    start: PER_NODE,
    rows: int,
) -> Values:
    """Return the series, gates drawn anew at every step, without its first rows."""
    values = np.tile(start, (BURN_IN + rows, 1))
    for now in range(1, len(values)):
        sent = family.sent(values[now - 1])
        gates = rng.random(theta.shape) < theta
        values[now] = family.draw(rng, constant + own * sent + (gates * weights) @ sent)
    return values[BURN_IN:]


def network(
    seed: int,
    family: str,
    gated: bool = False,
    edges: bool = True,
    rows: int = ROWS,
    nodes: int = NODES,
    deviations: bool = False,
) -> Observed:
    """A network of one family; levels of counts and positive numbers lie between .7 and 6.

    Two weights of three are positive where values are, all signs are as likely elsewhere. ``gated`` edges act with a
    probability between .4 and .9. Nodes with a level send their values: while a gate is closed the level falls too.
    With ``deviations`` they send v less their level instead, as inputs are scaled in a fit.
    """
    rng = np.random.default_rng(seed)
    low, high = SIZES.get(family, GATED_SIZES if gated else LINEAR_SIZES)
    weights = random_weights(rng, nodes, DENSITY if edges else 0.0, low, high)
    if edges and not weights.any():  # a series without edges has a kind of its own
        weights[0, 1] = high
    if family in POSITIVE:
        weights = np.where(rng.random(weights.shape) < 1 / 3, weights, np.abs(weights))
    theta = np.where(weights != 0, rng.uniform(0.4, 0.9, weights.shape) if gated else 1.0, 0.0)
    own = np.full(nodes, OWN * (2.0 if family in SIZES else 1.0))
    level = np.zeros(nodes)
    if family in SIZES:
        constant = rng.normal(-0.5, 0.7, size=nodes)  # yes is the rarer answer
        start = np.full(nodes, 1.0)
    else:
        weights = stable(weights, theta if gated else None)
        level = np.exp(rng.uniform(*np.log(LEVELS), nodes)) if family in POSITIVE else level
        constant = level if deviations else level - own * level - (theta * weights) @ level
        start = level
    drawn = FAMILIES[family]
    drawn = Family(family, drawn.draw, lambda values: values - level) if deviations else drawn
    values = series_of(rng, drawn, weights, theta, own, constant, start, rows)
    name = _name(family, gated=gated, edges=edges) + (" deviations" if deviations else "")
    return Observed(name, values, weights != 0, theta, (family,) * nodes)


def log_linear(seed: int, rows: int = ROWS, nodes: int = NODES) -> Observed:
    r"""Counts that are not of our model: $\log m_i = c_i + 0.3 \log(1 + v_i) + \sum_j w_{ij} \log(1 + v_j)$."""
    rng = np.random.default_rng(seed)
    weights = stable(random_weights(rng, nodes, DENSITY, 0.2, 0.5))
    level = np.log1p(np.exp(rng.uniform(*np.log(LEVELS), nodes)))
    constant = level - 0.3 * level - weights @ level
    family = Family("poisson", lambda rng, f: rng.poisson(np.exp(np.minimum(f, 6.0))).astype(float), np.log1p)
    values = series_of(rng, family, weights, 1.0 * (weights != 0), np.full(nodes, 0.3), constant, np.expm1(level), rows)
    return Observed("counts, log-linear", values, weights != 0, 1.0 * (weights != 0), ("poisson",) * nodes)


def mixed(seed: int, rows: int = ROWS) -> Observed:
    """Twelve nodes: counts, yes or no, Gaussian and heavy-tailed numbers, three of each, in a random order.

    A node sends its value less a level, over a scale: (v - 4) / 2 for counts, v - .5 for yes or no, v elsewhere.
    """
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(np.repeat(["poisson", "bernoulli", "gaussian", "student_t"], 3))
    nodes, counts, answers = len(kinds), kinds == "poisson", kinds == "bernoulli"
    weights = stable(random_weights(rng, nodes, 0.11, 0.2, 0.6))
    weights[answers] *= 2.0  # log odds
    weights[:, answers] *= 2.0  # of a number of size .5
    own = np.where(answers, 1.6, OWN)

    def draw(rng: np.random.Generator, f: PER_NODE) -> PER_NODE:
        drawn = {kind: FAMILIES[kind].draw(rng, 4 + 2 * f if kind == "poisson" else f) for kind in set(kinds.tolist())}
        return np.array([drawn[kind][node] for node, kind in enumerate(kinds.tolist())])

    def sent(v: PER_NODE) -> PER_NODE:
        return np.where(counts, (v - 4) / 2, np.where(answers, v - 0.5, v))

    start, theta = np.where(counts, 4.0, 0.0), 1.0 * (weights != 0)
    values = series_of(rng, Family("mixed", draw, sent), weights, theta, own, np.zeros(nodes), start, rows)
    return Observed("mixed kinds", values, weights != 0, theta, tuple(kinds.tolist()))


def heavy_tails(seed: int, rows: int, nodes: int = 8) -> Observed:
    """A VAR with t noise of three degrees: half of the edges always act, half with a probability between .4 and .9."""
    rng = np.random.default_rng(seed)
    places = np.flatnonzero(~np.eye(nodes, dtype=bool))
    chosen = rng.choice(places, 10, replace=False)
    weights, theta = np.zeros(nodes * nodes), np.zeros(nodes * nodes)
    weights[chosen] = rng.uniform(0.4, 0.8, 10) * rng.choice([-1.0, 1.0], 10)
    theta[chosen] = np.where(np.arange(10) < 5, rng.uniform(0.4, 0.9, 10), 1.0)
    theta = theta.reshape(nodes, nodes)
    weights = stable(weights.reshape(nodes, nodes), theta)
    zero = np.zeros(nodes)
    values = series_of(rng, FAMILIES["student_t"], weights, theta, np.full(nodes, OWN), zero, zero, rows)
    return Observed(f"heavy tails {rows}", values, weights != 0, theta, ("student_t",) * nodes)


NAMES = {
    "poisson": "counts",
    "negative_binomial": "overdispersed counts",
    "bernoulli": "yes or no",
    "ordered": "categories",
    "log_normal": "positive",
    "student_t": "heavy tails",
    "gaussian": "gaussian",
}
NULL = "no edges: "


def _name(family: str, *, gated: bool, edges: bool) -> str:
    return ("" if edges else NULL) + NAMES[family] + (", gated" if gated else "")


def _kinds() -> dict[str, Callable[[int], Observed]]:
    found: dict[str, Callable[[int], Observed]] = {}
    for family in NAMES:
        for gated in (False, True):
            found[_name(family, gated=gated, edges=True)] = partial(network, family=family, gated=gated)
    found["counts, gated deviations"] = partial(network, family="poisson", gated=True, deviations=True)
    found |= {"counts, log-linear": log_linear, "mixed kinds": mixed}
    for family in NAMES:
        found[_name(family, gated=False, edges=False)] = partial(network, family=family, edges=False)
    return found


KINDS = _kinds()
