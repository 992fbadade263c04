r"""Series that break an assumption of a fit, each kind with and without edges.

The series without a broken assumption are linear, $x_t = (\mathrm{diag}(o) + W) x_{t-1} + \varepsilon_t$. A background
$b_t$ (trend, cycle, shift) has about the deviation of the node. On even seeds it is added to what is observed,
$x_t + b_t$; on odd seeds it drives the node, $\varepsilon_t + (1 - o) b_t$, and passes through the edges.

Every kind is a function of a seed and of what the truth is: ``edges``, ``none`` (no edge at all), or ``plain`` (the
same edges and noise without the background; the other kinds have no such systems). Rows of ``truth`` receive, and its
diagonal is empty. Methods are chosen on the seeds ``CHOOSE``; the seeds ``TEST`` are scored once.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from benchmarks.existence.systems import BURN_IN, CHOOSE, SEEDS, TEST, System, Values, Weights, random_weights
from benchmarks.robustness.compass import COMPASS, compass_values
from benchmarks.simultaneous.systems import simulated, stable
from jaxtyping import Float, Shaped
from scipy.ndimage import gaussian_filter1d

__all__ = ["BACKGROUNDS", "CHOOSE", "EDGES", "KINDS", "NONE", "PLAIN", "SEEDS", "TEST", "make"]

EDGES, NONE, PLAIN = "edges", "none", "plain"
PARENTS = 1.2  # mean number of parents of a node
SIZES = (0.2, 0.6)  # of weights
OWN = (0.2, 0.7)  # weights of the own past
MARGIN = 60  # rows before and after a change

PerNode = Float[np.ndarray, " node"]
Times = Shaped[np.ndarray, " time"]
Background = Callable[[np.random.Generator, int, int], Values]
Change = Callable[[np.random.Generator, Values], Values]


def weights_of(
    rng: np.random.Generator,
    nodes: int,
    edges: bool,
    parents: float = PARENTS,
    sizes: tuple[float, float] = SIZES,
) -> Weights:
    """Return the edges and, on the diagonal, the own past; all edges are shrunk until the system is stable."""
    own, drawn = rng.uniform(*OWN, nodes), random_weights(rng, nodes, parents / (nodes - 1), *sizes)
    if not drawn.any():
        drawn[0, 1] = SIZES[1]
    return stable(np.zeros_like(drawn), drawn * edges, own)[1]


def linear(weights: Weights, noise: Values) -> Values:
    """Return the linear series that the noise drives, without its first ``BURN_IN`` rows."""
    return simulated(np.zeros_like(weights), weights, noise)


def system(kind: str, values: Values, weights: Weights, times: Times | None = None, reached: int = 0) -> System:
    """Return one series with the graph of its weights; an unseen series reaches some of its nodes."""
    truth = (weights != 0) & ~np.eye(len(weights), dtype=bool)
    return System(kind, (np.ascontiguousarray(values),), truth, truth.astype(float), times=times, reached=reached)


def dates(rows: int, step: str) -> Times:
    """Return times from 2023 on, a ``step`` ("h", "D") apart, in nanoseconds as pandas has them."""
    return (np.datetime64("2023-03-01", step) + np.arange(rows)).astype("datetime64[ns]")


# Backgrounds: functions of rows and nodes, in deviations of the node.


def trends(rng: np.random.Generator, rows: int, nodes: int) -> Values:
    """A smooth curve for each node: the sum of smoothed noise, with a deviation of .7 to 2."""
    curves = gaussian_filter1d(rng.normal(size=(rows, nodes)), rows / 10, axis=0).cumsum(0)
    return (curves - curves.mean(0)) / curves.std(0) * rng.uniform(0.7, 2.0, nodes)


def waves(
    rng: np.random.Generator, rows: int, nodes: int, periods: tuple[float, ...], sizes: tuple[float, float] = (0.7, 2.0)
) -> Values:
    """A cycle of each period, with a phase, an amplitude and a second harmonic of its own for each node."""
    total = np.zeros((rows, nodes))
    for period in periods:
        angle = 2 * np.pi * np.arange(rows)[:, None] / period + rng.uniform(0, 2 * np.pi, nodes)
        second = rng.uniform(0, 0.5, nodes) * np.sin(2 * angle + rng.uniform(0, 2 * np.pi, nodes))
        total += rng.uniform(*sizes, nodes) * 2**0.5 * (np.sin(angle) + second)
    return total


def unknown_wave(rng: np.random.Generator, rows: int, nodes: int) -> Values:
    """A cycle with one period for all nodes, which is no integer."""
    return waves(rng, rows, nodes, (float(rng.uniform(14, 60)),))


def trends_and_waves(rng: np.random.Generator, rows: int, nodes: int) -> Values:
    """A trend and a daily cycle."""
    return trends(rng, rows, nodes) + waves(rng, rows, nodes, (24.0,))


def yearly_wave(rng: np.random.Generator, rows: int, nodes: int) -> Values:
    """A shared yearly cycle: phases differ by about two weeks, amplitudes by a factor of up to 3."""
    angle = 2 * np.pi * np.arange(rows)[:, None] / 365.25 + rng.uniform(0, 2 * np.pi) + rng.normal(0, 0.25, nodes)
    return rng.uniform(0.7, 2.0, nodes) * 2**0.5 * np.sin(angle)


def weekends(rng: np.random.Generator, rows: int, nodes: int) -> Values:
    """A dip on Saturday and Sunday, of one to three deviations."""
    weekday = (dates(rows, "D").astype("datetime64[D]").astype(int) + 3) % 7  # 1970-01-01 was a Thursday
    return -1.0 * (weekday >= 5)[:, None] * rng.uniform(1, 3, nodes)


def shifts(rng: np.random.Generator, rows: int, nodes: int, common: bool) -> Values:
    """One change of level for each node, by one to three deviations, at rows of their own or in one row."""
    at = rng.integers(MARGIN, rows - MARGIN, nodes)
    at = np.full(nodes, at[0]) if common else at
    sizes = rng.uniform(1, 3, nodes) * rng.choice([-1.0, 1.0], nodes)
    return (np.arange(rows)[:, None] >= at) * sizes


def of_one(rng: np.random.Generator, rows: int, nodes: int, background: Background) -> Values:
    """The background of one node; all others have none."""
    return background(rng, rows, nodes) * (np.arange(nodes) == rng.integers(nodes))


def with_background(
    seed: int,
    truth: str,
    kind: str,
    background: Background,
    nodes: int = 8,
    rows: int = 800,
    step: str | None = None,
    parents: float = PARENTS,
) -> System:
    """Linear series with a background, which is added on even seeds and drives the nodes on odd ones."""
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, truth != NONE, parents)
    noise = rng.normal(size=(BURN_IN + rows, nodes))
    values = linear(weights, noise)
    shape = background(rng, rows, nodes) * values.std(0)
    if truth != PLAIN and seed % 2 == 0:
        values = values + shape
    elif truth != PLAIN:
        early = np.repeat(shape[:1], BURN_IN, axis=0)
        values = linear(weights, noise + (1 - weights.diagonal()) * np.concatenate([early, shape]))
    return system(kind, values, weights, None if step is None else dates(rows, step))


def weekend_counts(seed: int, truth: str, kind: str, rows: int = 730) -> System:
    """Five to eight counters, 8 to 200 a day, of which the weekend takes 20% to 70%; a node sends its deviation."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(5, 9))
    weights = weights_of(rng, nodes, truth != NONE)
    level = np.exp(rng.uniform(np.log(8), np.log(200), nodes))
    weekday = (np.arange(BURN_IN + rows) - BURN_IN + 2) % 7  # the first day of the table is a Wednesday
    share = 1 - rng.uniform(0.2, 0.7, nodes) * (weekday >= 5)[:, None] * (truth != PLAIN)
    values = np.tile(level, (BURN_IN + rows, 1))
    for now in range(1, len(values)):
        sent = (values[now - 1] / share[now - 1] - level) / level**0.5
        mean = np.maximum(level + level**0.5 * (weights @ sent), 0.05 * level)
        values[now] = rng.poisson(share[now] * mean)
    return system(kind, values[BURN_IN:], weights, dates(rows, "D"))


