"""The answer in words: a graph or none, the list, how often edges act, other forecasts; and no contradictions."""

import itertools

import numpy as np
import pytest
import torch

from made_runs import make_run, with_record
from own_files import learn, write_files
from tacit.cli.answers import print_fit
from tacit.config import FitConfig
from tacit.edges import EdgeTable, LagTable
from tacit.graph import BernoulliGraph, CandidateEdges
from tacit.pipeline import FitJob
from tacit.pipeline.model_evidence import why_unknown
from tacit.words.answer import HIDDEN, IMITATED, answer_sentences, caveats

NODES = ("a", "b", "c")
EXISTS = torch.tensor([[0.0, 0.99, 0.02], [0.97, 0.0, 0.4], [0.01, 0.9, 0.0]])  # b -> a, a -> b, b -> c
PROBS = torch.tensor([[0.0, 1.0, 0.0], [0.61, 0.0, 0.3], [0.0, 0.98, 0.0]])
ACTING = torch.tensor([[0, 1, 0], [2, 0, 3], [0, 3, 0]], dtype=torch.uint8)  # always, at times, undecided
LOW = (PROBS - 0.06).clamp(0, 1)
HIGH = (PROBS + 0.06).clamp(0, 1)
BETTER, SAME, WORSE = (
    {"gain": 0.086, "gain_std_error": 0.009},
    {"gain": 0.003, "gain_std_error": 0.004},
    {"gain": -0.03, "gain_std_error": 0.005},
)


def graph_of(probs=PROBS, exists=EXISTS, **options):
    return BernoulliGraph(probs, fixed=options.pop("fixed", exists < 0.1), **options)


def listed(exists=EXISTS, probs=PROBS, *, errors=True, graph=None):
    columns = {} if exists is None else {"exists": exists}
    if errors:
        columns |= {"low": LOW, "high": HIGH, "acting": ACTING}
    graph = graph or graph_of(probs, EXISTS if exists is None else exists)
    return edges_of(graph, **columns)


def edges_of(graph=None, lags=None, **columns):
    """The table of a graph with these columns, each in the layout of the graph."""
    graph = graph or graph_of()
    found = {name: graph.vector(values) for name, values in columns.items()}
    return graph.described(EdgeTable(graph.index(NODES), found, lags=lags))


def test_a_graph_that_was_found(said):
    references = {"no graph": BETTER, "full graph": SAME, "ridge regression": WORSE}
    found = said(answer_sentences(listed(), references, ["Residuals of a and b are correlated."]))
    assert "8.6% +- 0.9%" in found[0]
    assert found[1].startswith("3 edges are listed")
    assert "a -> b 0.61 [0.55, 0.67]" in found[2]
    assert found[-1] == "Residuals of a and b are correlated."


def test_an_undecided_edge_whose_noise_may_grow_has_its_reason(said):
    nats = torch.full((3, 3), torch.nan)
    nats[1, 0], nats[2, 1] = 30.0, -2.0  # a gate of a -> b, and perhaps of b -> c
    found = edges_of(exists=EXISTS, low=LOW, high=HIGH, acting=ACTING, gate_nats=nats)
    said(answer_sentences(found, {})[3:4])
    assert len(answer_sentences(listed(), {})) == len(answer_sentences(found, {})) - 1


def test_edges_with_a_common_gate_are_said_with_their_targets(said):
    together = torch.full((3, 3), torch.nan)
    together[1, 0] = together[2, 1] = 1.0  # a -> b and b -> c
    found = edges_of(exists=EXISTS, low=LOW, high=HIGH, acting=ACTING, together=together)
    assert "a -> b and b -> c act together" in said(answer_sentences(found, {})[3:4])[0]
    together[2] = torch.nan  # only one edge of the gate is listed
    alone = edges_of(exists=EXISTS, low=LOW, high=HIGH, acting=ACTING, together=together)
    assert answer_sentences(alone, {}) == answer_sentences(listed(), {})


def test_the_caveat_appears_if_a_listed_edge_acts_at_times():
    assert caveats(listed()) == [HIDDEN]
    assert caveats(listed(torch.where(EXISTS > 0.98, EXISTS, 0.02 * EXISTS))) == []  # b -> a always acts
    assert caveats(listed(errors=False)) == [IMITATED]
    assert caveats(listed(probs=(PROBS > 0).float(), errors=False)) == []


def test_intervals_without_words_are_those_of_an_older_run(said):
    said(answer_sentences(edges_of(exists=EXISTS, low=LOW, high=HIGH), {})[2:3])


