"""Thousands of cases of every surface, others each time: ``make fuzz`` runs this and writes the figures.

``TACIT_FUZZ_SEED`` repeats a run, ``TACIT_FUZZ_RECORD`` names the file for the figures.
"""

import json
import os
import platform
import random
from pathlib import Path

import pytest
from fuzz_hunt import hunt
from fuzz_surfaces import SURFACES

SEED = int(os.environ.get("TACIT_FUZZ_SEED") or random.SystemRandom().randrange(10**6))


@pytest.mark.slow
@pytest.mark.parametrize("name", SURFACES)
def test_many_cases(name):
    surface = SURFACES[name]
    print(f"\n{name}: seed {SEED}")
    tally = hunt(surface.cases(), surface.long, SEED, how=surface.judge)
    record(name, tally)
    assert not tally.failures, json.dumps(tally.failures, indent=2)


def record(name, tally):
    """Put the figures of a surface into the file, beside those of the others."""
    path = os.environ.get("TACIT_FUZZ_RECORD")
    if path is None:
        return
    file = Path(path)
    known = json.loads(file.read_text()) if file.is_file() else {}
    if known.get("seed") != SEED:
        known = {"seed": SEED, "python": platform.python_version(), "surfaces": {}}
    known["surfaces"][name] = {
        "cases": tally.cases,
        "results": tally.results,
        "plans": tally.plans,
        "errors": tally.errors,
        "kinds": len(tally.kinds),
        "most_frequent": sorted(tally.kinds.items(), key=lambda entry: -entry[1])[:3],
        "slowest_seconds": round(tally.slowest, 2),
        "failures": tally.failures,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(known, indent=2, ensure_ascii=True) + "\n")
