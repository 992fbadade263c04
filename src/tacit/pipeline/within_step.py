"""Sentences and columns on effects within a step: how many edges have them, and how their directions were found."""

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from tacit.assessment.evidence import LAGGED_PARENTS, LEARNED, NOT_GAUSSIAN, RULE, WithinStep
from tacit.edges import OPEN, EdgeTable

Mask = Bool[np.ndarray, " edge"]

GAUSSIAN_P = "gaussian_noise_p"  # in the evidence of a record
LIKELY = 0.5  # an edge acts within the step if that is more likely than not
FROM = {
    LEARNED: "learned from non-Gaussian noise",
    LAGGED_PARENTS: "from lagged parents",
    RULE: "given by rules",
    OPEN: "open (shown without an arrow)",
}
DRIVER = "A common driver that is not in the data can look like an effect within the step."
FROM_TIME = "from an effect after the step"
NON_GAUSSIAN = "The noise is not Gaussian ({p}): it helps to find directions within the step."
GAUSSIAN = (
    "The noise is compatible with a Gaussian distribution ({p}): directions within the step are known only where "
    "lagged parents or rules give them."
)


def within_columns(within: WithinStep) -> dict[str, Tensor]:
    """Return the columns of ``edges.csv``; a node has no effect on itself within a step."""
    own = torch.eye(len(within.probs), dtype=torch.bool)
    return {
        "within_step": within.probs.float().masked_fill(own, torch.nan),
        "direction": within.directions.masked_fill(own, 0).to(torch.uint8),
        "exists_either": within.either.float().masked_fill(own, torch.nan),
    }


def acting_within(edges: EdgeTable, listed: Mask) -> Mask:
    """Return the listed edges that act within the step."""
    if "within_step" not in edges:
        return np.zeros_like(listed)
    return np.asarray(listed & (edges.undirected | (edges["within_step"] >= LIKELY)))


def within_sentences(edges: EdgeTable, listed: Mask, gaussian: float | None) -> list[str]:
    """Return sentences on the listed edges that act within the step, their directions, and the noise."""
    if "within_step" not in edges or "direction" not in edges:
        return []
    acts = acting_within(edges, listed)
    count = int(acts.sum())
    if not listed.any():
        return _noise(gaussian)
    if not count:
        return ["No listed edge acts within the step.", *_noise(gaussian)]
    direction = np.where(edges["direction"] == OPEN, 0, edges["direction"])
    known = np.where(edges.undirected, OPEN, direction)[acts].tolist()
    parts = [(known.count(code), words) for code, words in FROM.items()]
    parts.insert(3, (sum(code not in FROM for code in known), FROM_TIME))
    if count == 1:
        said = f"1 edge acts within the step. Its direction: {next(words for many, words in parts if many)}."
    else:
        listed_parts = ", ".join(f"{many:,} {words}" for many, words in parts if many)
        said = f"{count:,} edges act within the step. Their directions: {listed_parts}."
    return [f"{said} {DRIVER}", *_noise(gaussian)]


def _noise(gaussian: float | None) -> list[str]:
    if gaussian is None or gaussian != gaussian:
        return []
    p = "p < .001" if gaussian < 0.001 else f"p = {gaussian:.{2 if gaussian >= 0.01 else 3}f}".replace("0.", ".", 1)
    return [(NON_GAUSSIAN if gaussian < NOT_GAUSSIAN else GAUSSIAN).format(p=p)]
