"""Targets: bounds are included, and a miss has to be explained."""

from benchmarks.targets import __main__ as page
from benchmarks.targets import at_least, at_most, between


def test_bounds_are_met():
    assert at_most("a", "b", 2, 2).met
    assert not at_most("a", "b", 2.1, 2).met
    assert at_least("a", "b", 2, 2).met
    assert not at_least("a", "b", 1.9, 2).met
    assert [between("a", "b", value, 0.2, 0.4).met for value in (0.1, 0.2, 0.4, 0.5)] == [False, True, True, False]


def test_misses_and_reasons_belong_together(monkeypatch):
    found = [at_most("speed", "first", 3, 2), at_most("speed", "second", 1, 2)]
    monkeypatch.setattr(page, "all_targets", lambda: found)
    monkeypatch.setattr(page, "MISSES", {"speed: first": "why"})
    assert list(page.complaints()) == []
    assert "## Missed: 1 of 2" in page.page()
    assert "| speed: first | 3 | at most 2 | why |" in page.page()
    monkeypatch.setattr(page, "MISSES", {"speed: second": "why"})
    assert [line.split(";")[0] for line in page.complaints()] == ["speed: first: missed", "speed: second: met"]
