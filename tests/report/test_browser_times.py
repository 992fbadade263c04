"""How long a page takes to open, and how large it is.

Opening is from the start of the navigation to the mark "interactive", which the page sets when all is drawn and
painted. Other work on the machine makes it longer without fault of the page: the best of some attempts counts, each the
median of three, and while more processes want to run than there are cores, the time that the page's own thread
computed counts instead of the time that passed, less a quarter, since shared caches make it longer too.
"""

import os
import statistics

import pytest

from browser_waits import opening_seconds
from made_runs import make_run

pytestmark = pytest.mark.browser

ATTEMPTS = 4


def full_run():
    return make_run(120, truth=True, errors=True, flags=True)


@pytest.mark.parametrize(("name", "limit"), [("120 nodes", 2.0), ("1,000 nodes", 5.0)])
def test_the_page_opens_in_time(chromium, page_file, name, limit):
    path = {
        "120 nodes": lambda: page_file("full", full_run),
        "1,000 nodes": lambda: page_file("candidates", lambda: make_run(1000, candidates=50)),
    }[name]()
    seen = []
    for _ in range(ATTEMPTS):
        passed, computed = zip(*(opening_seconds(chromium, path) for _ in range(3)), strict=True)
        busy = os.getloadavg()[0] > os.cpu_count()
        seen.append(statistics.median(0.75 * seconds for seconds in computed) if busy else statistics.median(passed))
        if seen[-1] <= limit:
            break
    assert min(seen) <= limit, f"{name}: {seen} s"


def test_a_page_of_120_nodes_is_below_8_megabytes(page_file):
    assert page_file("full", full_run).stat().st_size < 8_000_000
