"""The judge itself: what it has to refuse, it refuses."""

import time

import pytest
from fuzz_configs import TABLE
from fuzz_judge import Case, Failure, Tally, judge
from fuzz_results import require_run, strict_json
from fuzz_tables import quick

from tacit.cli import runs
from tacit.errors import InputError
from tacit.pipeline import job

CASE = Case(("fit", "t.csv", "--out", "run", "--quiet", *quick()), {"t.csv": TABLE})


@pytest.fixture
def behave(monkeypatch):
    """Let ``tacit fit`` do something else where it reads the data."""
    return lambda action: monkeypatch.setattr(job, "resolve", lambda *_, **__: action())


def raising(error):
    def action():
        raise error

    return action


def test_what_is_right_passes():
    tally = Tally()
    assert judge(CASE, tally).stage == "plan"
    assert (
        judge(Case(("fit", "none.csv", "--quiet"), {}), tally).line == "none.csv: there is no such file; check the name"
    )
    assert (tally.cases, tally.plans, tally.errors) == (2, 1, 1)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (raising(OSError("disk")), "exit code 1"),
        (raising(InputError("no")), "says nothing"),
        (lambda: open("left", "w").close() or raising(InputError("bad input it was"))(), "has changed"),
        (lambda: open("t.csv", "w").close() or raising(InputError("bad input it was"))(), "has changed"),
        (lambda: print("hello") or raising(InputError("bad input it was"))(), "printed before"),
        (lambda: time.sleep(30), "took more than"),
        (lambda: [None for _ in iter(int, 1)], "took more than"),
    ],
)
def test_what_is_wrong_does_not(behave, monkeypatch, action, reason):
    if reason == "took more than":
        monkeypatch.setattr("fuzz_judge.LIMIT", 0.5)
        monkeypatch.setattr("fuzz_judge.PATIENCE", 1.0)
    behave(action)
    with pytest.raises(Failure, match=reason):
        judge(CASE, Tally())


def test_a_traceback_is_an_error(behave):
    behave(raising(KeyError("inside")))
    with pytest.raises(KeyError):
        judge(CASE, Tally())


def test_memory_is_bounded(behave):
    behave(lambda: bytearray(8 * 2**30))
    with pytest.raises(Failure, match="exit code 1: tacit: out of memory"):
        judge(CASE, Tally())


@pytest.mark.parametrize(
    "line", ["tacit: a\nb c d e", "tacit: a b c \x1b[31m", "tacit: " + "a b " * 100, "Traceback: a b c", "tacit: ok ok"]
)
def test_lines_that_are_not_clear(monkeypatch, line):
    def fit(**_):
        import sys

        print(line, file=sys.stderr)
        raise SystemExit(2)

    monkeypatch.setattr(runs, "Display", lambda **_: fit())
    with pytest.raises(Failure):
        judge(CASE, Tally())


def test_a_result_that_is_not_whole(tmp_path):
    with pytest.raises(AssertionError, match="NaN in JSON"):
        strict_json('{"a": NaN}')
    with pytest.raises(FileNotFoundError):
        require_run(tmp_path)