def test_edges_that_act_after_more_than_the_newest_input_are_said(said):
    lags = {"source": [1, 0], "target": [0, 1], "shares": [[1.0, 0.0], [0.0, 1.0]]}
    table = LagTable(**lags, first=2, effects=[[0.5, 0.1], [0.1, 0.5]])  # b -> a at lag 2, a -> b at lag 3
    lag = torch.full((3, 3), torch.nan)
    lag[0, 1], lag[1, 0] = table.dominant.float()
    for later, edge in ((0, "a -> b at lag 3"), (1, "b -> a at lag 3")):
        found = answer_sentences(edges_of(exists=EXISTS, lag=lag + later, lags=table), {})
        (line,) = said(line for line in found if "step" in line)
        assert edge in line
    assert not any("step" in line for line in answer_sentences(listed(), {}))


def test_no_edge_is_listed(said):
    exists = 0.4 * EXISTS
    assert len(said(answer_sentences(listed(exists), {"no graph": SAME, "full graph": WORSE}))) == 3
    said(answer_sentences(listed(exists), {"no graph": BETTER}))
    assert len(said(answer_sentences(listed(0 * EXISTS, 0 * PROBS), {}))) == 1


def test_listed_edges_that_do_not_forecast_better(said):
    said(answer_sentences(listed(), {"no graph": SAME})[:2])
    assert "higher" in said(answer_sentences(listed(), {"no graph": WORSE})[:1])[0]


@pytest.mark.parametrize("none", [{}, {"gain": 0.2}])
def test_without_a_comparison_the_list_decides(none, said):
    said(answer_sentences(listed(errors=False), {"no graph": none}))


def test_one_edge(said):
    exists = torch.where(EXISTS > 0.98, EXISTS, 0.02 * EXISTS)
    references = {"no graph": BETTER, "full graph": BETTER, "ridge regression": SAME}
    assert len(said(answer_sentences(listed(exists), references))) == 5


def test_required_edges_are_known_and_not_listed(said):
    fixed = EXISTS < 0.1
    fixed[0, 1] = True
    graph = graph_of(torch.where(EXISTS > 0.98, 1.0, PROBS), fixed=fixed)
    found = listed(graph=graph)
    assert (int(found.listed().sum()), int(found["required"].sum())) == (2, 1)
    said(answer_sentences(listed(torch.where(EXISTS > 0.98, 1.0, 0.1 * EXISTS), graph=graph), {}))


def test_without_evidence_probabilities_decide(said):
    found = listed(None)
    assert np.flatnonzero(found.listed()).tolist() == [1, 7]  # b -> a and b -> c; 0.61 would make a share of 0.14
    said(answer_sentences(found, {"no graph": BETTER})[1:2])


def test_where_existence_was_not_computed_no_verdict_is_given(said):
    nothing = said(answer_sentences(listed(None, 0.3 * PROBS), {}, unknown="the assessment is off"))
    assert "No graph found" not in " ".join(nothing)
    said(answer_sentences(listed(None), {"no graph": BETTER}, unknown="the assessment is off")[:2])
    assert answer_sentences(listed(), {}, unknown="never mind") == answer_sentences(listed(), {})


@pytest.mark.parametrize(
    "options",
    [
        {"graph": {"evidence": "none"}},
        {"graph": {"evidence": "model"}, "assessment": {"enabled": False}},
        {"graph": {"evidence": "model"}},
    ],
)
def test_why_existence_is_not_known(options, said):
    said([why_unknown(FitConfig.model_validate(options), graph_of())])


def test_pairs_without_direction_count_once(said):
    exists = torch.tensor([[0.0, 0.95, 0.0], [0.95, 0.0, 0.97], [0.0, 0.97, 0.0]])
    probs = torch.where(exists > 0, 0.5, 0.0)
    found = listed(exists, graph=BernoulliGraph(probs, fixed=exists == 0, symmetric=True), errors=False)
    said(answer_sentences(found, {})[1:2])
    assert found.named(1) == "b - a"


def test_a_table_of_candidates(said):
    candidates = CandidateEdges.from_edges(torch.tensor([1, 2, 0]), torch.tensor([0, 0, 1]), num_nodes=3)
    probs = torch.where(candidates.used, 0.7, 0.0)
    exists = torch.where(candidates.sources == 1, 0.99, 0.2) * candidates.used
    graph = BernoulliGraph(probs, candidates=candidates, fixed=~candidates.used | (exists < 0.1))
    found = edges_of(graph, exists=exists)
    assert "b -> a" in said(answer_sentences(found, {})[1:2])[0]


