"""What a notebook shows of an estimator: a summary without scripts, and progress in one line."""

import html.parser

import pytest
from sklearn.base import BaseEstimator

import sklearn
from made_runs import make_run
from tacit import LatentGraphRegressor
from tacit.report import summary_html
from tiny_fits import random_pairs, regressor

NASTY = '<script>alert("x")</script>'


class Tags(html.parser.HTMLParser):
    """All tags and attributes of a text."""

    def __init__(self, text):
        super().__init__()
        self.found, self.attributes, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def fitted():
    return regressor().fit(*random_pairs(40))


def test_an_estimator_that_is_not_fitted_is_shown_by_scikit_learn():
    model = LatentGraphRegressor()
    assert "tacit-summary" not in model._repr_html_()
    assert model._repr_mimebundle_()["text/html"].count("sk-estimator")
    assert "tacit-summary" not in BaseEstimator._repr_mimebundle_(model)["text/html"]


def test_a_fitted_one_shows_its_edges_and_the_page_that_was_written(fitted, tmp_path, monkeypatch):
    bundle = fitted._repr_mimebundle_()
    assert bundle["text/plain"] == repr(fitted)
    assert bundle["text/html"] == fitted._repr_html_()
    assert "Report:" not in bundle["text/html"]
    assert "fitted to pairs of 3 nodes" in bundle["text/html"]
    assert Tags(bundle["text/html"]).found.count("tr") > 1
    monkeypatch.chdir(tmp_path)
    fitted.report("page.html")
    assert '<a href="./page.html">page.html</a>' in fitted._repr_html_()
    with sklearn.config_context(display="text"):
        assert "text/html" not in fitted._repr_mimebundle_()


def test_both_numbers_the_answer_and_the_verdict_are_shown():
    run = make_run(12, evidence=True, errors=True)
    shown = Tags(summary_html(run, "LatentGraphForecaster", True))
    text = " ".join(" ".join(shown.words).split())
    assert run.record.answer[0] in text
    assert "The model does not fit at the 5% level" in text
    first = run.edges.frame(run.edges.index.between).iloc[0]
    cells = f"{first.exists:.3f} {first.probability:.3f} {first.low:.3f} to {first.high:.3f} {first.effect:+.3f}"
    assert cells in text
    assert "edge exists acts 95% interval effect" in text


def test_names_are_escaped_and_nothing_is_loaded_or_run(tmp_path):
    run = make_run(3, names=[NASTY, '"><img src=x onerror=alert(1)>', "c"], evidence=True, title=NASTY)
    run = run.model_copy(update={"record": run.record.model_copy(update={"answer": [f"{NASTY} -> c"]})})
    shown = Tags(summary_html(run, "LatentGraphForecaster", True, tmp_path / "<b>.html"))
    tags = {"div", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi", "a"}
    assert set(shown.found) == tags
    assert {name for name, _ in shown.attributes} == {"class", "style", "scope", "href"}
    assert all(value.startswith("file:") for name, value in shown.attributes if name == "href")
    assert NASTY in " ".join(shown.words)
