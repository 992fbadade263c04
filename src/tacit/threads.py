"""How many threads compute: one for small problems, whatever else the machine does.

A step on a small graph is hundreds of operations of microseconds. Threads that share them wait for each other after
each one. On a quiet machine that gains nothing, and beside other work every wait lasts until the other thread gets its
turn: two threads beside one busy process took ten times as long as one. The number follows from the size of the graph
alone, so that it does not depend on the load. A large graph uses what torch is set to.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

LARGE = 250_000  # edges that can be: 500 nodes and all their pairs


@contextmanager
def threads_for(num_edges: int) -> Iterator[None]:
    """Compute with one thread inside, unless the graph is large.

    >>> with threads_for(100):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    if num_edges > LARGE or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
