import pytest
import torch

from tacit.graph.operators import WORD_BITS, boolean_powers, powers_by_words


@pytest.mark.parametrize("nodes", [1, 12, WORD_BITS])
def test_powers_by_words_are_those_by_products(rng, nodes):
    graphs = (torch.rand(2, 3, nodes, nodes, generator=rng) < 1.5 / nodes).double()
    for found, wanted in zip(powers_by_words(graphs, 4), boolean_powers(graphs, 4), strict=True):
        assert torch.equal(found, wanted)
