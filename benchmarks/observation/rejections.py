r"""How often does the fit test reject the right model, and a Gaussian one on counts?

    python -m benchmarks.observation.rejections --kind poisson bernoulli --sets 1000

Five nodes with random gates, f linear in the inputs. Data sets of 200 pairs (100 of counts, 500 for *gaussian*) are
drawn by ``torch.distributions``, not by the observation model that is tested. *right* is the model that drew them.
*gaussian* has the right graph, the right mean of every target under every graph, and noise of the right variance for
each node; *gaussian fit* is what ``tacit fit`` makes of a series of counts with ``observation.kind = "gaussian"``.
Writes ``benchmarks/results/observation/rejections.json``.
"""

import argparse
from collections.abc import Callable

import numpy as np
import torch
from benchmarks.observation.records import RESULTS, Figures, rounded, write
from benchmarks.observation.systems import FAMILIES, series_of
from joblib import Parallel, delayed
from torch import Tensor, distributions, nn
from torch.nn.functional import softplus

from tacit import observation
from tacit.assessment.fit_tests import goodness_of_fit
from tacit.data import Pairs, Series
from tacit.graph import AnyGraphs, BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import ObservationModel, TargetValues
from tacit.predictors import GraphFilter
from tacit.randomness import generator_for
from tacit.shapes import Inputs, Outputs
from tacit.training import LatentGraphModel

RECORD = RESULTS / "rejections.json"
NODES, PAIRS, LEVEL = 5, 200, 0.05
COUNT_PAIRS, GAUSSIAN_PAIRS = 100, 500  # fewer of counts, whose samples take longer
LARGEST = {"poisson": 25, "negative_binomial": 45}  # of exact sums over counts; means stay below 10
ALPHA, SIGMA, DEGREES, CUTS = 0.2, 0.5, 3.0, (-1.5, -0.5, 0.5, 1.5)
SERIES_ROWS = 1_500
KINDS = ("poisson", "negative_binomial", "bernoulli", "ordered", "log_normal", "student_t")


class PositiveFilter(nn.Module):
    """A filter whose output is the mean of counts: log(1 + exp(f))."""

    num_hops = 1

    def __init__(self, inner: GraphFilter) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        """Return the means."""
        return softplus(self.inner(inputs, graphs))


def true_parts(kind: str) -> tuple[Tensor, GraphFilter]:
    """Return theta and the predictor: eight edges, theta between .3 and .9, weights of either sign."""
    rng = np.random.default_rng(22)
    places = rng.choice(np.flatnonzero(~np.eye(NODES, dtype=bool)), 8, replace=False)
    theta, weights = np.zeros(NODES * NODES), np.zeros(NODES * NODES)
    theta[places] = rng.uniform(0.3, 0.9, 8)
    weights[places] = rng.uniform(0.6, 1.2, 8) * rng.choice([-1.0, 1.0], 8)
    positive = kind in ("poisson", "negative_binomial", "log_normal")
    bias = torch.from_numpy(rng.uniform(1.0, 4.0, NODES) if positive else np.zeros(NODES))
    shape = (NODES, NODES, 1, 1)
    own = torch.full((NODES, 1, 1), 0.5)
    filtered = GraphFilter(NODES, 1, 1, residual=False)
    filtered = filtered.with_weights(own, torch.from_numpy(weights.reshape(shape)).float(), bias.float()[:, None])
    return torch.from_numpy(theta.reshape(NODES, NODES)).float(), filtered.requires_grad_(False)


def true_noise(kind: str) -> ObservationModel:
    """Return the observation model that draws the targets."""
    ones = torch.ones(NODES, 1)
    categories = tuple(range(1, 6)) if kind == "ordered" else ()
    values = TargetValues(torch.zeros(NODES, 1), ones, tuple(map(float, categories)), LARGEST.get(kind, 100))
    noise = observation_class(kind).for_sizes(num_nodes=NODES, in_channels=1, channels=1, values=values)
    match kind:
        case "negative_binomial":
            noise.log_dispersion.data += (ALPHA / noise.dispersion).log().detach()
        case "log_normal":
            noise.log_sigma.data += (SIGMA / noise.sigma).log().detach()
        case "student_t":
            noise.raw_degrees.data.fill_(float(np.log(np.expm1(DEGREES - 2.01))))
            noise.log_sigma.data.fill_(0.0)
        case "ordered":
            noise.load_state_dict(noise.with_cuts(torch.tensor(CUTS).expand(NODES, 1, -1)))
    return noise


def observation_class(kind: str) -> type[ObservationModel]:
    """Return the class of a kind."""
    names = {"poisson": "PoissonCounts", "negative_binomial": "NegativeBinomialCounts", "bernoulli": "BernoulliTargets"}
    names |= {"ordered": "OrderedCategories", "log_normal": "LogNormalNoise", "student_t": "StudentTNoise"}
    return getattr(observation, names[kind])  # type: ignore[no-any-return]


