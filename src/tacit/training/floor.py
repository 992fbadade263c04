r"""A floor under the edge probabilities while steps are large, so that no edge dies.

An edge whose probability a few noisy steps drive to nearly 0 is not drawn any more, gets no gradient and stays there,
however much the data speak for it. So after each step of the first part $h$ of the training

$$f_t \le \theta_{ij} \le 1 - f_t, \qquad
f_t = \min\Big(f, \frac{k}{D}\Big) \max\Big(0, 1 - \frac{t}{h\, T}\Big)$$

with $D$ graphs drawn in a step, $k$ of which at least are to have the edge (``sightings``), $f$ the highest floor and
$t$ of $T$ steps taken. Few graphs, shared by the batch, need the floor; where each pair has its own, $k / D$ is next to
nothing. It is gone long before the answer is read off: nothing is left to bend it.
"""

# Measured on the 12-node system (28,000 pairs, MMD at node scope, 10 epochs of a cosine from 0.1). Runs in which an
# edge died: with 16 shared graphs 2 of 8 without the floor, none with it; with 8 graphs 6 of 8, and none. With 4 graphs
# none of 16 died with it, 2 if it was gone after 0.3 of the training. A floor of 0.05 that falls over all of the
# training keeps edges alive as well, but doubles the error of the runs that were good.
HIGHEST = 0.02
PART = 0.5


def edge_floor(sightings: float, draws: int, done: float) -> float:
    """Return the lowest edge probability when the part ``done`` of the training is over, at ``draws`` graphs a step.

    >>> [edge_floor(1.0, 16, done) for done in (0.0, 0.25, 0.5, 1.0)]    # 16 graphs, shared by the batch
    [0.02, 0.01, 0.0, 0.0]
    >>> edge_floor(1.0, 16 * 125, 0.0)                                   # 16 graphs for each of 125 pairs
    0.0005
    """
    return min(HIGHEST, sightings / draws) * max(0.0, 1 - done / PART)
