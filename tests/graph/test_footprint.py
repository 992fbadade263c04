"""What memory is needed, what is free, and what is said when it is not enough."""

import pytest
import torch

from tacit.errors import InputError
from tacit.graph import memory as footprint
from tacit.graph.memory import free_bytes, require_memory, size_in_words, step_bytes

STEP = {"rows": 7, "columns": 5, "num_graphs": 3, "draws": 2, "batch": 2, "nodes": 6, "channels": 4, "number_bytes": 8}


def test_a_step_is_the_sum_of_its_parts():
    """Each factor of the formula by itself: what one more of it adds."""
    parts = {
        "table and parameters": (17 + 64) * 7 * 5,
        "graphs": 33 * 2 * 3 * 7 * 5,
        "gathered": 2 * 8 * 2 * 7 * 5 * 4,
        "values": 8 * 8 * 2 * 3 * 6 * 4,
    }
    assert step_bytes(**STEP) == sum(parts.values())
    assert step_bytes(**STEP | {"nodes": 7}) - step_bytes(**STEP) == parts["values"] // 6
    assert step_bytes(**STEP | {"draws": 3}) - step_bytes(**STEP) == parts["graphs"] // 2
    assert step_bytes(**STEP | {"channels": 5}) - step_bytes(**STEP) == (parts["gathered"] + parts["values"]) // 4


@pytest.fixture
def system(tmp_path):
    """A system as its files describe it: 8 GB available, and whatever groups a test adds."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("proc/meminfo", "MemTotal:  16000000 kB\nMemFree:  100 kB\nMemAvailable:  8000000 kB\n")
    return tmp_path, write


def test_what_the_kernel_calls_available(system):
    root, _ = system
    assert free_bytes("cpu", root) == 8_000_000 * 1024


def test_a_group_that_leaves_less(system):
    root, write = system
    write("proc/self/cgroup", "0::/outer/inner\n")
    write("sys/fs/cgroup/outer/inner/memory.max", "max\n")
    write("sys/fs/cgroup/outer/memory.max", "1000\n")
    write("sys/fs/cgroup/outer/memory.current", "700\n")
    assert free_bytes("cpu", root) == 300
    write("sys/fs/cgroup/outer/memory.stat", "anon 500\ninactive_file 50\n")
    assert free_bytes("cpu", root) == 350
    write("sys/fs/cgroup/outer/memory.current", "1200\n")
    assert free_bytes("cpu", root) == 0


def test_a_group_of_the_first_version(system):
    root, write = system
    write("proc/self/cgroup", "5:devices:/other\n4:memory:/job\n0::/\n")
    write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n")
    write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "2000\n")
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n")
    assert free_bytes("cpu", root) == 3000


def test_a_system_that_does_not_say(tmp_path, monkeypatch):
    assert free_bytes("cpu", tmp_path) is None
    monkeypatch.setattr(footprint, "free_bytes", lambda _: None)
    require_memory(10**30, "cpu", "a dream", "wake up")  # nothing is known, so nothing is refused


def test_this_system_has_some():
    free = free_bytes()
    assert free is None or 10**6 < free < 10**15


def test_too_much_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(footprint, "free_bytes", lambda _: 20 * 10**9)
    need = step_bytes(rows=10**5, columns=10**5, num_graphs=1, draws=1, batch=1, nodes=10**5, channels=1)
    assert size_in_words(need) == "740 GB"
    with pytest.raises(InputError) as error:
        require_memory(need, "cpu", "a step over 10,000,000,000 candidate edges", "use fewer graphs")
    assert str(error.value) == (
        "a step over 10,000,000,000 candidate edges requires about 740 GB of memory, but 20 GB is free; "
        "use fewer graphs"
    )
    require_memory(20 * 10**9, "cpu", "a step", "use fewer graphs")
    with pytest.raises(InputError, match="20 GB is free on cuda:0; use fewer graphs"):
        require_memory(20 * 10**9 + 1, torch.device("cuda:0"), "a step", "use fewer graphs")


@pytest.mark.gpu
def test_a_gpu_says_what_is_free():
    before = free_bytes("cuda")
    held = torch.empty(2**28, dtype=torch.uint8, device="cuda")
    assert before - free_bytes("cuda") >= 2**28
    del held
    assert abs(before - free_bytes("cuda")) < 2**26  # torch keeps the room, and it can be had again
