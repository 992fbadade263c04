"""``edges_by.csv``: written, read back, and covered by the record."""

import pytest

from tacit.edges import EdgesBy, read_edges_by

NODES = ["up, stream", 'la"ke', "sea"]
ROWS = EdgesBy(
    source=[0, 0],
    target=[1, 1],
    by=["hour", "hour"],
    value=["0", "1"],
    probability=[0.25, 1 / 3],
    std_error=[0.01, None],
    low=[0.2, None],
    high=[0.3, None],
)


def test_the_text_is_read_back():
    found = read_edges_by(ROWS.text(NODES), NODES)
    assert found.source == ROWS.source
    assert found.value == ["0", "1"]
    assert found.std_error == [0.01, None]
    assert found.probability[1] == pytest.approx(1 / 3, abs=1e-6)


def test_a_bad_table_is_refused():
    with pytest.raises(ValueError, match="node that is not in"):
        read_edges_by(ROWS.text(NODES), ["a", "b", "c"])
    with pytest.raises(ValueError, match="must be from 0 to 1"):
        read_edges_by(ROWS.text(NODES).replace("0.25", "2.5"), NODES)
    with pytest.raises(ValueError, match="one length"):
        EdgesBy(source=[0], target=[], by=["hour"], value=["1"])


def test_joined_tables_follow_one_another():
    both = EdgesBy.joined([ROWS, ROWS])
    assert len(both) == 4
    assert both.frame(NODES)["std_error"].isna().tolist() == [False, True, False, True]