# Other noise, and values that are observed in another way.


def with_noise(
    seed: int,
    truth: str,
    kind: str,
    noise: Background,
    nodes: int = 8,
    rows: int = 1_000,
    sizes: tuple[float, float] = SIZES,
) -> System:
    """Linear series with another noise, or weights of other sizes."""
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, truth != NONE, sizes=sizes)
    return system(kind, linear(weights, noise(rng, BURN_IN + rows, nodes)), weights)


def gaussian(rng: np.random.Generator, rows: int, nodes: int) -> Values:
    """White noise of deviation 1."""
    return rng.normal(size=(rows, nodes))


def garch(rng: np.random.Generator, rows: int, nodes: int) -> Values:
    """GARCH(1, 1) for each node: its variance depends on its own last noise and variance."""
    alpha, beta = rng.uniform(0.1, 0.25, nodes), rng.uniform(0.6, 0.73, nodes)
    drawn, variance = rng.normal(size=(rows, nodes)), np.ones(nodes)
    for now in range(1, rows):
        variance = 1 - alpha - beta + alpha * drawn[now - 1] ** 2 + beta * variance
        drawn[now] *= variance**0.5
    return drawn


def common_volatility(rng: np.random.Generator, rows: int, nodes: int) -> Values:
    """All nodes share one slow log deviation, itself of deviation .6."""
    log_size = rng.normal(size=rows) * 0.6 * (1 - 0.97**2) ** 0.5
    for now in range(1, rows):
        log_size[now] += 0.97 * log_size[now - 1]
    return rng.normal(size=(rows, nodes)) * np.exp(log_size)[:, None]


