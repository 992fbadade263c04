"""Number of threads: one for small problems.

A step on a small graph consists of hundreds of operations that take microseconds each, and threads have to wait for
each other after each one. On an idle machine this gains nothing. If the machine is busy, every wait lasts until the
other thread is scheduled: two threads next to one busy process took ten times as long as one. The number of threads
depends only on the size of the graph, not on the load. A large graph uses the setting of torch.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

LARGE = 250_000  # possible edges: all pairs of 500 nodes


@contextmanager
def threads_for(num_edges: int) -> Iterator[None]:
    """Use one thread in the block, unless the graph is large.

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