def test_sentences_never_contradict_each_other():
    """Over all combinations: no graph and a graph, better and worse, listed and not, are never said together."""
    for none, full, ridge in itertools.product((BETTER, SAME, WORSE, {}), repeat=3):
        for exists in (EXISTS, 0.5 * EXISTS):
            found = listed(exists)
            said = answer_sentences(found, {"no graph": none, "full graph": full, "ridge regression": ridge})
            text = " ".join(said)
            assert text.count("No graph found") + text.count("A graph was found") == 1
            assert said[0].startswith(("No graph found", "A graph was found"))
            assert ("no edge is listed" in text) != (" are listed" in text)
            assert ("A graph was found" in text) <= found.listed().any()
            assert not ("it lowers the forecast error" in text and "too weak to improve" in text)
            assert not ("lower the forecast error (scaled CRPS) against" in text and "together lower" in text)
            assert (" act" in text) == found.listed().any()


def printed_fit(run, capsys, tmp_path):
    print_fit(
        FitJob(run, tmp_path / "run", tmp_path / "run" / "report.html", True, {"fit": 1.26, "scoring": 0.01}), 2.0
    )
    return capsys.readouterr().out


def test_the_terminal_begins_with_the_answer_and_the_listed_edges(capsys, tmp_path):
    run = make_run(6, evidence=True, errors=True)
    lines = printed_fit(run, capsys, tmp_path).splitlines()
    assert lines[: len(run.record.answer)] == run.record.answer
    head = next(number for number, line in enumerate(lines) if line.startswith("edge "))
    assert lines[head - 1].startswith("listed edges, the first 8 of ")
    assert lines[head].split() == ["edge", "exists", "acts", "std.", "error", "95%", "interval", "effect"]
    exists = np.where(np.eye(6) == 1, 0, run.edges.matrix("exists"))
    i, j = np.unravel_index(exists.argmax(), exists.shape)
    first = lines[head + 1]
    assert first.startswith(f"node {j} -> node {i} ")
    probability, effect = run.edges.matrix("probability")[i][j], run.edges.matrix("effect")[i][j]
    assert [f"{exists[i, j]:.3f}", f"{probability:.3f}", f"{effect:+.3f}"] == [
        part for part in first.split()[5:] if part in (f"{exists[i, j]:.3f}", f"{probability:.3f}", f"{effect:+.3f}")
    ]


def test_where_nothing_is_listed_the_terminal_says_so(capsys, tmp_path):
    run = make_run(6, evidence=True, errors=True)
    out = printed_fit(with_record(run, evidence={**run.record.evidence, "listed_from": None}), capsys, tmp_path)
    assert "the most likely candidates, not listed:\n" in out
    assert out.count(" -> ") == 3
    assert "listed edges" not in out


def test_required_edges_are_not_shown_as_found(capsys, tmp_path):
    run = make_run(6, evidence=True, errors=True)
    exists = np.where(np.eye(6) == 1, 0, run.edges.matrix("exists"))
    i, j = (int(place) for place in np.unravel_index(exists.argmax(), exists.shape))
    out = printed_fit(with_record(run, evidence={**run.record.evidence, "required": [[j, i]]}), capsys, tmp_path)
    assert f"node {j} -> node {i} " not in out
    assert "listed edges" in out


def test_a_fit_lists_what_made_the_data(tmp_path):
    """north -> east -> south; files, record and the page's columns agree on the list."""
    write_files(tmp_path)
    settings = {"bootstrap_replicas": 0, "controls": True}
    run = learn(tmp_path / "wide.csv", tmp_path / "run", graph={"evidence": "regression"}, assessment=settings)[0].run
    columns, names = run.edges.each_once(), run.record.node_names
    listed = set(zip(*columns.at(columns.listed()).index.ends(), strict=True))
    assert listed == {("north", "east"), ("east", "south")}
    effect = dict(zip(zip(*columns.index.ends(), strict=True), columns["effect"], strict=True))
    assert effect["north", "east"] > 0 > effect["east", "south"]
    assert run.record.answer[1].startswith("2 edges are listed; ")
    assert run.record.evidence["listed_from"] >= 0.5
    assert np.isnan(columns["probability"][columns.decides < run.record.keep]).all()
    assert {"gain", "gain_std_error"} <= set(run.record.references["no graph"])
    gains = run.record.node_gains
    assert set(gains) == set(names)
    assert abs(gains["west"]) < 0.05 < max(gains.values())
