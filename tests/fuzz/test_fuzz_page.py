"""The page about fuzzing is what the figures give, and they are good."""

import fuzz_page
from fuzz_surfaces import SURFACES


def test_the_page_is_drawn_from_the_figures():
    assert fuzz_page.PAGE.read_text(encoding="utf-8") == fuzz_page.page(*fuzz_page.read())


def test_the_figures():
    figures, defects = fuzz_page.read()
    found = figures["surfaces"]
    assert set(found) == set(SURFACES) == set(fuzz_page.WORDS)
    assert sum(surface["cases"] for surface in found.values()) >= 10_000
    assert all(surface["failures"] == {} for surface in found.values())
    assert all(surface["results"] + surface["plans"] > 0 and surface["errors"] > 0 for surface in found.values())
    assert all(defect["was"] and defect["now"] for defect in defects)