def hidden_driver(seed: int, truth: str, kind: str, lagged: bool, nodes: int = 8, rows: int = 1_000) -> System:
    """An unseen series reaches three to five nodes: white and at once, or persistent and after zero to three steps."""
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, truth != NONE)
    rows += BURN_IN
    driver = rng.normal(size=rows + 3)
    if lagged:
        for now in range(1, len(driver)):
            driver[now] += 0.6 * driver[now - 1]
        driver /= driver.std()
    late = rng.integers(0, 4, nodes) if lagged else np.zeros(nodes, dtype=int)
    reached = rng.permutation(nodes) < rng.integers(3, 6)
    loads = reached * rng.uniform(0.5, 1.0, nodes) * rng.choice([-1.0, 1.0], nodes)
    noise = rng.normal(size=(rows, nodes)) + loads * driver[3 + np.arange(rows)[:, None] - late]
    return system(kind, linear(weights, noise), weights, reached=int(reached.sum()))


def changed(seed: int, truth: str, kind: str, change: Change, nodes: int = 8, rows: int = 1_000) -> System:
    """Linear series that are observed in another way."""
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, truth != NONE)
    values = linear(weights, rng.normal(size=(BURN_IN + rows, nodes)))
    return system(kind, change(rng, values), weights)


def measured(rng: np.random.Generator, values: Values) -> Values:
    """Add noise of .3 to 1 deviations."""
    return values + rng.normal(size=values.shape) * values.std(0) * rng.uniform(0.3, 1.0, values.shape[1])


def missing_blocks(rng: np.random.Generator, values: Values) -> Values:
    """Remove blocks of 5 to 40 rows from each node, 10% of its values."""
    values = values.copy()
    for node in range(values.shape[1]):
        while np.isnan(values[:, node]).mean() < 0.1:
            first = int(rng.integers(len(values)))
            values[first : first + int(rng.integers(5, 41)), node] = np.nan
    return values


def quantised(rng: np.random.Generator, values: Values) -> Values:
    """Round to steps of .4 to 1.2 deviations."""
    step = values.std(0) * rng.uniform(0.4, 1.2, values.shape[1])
    return np.asarray(np.round(values / step) * step)


def with_outliers(rng: np.random.Generator, values: Values) -> Values:
    """Add 5 to 15 deviations of either sign to 1% of the values."""
    spikes = rng.uniform(5, 15, values.shape) * rng.choice([-1.0, 1.0], values.shape) * values.std(0)
    return values + spikes * (rng.random(values.shape) < 0.01)


def saturated(rng: np.random.Generator, values: Values) -> Values:
    """Clip what is observed at .7 to 1.3 deviations."""
    bound = values.std(0) * rng.uniform(0.7, 1.3, values.shape[1])
    return np.clip(values, -bound, bound)


def other_unit(rng: np.random.Generator, values: Values) -> Values:
    """From a row on, two nodes are given in Fahrenheit instead of Celsius; all are about 20 degrees."""
    values = 20 + 3 * values
    first, nodes = int(rng.integers(MARGIN, len(values) - MARGIN)), rng.choice(values.shape[1], 2, replace=False)
    values[first:, nodes] = 32 + 1.8 * values[first:, nodes]
    return values


