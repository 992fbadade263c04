"""``tacit check``: reads a table as ``tacit fit`` does and prints its findings, which a fit prints and records too."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from commands import call


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("check"), np.random.default_rng(0)
    table = pd.DataFrame((20 + rng.normal(size=(200, 4))).round(3), columns=["a", "b", "c", "d"])
    table.insert(0, "time", pd.date_range("2026-01-01", periods=200))
    table.to_csv(folder / "plain.csv", index=False)
    pd.concat([table[:100], table[99:]]).to_csv(folder / "twice.csv", index=False)
    table.loc[120:, "b"] *= 1000
    table.loc[50, "c"] = -999
    table.assign(copy=table["a"] * 2).to_csv(folder / "odd.csv", index=False)
    np.savez(folder / "pairs.npz", x=rng.normal(size=(60, 3, 1)), y=rng.normal(size=(60, 3, 1)))
    return folder


@pytest.fixture
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_findings_are_printed(there, capsys):
    assert call("check", "odd.csv") == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "odd.csv: 5 nodes, 200 rows from 2026-01-01 to 2026-07-19"
    expected = [
        ("'b'", "2026-05-01", "--where"),
        ("'c'", "-999", "2026-02-20"),
        ("'a'", "--drop copy"),
        ("level shift (b)", "--background none"),
    ]
    for line, words in zip(lines, expected, strict=True):
        assert all(word in line for word in words)
    assert call("check", "plain.csv", "--quiet") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1:] == ["- nothing was found that may mislead a fit"]
    assert shown.err == ""


def test_findings_are_typed_in_json(there, capsys):
    assert call("check", "odd.csv", "--drop", "copy", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["rows"], found["series"]) == (["a", "b", "c", "d"], 200, 1)
    assert [(one["kind"], one["nodes"], one["rows"]) for one in found["findings"]] == [
        ("unit", ["b"], [120]),
        ("spikes", ["c"], [50]),
    ]
    assert found["findings"][0]["times"] == ["2026-05-01T00:00:00"]
    assert found["findings"][0]["numbers"]["unit"] == 1000


def test_tables_are_read_as_a_fit_reads_them(there, capsys):
    assert call("check", "twice.csv") == 2
    assert "2026-04-10T00:00:00 comes twice, in rows 100 and 101; remove" in capsys.readouterr().err
    assert call("check", "twice.csv", "--duplicates", "mean") == 0
    assert "note: 1 row repeats a time: their mean is used (duplicates = mean)" in capsys.readouterr().err
    for arguments, message in {
        ("pairs.npz",): "pairs.npz: a check requires time series, got pairs (x, y); pass a table with times",
        ("none.csv",): "there is no such file",
        ("plain.csv", "--duplicates", "sum"): "duplicates in [data] is not usable: input should be 'first', 'last' or",
        ("plain.csv", "--drop", "e"): "drop names the column 'e', which does not exist",
        (): "Missing argument",
    }.items():
        assert call("check", *arguments) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert message.lower() in error.lower()


def test_a_fit_prints_and_records_them(there, tmp_path, capsys):
    assert call("check", "odd.csv", "--json") == 0
    expected = [one["sentence"] for one in json.loads(capsys.readouterr().out)["findings"]]
    assert call("fit", "odd.csv", "--quick", "--out", tmp_path / "run") == 0
    shown = capsys.readouterr()
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert [note for note in record["warnings"] if note in expected] == expected
    lines = shown.err.splitlines()
    first_edges = next(number for number, line in enumerate(lines) if "first look" in line)
    assert [line[7:].strip() for line in lines[:first_edges] if line[7:].strip() in expected] == expected


def test_many_cycles_of_a_node_are_counted(tmp_path, capsys):
    """The profile of shifts of another length than a day takes several waves, which are one line."""
    hours = np.arange(24 * 70)
    rng = np.random.default_rng(0)
    working = ((hours // 30 % 7 < 5) & (hours % 30 >= 8) & (hours % 30 < 18)) * (1 + 0.1 * rng.normal(size=len(hours)))
    times = np.datetime64("2025-01-06T00") + hours
    lines = [f"{time},{a:.3f},{b:.3f}" for time, a, b in zip(times, working, rng.normal(size=len(hours)), strict=True)]
    (tmp_path / "office.csv").write_text("\n".join(["time,present,other", *lines]) + "\n")
    assert call("check", tmp_path / "office.csv", "--quiet") == 0
    said = capsys.readouterr().out
    assert re.search(r"- \d+ cycles of \S+ hours to \S+ hours \(present\): edges are tested", said)
    assert said.count("cycle of") == 0
