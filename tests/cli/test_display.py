"""What a person sees while a job runs: few lines without a terminal, finished stages on one."""

import io
import sys
import threading
import types

import pytest

from tacit import console
from tacit.console import Display
from tacit.training import Progress


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


class Notebook:
    """A kernel of a notebook as far as the display sees it: what a cell shows, in the order of updates."""

    def __init__(self, monkeypatch):
        self.shown = []
        kernel = types.SimpleNamespace(kernel=object())
        module = types.ModuleType("IPython")
        module.get_ipython = lambda: kernel
        module.display = types.ModuleType("IPython.display")
        module.display.display = self.display
        monkeypatch.setitem(sys.modules, "IPython", module)
        monkeypatch.setitem(sys.modules, "IPython.display", module.display)

    def display(self, data, *, raw, display_id):
        assert raw
        assert display_id
        self.shown.append(data["text/plain"])
        return self

    def update(self, data, *, raw):
        assert raw
        self.shown.append(data["text/plain"])


def test_a_notebook_shows_one_line_that_is_updated_in_place(clock, capsys, monkeypatch):
    notebook = Notebook(monkeypatch)
    with Display(quiet=False) as display:
        display.stage("evidence: which edges exist")
        clock.now = 2.0
        display.stage("fit: training")
        for step in range(4):
            clock.now += 0.3
            display.step(Progress(0, 1, step, 3, 0.5))
        display.say("a line")
        clock.now = 4.0
    assert notebook.shown == [
        "2 s  fit: training",
        "3 s  fit: training",
        "3 s  fit: training, epoch 1/1 loss 0.5000, 0 s left",
        "done after 4.0 s",
    ]
    assert not display.shows_lines
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_nothing_of_a_short_job_and_says_that_one_was_stopped(clock, monkeypatch):
    notebook = Notebook(monkeypatch)
    with Display(quiet=False) as display:
        display.stage("fit: training")
        clock.now = 1.9
    assert notebook.shown == []
    display = Display(quiet=False)
    display.__enter__()
    clock.now = 5.0
    display.stage("fit: training")
    display.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert notebook.shown == ["3 s  fit: training", "stopped after 3.1 s"]


def test_a_shell_on_a_terminal_is_no_notebook(monkeypatch):
    Notebook(monkeypatch)
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: types.SimpleNamespace())
    assert console.notebook_line() is None
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    assert console.notebook_line() is None
