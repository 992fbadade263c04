"""What a person sees while a job runs: few lines without a terminal, finished stages on one."""

import io
import sys
import threading

import pytest

from tacit import console
from tacit.console import Display


class Clock:
    """A clock that the test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Time as the test moves it, and no thread beside it."""
    clock = Clock()
    monkeypatch.setattr(console.time, "monotonic", clock)
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    monkeypatch.setattr(threading.Thread, "join", lambda _: None)
    return clock


def lines(capsys):
    return [line.split("s  ", 1)[1] for line in capsys.readouterr().err.splitlines()]


def test_without_a_terminal_stages_are_left_out_until_ten_seconds_have_passed(clock, capsys):
    with Display(quiet=False) as display:
        display.stage("starting")
        for second in range(1, 30):
            clock.now = float(second)
            display.stage(f"stage {second}")
            display.tick()
        display.finished("stage 29", 1.0)
    assert lines(capsys) == ["starting", "stage 10", "stage 20"]
    assert display.seconds == 29


def test_the_first_edges_are_shown_at_once(clock, capsys):
    with Display(quiet=False) as display:
        display.stage("starting")
        clock.now = 2.0
        display.stage("evidence")
        display.say("from the evidence: 1 edge, a -> b 1.00")
        clock.now = 11.9
        display.tick()
        clock.now = 12.0
        display.tick()
    assert lines(capsys) == ["starting", "from the evidence: 1 edge, a -> b 1.00", "evidence"]


def test_quiet_shows_nothing(capsys):
    with Display(quiet=True) as display:
        display.stage("starting")
        display.say("from the evidence: no edge is listed")
        display.finished("evidence", 1.0)
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_what_each_stage_took(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Display(quiet=False) as display:
        display.stage("evidence: which edges exist")
        display.say("from the evidence: 1 edge, a -> b 1.00")
        display.finished("evidence", 1.52)
        display.stage("fit: training")
    shown = terminal.getvalue()
    assert "evidence 1.5 s" in shown
    assert "from the evidence: 1 edge, a -> b 1.00" in shown
