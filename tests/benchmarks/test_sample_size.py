"""The floor of the sample-size study, and what its tables say of records whose answer is known."""

import pytest
import torch
from benchmarks.studies import STUDIES
from benchmarks.studies.sample_size import PSI, SIZES
from scipy.stats import binom

from tacit.evaluation import oracle_edge_prob_mae
from tacit.systems import community_edge_probs


@pytest.mark.parametrize("num_pairs", [1, 7, 40])
@pytest.mark.parametrize("prob", [0.0, 0.25, 0.3, 0.75, 1.0])
def test_the_floor_is_the_sum_over_all_counts(num_pairs, prob):
    total = sum(binom.pmf(k, num_pairs, prob) * abs(k / num_pairs - prob) for k in range(num_pairs + 1))
    assert oracle_edge_prob_mae(torch.tensor([[prob]], dtype=torch.float64), num_pairs) == pytest.approx(
        total, abs=1e-12
    )


def made_up(exponent):
    """Records whose error is the floor's double at 500 pairs and goes as a power of the number of pairs."""
    records = {}
    for psi in PSI:
        for size in SIZES:
            error = 2 * oracle_edge_prob_mae(community_edge_probs(), 500) * (size / 500) ** exponent
            run = {"validation_loss": 1.0, "edge_prob_mae": error, "true_edge_mae": error}
            lost = {**run, "validation_loss": 2.0, "edge_prob_mae": 1.0}  # in a bad basin
            least = {"edge_prob_mae": oracle_edge_prob_mae(community_edge_probs(), size), "true_edge_mae": 0.1}
            records[f"{psi}-{size:06}"] = {
                "pairs": size,
                "floor": least,
                "steps": 9,
                "runs": [run, lost][:: 1 if psi == "learned" else 2],
            }
    return records


def test_tables_give_slope_ratio_and_runs():
    table = STUDIES["sample-size"].tables(made_up(-0.4))[0]
    assert table.notes[0] == "psi known: the error goes as the number of pairs to the power -0.40 (the floor: -0.50)"
    first = dict(zip(table.columns, table.rows[0], strict=True))
    assert first["pairs"] == "500"
    assert first["runs known, learned"] == "1, 1 of 2"
    assert first["psi known"] == first["psi learned"]
    assert table.rows[0][3] == "2.0"
