r"""Memory estimates of a job, made before memory is allocated.

A training step uses a table of $R$ rows and $K$ columns, $S$ graphs for each of $D$ draws ($D$ is the batch size, or 1
if the batch shares its graphs), a batch of $B$ pairs, $N$ nodes, $C$ channels and $b$ bytes per number. It requires
about this many bytes:

$$17 R K + 8 b R K + (4 b + 1) D S R K + 2 b B R K C + 8 b B S N C$$

===================  =================================================================================================
$17 R K$             the table: a source (8 bytes) and a flag per slot, and a second index, as gathering keeps one
$8 b R K$            per edge: stored number, its gradient, Adam's two moments, two logarithms and their gradients
$(4 b + 1) D S R K$  per edge and graph: uniform, comparison with the probability, graph, and two products with the
                     weights of the score
$2 b B R K C$        the values of the sources, gathered for each slot, and their gradient
$8 b B S N C$        per node and graph: outputs, samples, differences to the target, costs, and their gradients
===================  =================================================================================================

The estimate is for one message-passing layer; measured peaks of 0.1 to 1.3 GB were 0.8 to 1.4 times the estimate.
"""

import math
import os
from pathlib import Path

import torch

from tacit.errors import InputError


def step_bytes(
    *,
    rows: int,
    columns: int,
    num_graphs: int,
    draws: int,
    batch: int,
    nodes: int,
    channels: int,
    number_bytes: int = 4,
) -> int:
    """Return the bytes that a training step requires, by the sum in the module docstring.

    >>> step_bytes(rows=10_000, columns=50, num_graphs=16, draws=1, batch=32, nodes=10_000, channels=1) / 1e9
    0.45234
    """
    table = rows * columns
    edges = (17 + 8 * number_bytes) * table
    graphs = (4 * number_bytes + 1) * draws * num_graphs * table
    gathered = 2 * number_bytes * batch * table * channels
    values = 8 * number_bytes * batch * num_graphs * nodes * channels
    return edges + graphs + gathered + values


def free_bytes(device: torch.device | str = "cpu", root: Path = Path("/")) -> int | None:
    """Return the bytes that are still available on a device, or None if the system does not report them.

    On a CPU this is the kernel's available memory, or the remaining memory of a control group if that is less; both are
    read from files under ``root``. On a GPU it is the free memory plus the memory that torch has reserved but not used.
    """
    device = torch.device(device)
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    # The memory that Linux reports as available without swapping; on other systems, the total memory.
    meminfo = dict(line.split(":", 1) for line in _text(root / "proc/meminfo").splitlines() if ":" in line)
    known = _left_in_groups(root)
    if "MemAvailable" in meminfo:
        known.append(int(meminfo["MemAvailable"].split()[0]) * 1024)
    elif root == Path("/") and "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return max(min(known), 0) if known else None


def require_memory(needed: int, device: torch.device | str, what: str, remedy: str) -> None:
    """Raise :class:`InputError` if ``needed`` exceeds the free bytes.

    >>> require_memory(520 * 10**15, "cpu", "a step over 10 edges", "use fewer graphs")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: a step over 10 edges requires about 520,000,000 GB of memory, ... free; use fewer graphs
    """
    free = free_bytes(device)
    if free is not None and needed > free:
        where = f" on {device}" if torch.device(device).type != "cpu" else ""
        raise InputError(
            f"{what} requires about {size_in_words(needed)} of memory, but {size_in_words(free)} is free{where}; "
            f"{remedy}"
        )


def size_in_words(size: int) -> str:
    """Format a number of bytes with a readable unit.

    >>> size_in_words(520_400_000_000), size_in_words(2_340_000_000), size_in_words(1_200_000)
    ('520 GB', '2.3 GB', '2 MB')
    >>> size_in_words(10**400)
    '10^391 GB'
    """
    if size >= 10**18:
        return f"10^{math.floor(math.log10(size)) - 9} GB"
    if size >= 10**10:
        return f"{size / 1e9:,.0f} GB"
    return f"{size / 1e9:.1f} GB" if size >= 10**9 else f"{-(-size // 10**6)} MB"


def _left_in_groups(root: Path) -> list[int]:
    """Return the remaining bytes of each control group of this process that has a limit (version 2, then 1)."""
    left = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        base = root / "sys/fs/cgroup" / controllers
        limit, used = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        )
        inside = base / name.lstrip("/")
        for group in (inside, *inside.parents):
            most, now = _text(group / limit).strip(), _text(group / used).strip()
            if most.isdigit() and now.isdigit():
                stats = dict(row for row in map(str.split, _text(group / "memory.stat").splitlines()) if len(row) == 2)
                cache = int(stats.get("total_inactive_file", stats.get("inactive_file", 0)))  # can be released
                left.append(int(most) - int(now) + cache)
            if group == base:
                break
    return left


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
