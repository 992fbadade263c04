"""What a page of a large run asks of a browser, counted; benchmarks/page.py measures how long it takes to open."""

import pytest

from made_runs import make_run

pytestmark = pytest.mark.browser


def full_run():
    return make_run(120, truth=True, errors=True, flags=True)


@pytest.mark.parametrize(("name", "make"), [("full", full_run), ("candidates", lambda: make_run(1000, candidates=50))])
def test_a_large_run_draws_few_elements(opened, page_file, name, make):
    """Tables and drawings show a part of 14,400 or 50,000 edges at a time: the work of opening is bounded."""
    page = opened(page_file(name, make))
    assert page.evaluate("document.querySelectorAll('*').length") < 10_000
    assert page_file(name, make).stat().st_size < 8_000_000
