r"""A floor under the edge probabilities while steps are large, so that no edge dies.

An edge whose probability a few noisy steps drive to nearly 0 is not drawn any more, gets no gradient and stays there,
however much the data speak for it. So after each step of the first part $h$ of the training

$$f_t \le \theta_{ij} \le 1 - f_t, \qquad
f_t = \min\Big(f, \frac{k}{D}\Big) \max\Big(0, 1 - \frac{t}{h\, T}\Big)$$

with $D$ graphs drawn in a step, $k$ of which at least are to have the edge (``sightings``), $f$ the highest floor and
$t$ of $T$ steps taken. Few graphs, shared by the batch, need the floor; where each pair has its own, $k / D$ is next to
nothing. It is gone long before the answer is read off: nothing is left to bend it. An edge that starts at 0 or 1 stays
there, and a training that starts at a trained model has no floor, which would lift what had come near to 0.
"""

# Measured on the 12-node system (28,000 pairs, MMD at node scope, 10 epochs of a cosine from 0.1). Runs in which an
# edge died: with 16 shared graphs 2 of 8 without the floor and none with it, with 8 graphs 6 of 8 and none, with 4
# graphs 16 of 16 and none, but 2 if the floor was gone after 0.3 of the training. One of 0.05 that falls over all of
# the training keeps edges alive as well, but nearly doubles the error of the runs that were good. With 48 nodes (16,000
# pairs, 5 epochs, 3 runs) and 32 shared graphs: no edge dead and an error of 0.0049, without the floor 2 to 7 edges and
# 0.0070, with one of 0.005 none and 0.0045; with 8 graphs 1 to 6 edges dead, without 23 to 37, with 0.005 11 to 20.
HIGHEST = 0.02
PART = 0.4


def edge_floor(sightings: float, draws: int, done: float) -> float:
    """Return the lowest edge probability when the part ``done`` of the training is over, at ``draws`` graphs a step.

    >>> [edge_floor(1.0, 16, done) for done in (0.0, 0.2, 0.4, 1.0)]    # 16 graphs, shared by the batch
    [0.02, 0.01, 0.0, 0.0]
    >>> edge_floor(1.0, 16 * 125, 0.0)                                   # 16 graphs for each of 125 pairs
    0.0005
    """
    return min(HIGHEST, sightings / draws) * max(0.0, 1 - done / PART)
