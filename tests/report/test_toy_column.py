"""A new column is one line of the schema: it is then in every view of the table."""

import io
import json
import re
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from made_runs import make_run
from tacit.cli.answers import print_edges
from tacit.edges import Column, EdgeTable, edges_text, read_edges, schema
from tacit.report import write_page

TOY = Column(
    "toy",
    "how much fun the edge is",
    empty_if="nobody laughs",
    unit="smiles",
    stage="evidence",
    style=".1f",
    heading="fun",
    printed="fun",
    explained="Fun: in smiles.",
    in_pyg=True,
    exported=True,
)


@pytest.fixture
def run(monkeypatch):
    """A made run with the column; nothing but the schema knows of it."""
    monkeypatch.setattr(schema, "COLUMNS", (*schema.COLUMNS, TOY))
    made = make_run(4, evidence=True, errors=True)
    edges = made.edges.updated(toy=np.arange(16) / 4)
    return made.model_copy(update={"edges": edges})


def test_files(run):
    text = edges_text(run.edges)
    assert "toy" in text.splitlines()[0].split(",")
    np.testing.assert_array_equal(read_edges(text, run.record.node_names, keep=0.1)["toy"], run.edges["toy"])


def test_frames_graphs_and_stored_text(run):
    assert sorted(run.edges.frame()["toy"]) == sorted(run.edges["toy"])
    graph = run.edges.to_networkx(0.0)
    assert all("toy" in data for *_, data in graph.edges(data=True))
    file = io.BytesIO()
    networkx.write_graphml(graph, file)
    assert b'attr.name="toy"' in file.getvalue()
    pytest.importorskip("torch_geometric")
    assert len(run.edges.to_pyg(0.0).edge_toy) == graph.number_of_edges()
    stored = EdgeTable.from_dict(run.edges.to_dict(), run.edges.index)
    np.testing.assert_array_equal(stored["toy"], run.edges["toy"])


def test_the_terminal(run):
    console = Console(file=io.StringIO(), width=120)
    print_edges(console, run)
    heading, first = console.file.getvalue().strip().splitlines()[1:3]
    assert "fun" in heading
    source, target = re.match(r"(node \d) -> (node \d)", first).groups()
    frame = run.edges.frame().set_index(["source", "target"])
    assert f"{frame.loc[(source, target), 'toy']:.1f}" in first.split()


def test_the_page(run, tmp_path):
    write_page([run], tmp_path / "page.html", "toys")
    page = (tmp_path / "page.html").read_text()
    assert '<th scope="col" data-column="toy"><button type="button">fun</button></th>' in page
    assert "Fun: in smiles." in page
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    assert data["shared"]["columns"]["toy"] == {
        "kind": "number", "digits": 1, "signed": False, "words": [], "labels": [], "inFile": True, "exported": True,
    }  # fmt: skip
    assert "toy" in data["runs"][0]["edges"]
    (head,) = (heads for heads in re.findall(r"<thead><tr>.*?</thead>", page, re.S) if 'data-column="toy"' in heads)
    place = re.findall(r'data-column="(\w+)"', head).index("toy")
    body = page.split(head)[1].split("</tbody>")[0]
    shown = [re.findall(r"<td[^>]*>(.*?)</td>", row)[place] for row in re.findall(r"<tr>.*?</tr>", body, re.S)]
    assert set(shown) <= {f"{value:.1f}" for value in run.edges["toy"]}


def test_the_reference(run):
    assert "| `toy` | how much fun the edge is | nobody laughs |" in schema.reference(schema.file_columns())


def test_the_reference_page_is_that_of_the_schema():
    """Written by ``python tools/edge_columns.py``."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    for columns in (schema.file_columns(), schema.LAG_COLUMNS, schema.BY_COLUMNS):
        assert schema.reference(columns) in text


@pytest.mark.browser
def test_the_page_exports_it(run, tmp_path, opened):
    write_page([run], tmp_path / "page.html", "toys")
    page = opened(tmp_path / "page.html", accept_downloads=True)
    head = page.locator("th[data-column=toy] button")
    head.click()
    place = page.locator(".edge-table th").all_inner_texts().index("fun")
    cells = [row.locator("td").nth(place).inner_text() for row in page.locator(".edge-table tbody tr").all()]
    assert cells == sorted(cells, key=float, reverse=True)
    page.locator(".graph .export summary").click()
    with page.expect_download() as wait:
        page.click("[data-export=graphml]")
    assert 'attr.name="toy"' in wait.value.path().read_text()
    with page.expect_download() as wait:
        page.click(".edges .download")
    assert "toy" in pd.read_csv(wait.value.path()).columns