def drawn(kind: str, outputs: Tensor, noise: ObservationModel) -> Tensor:
    """Draw targets with the parameters of the noise, by the global generator."""
    mean = softplus(outputs)
    match kind:
        case "poisson":
            return torch.poisson(mean)
        case "negative_binomial":
            return torch.poisson(distributions.Gamma(1 / noise.dispersion, 1 / (noise.dispersion * mean)).sample())
        case "bernoulli":
            return torch.bernoulli(torch.sigmoid(outputs))
        case "log_normal":
            return distributions.LogNormal(mean.log() - noise.sigma.square() / 2, noise.sigma).sample()
        case "student_t":
            return outputs + noise.sigma * distributions.StudentT(noise.degrees).sample(outputs.shape[:1])
    uniforms = torch.rand_like(outputs)
    logistic = uniforms.log() - torch.log1p(-uniforms)
    return 1.0 + ((outputs + logistic)[..., None] > noise.cuts).sum(-1)


@torch.no_grad()
def p_value(kind: str, number: int, *, gaussian: bool = False) -> float:
    """Return the p-value of the right model, or of a Gaussian one, on one data set."""
    theta, predictor = true_parts(kind)
    noise, graph = true_noise(kind), BernoulliGraph(theta)
    generator = generator_for(number, kind)
    count = GAUSSIAN_PAIRS if gaussian else COUNT_PAIRS if kind in LARGEST else PAIRS
    inputs = torch.randn(count, NODES, 1, generator=generator)
    outputs = predictor(inputs, graph.sample(1, num_pairs=count, generator=generator))[:, 0]
    with torch.random.fork_rng():
        torch.manual_seed(number)
        targets = drawn(kind, outputs, noise)
    model: nn.Module = predictor
    if gaussian:
        model, noise = PositiveFilter(predictor), observation.GaussianNoise(NODES)
        noise.load_state_dict(noise.with_deviations(softplus(outputs).mean(0).sqrt()))
    tested = LatentGraphModel(graph, model, EnergyScore(), observation=noise)
    return goodness_of_fit(tested, Pairs(inputs, targets), generator=generator, level=LEVEL).p_value


def fitted_p_value(number: int) -> float:
    """Return the p-value of ``tacit fit`` with Gaussian noise on a series of counts with means between 1 and 4."""
    from tacit.config import FitConfig, override
    from tacit.pipeline.fitting import learn
    from tacit.pipeline.plan import resolve
    from tacit.pipeline.sources import Source

    rng = np.random.default_rng([22, number])
    weights = np.where(np.eye(NODES, k=-1) > 0, 0.5, 0.0)
    level, own = rng.uniform(1.0, 4.0, NODES), np.full(NODES, 0.3)
    theta = np.where(weights > 0, 0.7, 0.0)
    constant = level - own * level - (theta * weights) @ level
    values = series_of(rng, FAMILIES["poisson"], weights, theta, own, constant, level, SERIES_ROWS)
    series = Series(values[:, :, None], tuple(f"v{node}" for node in range(NODES)))
    parts = {"predictor": {"kind": "filter"}, "observation": {"kind": "gaussian"}}
    assessment = {"bootstrap_replicas": 0, "controls": False}
    config = override(FitConfig(), {**parts, "assessment": assessment})
    plan = resolve(Source("series", series), config, seed=0, device=torch.device("cpu"), command="benchmark")
    return float(learn(plan).goodness["p_value"])


def rejected(function: Callable[..., float], sets: int, jobs: int, **options: object) -> Figures:
    """Return the share of data sets with a p-value up to 5%, and its standard error."""
    found = Parallel(n_jobs=jobs)(delayed(function)(number=number, **options) for number in range(sets))
    share = float(np.mean(np.array(found) <= LEVEL))
    return {"sets": sets, "rejected": share, "std_error": (share * (1 - share) / sets) ** 0.5, "p_values": found}


def main() -> None:
    """Run the chosen kinds, a record for each at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="+", choices=[*KINDS, "gaussian", "gaussian fit"], default=list(KINDS))
    parser.add_argument("--sets", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for kind in options.kind:
        if kind == "gaussian fit":
            found = rejected(fitted_p_value, options.sets, options.jobs)
        else:
            counts = "poisson" if kind == "gaussian" else kind
            found = rejected(p_value, options.sets, options.jobs, kind=counts, gaussian=kind == "gaussian")
        write(RECORD, kind, rounded(found))
        print(kind, {key: value for key, value in found.items() if key != "p_values"}, flush=True)


if __name__ == "__main__":
    main()
