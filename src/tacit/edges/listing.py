r"""Which edges are listed at a false discovery rate.

$$\{e : p_e \ge t\} \quad\text{with the smallest } t \ge \tfrac12 \text{ for which}\quad
\operatorname{mean}_{p_e \ge t} (1 - p_e) \le \text{fdr}$$

$p_e$ is the probability that edge $e$ exists.
"""

import numpy as np
from jaxtyping import Bool, Float

from tacit.errors import InputError, require

# Probabilities are stored in single precision: 1 - 0.95 is not exactly 0.05, but should count as such.
ROUNDING = 1e-7
FDR = 0.1  # expected share of false edges among the listed ones
LISTED_FROM = 0.5  # edges with a lower probability are never listed

Exists = Float[np.ndarray, " edge"]
Shown = Bool[np.ndarray, " edge"]


def listed_edges(exists: Exists, fdr: float = FDR, learned: Shown | None = None) -> Shown:
    r"""Return the largest list of edges with $p \ge 1/2$ and an expected share of false edges of at most ``fdr``.

    ``exists``   the probability that each edge exists; NaN if it was not computed
    ``learned``  false for fixed edges: they are known, so they are neither listed nor counted

    Edges with equal probability are listed together or not at all; the list can be empty.

    >>> listed_edges(np.array([1.0, 0.9, 0.8, 0.6]), 0.1).tolist()
    [True, True, True, False]
    """
    require(
        isinstance(fdr, int | float) and not isinstance(fdr, bool) and 0 < fdr < 1,
        f"fdr must be a number between 0 and 1, got {fdr!r}; pass for example {FDR:g}",
    )
    _require_exists(exists)
    listed = exists >= LISTED_FROM  # false where it is NaN
    if learned is not None:
        _require_mask("learned", learned, exists)
        listed &= learned
    false = 1 - exists[listed].astype(np.float64)
    ranked = np.sort(false)
    so_many = np.searchsorted(ranked, false, side="right")  # edges at least as likely as each, including itself
    listed[listed] = ranked.cumsum()[so_many - 1] / so_many <= fdr + ROUNDING
    return listed


def false_discoveries(exists: Exists, listed: Shown) -> float:
    r"""Return the expected number of false edges in a list: $\sum_{\text{listed}} (1 - p_e)$.

    >>> exists = np.array([1.0, 0.75, 0.75, 0.25])
    >>> false_discoveries(exists, listed_edges(exists, 0.2))
    0.5
    """
    _require_exists(exists)
    _require_mask("listed", listed, exists)
    return float((1 - exists[listed].astype(np.float64)).sum())


def _require_mask(name: str, mask: object, exists: Exists) -> None:
    require(
        isinstance(mask, np.ndarray) and mask.dtype == bool and mask.shape == exists.shape,
        f"{name} must be an array of booleans of shape {exists.shape}, got "
        f"{getattr(mask, 'dtype', type(mask).__name__)} of {getattr(mask, 'shape', ())}; pass one per edge",
    )


def _require_exists(exists: object) -> None:
    require(
        isinstance(exists, np.ndarray) and exists.ndim == 1 and np.issubdtype(exists.dtype, np.floating),
        f"exists must be a vector of floats, got {getattr(exists, 'dtype', type(exists).__name__)} of "
        f"{getattr(exists, 'shape', ())}; pass the probability that each edge exists",
    )
    assert isinstance(exists, np.ndarray)
    outside = np.flatnonzero((exists < 0) | (exists > 1))
    if len(outside):
        raise InputError(
            f"exists must have values in [0, 1], or NaN where unknown, got {exists[outside[0]]} at {outside[0]}; "
            "pass probabilities"
        )
