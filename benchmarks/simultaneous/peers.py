"""PCMCI+ (tigramite) and VARLiNGAM (lingam) as functions from one series to an :class:`Answer`.

Both see standardised values. Their settings were chosen on the seeds ``CHOOSE``, among :data:`VARIANTS`
(``python -m benchmarks.simultaneous.settings``).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from benchmarks.existence.design import standardised
from benchmarks.existence.systems import Graph, Values
from jaxtyping import Float

Matrix = Float[np.ndarray, "node node"]


@dataclass(frozen=True, eq=False)
class Answer:
    """What a method says of every pair of nodes; rows receive, higher is surer. Symmetric where there is no direction.

    ``directed``, ``undirected``         an edge at any lag
    ``within``, ``within_undirected``    an edge at lag 0
    ``listed``                           the pairs that the method lists at lag 0, in one direction at least
    ``probabilities``                    whether the numbers are probabilities
    """

    directed: Matrix
    undirected: Matrix
    within: Matrix
    within_undirected: Matrix
    listed: Graph | None = None
    probabilities: bool = False


Method = Callable[[Values], Answer]


@dataclass(frozen=True)
class PCMCIPlus:
    """PCMCI+ with partial correlation: links of its graph first, then by ``strength``.

    A link scores 1, a link at lag 0 without a direction (or with conflicting ones) 1/2 in each direction, all others 0.
    To this half the strength of the test is added, so that it decides among equal links only.
    """

    alpha: float | None = 0.05
    lags: int = 2
    strength: str = "value"

    def __call__(self, values: Values) -> Answer:
        """Return the scores of one series."""
        from tigramite import data_processing
        from tigramite.independence_tests.parcorr import ParCorr
        from tigramite.pcmci import PCMCI

        frame = data_processing.DataFrame(standardised((values,))[0])
        search = PCMCI(frame, ParCorr(significance="analytic"), verbosity=0)
        found = search.run_pcmciplus(tau_min=0, tau_max=self.lags, pc_alpha=self.alpha)
        sizes = np.abs(found["val_matrix"]) if self.strength == "value" else 1 - found["p_matrix"]
        half = 0.5 * np.clip(np.nan_to_num(sizes), 0, 0.999)  # (source, target, lag)
        links = found["graph"]
        open_links = np.isin(links, ("o-o", "x-x"))
        directed = 1.0 * (links == "-->") + 0.5 * open_links + half
        linked = 1.0 * (links != "") + half
        now = linked[:, :, 0]
        undirected = linked.max(2)
        return Answer(
            directed.max(2).T,
            np.maximum(undirected, undirected.T),
            directed[:, :, 0].T,
            np.maximum(now, now.T),
            (links[:, :, 0] != "") | (links[:, :, 0].T != ""),
        )


@dataclass(frozen=True)
class VARLiNGAM:
    """VARLiNGAM, as many lags as BIC chooses: sizes of its weights, or how often resamples keep an edge."""

    lags: int = 3
    prune: bool = True
    resamples: int = 0

    def __call__(self, values: Values) -> Answer:
        """Return the scores of one series."""
        import lingam

        values = standardised((values,))[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the lasso of the pruning warns about convergence
            model = lingam.VARLiNGAM(lags=self.lags, prune=self.prune, random_state=0)
            if self.resamples:
                drawn = [np.asarray(one) for one in model.bootstrap(values, self.resamples).adjacency_matrices_]
                every = np.zeros((len(drawn), self.lags + 1, *drawn[0][:, : len(drawn[0])].shape))
                for number, one in enumerate(drawn):  # (target, lag and source): resamples may differ in lags
                    blocks = one.reshape(len(one), -1, len(one)).swapaxes(0, 1)
                    every[number, : len(blocks)] = blocks
                weights = np.abs(every).mean(0) * (every != 0).mean(0)
            else:
                weights = np.abs(model.fit(values).adjacency_matrices_)
        directed, now = weights.max(0), weights[0]
        listed = (now > 0) | (now.T > 0) if self.prune and not self.resamples else None
        return Answer(directed, np.maximum(directed, directed.T), now, np.maximum(now, now.T), listed)


PEERS: dict[str, Method] = {
    "PCMCI+": PCMCIPlus(),
    "VARLiNGAM": VARLiNGAM(),
    "VARLiNGAM, resampled": VARLiNGAM(1, resamples=10),
}
VARIANTS: dict[str, Method] = {
    **{
        f"PCMCI+ alpha {alpha}, lags to {lags}": PCMCIPlus(alpha, lags)
        for lags in (1, 2)
        for alpha in (0.01, 0.05, 0.2)
    },
    "PCMCI+ alpha 0.05, lags to 3": PCMCIPlus(0.05, 3),
    "PCMCI+ alpha 0.05, lags to 2, p-value": PCMCIPlus(0.05, 2, "p"),
    "PCMCI+ alpha chosen, lags to 2": PCMCIPlus(None, 2),
    **{f"VARLiNGAM lags to {lags}, pruned": VARLiNGAM(lags) for lags in (1, 2, 3)},
    **{f"VARLiNGAM lags to {lags}, not pruned": VARLiNGAM(lags, prune=False) for lags in (1, 2, 3)},
    "VARLiNGAM lags to 1, pruned, 10 resamples": VARLiNGAM(1, resamples=10),
}
