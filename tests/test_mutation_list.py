"""Every line that the mutations would change is there: a stale one would test nothing."""

from pathlib import Path

import mutations

SOURCE = Path(__file__).parents[1] / "src" / "tacit"


def test_every_mutation_changes_a_line_that_is_there():
    stale = [
        (path, old)
        for path, _, changes in mutations.FORMULAS
        for old, new in changes
        if old == new or old not in (SOURCE / path).read_text(encoding="utf-8")
    ]
    assert not stale
    assert all(changes for _, _, changes in mutations.FORMULAS)
