"""Shapes and types are enforced in unit tests; the global random generator must stay untouched in every test."""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported, and for processes that tests start

import jaxtyping
from jaxtyping import install_import_hook

if os.environ.get("TACIT_TYPECHECK", "1") == "1":
    install_import_hook("tacit", "typechecking.check")

import pytest
import torch

# A background job starts with Ctrl-C ignored and hands that on; the tests of Ctrl-C want it as on a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
torch.set_num_threads(1)  # the tensors are tiny: threads would only wait for each other

# Tests in these folders, and in tests/ itself, run the command, whole fits, pages or documents, as a user does: without
# checks of shapes, which would cost more than the tests. Tests in all other folders are unit tests and have them.
END_TO_END = {"tests", "tacit", "cli", "docs", "experiments", "fuzz", "pipeline", "plots", "records", "report"}
END_TO_END |= {"sklearn"}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Switch the checks before any fixture is made, so that fixtures of whole modules have them or not as well."""
    jaxtyping.config.update("jaxtyping_disable", item.path.parent.name in END_TO_END)


if "MUTANT_UNDER_TEST" in os.environ:

    def pytest_itemcollected(item):
        item._nodeid = item.nodeid  # mutmut 3.8 reads it, pytest 9.2 no longer has it


@pytest.fixture(autouse=True)
def global_generator_untouched():
    before = torch.get_rng_state()
    yield
    assert torch.equal(before, torch.get_rng_state()), "the global generator was used"


@pytest.fixture
def unchecked():
    """Switch the shape checks off, as for a user: the library's own errors must do."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def own_kinds():
    """Let a test register kinds; they are forgotten after it."""
    import tacit.config  # noqa: F401 - all kinds of the package are registered then
    from tacit.registry import REGISTRIES

    before = {what: dict(registry._kinds) for what, registry in REGISTRIES.items()}
    yield
    for what, registry in REGISTRIES.items():
        registry._kinds = before[what]
