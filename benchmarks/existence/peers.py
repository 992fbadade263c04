"""Other methods, each a function from several series to a score for every edge (rows receive; higher is surer).

All see standardised values and the lags that a ridge regression forecasts best with. Scores are no probabilities;
:mod:`benchmarks.existence.stability` has those of stability selection.
"""

import warnings
from collections.abc import Callable

import numpy as np
from benchmarks.existence.design import BLOCKS, Design, Scores, chosen_design, standardised
from benchmarks.existence.systems import Values
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.model_selection import KFold

RIDGE_PENALTIES = np.logspace(-4, 1, 16)
TREES = 100
MOST_TREE_ROWS = 500  # per tree; more rows change the ranking little and cost much

Peer = Callable[[tuple[Values, ...], bool], Scores]


def ridge(series: tuple[Values, ...], centre: bool = False) -> Scores:
    """Sizes of the weights of a ridge VAR, a penalty for each target by leave-one-out."""
    design = chosen_design(series, centre)
    model = RidgeCV(RIDGE_PENALTIES * len(design.targets), alpha_per_target=True).fit(design.columns, design.targets)
    return design.scores(model.coef_)


def lasso(series: tuple[Values, ...], centre: bool = False) -> Scores:
    """Sizes of the weights of a lasso VAR, a penalty for each target on blocks of rows that are left out."""
    design = chosen_design(series, centre)
    weights = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for target in design.targets.T:
            model = LassoCV(cv=KFold(BLOCKS), alphas=50, max_iter=5_000).fit(design.columns, target)
            weights.append(model.coef_)
    return design.scores(np.stack(weights))


def random_forest(series: tuple[Values, ...], centre: bool = False) -> Scores:
    """Impurity importances of a random forest for the change of each node, in shares of its variance."""
    design = chosen_design(series, centre)
    rows = min(len(design.targets), MOST_TREE_ROWS)
    sizes = []
    for number, target in enumerate(design.targets.T):
        forest = RandomForestRegressor(TREES, max_features=1 / 3, max_samples=rows, random_state=0, n_jobs=1)
        sizes.append(forest.fit(design.columns, target - design.inputs[:, 0, number]).feature_importances_)
    return _summed(design, np.stack(sizes))


def pcmci(series: tuple[Values, ...], centre: bool = False) -> Scores:
    """Largest partial correlation over the lags in the second stage of PCMCI (tigramite, ParCorr)."""
    sizes = np.abs(pcmci_results(series, centre)["val_matrix"][:, :, 1:]).max(2)  # (source, target)
    return np.asarray(np.nan_to_num(sizes.T))


def pcmci_results(series: tuple[Values, ...], centre: bool = False) -> dict[str, np.ndarray]:
    """Return the arrays (source, target, lag) that PCMCI returns, with its defaults."""
    from tigramite import data_processing
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.pcmci import PCMCI

    lags = chosen_design(series, centre).lags
    parts = standardised(series, centre)
    several = len(parts) > 1
    frame = data_processing.DataFrame(
        dict(enumerate(parts)) if several else parts[0], analysis_mode="multiple" if several else "single"
    )
    found: dict[str, np.ndarray] = PCMCI(frame, ParCorr(significance="analytic"), verbosity=0).run_pcmci(
        tau_min=1, tau_max=lags
    )
    return found


def varlingam(series: tuple[Values, ...], centre: bool = False) -> Scores:
    r"""Sizes of the lagged weights of VARLiNGAM (lingam), several series sharing one VAR.

    A VAR $M_\tau$ by least squares, DirectLiNGAM on what it leaves gives the instantaneous $B_0$, and
    $B_\tau = (I - B_0) M_\tau$. Not pruned: a ranking needs no zeros.
    """
    import lingam

    design = chosen_design(series, centre)
    columns = np.column_stack([design.columns, np.ones(len(design.targets))])
    weights = np.linalg.lstsq(columns, design.targets, rcond=None)[0]
    model = lingam.DirectLiNGAM().fit(design.targets - columns @ weights)
    adjusted = (np.eye(design.num_nodes) - model.adjacency_matrix_) @ weights[:-1].T
    lag_scores = design.scores(adjusted)
    return np.asarray(np.maximum(lag_scores, np.abs(model.adjacency_matrix_)))


PEERS: dict[str, Peer] = {
    "ridge": ridge,
    "lasso": lasso,
    "random forest": random_forest,
    "PCMCI": pcmci,
    "VARLiNGAM": varlingam,
}


def _summed(design: Design, sizes: np.ndarray) -> Scores:
    """Return the sum over lags of importances, which are shares of variance already."""
    return np.asarray(sizes.reshape(len(sizes), design.lags, design.num_nodes).sum(1))