# Systems of their own.


def random_walks(seed: int, truth: str, kind: str, nodes: int = 8, rows: int = 800) -> System:
    """Without edges all nodes are random walks; with edges three are, which receive nothing but send."""
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, truth != NONE)
    walks = np.arange(nodes) < (nodes if truth == NONE else 3)
    if truth != NONE:
        others = rng.permutation(np.arange(3, nodes))[:3]
        weights[others, np.arange(3)] = rng.uniform(*SIZES, 3)  # every walk sends to a node
        weights[3:, 3:] = stable(np.zeros((nodes - 3,) * 2), _between(weights[3:, 3:]), weights.diagonal()[3:])[1]
    weights[walks] = np.eye(nodes)[walks]
    return system(kind, linear(weights, rng.normal(size=(BURN_IN + rows, nodes))), weights)


def _between(weights: Weights) -> Weights:
    return weights * ~np.eye(len(weights), dtype=bool)


def exact_zeros(seed: int, truth: str, kind: str, nodes: int = 8, rows: int = 1_000) -> System:
    r"""Rain: $10 r_t^2$ with one digit is observed, $r_t = \max(0, c + (\mathrm{diag}(o) + |W|) r_{t-1} + e_t)$.

    About two thirds of the values are 0. On odd seeds $r = \max(0, c + s)$ with a linear series s, of which negative
    values act too, although 0 is observed there.
    """
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, truth != NONE)
    weights = stable(np.zeros_like(weights), np.abs(_between(weights)), weights.diagonal())[1]
    dry, noise = rng.uniform(-0.9, -0.3, nodes), rng.normal(size=(BURN_IN + rows, nodes))
    if seed % 2:
        roots = dry + linear(weights, noise)
    else:
        for now in range(1, len(noise)):
            noise[now] += dry + weights @ np.maximum(0, noise[now - 1])
        roots = noise[BURN_IN:]
    return system(kind, (10 * np.maximum(0, roots) ** 2).round(1), weights)


def aggregated(seed: int, truth: str, kind: str, nodes: int = 8, rows: int = 1_000) -> System:
    """Means of three steps of linear series."""
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, truth != NONE)
    values = linear(weights, rng.normal(size=(BURN_IN + 3 * rows, nodes)))
    return system(kind, values.reshape(rows, 3, nodes).mean(1), weights)


