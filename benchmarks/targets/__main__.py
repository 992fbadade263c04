"""Draw ``benchmarks/TARGETS.md``: ``python -m benchmarks.targets``, from the root of the repository."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from benchmarks.targets import (
    Target,
    existence,
    observation,
    robustness,
    simultaneous,
    situations,
    speed,
    studies,
    trust,
)
from benchmarks.targets.misses import MISSES

PAGE = Path(__file__).parents[1] / "TARGETS.md"
TOPICS = (speed, trust, existence, robustness, simultaneous, observation, situations, studies)
HEAD = """# Targets

What was to be reached, beside what was measured. `python -m benchmarks.targets` draws this page from the records;
`tools/check_pages.py` compares the two, and complains about a miss that is not explained below, or that is explained
and no miss any more. The pages of results in `docs/results` have the same figures without targets. What was tried is in
[TRIED.md](TRIED.md).
"""


def all_targets() -> list[Target]:
    """Return every target, by topic."""
    return [target for topic in TOPICS for target in topic.targets()]


def page() -> str:
    """Return the text of the page."""
    found = all_targets()
    missed = [target for target in found if not target.met]
    lines = [HEAD, f"## Missed: {len(missed)} of {len(found)}\n", *_head("target", "found", "wanted", "why")]
    lines += [_row(one.key, one.found, one.wanted, MISSES.get(one.key, "-")) for one in missed]
    for topic, targets in groupby(found, key=lambda one: one.topic):
        lines += [f"\n## {topic.capitalize()}\n", *_head("what", "found", "wanted", "met")]
        lines += [_row(one.what, one.found, one.wanted, "yes" if one.met else "NO") for one in targets]
    return "\n".join([*lines, ""])


def complaints() -> Iterator[str]:
    """Yield a line for each miss without a reason, and for each reason without a miss."""
    missed = {target.key for target in all_targets() if not target.met}
    yield from (f"{key}: missed; explain it in benchmarks/targets/misses.py" for key in sorted(missed - set(MISSES)))
    yield from (f"{key}: met; remove it from benchmarks/targets/misses.py" for key in sorted(set(MISSES) - missed))


def _head(*cells: str) -> list[str]:
    return [_row(*cells), "|" + "---|" * len(cells)]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
