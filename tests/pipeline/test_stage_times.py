"""What each stage took, and the first edges: in the record, for listeners, on the page."""

import re

import numpy as np
import pytest

from made_runs import make_run
from own_files import learn
from tacit import LatentGraphRegressor
from tacit.config import AssessmentOptions
from tacit.pipeline import job, plan
from tacit.pipeline.plan import StageTimes, TimedListener
from tacit.report.page import write_page
from tacit.training import Listener

EVERYTHING = {"graph": {"evidence": "auto"}, "assessment": {"bootstrap_replicas": 6, "controls": True}}
STAGES = [
    "reading", "preparing", "evidence", "fit", "standard errors", "identification", "fit test", "other graphs",
    "controls", "scoring",
]  # fmt: skip


class Heard:
    """A listener that keeps what it is told, in order."""

    def __init__(self):
        self.events = []
        self.listener = Listener(
            stage=lambda text: self.events.append(("stage", text)),
            finished=lambda name, _: self.events.append(("finished", name)),
            say=lambda line: self.events.append(("said", line)),
        )

    def of(self, kind):
        return [what for one, what in self.events if one == kind]


@pytest.fixture(scope="module")
def heard(folder, tmp_path_factory):
    """A fit with all stages, and what its listener heard."""
    heard = Heard()
    run, made = job.run_fit, None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("own_files.run_fit", lambda *given, **more: run(*given, **more, listener=heard.listener))
        made, _ = learn(folder / "wide.csv", tmp_path_factory.mktemp("timed") / "run", **EVERYTHING)
    return made, heard


def test_the_record_has_the_seconds_of_every_stage(heard):
    made, events = heard
    assert list(made.run.record.stages) == STAGES
    assert all(seconds >= 0 for seconds in made.run.record.stages.values())
    assert list(made.stages) == [*STAGES, "writing"]
    assert set(events.of("finished")) == {*STAGES, "writing"}


def test_a_label_is_a_name_and_what_is_done(heard):
    _, events = heard
    for text in events.of("stage"):
        assert re.fullmatch(r"[a-z ]+: .+", text), text


def test_the_first_edges_are_those_that_the_answer_lists(heard):
    made, events = heard
    look, line = events.of("said")
    assert re.match(r"first look \(newest values only, before resampling\): (\d+ edges?, |no edge is listed)", look)
    count = re.match(r"from the evidence: (\d+) edges?, ", line)
    listed = next(text for text in made.run.record.answer if " listed" in text)
    assert re.search(rf"\b{count[1]} edges? (is|are) listed", listed)
    assert "north -> east 1.00" in line
    texts = [what for _, what in events.events]
    assert texts.index(look) < texts.index("evidence: which edges exist") < texts.index(line)
    assert texts.index(line) < texts.index("fit: starting values")


def test_nobody_waits_for_a_first_look_that_nobody_reads(monkeypatch):
    looks = []
    found = plan.find_evidence

    def noted(*given, first_look=False, **named):
        looks.append(first_look)
        return found(*given, first_look=first_look, **named)

    monkeypatch.setattr(plan, "find_evidence", noted)
    rng = np.random.default_rng(0)
    LatentGraphRegressor(assessment=AssessmentOptions(enabled=False)).fit(*rng.normal(size=(2, 60, 3)))
    assert not any(looks)


def test_a_stage_that_comes_again_adds_to_its_seconds():
    clock = iter([0.0, 1.0, 3.0, 6.0, 10.0]).__next__
    heard = Heard()
    times = StageTimes(heard.listener, clock)
    for text in ("a: first", "a: second", "b", "a: third"):
        times.stage(text)
    times.finish()
    times.finish()
    assert times.seconds == {"a": 1.0 + 3.0, "b": 2.0}
    assert heard.of("stage") == ["a: first", "a: second", "b", "a: third"]
    assert heard.of("finished") == ["a", "b", "a"]


def test_a_listener_keeps_its_clock():
    once = TimedListener.of(None)
    assert TimedListener.of(once) is once


def test_the_page_shows_a_bar_of_the_stages(tmp_path):
    run = make_run(4)
    stages = {"reading": 0.01, "evidence": 1.5, "fit": 4.5}
    run = run.model_copy(update={"record": run.record.model_copy(update={"stages": stages})})
    write_page([run], tmp_path / "page.html", "page")
    page = (tmp_path / "page.html").read_text()
    assert "<li>evidence 1.5 s</li>" in page
    assert "<li>reading" not in page
    widths = re.findall(r'<span style="width:([\d.]+)%">', page.split('class="stages"')[1].split("</figure>")[0])
    assert [float(width) for width in widths] == pytest.approx([24.96, 74.88], abs=0.01)
    write_page([make_run(4)], tmp_path / "old.html", "page")
    assert 'class="stages"' not in (tmp_path / "old.html").read_text()