def changing_weights(seed: int, truth: str, kind: str, nodes: int = 8, rows: int = 1_000) -> System:
    """Half of the edges end half-way, and all own weights change there."""
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, truth != NONE)
    own = np.diag(rng.uniform(*OWN, nodes))
    ending = np.where(rng.random(weights.shape) < 0.5, 0.0, 1.0)
    later = stable(np.zeros_like(weights), _between(weights) * ending, own.diagonal())[1]
    noise = rng.normal(size=(BURN_IN + rows, nodes))
    first = linear(weights, noise[: BURN_IN + rows // 2])
    second = noise[BURN_IN + rows // 2 :].copy()
    second[0] += later @ first[-1]
    for now in range(1, len(second)):
        second[now] += later @ second[now - 1]
    return system(kind, np.concatenate([first, second]), weights)


def oscillators(seed: int, truth: str, kind: str, nodes: int = 8, rows: int = 1_000) -> System:
    """Noisy phase oscillators (Kuramoto), of which the sine is observed; periods of 12 to 30 rows."""
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, truth != NONE)
    pull = 0.15 * (_between(weights) != 0)
    pace, phase = 2 * np.pi / rng.uniform(12, 30, nodes), rng.uniform(0, 2 * np.pi, nodes)
    values = np.zeros((BURN_IN + rows, nodes))
    for now in range(len(values)):
        drawn = (pull * np.sin(phase - phase[:, None])).sum(1)
        phase = phase + pace + drawn + 0.15 * rng.normal(size=nodes)
        values[now] = np.sin(phase)
    return system(kind, values[BURN_IN:], weights)


def returns(seed: int, truth: str, kind: str, nodes: int = 25, rows: int = 2_000) -> System:
    """Daily returns: three unseen factors with one volatility reach every node, each after zero to two days.

    Edges act on what the factors leave over, which has heavy tails and no memory of its own.
    """
    rng = np.random.default_rng(seed)
    drawn = random_weights(rng, nodes, 0.8 / (nodes - 1), *SIZES)
    weights = stable(np.zeros_like(drawn), drawn * (truth != NONE), rng.uniform(0, 0.1, nodes))[1]
    own = linear(weights, rng.standard_t(5, size=(BURN_IN + rows, nodes)) * 0.6**0.5)
    factors = common_volatility(rng, rows + 2, 3)
    total = own
    for factor in factors.T:
        late, loads = rng.integers(0, 3, nodes), rng.uniform(0.2, 1.0, nodes) * rng.choice([-1.0, 1.0])
        total = total + loads * factor[2 + np.arange(rows)[:, None] - late]
    return system(kind, total, weights, reached=nodes)


def storms(seed: int, truth: str, kind: str, nodes: int = 15, rows: int = 1_000) -> System:
    """River gauges: a few unseen storms reach all of them, each after zero to three hours, and levels recede slowly."""
    rng = np.random.default_rng(seed)
    drawn = np.abs(random_weights(rng, nodes, 0.8 / (nodes - 1), *SIZES))
    weights = stable(np.zeros_like(drawn), drawn * (truth != NONE), rng.uniform(0.6, 0.9, nodes))[1]
    rain = rng.gamma(0.5, 2.0, BURN_IN + rows + 3) * (gaussian_filter1d(rng.normal(size=BURN_IN + rows + 3), 4) > 0.25)
    late, loads = rng.integers(0, 4, nodes), rng.uniform(0.5, 1.5, nodes)
    noise = 0.3 * rng.normal(size=(BURN_IN + rows, nodes))
    values = linear(weights, noise + loads * rain[3 + np.arange(BURN_IN + rows)[:, None] - late])
    return system(kind, values, weights, reached=nodes)


def mixed(seed: int, truth: str, kind: str, share: float = 0.1) -> System:
    """Every sensor adds a tenth of both neighbours on a ring to its own node: a linear series, or an oscillator."""
    own = (oscillators if seed % 2 else partial(with_noise, noise=gaussian))(seed, truth, kind)
    values = own.series[0] / own.series[0].std(0)
    seen = values + share * (np.roll(values, 1, axis=1) + np.roll(values, -1, axis=1))
    return replace(own, series=(np.ascontiguousarray(seen),))


def gauges(seed: int, truth: str, kind: str, rows: int = 3_000) -> System:
    """A tree of nine gauges, smooth and with little noise; a daily cycle drives the root, and there are short gaps."""
    rng, nodes = np.random.default_rng(seed), 9
    parents = {node: [int(rng.integers(max(0, node - 3), node))] for node in range(1, nodes)}
    parents[6] = [4, 5]  # two rivers meet
    late, graph = rng.integers(1, 3, nodes), np.zeros((nodes, nodes))
    day = 2 * np.pi * np.arange(BURN_IN + rows) / 96
    demand = 2 + np.sin(day) + 0.5 * np.sin(2 * day)
    values = np.zeros((BURN_IN + rows, nodes))
    inflow, noise = rng.gamma(1.0, 0.3, size=len(values)), 0.15 * rng.normal(size=values.shape)
    for now in range(2, len(values)):
        values[now] = 0.6 * values[now - 1] + noise[now]
        values[now, 0] += 0.3 * values[now - 1, 0] + 0.3 * demand[now] + inflow[now]
        for node, ends in parents.items() if truth != NONE else ():
            values[now, node] += 0.4 * values[now - late[node], ends].sum()
    for node, ends in parents.items() if truth != NONE else ():
        graph[node, ends] = 0.4
    values = values[BURN_IN:]
    for _ in range(12):
        first = int(rng.integers(rows))
        values[first : first + int(rng.integers(5, 41)), rng.integers(nodes)] = np.nan
    return system(kind, values, graph, times=dates(rows, "m") + np.arange(rows) * np.timedelta64(14, "m"))


def monitoring(seed: int, truth: str, kind: str, nodes: int = 10, rows: int = 1_500) -> System:
    """Loads of computers: each is idle, an exact constant, in long stretches, and has bursts; values are rounded."""
    rng = np.random.default_rng(seed)
    weights = stable(
        np.zeros((nodes, nodes)), np.abs(_between(weights_of(rng, nodes, truth != NONE))), np.full(nodes, 0.3)
    )[1]
    busy = gaussian_filter1d(rng.normal(size=(BURN_IN + rows, nodes)), 15, axis=0) > rng.uniform(-0.05, 0.1, nodes)
    noise = busy * rng.gamma(1.0, 1.0, size=busy.shape) * (1 + 8 * (rng.random(busy.shape) < 0.02))
    return system(kind, linear(weights, noise).round(1), weights)


def hub(seed: int, truth: str, kind: str, nodes: int = 12, rows: int = 1_000) -> System:
    """One node sends to ten of the eleven others."""
    rng = np.random.default_rng(seed)
    weights = np.diag(rng.uniform(*OWN, nodes))
    if truth != NONE:
        weights[1:11, 0] = rng.uniform(*SIZES, 10) * rng.choice([-1.0, 1.0], 10)
    return system(kind, linear(weights, rng.normal(size=(BURN_IN + rows, nodes))), weights)


def _kinds() -> tuple[dict[str, Callable[..., System]], tuple[str, ...]]:
    one = partial(with_background, nodes=40, parents=0.8)
    long = partial(waves, periods=(24.0, 168.0), sizes=(2.0, 5.0))
    backgrounds: dict[str, Callable[..., System]] = {
        "trend": partial(with_background, background=trends, rows=600),
        "cycle": partial(with_background, background=partial(waves, periods=(24.0,)), rows=1_000, step="h"),
        "cycle_undated": partial(with_background, background=unknown_wave, rows=1_000),
        "two_cycles": partial(with_background, background=long, rows=1_000, step="h"),
        "two_cycles_undated": partial(with_background, background=long, rows=1_000),
        "weekend": partial(with_background, background=weekends, rows=730, nodes=6, step="D"),
        "weekend_counts": weekend_counts,
        "yearly": partial(with_background, background=yearly_wave, rows=1_095, step="D"),
        "shift": partial(with_background, background=partial(shifts, common=False)),
        "shift_common": partial(with_background, background=partial(shifts, common=True)),
        "trend_and_cycle": partial(with_background, background=trends_and_waves, rows=1_200, step="h"),
        "one_of_40_trend": partial(one, background=partial(of_one, background=trends)),
        "one_of_40_shift": partial(one, background=partial(of_one, background=partial(shifts, common=False))),
        "one_of_40_cycle": partial(
            one, background=partial(of_one, background=partial(waves, periods=(24.0,))), rows=1_000, step="h"
        ),
    }
    others: dict[str, Callable[..., System]] = {
        "plain_var": partial(with_noise, noise=gaussian),
        "small_effects": partial(with_noise, noise=gaussian, sizes=(0.0, SIZES[1])),
        "hub": hub,
        "random_walk": random_walks,
        "volatility": partial(with_noise, noise=garch),
        "common_volatility": partial(with_noise, noise=common_volatility),
        "hidden_now": partial(hidden_driver, lagged=False),
        "hidden_lagged": partial(hidden_driver, lagged=True),
        "measurement_noise": partial(changed, change=measured),
        "missing_blocks": partial(changed, change=missing_blocks),
        "quantised": partial(changed, change=quantised),
        "outliers": partial(changed, change=with_outliers),
        "saturation": partial(changed, change=saturated),
        "unit_change": partial(changed, change=other_unit),
        "exact_zeros": exact_zeros,
        "aggregated": aggregated,
        "changing_weights": changing_weights,
        "oscillators": oscillators,
        "mixed": mixed,
        "returns": returns,
        "storms": storms,
        "monitoring": monitoring,
        "gauges": gauges,
    }
    compass: dict[str, Callable[..., System]] = {name: partial(from_compass, name=name) for name in COMPASS}
    return backgrounds | others | compass, tuple(backgrounds)


def from_compass(seed: int, _truth: str, kind: str, name: str) -> System:
    """A system of the package causalcompass, whose graphs always have edges."""
    values, graph = compass_values(name, seed)
    return system(kind, values, graph.astype(float))


KINDS, BACKGROUNDS = _kinds()
HIDDEN = ("hidden_now", "hidden_lagged", "returns", "storms")  # an unseen series reaches several nodes


def truths(kind: str) -> tuple[str, ...]:
    """Return what the truth of a kind can be."""
    if kind in COMPASS:
        return (EDGES,)
    return (NONE, EDGES, PLAIN) if kind in BACKGROUNDS else (NONE, EDGES)


def make(kind: str, seed: int, truth: str) -> System:
    """Return one system of :data:`KINDS`."""
    return KINDS[kind](seed, truth, kind=kind)
